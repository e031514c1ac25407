// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/bucket_size.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <utility>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20;

// Returns the part of the cost that depends on the size of `bucket`.
double cost(std::int64_t bytes, std::int64_t bucket, const ReductionTime& time) {
  const auto buckets = static_cast<double>(bytes) / static_cast<double>(bucket);
  return buckets * time.latency + static_cast<double>(bucket) * time.seconds_per_byte;
}

// ResNet-18 over 1 Gbit/s and in shared memory, and a small model.
TEST(BestBucketBytes, HaveTheLowestCostOfAllPowersOfTwo) {
  for (const auto& [bytes, time] : {std::pair{44 * kMiB, ReductionTime{300e-6, 8e-9}},
                                    {44 * kMiB, ReductionTime{2e-6, 0.02e-9}},
                                    {kMiB, ReductionTime{300e-6, 8e-9}}}) {
    const auto best = best_bucket_bytes(bytes, time);
    for (std::int64_t other = 64 * kKiB; other <= bytes; other *= 2) {
      EXPECT_LE(cost(bytes, best, time), cost(bytes, other, time) * 1.0001) << best << " against " << other;
    }
  }
  EXPECT_EQ(best_bucket_bytes(44 * kMiB, {300e-6, 8e-9}), kMiB);
}

TEST(BestBucketBytes, GrowWithTheLatency) {
  EXPECT_EQ(best_bucket_bytes(100 * kMiB, {0, 1e-9}), 64 * kKiB) << "not below";
  EXPECT_EQ(best_bucket_bytes(100 * kMiB, {1e-3, 1e-9}), 8 * kMiB);
  EXPECT_EQ(best_bucket_bytes(100 * kMiB, {10, 1e-9}), 128 * kMiB) << "one bucket";
  EXPECT_EQ(best_bucket_bytes(100 * kMiB, {1e-3, 0}), 128 * kMiB) << "only messages cost";
  EXPECT_EQ(best_bucket_bytes(0, {1e-3, 1e-9}), 64 * kKiB);
}

TEST(DefaultBucketBytes, AssumeASlowLinkIfBackwardHidesCommunication) {
  EXPECT_EQ(default_bucket_bytes(45 * kMiB, true, at::kCPU), kMiB) << "ResNet-18";
  EXPECT_EQ(default_bucket_bytes(440 * kMiB, true, at::kCPU), 4 * kMiB);
  EXPECT_EQ(default_bucket_bytes(241 * kKiB, true, at::kCPU), 64 * kKiB);
  EXPECT_EQ(default_bucket_bytes(1000000 * kMiB, true, at::kCPU), 25 * kMiB);
  EXPECT_EQ(default_bucket_bytes(45 * kMiB, false, at::kCPU), 25 * kMiB);
}

// A GPT of 124 million parameters has 20 buckets, instead of 120.
TEST(DefaultBucketBytes, AreLargeOnDevices) {
  EXPECT_EQ(default_bucket_bytes(496 * kMiB, true, c10::Device(at::kCUDA, 0)), 25 * kMiB);
  EXPECT_EQ(default_bucket_bytes(45 * kMiB, true, c10::Device(at::kCUDA, 0)), 25 * kMiB);
}

TEST(MeasureAllReduce, ReturnsTheSameOnAllRanks) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto time = measure_all_reduce(*world, at::kCPU);
    EXPECT_GE(time.latency, 0);
    EXPECT_GE(time.seconds_per_byte, 0);
    EXPECT_GT(time.latency + time.seconds_per_byte, 0);
    at::Tensor least = at::tensor({time.latency, time.seconds_per_byte}, at::kDouble), most = least.clone();
    world->all_reduce(least, Reduction::kMin).wait();
    world->all_reduce(most, Reduction::kMax).wait();
    EXPECT_TRUE(least.equal(most));
  });
}

}  // namespace
}  // namespace phalanx
