// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace phalanx::config {
namespace {

Node plain(const std::string& text) { return {.kind = Node::Kind::kScalar, .text = text}; }
Node quoted(const std::string& text) { return {.kind = Node::Kind::kScalar, .text = text, .quoted = true}; }

template <class T>
std::string complaint_of(const Node& node) {
  T value{};
  const auto complaint = read(node, value);
  if (!complaint) return "";
  return complaint->message + (complaint->suggestion.empty() ? "" : " -> " + complaint->suggestion);
}

template <class T>
T value_of(const std::string& text) {
  T value{};
  const auto complaint = read(plain(text), value);
  EXPECT_FALSE(complaint) << text << ": " << complaint->message;
  return value;
}

TEST(ReadBool, TakesTrueAndFalseOnly) {
  EXPECT_TRUE(value_of<bool>("true"));
  EXPECT_FALSE(value_of<bool>("false"));
  for (const char* text : {"", "maybe", "2"}) {
    EXPECT_EQ(complaint_of<bool>(plain(text)), "expected true or false, got \"" + std::string(text) + "\"");
  }
  EXPECT_EQ(complaint_of<bool>(quoted("true")), "expected true or false, got the string \"true\"");
}

TEST(ReadBool, SuggestsTrueOrFalseForOtherSpellings) {
  for (const char* text : {"True", "TRUE", "yes", "On", "1"}) {
    EXPECT_EQ(complaint_of<bool>(plain(text)), "expected true or false, got \"" + std::string(text) + "\" -> true");
  }
  for (const char* text : {"False", "no", "off", "N", "0"}) {
    EXPECT_EQ(complaint_of<bool>(plain(text)), "expected true or false, got \"" + std::string(text) + "\" -> false");
  }
}

TEST(ReadInteger, TakesAll64Bits) {
  EXPECT_EQ(value_of<std::int64_t>("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(value_of<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(value_of<std::int64_t>("0"), 0);
  EXPECT_EQ(complaint_of<std::int64_t>(plain("9223372036854775808")),
            "too large for an integer: \"9223372036854775808\"");
}

TEST(ReadInteger, SuggestsTheDigitsOfAWholeNumber) {
  EXPECT_EQ(complaint_of<std::int64_t>(plain("1e3")), "expected an integer, got \"1e3\" -> 1000");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("64.0")), "expected an integer, got \"64.0\" -> 64");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("1.5")), "expected an integer, got \"1.5\"");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("1e300")), "expected an integer, got \"1e300\"");
}

// "010" is 8 for a reader of YAML 1.1, and 10 for a reader of YAML 1.2.
TEST(ReadInteger, HasOneSpelling) {
  const std::string why = "expected an integer without plus sign or leading zeros, got ";
  EXPECT_EQ(complaint_of<std::int64_t>(plain("+3")), why + "\"+3\" -> 3");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("010")), why + "\"010\" -> 10");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("-007")), why + "\"-007\" -> -7");
  EXPECT_EQ(complaint_of<std::int64_t>(plain("00")), why + "\"00\" -> 0");
}

TEST(ReadInteger, RefusesEverythingElse) {
  for (const char* text : {"", "ten", "0x10", "1_000", "64KB", "+-5", "++5", "5 6", "nan", ".inf"}) {
    EXPECT_EQ(complaint_of<std::int64_t>(plain(text)), "expected an integer, got \"" + std::string(text) + "\"");
  }
  EXPECT_EQ(complaint_of<std::int64_t>(quoted("5")), "expected an integer, got the string \"5\"");
}

TEST(ReadNumber, TakesIntegersAndExponents) {
  EXPECT_EQ(value_of<double>("3"), 3);
  EXPECT_EQ(value_of<double>("1e-3"), 1e-3);
  EXPECT_EQ(value_of<double>("+.5"), 0.5);
  EXPECT_EQ(value_of<double>("-1.E2"), -100);
}

TEST(ReadNumber, IsFinite) {
  for (const char* text : {".nan", ".NaN", "nan", "inf", ".inf", "-.inf", "-inf"}) {
    EXPECT_EQ(complaint_of<double>(plain(text)), "expected a finite number, got \"" + std::string(text) + "\"");
  }
  EXPECT_EQ(complaint_of<double>(plain("1e999")), "out of the range of a number: \"1e999\"");
  EXPECT_EQ(complaint_of<double>(plain("0.1.2")), "expected a number, got \"0.1.2\"");
  EXPECT_EQ(complaint_of<double>({}), "expected a number, got nothing");
}

TEST(ReadString, TakesAnyScalarAsWritten) {
  for (const char* text : {"", "8", "true", "1e3", "2024-01-01"}) EXPECT_EQ(value_of<std::string>(text), text);
  EXPECT_EQ(complaint_of<std::string>({.kind = Node::Kind::kMap}), "expected a string, got a section");
}

// System calls would see only "runs" in "runs\\0x".
TEST(ReadString, RefusesANulCharacter) {
  EXPECT_EQ(complaint_of<std::string>(quoted(std::string("a\0b", 3))), "contains a NUL character (\"\\0\")");
}

TEST(WhatIs, CutsLongTextsBetweenCharacters) {
  const std::string shown = what_is(plain(std::string(56, 'a') + "\xc3\xa9" + std::string(20, 'b')));
  EXPECT_EQ(shown, '"' + std::string(56, 'a') + "...\"");
  EXPECT_EQ(what_is(plain("a\nb\x1b[31m")), "\"a b [31m\"");
}

TEST(Shortest, ReadsBackAsTheSameNumber) {
  for (const double value : {0.0, 0.1, -0.1, 1e-4, 1e-5, 1e15, 1e16, 1.0 / 3, 1e300, 5e-324, 123456789.125}) {
    EXPECT_EQ(value_of<double>(shortest(value)), value);
  }
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1000000), "1000000");
  EXPECT_EQ(shortest(1e-5), "1e-05");
}

TEST(NeedsQuotes, OfWhatWouldBeAnotherType) {
  for (const char* text :
       {"",     " ",    "5",    "-5",  "1e3", ".5", ".inf", "true", "No", "Y",  "null",        "~", "2024-01-01",
        "1:30", "a: b", "a #b", "- a", "[a]", "*a", "&a",   "!a",   "a ", "\n", "caf\xc3\xa9", "=", "<<"}) {
    EXPECT_TRUE(needs_quotes(text)) << text;
  }
  for (const char* text : {"mnist", "/data/mnist-10k", "a.yaml", "user@host", "conv1", "nothing", "_x"}) {
    EXPECT_FALSE(needs_quotes(text)) << text;
  }
}

}  // namespace
}  // namespace phalanx::config
