// SPDX-License-Identifier: Apache-2.0
// Measures the head of a language model whose vocabulary two ranks divide, forward and backward: logits of 512 tokens
// of width 256 over 50,257 words and their cross entropy, once with gathered logits and once with logits that stay
// divided.
//   bazel run //framework/parallel:sharded_logits_benchmark
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "framework/parallel/autograd_collectives.h"
#include "framework/parallel/sharded_logits.h"
#include "framework/partition/placement.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kTokens = 512, kWidth = 256, kWords = 50257;

at::Tensor loss_of(const at::Tensor& logits, const VocabularyShard& parts, const at::Tensor& target, bool gathered) {
  if (!gathered) return sharded_cross_entropy(logits, parts, target, -100, 0);
  return at::cross_entropy_loss(gather_logits(logits, parts), target);
}

// Returns the seconds of a step, after one step that is not timed.
double step(const CommunicatorPtr& world, bool gathered) {
  at::set_num_threads(1);
  VocabularyShard parts{.group = world, .sizes = {}};
  for (int rank = 0; rank < kRanks; ++rank) parts.sizes.push_back(nearly_equal_part(kWords, rank, kRanks).count);
  const auto own = parts.sizes[static_cast<std::size_t>(world->rank())];
  const at::Tensor x = at::randn({kTokens, kWidth}).requires_grad_(), weight = at::randn({own, kWidth}) * 0.02;
  const at::Tensor target = at::randint(kWords, {kTokens}, at::kLong);
  world->broadcast(target, 0).wait();
  weight.requires_grad_();
  double seconds = 0;
  for (int i = 0; i < 2; ++i) {
    world->barrier().wait();
    const auto begin = std::chrono::steady_clock::now();
    loss_of(at::matmul(copy_to_ranks(x, world), weight.t()), parts, target, gathered).backward();
    world->barrier().wait();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return seconds;
}

void head(benchmark::State& state, bool gathered) {
  for (auto _ : state) {
    double seconds = 0;
    testing::run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      const double own = step(world, gathered);
      if (world->rank() == 0) seconds = own;
    });
    state.SetIterationTime(seconds);
  }
}

BENCHMARK_CAPTURE(head, gathered, true)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(head, divided, false)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace phalanx

BENCHMARK_MAIN();
