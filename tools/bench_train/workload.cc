// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/workload.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace phalanx::bench_train {

namespace {

std::vector<Workload> compared() {
  return {
      {.name = "mlp",
       .model = "{name: mlp, hidden: [512, 512]}",
       .own_model = "{name: mlp, hidden: [512, 512]}",
       .sample = classification_samples({1, 28, 28}, 10),
       .samples = 16384,
       .batch = 64,
       .learning_rate = 0.01,
       .in_jax = true,
       .in_cpp = true},
      {.name = "lenet",
       .model = "lenet",
       .own_model = "lenet",
       .sample = classification_samples({1, 28, 28}, 10),
       .samples = 16384,
       .batch = 64,
       .learning_rate = 0.01,
       .pictures = true,
       .in_jax = true,
       .in_cpp = true},
      {.name = "char_lm",
       .model = "{name: char_lm, layers: 4, heads: 4, width: 128, attention: explicit}",
       .own_model = "{name: char_lm, layers: 4, heads: 4, width: 128}",
       .sample = language_samples(64, 65),
       .samples = 8192,
       .batch = 16,
       .in_jax = true,
       .in_cpp = true},
      {.name = "gpt",
       .model = "{name: gpt, layers: 4, heads: 4, width: 256}",
       .own_model = "{name: gpt, layers: 4, heads: 4, width: 256}",
       .sample = language_samples(64, 65),
       .samples = 8192,
       .batch = 16,
       .divisible = true,
       .in_jax = true},
      {.name = "lstm",
       .model = "{name: lstm, layers: 2, width: 256}",
       .own_model = "{name: lstm, layers: 2, width: 256}",
       .sample = language_samples(64, 65),
       .samples = 8192,
       .batch = 16},
      {.name = "resnet18",
       .model = "resnet18",
       .own_model = "resnet18",
       .sample = classification_samples({3, 32, 32}, 10),
       .samples = 4096,
       .batch = 32,
       .learning_rate = 0.05,
       .pictures = true},
  };
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = [] {
    auto both = compared();
    std::ranges::move(zoo_workloads(), std::back_inserter(both));
    return both;
  }();
  return all;
}

const Workload& find_workload(std::string_view name) {
  const auto& all = workloads();
  const auto found = std::ranges::find(all, name, &Workload::name);
  if (found == all.end()) throw std::out_of_range("there is no workload " + std::string(name));
  return *found;
}

}  // namespace phalanx::bench_train
