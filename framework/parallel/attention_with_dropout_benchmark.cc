// SPDX-License-Identifier: Apache-2.0
// Measures attention with dropout of its weights, forward and backward, with one thread: all weights at once, and in
// blocks. `peak_MiB` is the most memory that tensors have occupied besides query, key, value and the gradient.
//   bazel run //framework/parallel:attention_with_dropout_benchmark
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <vector>

#include "framework/parallel/attention_with_dropout.h"
#include "framework/testing/counting_allocator.h"

namespace phalanx {
namespace {

// Arguments: samples, heads, positions, width of a head.
void attend(benchmark::State& state, bool in_blocks) {
  testing::CpuBytes::count();
  at::set_num_threads(1);
  const auto random = [&] {
    return at::randn({state.range(0), state.range(2), state.range(1), state.range(3)}).transpose(1, 2);
  };
  std::vector<at::Tensor> leaves;
  for (int i = 0; i < 3; ++i) leaves.push_back(random().requires_grad_());
  const at::Tensor gradient = random();
  const DropoutNumbers dropout{.rate = 0.1, .layer = 1, .key = {.step = 2}};
  const std::int64_t before = testing::CpuBytes::live();
  testing::CpuBytes::begin_peak();
  for (auto _ : state) {
    const at::Tensor output = in_blocks ? attention_in_blocks(leaves[0], leaves[1], leaves[2], {}, dropout)
                                        : attention_at_once(leaves[0], leaves[1], leaves[2], {}, dropout);
    (void)torch::autograd::grad({output}, leaves, {gradient});
  }
  state.counters["peak_MiB"] = static_cast<double>(testing::CpuBytes::peak() - before) / (1 << 20);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"n", "heads", "positions", "width"})->Unit(benchmark::kMillisecond);
  benchmark->Args({8, 12, 512, 64});  // BERT-base
  for (const std::int64_t positions : {32, 64, 128, 256}) benchmark->Args({8, 4, positions, 32});
}

BENCHMARK_CAPTURE(attend, at_once, false)->Apply(shapes);
BENCHMARK_CAPTURE(attend, in_blocks, true)->Apply(shapes);

}  // namespace
}  // namespace phalanx

BENCHMARK_MAIN();
