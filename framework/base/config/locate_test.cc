// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/locate.h"

#include <gtest/gtest.h>

#include <fstream>

namespace phalanx::config {
namespace {

constexpr const char* kText = R"(name: a
launch:
  ranks: 4
  hosts:
    - one
    - two
train: {batch: 2}
task: auto
model: lenet
optimizer: {name: sgd}
)";

class Located : public ::testing::Test {
 protected:
  Located() { std::ofstream(path_) << kText; }

  // Returns the text of the located problem, without the folder of the file.
  std::string text(const ConfigProblem& problem, const std::vector<std::string>& overrides = {}) const {
    return without_folder(located(ConfigError(std::vector{problem}), {path_, overrides}));
  }
  std::string without_folder(const ConfigError& error) const {
    std::string text = error.what();
    for (std::size_t at; (at = text.find(path_)) != text.npos;) text.replace(at, path_.size(), "t.yaml");
    return text;
  }

  const std::string path_ = ::testing::TempDir() + "/locate_test.yaml";
};

TEST_F(Located, AKeyHasItsLine) {
  EXPECT_EQ(text({.origin = "config", .key = "name", .message = "no"}), "t.yaml:1:7: name: no");
  EXPECT_EQ(text({.key = "launch.ranks", .message = "no"}), "t.yaml:3:10: launch.ranks: no");
  EXPECT_EQ(text({.key = "launch.hosts[1]", .message = "no"}), "t.yaml:6:7: launch.hosts[1]: no");
  EXPECT_EQ(text({.key = "launch.hosts", .message = "no"}), "t.yaml:4:3: launch.hosts: no");
  EXPECT_EQ(text({.key = "train", .message = "no"}), "t.yaml:7:1: train: no");
}

TEST_F(Located, AMissingKeyHasTheLineOfItsSectionOrTheFile) {
  EXPECT_EQ(text({.key = "launch.with", .message = "no"}), "t.yaml:2:1: launch.with: no");
  EXPECT_EQ(text({.key = "launch.hosts[7]", .message = "no"}), "t.yaml:4:3: launch.hosts[7]: no");
  EXPECT_EQ(text({.key = "watch", .message = "missing"}), "t.yaml: watch: missing");
}

TEST_F(Located, AMissingKeyHasTheLineOfAKeyThatTheMessageNames) {
  EXPECT_EQ(text({.key = "strategy", .message = "single, but launch.ranks is 4"}),
            "t.yaml:3:10: strategy: single, but launch.ranks is 4");
}

TEST_F(Located, WithoutAKeyTheOneInTheMessageCounts) {
  EXPECT_EQ(text({.message = "train.batch is 2"}), "t.yaml:7:16: train.batch is 2");
  EXPECT_EQ(text({.message = "task: auto is not known"}), "t.yaml:8:7: task: auto is not known");
  EXPECT_EQ(text({.message = "model lenet needs images"}), "t.yaml:9:8: model lenet needs images");
  EXPECT_EQ(text({.message = "optimizer sgd needs lr"}), "t.yaml:10:1: optimizer sgd needs lr");
  EXPECT_EQ(text({.message = "model of another kind"}), "model of another kind");
  EXPECT_EQ(text({.message = "the task and its name. See runs/a.b"}), "the task and its name. See runs/a.b");
}

TEST_F(Located, AFlagThatSetTheKeyIsItsPlace) {
  EXPECT_EQ(text({.key = "launch.ranks", .message = "no"}, {"launch.ranks=5"}),
            "--set launch.ranks=5: launch.ranks: no");
}

TEST_F(Located, PlacesThatAreKnownStay) {
  EXPECT_EQ(text({.origin = "tuned.json", .key = "name", .message = "no"}), "tuned.json: name: no");
}

TEST_F(Located, ProblemsAreInTheOrderOfTheFile) {
  const ConfigError error(std::vector<ConfigProblem>{{.key = "launch.ranks", .message = "b"},
                                                     {.key = "name", .message = "c"},
                                                     {.key = "name", .message = "a"},
                                                     {.key = "train.batch", .message = "d"}});
  EXPECT_EQ(without_folder(located(error, {path_, {"launch.ranks=9"}})),
            "t.yaml:1:7: name: c\nt.yaml:1:7: name: a\nt.yaml:7:16: train.batch: d\n"
            "--set launch.ranks=9: launch.ranks: b");
}

TEST_F(Located, AMissingFileLeavesTheErrorAsItIs) {
  const ConfigError error(std::vector<ConfigProblem>{{.origin = "config", .key = "name", .message = "no"}});
  EXPECT_STREQ(located(error, {"/no/such.yaml"}).what(), "config: name: no");
}

}  // namespace
}  // namespace phalanx::config
