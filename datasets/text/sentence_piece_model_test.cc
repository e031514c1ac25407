// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/testdata/sentence_piece has a model for each other check.
#include "datasets/text/sentence_piece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string number(std::uint64_t value) {
  std::string text;
  for (; value > 127; value >>= 7) text += static_cast<char>((value & 127) | 128);
  return text + static_cast<char>(value);
}

std::string bytes_field(int field, const std::string& bytes) {
  return number(static_cast<std::uint64_t>(field) << 3 | 2) + number(bytes.size()) + bytes;
}

std::string piece(const std::string& text, int type) {
  return bytes_field(1, bytes_field(1, text) + number(3 << 3) + number(static_cast<std::uint64_t>(type)));
}

// A normalizer with rules that replace "a", "aa", ... up to so many letters. Each unit has a block of 256 children.
std::string normalizer(std::uint32_t rules) {
  constexpr std::uint32_t kBlock = 256, kLeaf = 1U << 8, kValue = 1U << 31;
  std::vector<std::uint32_t> units((rules + 2) * kBlock, kValue);
  units[0] = kBlock << 10;
  for (std::uint32_t i = 1; i <= rules; ++i) {
    const std::uint32_t unit = i * kBlock ^ 'a', children = (i + 1) * kBlock;
    units[unit] = (unit ^ children) << 10 | kLeaf | 'a';
  }
  const std::uint32_t size = static_cast<std::uint32_t>(units.size()) * 4;
  std::string charsmap(reinterpret_cast<const char*>(&size), sizeof(size));
  charsmap.append(reinterpret_cast<const char*>(units.data()), size);
  return bytes_field(3, bytes_field(2, charsmap + std::string("b\0", 2)));
}

TEST(SentencePieceModel, AsManyRulesAsTheLibraryHasRoomForAreTaken) {
  EXPECT_NO_THROW(check_sentence_piece_model("x.model", normalizer(32)));
  EXPECT_THAT([] { check_sentence_piece_model("x.model", normalizer(33)); },
              ThrowsMessage<DataError>(HasSubstr("x.model: not a model that SentencePiece's trainer wrote: too many "
                                                 "rules begin at one character")));
}

TEST(SentencePieceModel, AsManyUserDefinedPiecesAsTheLibraryHasRoomForAreTaken) {
  std::string model, others;
  for (std::size_t i = 1; i <= 64; ++i) model += piece(std::string(i, 'a'), 4);
  for (std::size_t i = 1; i <= 100; ++i) others += piece("b" + std::to_string(i), 4) + piece(std::string(i, 'c'), 1);
  EXPECT_NO_THROW(check_sentence_piece_model("x.model", model + others));
  EXPECT_THAT([&] { check_sentence_piece_model("x.model", others + piece(std::string(65, 'a'), 4) + model); },
              ThrowsMessage<DataError>(HasSubstr("too many user-defined pieces begin with each other")));
}

}  // namespace
}  // namespace phalanx
