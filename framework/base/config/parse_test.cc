// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace phalanx::config {
namespace {

std::string problems_of(const std::string& text) {
  std::vector<ConfigProblem> problems;
  parse({text, "t"}, problems);
  return problems.empty() ? "" : ConfigError(problems).what();
}

Node parsed(const std::string& text) {
  std::vector<ConfigProblem> problems;
  Node root = parse({text, "t"}, problems);
  EXPECT_TRUE(problems.empty()) << text;
  return root;
}

TEST(Parse, KeepsOrderAndPlaces) {
  const Node root = parsed("b: 1\na:\n  - x\n  - {c: \"2\"}\n");
  ASSERT_EQ(root.entries.size(), 2);
  EXPECT_EQ(root.entries[0].key, "b");
  const auto& [key, location, list] = root.entries[1];
  EXPECT_EQ(key, "a");
  EXPECT_EQ(location.line, 2);
  EXPECT_EQ(location.column, 1);
  ASSERT_EQ(list.items.size(), 2);
  EXPECT_EQ(list.items[0].location.line, 3);
  EXPECT_EQ(list.items[0].location.column, 5);
  const Node& quoted = find(list.items[1], "c")->value;
  EXPECT_EQ(quoted.text, "2");
  EXPECT_TRUE(quoted.quoted);
  EXPECT_FALSE(list.items[0].quoted);
}

TEST(Parse, FindsADuplicateAmongManyKeysInLinearTime) {
  constexpr int kKeys = 300'000;
  std::string text;
  for (int i = 0; i < kKeys; ++i) text += "a" + std::to_string(i) + ":\n";
  const std::string problems = problems_of(text + "a0:\n");
  EXPECT_NE(problems.find("t:300001:1: a0: duplicate key, first written in line 1"), std::string::npos) << problems;
}

TEST(Parse, DistinguishesNullFromText) {
  const Node root = parsed("a:\nb: null\nc: ~\nd: \"\"\ne: nil\n");
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(find(root, key)->value.kind, Node::Kind::kNull) << key;
  for (const char* key : {"d", "e"}) EXPECT_EQ(find(root, key)->value.kind, Node::Kind::kScalar) << key;
  EXPECT_EQ(parsed("").kind, Node::Kind::kNull);
}

TEST(Parse, TheFirstOfDuplicateKeysCounts) {
  std::vector<ConfigProblem> problems;
  const std::string text = "a: 1\nb:\n  - c: {d: 1}\n    c: {d: 2, d: 3}\na: 4\n", origin = "t";
  const Node root = parse({text, origin}, problems);
  EXPECT_STREQ(ConfigError(problems).what(),
               "t:4:5: b.c: duplicate key, first written in line 3\n"
               "t:4:15: b.c.d: duplicate key, first written in line 4\n"
               "t:5:1: a: duplicate key, first written in line 1");
  EXPECT_EQ(find(root, "a")->value.text, "1");
}

TEST(Parse, RefusesYamlThatConfigsDoNotSupport) {
  EXPECT_EQ(problems_of("a: &x 1\nb: *x"),
            "t:1:4: anchors and aliases are not supported: write the value again instead of &x");
  // Newer versions of yaml-cpp add the name of the anchor.
  EXPECT_THAT(problems_of("a: *x"), ::testing::StartsWith("t:1:4: YAML syntax: the referenced anchor is not defined"));
  EXPECT_EQ(problems_of("a: !!str 5"), "t:1:4: tags are not supported: tag:yaml.org,2002:str");
  EXPECT_EQ(problems_of("a: !m {b: 1}"), "t:1:4: tags are not supported: !m");
  EXPECT_EQ(problems_of("a: 1\n---\nb: 2"), "t:2:1: YAML syntax: more text after the end of the config");
  EXPECT_EQ(problems_of("b:\n  ? [a]\n  : 3\n"), "t:2:5: b: expected a word as key, got a list");
  EXPECT_EQ(problems_of("~: 3"), "t:1:1: expected a word as key, got nothing");
}

TEST(Parse, NamesTheTabs) {
  EXPECT_EQ(problems_of("a:\n\tb: 3\n"),
            "t:2:3: YAML syntax: illegal map value (YAML requires spaces for indentation, not tabs)");
}

TEST(Parse, EndsAtAStrayCharacter) {
  EXPECT_THAT(problems_of(", a: 1"),
              ::testing::AnyOf("t:1:1: YAML syntax: more text after the end of the config",
                               // yaml-cpp 0.9
                               "t:1:1: YAML syntax: plain value cannot start with flow indicator character"));
}

// Deeper nesting must not overflow the stack, neither in the parser nor in a walk over the tree.
TEST(Parse, BoundsTheDepth) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(problems_of(nested(50)), "");
  EXPECT_EQ(problems_of(nested(51)), "t:1:51: YAML syntax: nested too deeply");
  EXPECT_TRUE(problems_of(std::string(100000, '[')).ends_with("YAML syntax: nested too deeply"));
}

TEST(Parse, NeverThrows) {
  for (const std::string text : {"a: \"",
                                 "a: '",
                                 "{",
                                 "}",
                                 "]",
                                 "?",
                                 "-",
                                 ":",
                                 "|",
                                 ">",
                                 "@",
                                 "`",
                                 "%",
                                 "!",
                                 "&",
                                 "*",
                                 "a: b: c",
                                 "a: \"\\xZZ\"",
                                 "%YAML 9.9\n---\na: 1",
                                 "\xff\xfe"
                                 "a",
                                 "a: [}",
                                 "- a\nb: 1"}) {
    std::vector<ConfigProblem> problems;
    const std::string origin = "t";
    EXPECT_NO_THROW(parse({text, origin}, problems)) << text;
  }
}

TEST(Parse, SurvivesEveryTruncation) {
  const std::string text = "a: [1, {b: 'c'}]\nd:\n  e: |\n    f\n  \"g\": >-\n    h\n? i\n: - j\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    std::vector<ConfigProblem> problems;
    const std::string part = text.substr(0, length), origin = "t";
    const Node root = parse({part, origin}, problems);
    EXPECT_TRUE(!problems.empty() || root.kind != Node::Kind::kNull || length == 0) << part;
  }
}

}  // namespace
}  // namespace phalanx::config
