// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/compressed_communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::choose_compression;
using testing::gradient_of;
using testing::make_compressor;
using testing::mean_gradient;
using testing::run_ranks;
using testing::same_on_all_ranks;

std::shared_ptr<CompressedCommunicator> compressed(const CommunicatorPtr& group, const std::string& yaml) {
  return std::make_shared<CompressedCommunicator>(group, choose_compression(yaml));
}

class Compressed : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Compressed, ::testing::Range(1, 6));

TEST_P(Compressed, SumsAndMeansAreThoseOfTheCompressor) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "int8");
    const at::Tensor expected = gradient_of(group->rank(), 0, 500), mean = expected.clone(), sum = expected.clone();
    make_compressor("int8", {500})->all_reduce_mean(*group, expected);
    communicator->all_reduce(mean, Reduction::kMean).wait();
    communicator->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(mean, expected));
    EXPECT_LT((sum - expected * group->size()).abs().max().item<double>(), 1e-6);
    EXPECT_TRUE(same_on_all_ranks(sum, *group));
  });
}

TEST_P(Compressed, OtherDtypesReductionsAndOperationsAreExact) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "one_bit");
    const int size = group->size();
    at::Tensor doubles = at::arange(10, at::kDouble) * (group->rank() + 1);
    communicator->all_reduce(doubles, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(doubles, at::arange(10, at::kDouble) * (size * (size + 1) / 2)));
    at::Tensor largest = at::arange(10, at::kFloat) * (group->rank() + 1);
    communicator->all_reduce(largest, Reduction::kMax).wait();
    EXPECT_TRUE(at::equal(largest, at::arange(10, at::kFloat) * size));
    at::Tensor root = at::full({3}, 0.1 * group->rank(), at::kFloat);
    communicator->broadcast(root, size - 1).wait();
    EXPECT_TRUE(at::equal(root, at::full({3}, 0.1 * (size - 1), at::kFloat)));
    communicator->all_reduce(at::zeros({0}), Reduction::kMean).wait();
    static_cast<Communicator&>(*communicator).barrier().wait();
    EXPECT_EQ(communicator->traffic().reductions, 0);
  });
}

TEST_P(Compressed, EachTensorHasItsOwnCompressorState) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "{name: topk, fraction: 0.1}");
    const auto first = make_compressor("{name: topk, fraction: 0.1}", {100});
    const auto second = make_compressor("{name: topk, fraction: 0.1}", {150});
    const at::Tensor a = at::zeros({100}), b = at::zeros({150});
    for (int step = 0; step < 5; ++step) {
      const at::Tensor expected_a = gradient_of(group->rank(), step, 100);
      const at::Tensor expected_b = gradient_of(group->rank(), 50 + step, 150);
      a.copy_(expected_a);
      b.copy_(expected_b);
      auto work_a = communicator->all_reduce(a, Reduction::kMean);
      auto work_b = communicator->all_reduce(b, Reduction::kMean);
      work_b.wait();
      work_a.wait();
      first->all_reduce_mean(*group, expected_a);
      second->all_reduce_mean(*group, expected_b);
      EXPECT_TRUE(at::equal(a, expected_a)) << "step " << step;
      EXPECT_TRUE(at::equal(b, expected_b)) << "step " << step;
    }
  });
}

TEST_P(Compressed, UsesTheGivenShapes) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "{name: powersgd, rank: 1}");
    const at::Tensor bucket = at::zeros({410});
    communicator->set_shapes(bucket, {{20, 20}, {10}});
    bucket.copy_(gradient_of(group->rank(), 0, 410));
    communicator->all_reduce(bucket, Reduction::kMean).wait();
    const at::Tensor bias = bucket.narrow(0, 400, 10);
    EXPECT_LT((bias - mean_gradient(group->size(), 0, 410).narrow(0, 400, 10)).abs().max().item<double>(), 1e-6);
    EXPECT_THROW(communicator->set_shapes(at::zeros({5}), {{2, 2}}), std::invalid_argument);
    EXPECT_THROW(communicator->set_shapes(at::zeros({4}, at::kDouble), {{2, 2}}), std::invalid_argument);
  });
}

TEST_P(Compressed, CountsItsTraffic) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "bf16");
    EXPECT_EQ(communicator->traffic().ratio(), 1);
    const at::Tensor tensor = gradient_of(group->rank(), 0, 1000);
    for (int step = 0; step < 3; ++step) communicator->all_reduce(tensor, Reduction::kMean).wait();
    const auto traffic = communicator->traffic();
    if (group->size() == 1) {
      EXPECT_EQ(traffic.sent_bytes, 0);
      return;
    }
    EXPECT_EQ(traffic.reductions, 3);
    EXPECT_EQ(traffic.sent_bytes, 3 * all_reduce_bytes(2000, group->size()));
    EXPECT_EQ(traffic.uncompressed_bytes, 3 * all_reduce_bytes(4000, group->size()));
    EXPECT_EQ(traffic.ratio(), 2);
  });
}

TEST_P(Compressed, GroupsSplitFromItCompressAndCountForThemselves) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "bf16");
    const auto half = communicator->split(group->rank() % 2, group->rank());
    const at::Tensor tensor = gradient_of(half->rank(), 0, 100);
    half->all_reduce(tensor, Reduction::kMean).wait();
    const double error = (tensor - mean_gradient(half->size(), 0, 100)).abs().max().item<double>();
    EXPECT_EQ(error == 0, half->size() == 1);
    EXPECT_LT(error, 0x1p-8 * half->size());
    EXPECT_EQ(communicator->traffic().sent_bytes, 0);
    const auto* counting = dynamic_cast<CompressedCommunicator*>(half.get());
    ASSERT_NE(counting, nullptr);
    EXPECT_EQ(counting->traffic().sent_bytes, all_reduce_bytes(200, half->size()));
    EXPECT_EQ(communicator->split(-1, 0), nullptr);
  });
}

TEST(CompressedCommunicator, KeepsTheOrderOfLaunch) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "{name: topk, fraction: 1}");
    const at::Tensor tensor = at::full({4}, static_cast<float>(group->rank()));
    auto mean = communicator->all_reduce(tensor, Reduction::kMean);
    auto broadcast = communicator->broadcast(tensor, 0);
    auto sum = communicator->all_reduce(tensor, Reduction::kSum);
    sum.wait();
    EXPECT_TRUE(mean.done());
    EXPECT_TRUE(broadcast.done());
    EXPECT_TRUE(at::equal(tensor, at::full({4}, 3.0F))) << "the mean is 1, and so is the root's";
  });
}

TEST(CompressedCommunicator, RefusesInvalidArguments) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, "fp16");
    EXPECT_THROW((void)communicator->all_reduce(at::zeros({3, 2}).t(), Reduction::kSum), std::invalid_argument);
    EXPECT_THROW((void)communicator->all_reduce(at::Tensor(), Reduction::kSum), std::invalid_argument);
    EXPECT_THROW((void)communicator->all_reduce(at::zeros({3}), Reduction::kBitOr), std::invalid_argument);
  });
}

TEST(CompressedCommunicator, RanksThatCompressDifferentlyMismatch) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto communicator = compressed(group, group->rank() == 0 ? "int8" : "fp16");
    EXPECT_THROW(communicator->all_reduce(at::zeros({100}), Reduction::kMean).wait(), CommError);
  });
}

}  // namespace
}  // namespace phalanx
