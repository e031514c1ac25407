// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::bench_train {

/// The training job of one rank of a C++ program. bench_train passes the same fields to peers in Python.
struct LoopJob {
  int rank = 0, size = 1;
  std::string store{};                 // a file through which the ranks find each other; does not exist yet
  std::string model{};                 // of make_network()
  std::vector<std::string> options{};  // words that the program knows
  std::string inputs{}, targets{};     // files of all samples, row by row
  std::int64_t samples = 0;
  std::vector<std::int64_t> input{};  // shape of a sample
  std::int64_t classes = 0;
  bool text = false;       // samples are [characters] int64 with a target each; otherwise float32 with one target
  std::int64_t batch = 1;  // per rank
  double learning_rate = 0.1;

  bool has(const std::string& option) const;
};

/// Reads a job from JSON. Throws nlohmann::json::exception if a field is missing.
LoopJob read_loop_job(const std::string& json);

/// All samples, mapped into memory.
struct LoopSamples {
  at::Tensor inputs, targets;
};

/// Throws c10::Error if a file is missing or too short.
LoopSamples map_samples(const LoopJob& job);

}  // namespace phalanx::bench_train
