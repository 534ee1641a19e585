// Rows of a table of inference measurements.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "assay/lab/validate/rows/inference_rows.h"
#include "assay/testing/catalogue.h"

namespace assay::testing {

/// llama-2-7b on one chip; `rest` is version, mode, batch, prompt, output, phase, the four times, year, notes.
inline std::string inference_line(std::string_view chip, std::string_view engine, std::string_view rest) {
  return "a,src,Llama,32,4096,11008,32,32,128,32000,y," + std::string(chip) + ",1,1,1,,,fp16," + std::string(engine) +
         "," + std::string(rest) + "\n";
}

inline validate::InferenceRows read_inference_lines(std::string_view lines) {
  const auto table = validate::CsvTable::parse(
      "id,source_key,model,layers,d_model,d_ff,n_heads,n_kv_heads,head_dim,vocab,gated_mlp,accelerator,n_chips,tp,pp,"
      "ep,dp_attention,weight_precision,engine,engine_version,mode,batch,input_len,output_len,phase,ttft_ms,tpot_ms,"
      "e2e_latency_ms,output_tokens_per_s,year,notes\n" +
          std::string(lines),
      "test.csv");
  EXPECT_TRUE(table);
  return *validate::read_inference(*table, catalogue());
}

}  // namespace assay::testing
