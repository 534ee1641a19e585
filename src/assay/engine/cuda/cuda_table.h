/* What the library libassay-cuda.so offers: it runs a list of kernels on one GPU, and collectives with the GPUs of
   other processes. Plain structures and functions, so that the program itself neither needs CUDA to be compiled nor to
   start. */
#pragma once

enum AssayCudaType { assay_cuda_bf16, assay_cuda_fp32, assay_cuda_int32 };

/* An array in the memory of the GPU; several may use the same bytes one after the other. */
struct AssayCudaArray {
  long long offset; /* in bytes */
  long long elements;
  int type;
};

/* Operands in the order given here; sizes and numbers in that of the last column. */
enum AssayCudaKernel {
  assay_cuda_product,        /* a, b, what is added to the result, a bias for each column: c   m, n, k, matrices (one
                                after the other in all operands); flags: transposed operands */
  assay_cuda_embed,          /* tokens, table: rows             tokens, width, first row of the table, its rows */
  assay_cuda_embed_grad,     /* d_rows, tokens: d_table         the same */
  assay_cuda_bias_grad,      /* dy: d_bias                      rows, width */
  assay_cuda_norm,           /* x, scale: y                     rows, width; epsilon */
  assay_cuda_norm_grad,      /* dy, x, scale: dx, d_scale       rows, width; epsilon */
  assay_cuda_rotate,         /* x: y                            rows, heads, tokens, width, rotated, first
                                position; base; flag: back */
  assay_cuda_attention,      /* q, k, v: o, statistics          batch, heads, key heads, tokens, width; scale */
  assay_cuda_attention_grad, /* do, q, k, v, o, statistics: dq, dk, dv   the same */
  assay_cuda_join,           /* o, statistics, o of other keys, its statistics: o, statistics of all   batch, heads,
                                tokens, width; o may be in fp32 on its way */
  assay_cuda_clear,          /* : zeros */
  assay_cuda_activate,       /* up, gate or none: y             elements */
  assay_cuda_activate_grad,  /* dy, up, gate or none: d_up, d_gate   elements */
  assay_cuda_add,            /* a, b, ...: sum                  elements */
  assay_cuda_loss_sums,      /* logits, targets: sums           rows, vocabulary, its first token */
  assay_cuda_loss,           /* sums: losses                    rows */
  assay_cuda_loss_grad,     /* logits, targets, sums: d_logits rows, vocabulary, its first token; tokens of the batch */
  assay_cuda_route,         /* scores: gates                   rows, experts, experts of a token */
  assay_cuda_route_grad,    /* d_gates, scores: d_scores       the same */
  assay_cuda_slots,         /* gates: slot of each token and expert, below 0: none   as of dispatch */
  assay_cuda_dispatch,      /* tokens, slots: rows of experts  rows, experts, slots of an expert, width, first expert of
                               this device, its experts */
  assay_cuda_dispatch_grad, /* d_rows, slots: d_tokens         the same */
  assay_cuda_combine,       /* rows of experts, gates, slots: tokens   the same */
  assay_cuda_combine_grad,  /* d_tokens, rows of experts, gates, slots: d_rows, d_gates   the same */
  assay_cuda_cache_write,   /* new entries, places: cache      sequences, new tokens, width, room, first position */
  assay_cuda_cache_attention, /* q, keys, values, places: o     sequences, heads, key heads, new tokens, width, tokens
                                 in the cache, room; scale */
  assay_cuda_last_tokens,     /* x: y                           sequences, tokens, width, tokens before the last */
  assay_cuda_sample,          /* logits: tokens                 rows, vocabulary, its first token; with the flag
                                 partial, the best logit and its token instead, in fp32 */
  assay_cuda_best_part,       /* such pairs: tokens             rows, pairs of a row */
  assay_cuda_update, /* gradient, weight, master, first moment, second moment: weight   elements; whether its squares
                        count; flag: decays */
  assay_cuda_slice,  /* x: y     one of several parts: outer, inner, parts, which; x is [outer, parts, inner] */
  assay_cuda_all_gather,     /* x: y     outer, inner, group; y is [outer, devices, inner] */
  assay_cuda_reduce_scatter, /* x: y     the same; x is [outer, devices, inner] */
  assay_cuda_all_reduce,     /* x: y     1, elements, group */
  assay_cuda_all_to_all,     /* x: y     outer, inner, group, outer of y, inner of y; both as above */
  assay_cuda_shift,          /* x: y     1, elements, group; x goes to the next device, y comes from the one before */
  assay_cuda_send,           /* x:       elements, channel; does not wait for the receiver, and x must stay as it is */
  assay_cuda_receive,        /* : y      elements, channel; in the order of sending */
  assay_cuda_arrived,        /* all that was sent has arrived */
  assay_cuda_kernels
};

enum AssayCudaFlag {
  assay_cuda_transposed_a = 1,
  assay_cuda_transposed_b = 2,
  assay_cuda_backwards = 4,
  assay_cuda_decays = 8,
  assay_cuda_accumulates = 16, /* gradients of weights are added to those of earlier microbatches */
  assay_cuda_partial = 32,     /* of a part of the vocabulary: sums of a loss are exponentials, not logarithms */
  assay_cuda_unmasked = 64     /* queries see all keys, which come before them */
};

