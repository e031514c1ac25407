// SPDX-License-Identifier: Apache-2.0
// Compares the parts of a gpt that ranks divide with the whole model.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <memory>

#include "framework/parallel/divided_scores.h"
#include "framework/partition/sequence_part.h"
#include "framework/testing/worlds.h"
#include "models/context_parallel.h"
#include "models/sequence_parallel.h"
#include "models/tensor_parallel.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using testing::make_model;
using testing::run_ranks;

constexpr std::int64_t kSamples = 2, kLength = 12, kClasses = 11;

std::shared_ptr<Model> model_of(bool sharded, const CommunicatorPtr& world) {
  auto model = make_model("{name: gpt, layers: 2, heads: 4, width: 16}", language_samples(kLength, kClasses));
  testing::fill(*model);
  if (sharded) {
    auto* const layers = as<TensorParallel>(*model);
    (void)layers->partition_layers(layers->tensor_plan(), world);
  }
  return model;
}

at::Tensor text() {
  return (at::arange(kSamples * kLength, at::kLong) * 5).remainder(kClasses).view({kSamples, kLength});
}

void expect_close(const at::Tensor& got, const at::Tensor& expected) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LT((got - expected).abs().max().item<double>(), 1e-4);
}

TEST(ParallelGpt, HasTheLogitsOfItsVocabularyShard) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const at::NoGradGuard no_grad;
    const at::Tensor expected = model_of(false, world)->forward(text());
    const auto model = model_of(true, world);
    expect_close(model->forward(text()), expected);
    const auto parts = as<TensorParallel>(*model)->keep_logits_sharded();
    ASSERT_NE(parts, nullptr);
    EXPECT_EQ(parts->classes(), kClasses);
    const at::Tensor own = model->forward(text());
    EXPECT_LE(own.size(2), 3) << "of 11";
    expect_close(gather_scores(own, *parts), expected);
    EXPECT_EQ(as<TensorParallel>(*model_of(false, world))->keep_logits_sharded(), nullptr)
        << "each rank has all scores";
  });
}

TEST(ParallelGpt, HasItsPositionsOfASequence) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const at::NoGradGuard no_grad;
    const auto whole = model_of(false, world), part = model_of(false, world);
    as<ContextParallel>(*part)->enable_context_parallel(world);
    expect_close(part->forward(take_positions(text(), 1, *world)), take_positions(whole->forward(text()), 1, *world));
  });
}

TEST(ParallelGpt, MayShardPositionsBetweenItsLayers) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const at::NoGradGuard no_grad;
    const auto whole = model_of(false, world), shared = model_of(true, world);
    as<SequenceParallel>(*shared)->enable_sequence_parallel(world, /*overlap=*/false);
    expect_close(shared->forward(text()), whole->forward(text()));
    const auto moe = make_model("{name: moe_gpt, layers: 1, heads: 2, width: 8}", language_samples(kLength, kClasses));
    EXPECT_EQ(as<SequenceParallel>(*moe), nullptr) << "experts need whole tokens on each rank";
  });
}

}  // namespace
}  // namespace phalanx
