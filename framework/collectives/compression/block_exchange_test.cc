// SPDX-License-Identifier: Apache-2.0
// Tests int8, int4 and one_bit against a reference of their recurrence, which holds all ranks as rows of numbers.
#include "framework/collectives/compression/block_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_of;
using testing::make_compressor;
using Row = std::vector<float>;

constexpr std::int64_t kBlock = 16;
const std::string kInt8 = "{name: int8, block: 16}";
const std::string kInt4 = "{name: int4, block: 16}";
const std::string kOneBit = "{name: one_bit, block: 16}";

// A function that returns the decoded code of a block.
using Decoded = Row (*)(const Row& block);

template <int kSteps>
Row steps_decoded(const Row& block) {
  float largest = 0;
  for (const float x : block) largest = std::max(largest, std::abs(x));
  const float scale = largest / kSteps;
  Row decoded;
  for (const float x : block) decoded.push_back(largest > 0 ? std::nearbyint(x * (kSteps / largest)) * scale : 0);
  return decoded;
}

Row one_bit_decoded(const Row& block) {
  double sum = 0;
  for (const float x : block) sum += std::abs(x);
  const auto scale = static_cast<float>(sum / static_cast<double>(block.size()));
  Row decoded;
  for (const float x : block) decoded.push_back(x < 0 ? -scale : scale);
  return decoded;
}

Row decoded_run(const Row& run, Decoded decoded) {
  Row result;
  for (std::size_t begin = 0; begin < run.size(); begin += kBlock) {
    const auto end = std::min(run.size(), begin + kBlock);
    const Row block = decoded(Row(run.begin() + begin, run.begin() + end));
    result.insert(result.end(), block.begin(), block.end());
  }
  return result;
}

// The recurrence of block_exchange.h, for all ranks at once. Parts consist of whole blocks, so the reference need not
// know them.
class Reference {
 public:
  Reference(int ranks, std::int64_t elements, Decoded decoded)
      : residuals_(ranks, Row(elements)), mean_residual_(elements), decoded_(decoded) {}

  Row step(const std::vector<Row>& gradients) {
    const float share = 1.0F / static_cast<float>(gradients.size());
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      Row& residual = residuals_[rank];
      for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += gradients[rank][i];
      const Row sent = decoded_run(residual, decoded_);
      for (std::size_t i = 0; i < residual.size(); ++i) {
        residual[i] -= sent[i];
        mean_residual_[i] += sent[i] * share;
      }
    }
    const Row delivered = decoded_run(mean_residual_, decoded_);
    for (std::size_t i = 0; i < delivered.size(); ++i) mean_residual_[i] -= delivered[i];
    return delivered;
  }

 private:
  std::vector<Row> residuals_;
  Row mean_residual_;
  Decoded decoded_;
};

Row row_of(const at::Tensor& tensor) {
  const auto* values = tensor.const_data_ptr<float>();
  return Row(values, values + tensor.numel());
}

class BlockExchangeTest : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::int64_t size() const { return std::get<1>(GetParam()); }

  // The tolerance may be small: if two values differed by more than rounding, signs and steps would soon differ a lot.
  void expect_recurrence(const std::string& yaml, Decoded decoded, float tolerance) {
    testing::run_ranks("inproc", ranks(), [&](const CommunicatorPtr& group) {
      const auto compressor = make_compressor(yaml, {size()});
      Reference reference(ranks(), size(), decoded);
      for (int step = 0; step < 12; ++step) {
        std::vector<Row> gradients;
        for (int rank = 0; rank < ranks(); ++rank) gradients.push_back(row_of(gradient_of(rank, step, size())));
        const Row expected = reference.step(gradients);
        const at::Tensor tensor = gradient_of(group->rank(), step, size());
        compressor->all_reduce_mean(*group, tensor);
        const Row delivered = row_of(tensor);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(delivered[i], expected[i], tolerance) << "element " << i << ", step " << step;
        }
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(RanksAndSizes, BlockExchangeTest,
                         ::testing::Combine(::testing::Range(2, 6), ::testing::Values(1, 13, 16, 100, 333)));

TEST_P(BlockExchangeTest, OneBitFollowsItsRecurrence) { expect_recurrence(kOneBit, one_bit_decoded, 1e-6F); }

// If a value lies midway between two steps, rounding may select either. The difference is fed back, so the sums agree.
TEST_P(BlockExchangeTest, Int8FollowsItsRecurrence) { expect_recurrence(kInt8, steps_decoded<127>, 1e-6F); }

TEST_P(BlockExchangeTest, Int4FollowsItsRecurrence) { expect_recurrence(kInt4, steps_decoded<7>, 1e-6F); }

TEST_P(BlockExchangeTest, Int8IsOffByHalfAScaleEachWay) {
  testing::run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const at::Tensor tensor = gradient_of(group->rank(), 0, size());
    make_compressor(kInt8, {size()})->all_reduce_mean(*group, tensor);
    const at::Tensor mean = testing::mean_gradient(ranks(), 0, size());
    for (std::int64_t begin = 0; begin < size(); begin += kBlock) {
      const auto block = [&](const at::Tensor& of) { return of.narrow(0, begin, std::min(kBlock, size() - begin)); };
      double scales = 0;
      for (int rank = 0; rank < ranks(); ++rank) {
        scales += block(gradient_of(rank, 0, size())).abs().max().item<double>() / 127 / ranks();
      }
      // The mean that is coded on the way back has an error itself.
      const double back = (block(mean).abs().max().item<double>() + scales / 2) / 127;
      EXPECT_LE((block(tensor) - block(mean)).abs().max().item<double>(), (scales + back) / 2 * (1 + 1e-4));
    }
  });
}

TEST(Int8, SendsWholeStepsExactly) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    at::Tensor tensor = at::zeros({kBlock});
    tensor[0] = 127;
    tensor[1] = 3 + 2 * group->rank();
    tensor[2] = -126;
    make_compressor(kInt8, {kBlock})->all_reduce_mean(*group, tensor);
    EXPECT_EQ(tensor[0].item<float>(), 127);
    EXPECT_EQ(tensor[1].item<float>(), 4);
    EXPECT_EQ(tensor[2].item<float>(), -126);
    EXPECT_EQ(tensor[3].item<float>(), 0);
  });
}

TEST(Int8, KeepsNumbersThatAreTooSmallForAScale) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const at::Tensor tensor = at::full({kBlock}, 1e-40F);
    make_compressor(kInt8, {kBlock})->all_reduce_mean(*group, tensor);
    EXPECT_EQ(tensor.abs().max().item<float>(), 0);
  });
}

TEST(OneBit, TheSignOfTheLargerSideWins) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    at::Tensor tensor = at::full({kBlock}, group->rank() == 2 ? -1.0F : 1.0F);
    make_compressor(kOneBit, {kBlock})->all_reduce_mean(*group, tensor);
    EXPECT_NEAR(tensor[5].item<float>(), 1.0 / 3, 1e-6) << "two against one";
    tensor.fill_(group->rank() == 2 ? -4.0F : 1.0F);
    make_compressor(kOneBit, {kBlock})->all_reduce_mean(*group, tensor);
    EXPECT_NEAR(tensor[5].item<float>(), -2.0 / 3, 1e-6) << "by weight";
  });
}

}  // namespace
}  // namespace phalanx
