// The chapters of "How to Scale Your Model", in our own words.

export interface Chapter {
  id: string;
  number: string;
  name: string;
  words: string;
}
export const home = "https://jax-ml.github.io/scaling-book/";
export const chapters: readonly Chapter[] = [
  {
    id: "roofline",
    number: "1",
    name: "Rooflines",
    words:
      "An operation takes at least as long as its arithmetic and at least as long as its bytes. Which of the two is longer depends on one ratio, FLOP per byte; above a chip's critical intensity arithmetic limits, below it memory. For a product of weights with a batch that turns into a critical batch.",
  },
  {
    id: "tpus",
    number: "2",
    name: "TPUs",
    words:
      "A systolic array multiplies while numbers stream through it, and needs full tiles and long streams to stay busy. Around it lie memories, each larger and slower than the one before, and links that join chips into a torus with or without wraparound.",
  },
  {
    id: "sharding",
    number: "3",
    name: "Sharded arrays",
    words:
      "An array is split over the axes of a mesh. Some products of split arrays need no communication, others gather an operand, and those over a split contraction leave partial sums to be added. Four collectives do all of it, and a ring's time depends on the bytes, hardly on the number of chips.",
  },
  {
    id: "transformers",
    number: "4",
    name: "Transformers",
    words:
      "Parameters, FLOP and cache of a model follow from a handful of sizes. Training takes about six FLOP per parameter and token; attention adds a share that grows with the context.",
  },
  {
    id: "training",
    number: "5",
    name: "Training",
    words:
      "Data, fully sharded, tensor and pipeline parallelism each move something else over the network. Each stops to scale where its bytes take longer than the arithmetic they hide behind; mixing them moves that point.",
  },
  {
    id: "applied-training",
    number: "6",
    name: "Training LLaMA 3",
    words:
      "The rules of the chapter before, applied to one model on one pod: memory, time, cost, and how few chips would still do.",
  },
  {
    id: "inference",
    number: "7",
    name: "Inference",
    words:
      "Prefill is arithmetic, decoding is memory: every step reads all weights and the cache once. A larger batch shares the weights and lengthens the step, so that latency is traded for throughput.",
  },
  {
    id: "applied-inference",
    number: "8",
    name: "Serving LLaMA 3",
    words: "How many chips hold the model and its cache, what a token costs, and where the batch stops to pay.",
  },
  {
    id: "profiling",
    number: "9",
    name: "Profiling",
    words:
      "What a compiler made of a program, and where its time went. The Profile view reads traces and compiled programs of your own; the chapter's numbers are checked here.",
  },
  {
    id: "jax-stuff",
    number: "10",
    name: "Programming in JAX",
    words:
      "Sharding as a program says it: found for the whole program, part of every type, or written device by device. Small programs run on virtual devices, and their results are compared with those of one.",
  },
  {
    id: "gpus",
    number: "12",
    name: "GPUs",
    words:
      "The same rooflines on another shape of hardware: many small cores, a node of fast links, a tree of slower ones above it. What a collective costs is set by the narrowest level.",
  },
];