#define ASSAY_CUDA_INPUTS 7
#define ASSAY_CUDA_OUTPUTS 3

struct AssayCudaTask {
  int kernel;
  int step;                                           /* of the program: its clock runs; below 0: none */
  int in[ASSAY_CUDA_INPUTS], out[ASSAY_CUDA_OUTPUTS]; /* numbers of arrays; below 0: none */
  long long sizes[7];
  double number;
  int flags;
};

/* A cache has `room` for so many tokens of each sequence; the place of a sequence in it is a number of the array
   `places`.

   Element i of a weight starts as `shift + factor u(i)`, u uniform between -1 and 1: the i-th number that splitmix64
   makes of the seed. Of a part of it, element i is the one of the whole that its coordinates and these strides say. */
#define ASSAY_CUDA_DIMS 5
struct AssayCudaStart {
  int master, weight; /* below 0: none */
  unsigned long long seed;
  double shift, factor;
  long long first; /* element of the whole */
  long long sizes[ASSAY_CUDA_DIMS], strides[ASSAY_CUDA_DIMS];
};

struct AssayCudaAdam {
  double rate, first_decay, second_decay, epsilon, weight_decay;
};

/* A collective between some of the processes of a run, over memory of the host. `elements` of each part: a gathering
   has one part before and `count` after, a reduce-scatter the other way round, an all-to-all `count` of them; an
   all-reduce has all, and a shift passes one on. What is sent or received is between two: the sender comes first. */
struct AssayCudaExchange {
  int kind; /* assay_cuda_all_gather, ... */
  const int* ranks;
  int count, mine; /* of the group, and the place of this process in it */
  const void* in;
  void* out;
  long long elements;
  int type;
};

/* Devices that a collective is between, in the order of their parts. */
struct AssayCudaGroup {
  const int* ranks;
  int count, mine;
};

/* From one device to another, of different stages of a pipeline. */
struct AssayCudaChannel {
  int from, to; /* ranks; other devices have the same channel between other ranks, or no end of it */
};

/* The processes of a run. NCCL connects them where each has a GPU; otherwise `exchange` carries what they send. */
struct AssayCudaRanks {
  int rank, count;
  int local_rank, local_count; /* among those of this machine */
  const char* id;              /* of unique_id(), the same on all */
  void* context;
  const char* (*exchange)(void* context, const struct AssayCudaExchange* what);
};
#define ASSAY_CUDA_ID_BYTES 128

struct AssayCudaJob {
  const struct AssayCudaArray* arrays;
  const struct AssayCudaTask* tasks;
  const struct AssayCudaStart* starts;
  int array_count, task_count, start_count, step_count;
  long long bytes;     /* of all arrays */
  int tokens, targets; /* arrays of the whole batch */
  struct AssayCudaAdam adam;
  const struct AssayCudaGroup* groups;
  int group_count;
  const struct AssayCudaChannel* channels;
  int channel_count;
  const struct AssayCudaRanks* ranks; /* null: one process */
};

struct AssayCudaStep {
  double loss_sum, squared_gradients;
  double seconds; /* between the first and the last kernel */
};

/* A step of a server: tasks over arrays that lie where those of the job do, or in the memory after them. */
struct AssayCudaServing {
  const struct AssayCudaArray* arrays;
  const struct AssayCudaTask* tasks;
  int array_count, task_count;
  int tokens, places;      /* arrays that are copied to the GPU before the step */
  int logits, chosen;      /* and back after it; below 0: not */
  const int* given_tokens; /* of all sequences */
  const int* given_places;
  float* logit_values; /* of bf16 */
  int* chosen_values;
  int has_clocks; /* whether each task is timed, which keeps short ones apart */
};

struct AssayCuda {
  int version; /* of this table */
  /* Functions that return a text return null, or what went wrong; the text stays until the next call. */
  /* Makes what all ranks of a run need to find each other. */
  const char* (*unique_id)(char* bytes);
  const char* (*open)(const struct AssayCudaJob* job, void** session);
  /* One optimizer step; adds the seconds of each step of the program to `clocks`. */
  const char* (*step)(void* session, const int* tokens, const int* targets, struct AssayCudaStep* result,
                      double* clocks);
  /* The same for a server; `seconds` between the first and the last kernel. */
  const char* (*serve)(void* session, const struct AssayCudaServing* step, double* seconds, double* clocks);
  /* Copies an array of fp32 from or to the GPU; weights are set by their master copy where there is one, and cast. */
  const char* (*read)(void* session, int array, float* values);
  const char* (*write)(void* session, int master, int weight, const float* values);
  const char* (*device)(void* session);  /* "NVIDIA H200" */
  const char* (*network)(void* session); /* what carries collectives: "NCCL 2.28.3", "host memory"; "": nothing */
  void (*close)(void* session);
};

#define ASSAY_CUDA_VERSION 4
#define ASSAY_CUDA_TABLE "assay_cuda_table"
