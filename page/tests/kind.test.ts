import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf } from "../src/parts/kind";

const kind = (text: string): string => kindOf(new TextEncoder().encode(text));

test("a file is known by what is in it", () => {
  assert.equal(kindOf(new Uint8Array([0x1f, 0x8b, 8])), "profile");
  assert.equal(kindOf(new Uint8Array([10, 5, 0, 7])), "profile");
  assert.equal(kind('{"schemaVersion": 1, "traceEvents": []}'), "profile");
  assert.equal(kind("HloModule jit_step, entry_computation_layout={}"), "profile");
  assert.equal(kind("#loc = loc(unknown)\nmodule @jit_f {"), "profile");
  assert.equal(kind('{\n  "architectures": ["LlamaForCausalLM"],\n  "hidden_size": 4096\n}'), "model");
  assert.equal(kind('{"timestamp": 0, "input_length": 6758, "hash_ids": [0]}\n{"timestamp": 1}'), "requests");
  assert.equal(kind("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,374,44"), "requests");
  assert.equal(kind("#!/bin/bash\nexport A=1\n"), "script");
  assert.equal(kind("torchrun --nproc_per_node 8 pretrain_gpt.py"), "script");
  assert.equal(kind("base_model: meta-llama/Llama-3\nmicro_batch_size: 2"), "script");
  assert.equal(kind('[model]\nname = "llama3"\n'), "script");
  assert.equal(kind("hello"), "unknown");
  assert.equal(kind(""), "unknown");
});
