// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "framework/base/config/config.h"
#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

using config::testing::loaded;
using config::testing::Models;
using config::testing::Root;
using config::testing::Stage;
using config::testing::Stages;

TEST(Dump, HasEveryFieldInTheOrderOfTheSchema) {
  Root root;
  EXPECT_EQ(dump(root), R"(name: run
amp: false
seed: 1
sizes: [1, 2]
rates: []
tags: []
launch:
  ranks: 1
  with: auto
optimizer:
  lr: 0.1
  momentum: 0.9
model:
  name: lenet
  channels: 6
)");
}

TEST(Dump, OtherReadersSeeTheSameTypes) {
  Root root;
  root.name = "1e3";
  root.tags = {"no", "a, b", "plain"};
  root.rates = {5, 1e-05, 1e+20, 2.5};
  const std::string text = dump(root);
  EXPECT_NE(text.find("name: \"1e3\"\n"), text.npos) << text;
  EXPECT_NE(text.find("tags: [\"no\", \"a, b\", plain]\n"), text.npos) << text;
  EXPECT_NE(text.find("rates: [5.0, 1.0e-05, 1.0e+20, 2.5]\n"), text.npos) << text;
}

TEST(Dump, LoadsBackToAnEqualConfig) {
  Root root;
  root.name = "";
  root.amp = true;
  root.seed = std::numeric_limits<std::int64_t>::min();
  root.sizes = {};
  root.rates = {0, 1.0 / 3, 1e300, 5e-324};
  root.tags = {"",
               " ",
               "null",
               "~",
               "true",
               "5",
               "a: b",
               "a #b",
               "- a",
               "[x",
               "{",
               "*a",
               "&a",
               "!a",
               "%",
               "@",
               "`",
               "'",
               "\"",
               "\\",
               "a\nb",
               "\n",
               "\t",
               "a ",
               " a",
               "caf\xc3\xa9",
               "\xf0\x9f\x90\x9a",
               "---",
               "...",
               "?",
               ":",
               ",",
               "\x01",
               "\x7f",
               std::string(5000, 'x')};
  root.launch.with = "mpi";
  root.model = Models::Choice("mlp");
  const std::string text = dump(root);
  Root copy = loaded(text);
  EXPECT_EQ(copy.name, root.name);
  EXPECT_EQ(copy.amp, root.amp);
  EXPECT_EQ(copy.seed, root.seed);
  EXPECT_EQ(copy.sizes, root.sizes);
  EXPECT_EQ(copy.rates, root.rates);
  EXPECT_EQ(copy.tags, root.tags);
  EXPECT_EQ(copy.launch.with, "mpi");
  EXPECT_EQ(copy.model.make(), "mlp 128");
  EXPECT_EQ(dump(copy), text);
}

TEST(Dump, HasEverySectionOfAListOnALine) {
  Stages root;
  EXPECT_EQ(dump(root), "stages: []\nseed: 1\n");
  root.stages = {{.lr = 0.5, .steps = 3, .shape = "linear"}, {}};
  const std::string text = dump(root);
  EXPECT_EQ(text, R"(stages:
  - {lr: 0.5, steps: 3, shape: linear}
  - {lr: 0.1, steps: 10, shape: flat}
seed: 1
)");
  auto copy = loaded<Stages>(text);
  EXPECT_EQ(dump(copy), text);
}

TEST(Dump, OmitsARequiredSelectionThatIsNotMade) {
  Root root;
  root.model = {};
  EXPECT_EQ(dump(root).find("model"), std::string::npos);
}

TEST(Dump, OfOneValueIsReadBackByLoadAs) {
  const auto stages = load_as<std::vector<Stage>>("stages", "[{lr: 0.5, steps: 3}, {}]", "test.yaml");
  const std::string text = dump_as("stages", stages);
  EXPECT_EQ(text, "stages:\n  - {lr: 0.5, steps: 3, shape: flat}\n  - {lr: 0.1, steps: 10, shape: flat}\n");
  EXPECT_EQ(load_as<std::int64_t>("seed", "7", "test.yaml"), 7);
  EXPECT_EQ(load_as<Models::Choice>("model", "{mlp: {hidden: 9}}", "test.yaml").make(), "mlp 9");
  try {
    load_as<Models::Choice>("model", "{name: mlp, hiden: 9}", "--model");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("--model:1:20: model.hiden"), std::string::npos) << error.what();
  }
}

TEST(Dump, RefusesWhatLoadWouldRefuse) {
  Root root;
  root.optimizer.lr = std::numeric_limits<double>::infinity();
  EXPECT_THROW(dump(root), std::logic_error);
  Root named;
  named.name = std::string("a\0b", 3);
  EXPECT_THROW(dump(named), std::logic_error);
}

}  // namespace
}  // namespace phalanx::config
