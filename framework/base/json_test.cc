// SPDX-License-Identifier: Apache-2.0
#include "framework/base/json.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

template <class Body>
void expect_refused(const Body& body, const std::string& message) {
  EXPECT_THAT(body, ThrowsMessage<DataError>(HasSubstr(message)));
}

TEST(Json, GivesValuesOfTheTypesAskedFor) {
  const auto json = parse_json(R"({"b": true, "i": -3, "d": 1.5, "whole": 2, "s": "text", "list": [1, 2],
                                   "map": {"z": 1, "a": 2}, "none": null})",
                               "file");
  EXPECT_TRUE(json.get<bool>("b"));
  EXPECT_EQ(json.get<int>("i"), -3);
  EXPECT_EQ(json.get<double>("d"), 1.5);
  EXPECT_EQ(json.get<double>("whole"), 2);
  EXPECT_EQ(json.get<std::string>("s"), "text");
  EXPECT_THAT(json.get<std::vector<std::int64_t>>("list"), ElementsAre(1, 2));
  EXPECT_THAT((json.get<std::map<std::string, int>>("map")), ElementsAre(Pair("a", 2), Pair("z", 1)));
  EXPECT_EQ(json.at("map").members()[0].first, "z") << "in the order of the document";
  EXPECT_TRUE(json.at("none").is_null());
  EXPECT_EQ(json.get_or("none", 7), 7);
  EXPECT_EQ(json.get_or("absent", std::string("x")), "x");
  EXPECT_EQ(json.get_or("i", 7), -3);
  EXPECT_FALSE(json.has("absent"));
  EXPECT_EQ(json.at("list").raw().dump(), "[1,2]");
}

TEST(Json, ErrorsNameTheDocumentAndThePlace) {
  const auto json = parse_json(R"({"nodes": [{"name": "x"}, {"name": 3, "at": [[1, "y"]]}]})", "net.json");
  const auto second = json.at("nodes").elements().at(1);
  expect_refused([&] { second.get<std::string>("name"); }, "net.json: nodes[1].name: is a number, not a string");
  expect_refused([&] { second.get<int>("kind"); }, "net.json: nodes[1]: has no \"kind\"");
  expect_refused([&] { second.get<std::vector<std::vector<int>>>("at"); },
                 "net.json: nodes[1].at[0][1]: is a string, not a whole number");
  expect_refused([&] { json.get<bool>("nodes"); }, "net.json: nodes: is an array, not a boolean");
  expect_refused([&] { json.at("nodes").members(); }, "net.json: nodes: is an array, not an object");
  expect_refused([&] { json.at("nodes").at("x"); }, "net.json: nodes: is an array, not an object");
  expect_refused([&] { json.elements(); }, "net.json: is an object, not an array");
}

TEST(Json, NumbersOutsideTheRangeOfTheirTypeAreRefused) {
  const auto json = parse_json(R"({"n": -1, "big": 18446744073709551615, "half": 0.5, "more": 300})", "f");
  expect_refused([&] { json.get<std::uint64_t>("n"); }, "f: n: is -1, not a whole number from 0 to");
  expect_refused([&] { json.get<std::size_t>("n"); }, "f: n: is -1");
  expect_refused([&] { json.get<std::int64_t>("big"); }, "f: big: 18446744073709551615 is not between");
  expect_refused([&] { json.get<int>("half"); }, "f: half: is 0.5, not a whole number");
  expect_refused([&] { json.get<std::uint8_t>("more"); }, "f: more: 300 is not between 0 and 255");
  expect_refused([&] { json.get<std::int8_t>("more"); }, "f: more: 300 is not between -128 and 127");
  EXPECT_EQ(json.get<std::uint64_t>("big"), std::numeric_limits<std::uint64_t>::max());
}

TEST(Json, TextsThatAreNotJsonAreRefused) {
  for (const std::string text : {"", "{", "[1,]", "{\"a\":1}}", "nul", "[1e999]", "\"\xff\""}) {
    expect_refused([&] { parse_json(text, "file.json"); }, "file.json: is not JSON: ");
  }
  expect_refused([] { parse_json(R"({"a": 1, "b": {"a": 1, "a": 2}})", "f"); }, "f: has two members called \"a\"");
}

TEST(Json, DeepNestingIsRefusedWithoutTakingTheStack) {
  EXPECT_EQ(parse_json(nested(256), "f").raw().dump(), nested(256));
  for (const std::size_t levels : {std::size_t{257}, std::size_t{100'000}, std::size_t{10'000'000}}) {
    expect_refused([&] { parse_json(nested(levels), "deep.json"); }, "deep.json: has arrays or objects nested deeper");
    expect_refused([&] { parse_json(std::string(levels, '['), "f"); }, "f: has arrays or objects nested deeper");
  }
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused([&] { parse_json(objects, "f"); }, "f: has arrays or objects nested deeper than 256 levels");
}

// With the functions of ordered_json, which compare each new member with all others, this would take minutes.
TEST(Json, ManyMembersTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"a long name of a member number " + std::to_string(i) + "\":0,";
  text.back() = '}';
  EXPECT_EQ(parse_json(text, "f").members().size(), 200'000u);
}

}  // namespace
}  // namespace phalanx
