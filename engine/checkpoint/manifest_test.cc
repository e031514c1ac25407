// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/manifest.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

Manifest example() {
  return {.position = {1234, 3, 17},
          .ranks = 2,
          .updates = 1234,
          .identity = {{"seed", "1"}, {"dataset", "{name: \"digits\"}\n"}},
          .metrics = {{"accuracy", 1.0 / 3}, {"loss", std::numeric_limits<double>::quiet_NaN()}},
          .tested_at = 1200,
          .provenance = {{"command", "train --set name=\"\xff\""}},
          .files = {{"a.safetensors", 1ull << 40, 0xdeadbeef}, {"b", 0, 7}}};
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const auto back = parse_manifest(to_text(example()), "m");
  EXPECT_EQ(back.position, example().position);
  Manifest smaller_batches = example();
  smaller_batches.position.samples = 1001;
  EXPECT_EQ(parse_manifest(to_text(smaller_batches), "m").position, smaller_batches.position);
  EXPECT_EQ(back.ranks, 2);
  EXPECT_EQ(back.updates, 1234);
  EXPECT_EQ(back.identity, example().identity);
  EXPECT_EQ(back.metrics.at(0), example().metrics.at(0)) << "to the last bit";
  EXPECT_TRUE(std::isnan(back.metrics.at(1).second));
  EXPECT_EQ(back.tested_at, 1200);
  ASSERT_EQ(back.files.size(), 2u);
  EXPECT_EQ(back.files[0].name, "a.safetensors");
  EXPECT_EQ(back.files[0].bytes, 1ull << 40);
  EXPECT_EQ(back.files[0].crc, 0xdeadbeefu);
}

TEST(Manifest, TruncatedAnywhereItIsRefused) {
  const auto text = to_text(example());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT([&] { parse_manifest(text.substr(0, length), "m"); }, ThrowsMessage<DataError>(StartsWith("m: ")));
  }
  EXPECT_THROW(parse_manifest(text + "\n", "m"), DataError);
}

TEST(Manifest, WithAnyBitFlippedItIsRefused) {
  auto text = to_text(example());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT([&] { parse_manifest(text, "m"); }, ThrowsMessage<DataError>(HasSubstr("damaged"))) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace phalanx
