// SPDX-License-Identifier: Apache-2.0
// Parts of parameters along one dimension, and their texts in names.
#include "framework/partition/placement.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

// Three projections in one, as the second of two ranks has them.
const Placement kFused{.shape = {2, 12}, .dim = 1, .ranges = {{2, 2}, {6, 2}, {10, 2}}};

TEST(Placement, TakesPartsAndPutsThemBack) {
  const at::Tensor whole = at::arange(24, at::kFloat).view({2, 12});
  const at::Tensor part = kFused.take(whole);
  EXPECT_EQ(part.sizes(), (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(part[1][4].item<float>(), 22);
  const at::Tensor other = at::zeros({2, 12});
  kFused.put(other, part);
  Placement{.shape = {2, 12}, .dim = 1, .ranges = {{0, 2}, {4, 2}, {8, 2}}}.put(
      other, Placement{.shape = {2, 12}, .dim = 1, .ranges = {{0, 2}, {4, 2}, {8, 2}}}.take(whole));
  EXPECT_TRUE(at::equal(other, whole));
}

TEST(Placement, IsReadFromTheNameOfAStoredTensor) {
  std::string name = "h.0.c_attn.weight" + to_text(kFused);
  EXPECT_EQ(name, "h.0.c_attn.weight@1:2+2,6+2,10+2/2x12");
  Placement read;
  ASSERT_TRUE(take_placement(name, read));
  EXPECT_EQ(name, "h.0.c_attn.weight");
  EXPECT_EQ(read, kFused);
}

TEST(Placement, IsNotFoundInOtherNames) {
  for (const char* text : {"weight", "weight@", "a@b.weight", "weight@0:1", "weight@0:1+2", "weight@0:1+2/",
                           "w@0:1+2/3x", "w@1:1+2/3", "w@0:1+2/3y", "w@0:1-2/3"}) {
    std::string name = text;
    Placement read;
    EXPECT_FALSE(take_placement(name, read)) << text;
    EXPECT_EQ(name, text);
  }
}

TEST(Placement, IsRefusedIfNoParameterHasSuchAPart) {
  for (const char* text :
       {"w@0:1+3/3", "w@0:0+2,0+2/3", "w@1:9223372036854775807+1/3x4", "w@0:0+1/3x-4",
        "w@0:0+9223372036854775807,0+2/3", "w@0:0+1/4611686018427387904x4", "w@0:0+0/0x4611686018427387904x4"}) {
    std::string name = text;
    Placement read;
    EXPECT_FALSE(take_placement(name, read)) << text;
    EXPECT_EQ(name, text);
  }
}

TEST(Placement, NearlyEqualPartsCoverEverything) {
  for (const std::int64_t size : {0, 1, 7, 65, 128}) {
    for (int ranks = 1; ranks < 9; ++ranks) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto part = nearly_equal_part(size, rank, ranks);
        EXPECT_EQ(part.begin, end);
        EXPECT_LE(part.count, size / ranks + 1);
        end += part.count;
      }
      EXPECT_EQ(end, size);
    }
  }
}

}  // namespace
}  // namespace phalanx
