// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/job.h"

#include <ATen/ops/from_file.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

namespace phalanx::bench_train {
namespace {

at::Tensor map_file(const std::string& path, const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  const auto elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  return at::from_file(path, /*shared=*/true, elements, dtype).view(shape);
}

}  // namespace

bool LoopJob::has(const std::string& option) const { return std::ranges::find(options, option) != options.end(); }

LoopJob read_loop_job(const std::string& json) {
  const auto job = nlohmann::json::parse(json);
  return {.rank = job.at("rank"),
          .size = job.at("size"),
          .store = job.at("store"),
          .model = job.at("model"),
          .options = job.at("options"),
          .inputs = job.at("inputs"),
          .targets = job.at("targets"),
          .samples = job.at("samples"),
          .input = job.at("input"),
          .classes = job.at("classes"),
          .text = job.at("text"),
          .batch = job.at("batch"),
          .learning_rate = job.at("learning_rate")};
}

LoopSamples map_samples(const LoopJob& job) {
  std::vector<std::int64_t> inputs{job.samples}, targets{job.samples};
  inputs.insert(inputs.end(), job.input.begin(), job.input.end());
  if (job.text) targets.push_back(job.input.at(0));
  return {map_file(job.inputs, inputs, job.text ? at::kLong : at::kFloat), map_file(job.targets, targets, at::kLong)};
}

}  // namespace phalanx::bench_train
