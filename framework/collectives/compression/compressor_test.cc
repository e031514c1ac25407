// SPDX-License-Identifier: Apache-2.0
// Tests the properties that every compressor promises.
#include "framework/collectives/compression/compressor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_of;
using testing::make_compressor;
using testing::mean_gradient;
using testing::run_ranks;
using testing::same_on_all_ranks;

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The bytes that all ranks together send for n elements, according to the comments of the compressors.
using Formula = std::function<std::int64_t(std::int64_t n, int ranks)>;

std::int64_t of_all_reduce(std::int64_t bytes, int ranks) { return ranks * ceil_of(2 * (ranks - 1) * bytes, ranks); }

// Returns the bytes for the near-square matrix of n elements as factors of rank 2, and its uncompressed remainder.
std::int64_t of_powersgd(std::int64_t n, int ranks) {
  const auto rows = static_cast<std::int64_t>(std::sqrt(n));
  const auto columns = n / rows;
  const auto rank = std::min<std::int64_t>(2, rows);
  if ((rows + columns) * rank >= rows * columns) return of_all_reduce(4 * n, ranks);
  const auto left_over = n - rows * columns;
  return of_all_reduce(4 * (rows * rank + left_over), ranks) + of_all_reduce(4 * columns * rank, ranks);
}

const std::map<std::string, Formula>& formulas() {
  static const std::map<std::string, Formula> all = {
      {"none", [](auto n, int p) { return of_all_reduce(4 * n, p); }},
      {"fp16", [](auto n, int p) { return of_all_reduce(2 * n, p); }},
      {"bf16", [](auto n, int p) { return of_all_reduce(2 * n, p); }},
      {"{name: int8, block: 64}", [](auto n, int p) { return 2 * (p - 1) * (n + 4 * ceil_of(n, 64)); }},
      {"{name: int4, block: 64}", [](auto n, int p) { return 2 * (p - 1) * (ceil_of(n, 2) + 4 * ceil_of(n, 64)); }},
      {"{name: one_bit, block: 64}", [](auto n, int p) { return 2 * (p - 1) * (ceil_of(n, 8) + 4 * ceil_of(n, 64)); }},
      {"{name: topk, fraction: 0.05}", [](auto n, int p) { return p * (p - 1) * 8 * ceil_of(n, 20); }},
      {"{name: powersgd, rank: 2}", of_powersgd},
  };
  return all;
}

using Case = std::tuple<std::string, int>;  // compression, ranks

class EveryCompressor : public ::testing::TestWithParam<Case> {
 protected:
  const std::string& yaml() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};

std::vector<std::string> all_compressions() {
  std::vector<std::string> all;
  for (const auto& [yaml, formula] : formulas()) all.push_back(yaml);
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto name = testing::choose_compression(std::get<0>(info.param)).selected();
  return name + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ranks, EveryCompressor,
                         ::testing::Combine(::testing::ValuesIn(all_compressions()), ::testing::Range(1, 6)), name_of);

// Zero, one, an odd number, one whole block, several blocks with a short one, and fewer blocks than ranks.
const std::vector<std::int64_t> kSizes = {0, 1, 7, 64, 129, 1000, 4097};

TEST(Compressors, AreAllTestedHere) {
  std::vector<std::string> tested;
  for (const auto& yaml : all_compressions()) tested.push_back(testing::choose_compression(yaml).selected());
  EXPECT_THAT(tested, ::testing::UnorderedElementsAreArray(Compressors::global().names()));
}

TEST_P(EveryCompressor, GivesAllRanksTheSameBits) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    for (const auto size : kSizes) {
      const auto compressor = make_compressor(yaml(), {size});
      for (int step = 0; step < 3; ++step) {
        const at::Tensor tensor = gradient_of(group->rank(), step, size);
        compressor->all_reduce_mean(*group, tensor);
        EXPECT_TRUE(same_on_all_ranks(tensor, *group)) << size << " elements, step " << step;
        EXPECT_TRUE(at::isfinite(tensor).all().item<bool>());
      }
    }
  });
}

TEST_P(EveryCompressor, CountsTheBytesOfItsFormula) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    for (const auto size : kSizes) {
      const auto compressor = make_compressor(yaml(), {size});
      for (int step = 0; step < 2; ++step) {
        const auto sent = compressor->all_reduce_mean(*group, gradient_of(group->rank(), step, size));
        const at::Tensor total = at::full({1}, sent, at::kLong);
        group->all_reduce(total, Reduction::kSum).wait();
        const auto expected = size == 0 || ranks() == 1 ? 0 : formulas().at(yaml())(size, ranks());
        EXPECT_EQ(total.item<std::int64_t>(), expected) << size << " elements";
      }
    }
  });
}

// The error that is still to be delivered is bounded: over many steps the error of the average decreases as 1 / steps.
// Without feedback it would not, because repeated gradients would have the same error each time.
class ErrorFeedback : public EveryCompressor {};
INSTANTIATE_TEST_SUITE_P(Ranks, ErrorFeedback,
                         ::testing::Combine(::testing::Values("{name: int8, block: 64}", "{name: int4, block: 64}",
                                                              "{name: one_bit, block: 64}",
                                                              "{name: topk, fraction: 0.05}",
                                                              "{name: powersgd, rank: 2}"),
                                            ::testing::Range(2, 6)),
                         name_of);

