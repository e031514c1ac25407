// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <bit>

#include "framework/parallel/random_rows.h"

namespace phalanx {
namespace {

const at::Device kDevice(c10::kCUDA, 0);  // fake

void expect_same(at::IntArrayRef sizes, double rate, const RandomKey& key) {
  const at::Tensor cpu = at::empty(sizes), device = at::empty(sizes, at::device(kDevice));
  const at::Tensor there = dropout_factors(device, rate, 7, key);
  EXPECT_EQ(there.device(), kDevice);
  EXPECT_TRUE(at::equal(there.to(at::kCPU), dropout_factors(cpu, rate, 7, key))) << sizes << ' ' << rate;
}

TEST(DropoutFactorsOfDevices, AreThoseOfTheCpu) {
  for (const double rate : {0.0, 0.1, 0.5, 0.999}) {
    expect_same({5, 33}, rate, {.step = 3, .first_row = 20});
    expect_same({2, 3, 4, 2}, rate, {.step = 0xfedcba9876543210, .first_row = 1'000'000});
    expect_same({4}, rate, {.step = 1, .first_row = 0});
    expect_same({0, 3}, rate, {});
  }
}

TEST(DropoutFactorsOfDevices, OfAPartAreThoseOfTheCpu) {
  for (const std::int64_t group_elements : {35, 36}) {  // an odd group ends in the middle of a random number
    for (std::int64_t first = 0; first < 4; ++first) {
      for (std::int64_t count = 1; count < 4; ++count) {
        const GroupsPart part{.group_elements = group_elements, .first_group = first, .first_element = 5 * first};
        const at::Tensor cpu = at::empty({3, count, 4, count}), device = at::empty_like(cpu, at::device(kDevice));
        const RandomKey key{.step = 9, .first_row = 2};
        EXPECT_TRUE(
            at::equal(dropout_factors(device, part, 0.5, 1, key).to(at::kCPU), dropout_factors(cpu, part, 0.5, 1, key)))
            << group_elements << ' ' << first << ' ' << count;
      }
    }
  }
}

TEST(DropoutFactorsOfDevices, ReadTheStepWhereItIsWritten) {
  const at::Tensor step =
      at::full({}, std::bit_cast<std::int64_t>(0xfedcba9876543210), at::device(kDevice).dtype(at::kLong));
  const at::Tensor like = at::empty({3, 9}, at::device(kDevice));
  EXPECT_TRUE(at::equal(dropout_factors(like, 0.3, 1, {.step = 5, .step_on_device = step}).to(at::kCPU),
                        dropout_factors(like, 0.3, 1, {.step = 0xfedcba9876543210}).to(at::kCPU)));
}

}  // namespace
}  // namespace phalanx
