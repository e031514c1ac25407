// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/digest.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <set>

namespace phalanx {
namespace {

// A sum of squares, for example, would detect neither.
TEST(Digest, DetectsAChangedSignAndAPermutation) {
  const at::Tensor tensor = at::randn({1000});
  const auto before = digest(tensor);
  EXPECT_EQ(digest(tensor.clone()), before);
  at::Tensor flipped = tensor.clone();
  flipped[500].neg_();
  EXPECT_NE(digest(flipped), before);
  at::Tensor swapped = tensor.clone();
  swapped[3].copy_(tensor[4]);
  swapped[4].copy_(tensor[3]);
  EXPECT_NE(digest(swapped), before);
  EXPECT_NE(digest(tensor.flip(0).contiguous()), before);
}

TEST(Digest, DetectsEveryChangedBit) {
  std::set<std::uint64_t> seen;
  for (std::int64_t size = 0; size < 12; ++size) {
    at::Tensor tensor = at::zeros({size}, at::kByte);
    EXPECT_TRUE(seen.insert(digest(tensor)).second) << size << " zeros";
    for (std::int64_t i = 0; i < size; ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        tensor[i].fill_(1 << bit);
        EXPECT_TRUE(seen.insert(digest(tensor)).second) << "bit " << bit << " of byte " << i << " of " << size;
        tensor[i].fill_(0);
      }
    }
  }
}

TEST(Digest, RefusesTensorsThatAreNotContiguous) {
  EXPECT_THROW(digest(at::arange(10).slice(0, 0, 10, 2)), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