TEST_P(ErrorFeedback, DeliversTheSumOfTheMeansInTheLongRun) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    constexpr std::int64_t kSize = 900;
    constexpr int kSteps = 200;
    const auto compressor = make_compressor(yaml(), {kSize});
    at::Tensor missing = at::zeros({kSize}, at::kDouble), sum = at::zeros({kSize}, at::kDouble);
    double first_half = 0, second_half = 0;
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor mean = mean_gradient(group->size(), step % 10, kSize);
      const at::Tensor tensor = gradient_of(group->rank(), step % 10, kSize);
      compressor->all_reduce_mean(*group, tensor);
      sum += mean;
      missing += mean - tensor;
      (step < kSteps / 2 ? first_half : second_half) += missing.norm().item<double>();
    }
    EXPECT_LE(second_half, 1.5 * first_half) << "the missing part grows";
    EXPECT_LT(missing.norm().item<double>(), 0.5 * sum.norm().item<double>());
  });
}

// Compressors that can begin without compression.
class StartAfter : public EveryCompressor {};
INSTANTIATE_TEST_SUITE_P(Ranks, StartAfter,
                         ::testing::Combine(::testing::Values("{name: one_bit, start_after: 2}",
                                                              "{name: powersgd, rank: 1, start_after: 2}"),
                                            ::testing::Range(2, 6)),
                         name_of);

TEST_P(StartAfter, TheFirstStepsAreExact) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const auto compressor = make_compressor(yaml(), {400});
    for (int step = 0; step < 4; ++step) {
      const at::Tensor tensor = gradient_of(group->rank(), step, 400);
      const auto sent = compressor->all_reduce_mean(*group, tensor);
      const double error = (tensor - mean_gradient(group->size(), step, 400)).abs().max().item<double>();
      EXPECT_EQ(sent == all_reduce_bytes(1600, group->size()), step < 2) << "step " << step;
      EXPECT_EQ(error < 1e-6, step < 2) << "step " << step;
    }
  });
}

// Like a run that resumes from a checkpoint written during the uncompressed steps.
TEST_P(StartAfter, TheFirstStepsAreCountedInTheState) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const auto first = make_compressor(yaml(), {400}), second = make_compressor(yaml(), {400});
    first->all_reduce_mean(*group, gradient_of(group->rank(), 0, 400));
    const auto saved = first->state(*group), state = second->state(*group);
    ASSERT_EQ(state.size(), saved.size());
    for (std::size_t i = 0; i < state.size(); ++i) state[i].values.copy_(saved[i].values);
    for (int step = 1; step < 4; ++step) {
      const at::Tensor expected = gradient_of(group->rank(), step, 400), tensor = expected.clone();
      first->all_reduce_mean(*group, expected);
      second->all_reduce_mean(*group, tensor);
      EXPECT_TRUE(at::equal(tensor, expected)) << "step " << step;
    }
  });
}

TEST_P(EveryCompressor, ChangesNothingOnOneRank) {
  run_ranks("inproc", 1, [this](const CommunicatorPtr& group) {
    const at::Tensor tensor = gradient_of(0, 0, 100);
    EXPECT_EQ(make_compressor(yaml(), {100})->all_reduce_mean(*group, tensor), 0);
    EXPECT_TRUE(at::equal(tensor, gradient_of(0, 0, 100)));
  });
}

TEST_P(EveryCompressor, DeliversNonFiniteElementsAndForgetsThem) {
  run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    constexpr std::int64_t kSize = 400;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const auto compressor = make_compressor(yaml(), {kSize});
      compressor->all_reduce_mean(*group, gradient_of(group->rank(), 0, kSize));
      at::Tensor tensor = gradient_of(group->rank(), 1, kSize);
      if (group->rank() == group->size() - 1) tensor[130] = bad;
      compressor->all_reduce_mean(*group, tensor);
      EXPECT_FALSE(std::isfinite(tensor[130].item<float>()));
      EXPECT_TRUE(same_on_all_ranks(tensor, *group));
      for (int step = 2; step < 5; ++step) {
        tensor = gradient_of(group->rank(), step, kSize);
        compressor->all_reduce_mean(*group, tensor);
        EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << "step " << step << " after " << bad;
      }
      EXPECT_GT(tensor.norm().item<double>(), 0);
    }
  });
}

TEST_P(EveryCompressor, RefusesTensorsOfAnotherDtypeSizeOrLayout) {
  run_ranks("inproc", 1, [this](const CommunicatorPtr& group) {
    const auto compressor = make_compressor(yaml(), {12});
    EXPECT_THROW(compressor->all_reduce_mean(*group, at::zeros({12}, at::kDouble)), std::invalid_argument);
    EXPECT_THROW(compressor->all_reduce_mean(*group, at::zeros({11})), std::invalid_argument);
    EXPECT_THROW(compressor->all_reduce_mean(*group, at::zeros({4, 3}).t()), std::invalid_argument);
    EXPECT_NO_THROW(compressor->all_reduce_mean(*group, at::zeros({4, 3})));
    EXPECT_THROW(make_compressor(yaml(), {12, {{3, 3}, {2}}}), std::invalid_argument);
    EXPECT_NO_THROW(make_compressor(yaml(), {12, {{3, 3}, {3}}}));
  });
}

}  // namespace
}  // namespace phalanx
