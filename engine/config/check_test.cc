// SPDX-License-Identifier: Apache-2.0
#include "engine/config/check.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "engine/config/experiment_config.h"
#include "engine/testing/run.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/comm/device_kind.h"

namespace phalanx {
namespace {

using testing::complaint;

TEST(Check, AcceptsSettingsThatFitTogether) {
  EXPECT_EQ(complaint(""), "");
  EXPECT_EQ(complaint("launch: {ranks: 4}, train: {global_batch_size: 4}"), "");
  EXPECT_EQ(complaint("launch: {ranks: 1}, strategy: single"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a, b], with: mpi}"), "");
  EXPECT_EQ(complaint("backend: inproc, launch: {ranks: 2}"), "");
}

TEST(Check, AModelIsRequiredAndTheDatasetHasADefault) {
  try {
    check(ExperimentConfig{});
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "config: model: is missing: name a model (--help_config lists them)");
  }
  EXPECT_EQ(ExperimentConfig{}.dataset.selected(), "digits");
}

TEST(Check, TheNameMustFitIntoAFoldersName) {
  const std::string why = " cannot be part of a folder's name; use 1 to 100 letters, digits, '.', '_' and '-'";
  for (const char* name : {"", "a/b", "a b", "a\tb", "a:b", "..\\x", "r\xc3\xbcn", "$(x)"}) {
    ExperimentConfig config = testing::tiny_config({});
    config.name = name;
    EXPECT_THAT([&] { check(config); }, ::testing::ThrowsMessage<ConfigError>(::testing::EndsWith(why))) << name;
  }
  EXPECT_EQ(complaint("name: a/b"), "config: name: \"a/b\"" + why);
  EXPECT_EQ(complaint("name: A-z_0.9"), "");
  EXPECT_EQ(complaint("name: " + std::string(100, 'a')), "");
  EXPECT_THAT(complaint("name: " + std::string(101, 'a')), ::testing::EndsWith(why));
}

TEST(Check, AProfileWindowMustBeginBeforeItEnds) {
  EXPECT_EQ(complaint("watch: {profile: {from: 3, to: 3}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 3, to: 2}}"),
            "config: watch.profile: a window from step 3 to 2 is empty; steps are numbered from 1");
  EXPECT_EQ(complaint("watch: {profile: {to: 2}}"),
            "config: watch.profile: a window from step 0 to 2 is empty; steps are numbered from 1");
}

TEST(Check, AProfileWindowWithAllOperatorsMustBeShort) {
  EXPECT_EQ(complaint("watch: {profile: {from: 5, to: 1004}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 1, to: 100000, operators: false}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 5, to: 1005}}"),
            "config: watch.profile: a window of 1001 steps with all operators would fill the memory; use 1000 at most,"
            " or set operators: false");
}

TEST(Check, BucketBytesMustBeASize) {
  EXPECT_EQ(complaint("framework: {bucket_bytes: 64KB}"), "");
  EXPECT_EQ(complaint("framework: {bucket_bytes: 0}"), "config: framework.bucket_bytes: must be above 0");
  EXPECT_NE(complaint("framework: {bucket_bytes: lots}").find("config: framework.bucket_bytes: "), std::string::npos);
  EXPECT_EQ(complaint("framework: {bucket_bytes: auto}"), "");
  EXPECT_EQ(complaint("framework: {bucket_bytes: default}"), "");
  EXPECT_THAT(complaint("framework: {bucket_bytes: Auto}"), ::testing::EndsWith("(did you mean \"auto\"?)"));
  EXPECT_THAT(complaint("framework: {bucket_bytes: auto}, launch: {threads: 1}, determinism: world_size_invariant"),
              ::testing::HasSubstr("config: framework.bucket_bytes: auto depends on measurements"));
}

TEST(Check, MistakesInTheOptimizerAreFoundBeforeTheRun) {
  EXPECT_EQ(complaint("optimizer: {name: sgd, nesterov: true}"),
            "config: optimizer: nesterov needs a momentum above 0 and no dampening");
}

TEST(Check, AnInvalidExpressionOfAGroupIsNamed) {
  EXPECT_EQ(complaint("parameter_groups: [{match: bias}]"), "");
  const std::string wrong = complaint("parameter_groups: [{match: bias}, {match: '('}], turns: {a: {optimizer: sgd}}");
  EXPECT_THAT(wrong, ::testing::StartsWith("config: parameter_groups[1].match: \"(\" is not a regular expression: "));
  EXPECT_THAT(wrong, ::testing::Not(::testing::HasSubstr("\n"))) << "the problem is reported once";
}

TEST(Check, ExpectationsNeedBoundsThatCanBeMet) {
  EXPECT_EQ(complaint("expect: {test: {accuracy: {}}}"), "config: expect.test.accuracy: needs a min, a max or both");
  EXPECT_EQ(complaint("expect: {train: {loss: {min: 2, max: 1}}}"),
            "config: expect.train.loss: its min is above its max, so no value is within both");
  EXPECT_EQ(complaint("expect: {validation: {loss: {min: 1, max: 1}}}"), "");
  EXPECT_EQ(complaint("expect: {test: {accuracy: {min: 2}}}"),
            "config: expect.test.accuracy: cannot be met: it is always between 0 and 1");
  EXPECT_EQ(complaint("expect: {validation: {auc: {max: -0.5}}}"),
            "config: expect.validation.auc: cannot be met: it is always between 0 and 1");
  EXPECT_EQ(complaint("expect: {test: {accuracy: {min: 1}, loss: {min: 2}}}"), "");
}

TEST(Check, OptimizersOfTurnsAreTriedBeforeTheRun) {
  EXPECT_EQ(complaint("turns: {critic: {optimizer: {name: sgd, nesterov: true}}}"),
            "config: turns.critic.optimizer: nesterov needs a momentum above 0 and no dampening");
}

class MissingKind final : public DeviceKind {
 public:
  c10::DeviceType type() const override { return c10::kMeta; }
  std::string missing() const override { return "there is none; use device: cpu"; }
  int count() const override { return 0; }
  CommunicatorPtr connect(CommunicatorPtr host, c10::Device, Seconds) const override { return host; }
};

const bool check_test_registered = DeviceKinds::global().add<NoFields>(
    "missing", "for tests",
    [](const NoFields&) -> std::shared_ptr<const DeviceKind> { return std::make_shared<MissingKind>(); });

TEST(Check, AMissingDeviceIsRefusedUnlessDeviceIsAuto) {
  EXPECT_EQ(complaint("device: missing"), "config: device: missing: there is none; use device: cpu");
  EXPECT_EQ(complaint("device: cpu"), "");
  EXPECT_EQ(complaint("device: auto"), "");
}

TEST(Check, ListsEveryProblemAtOnce) {
  EXPECT_EQ(complaint("name: a/b, launch: {ranks: 2}, strategy: single, train: {global_batch_size: 1}"),
            "config: name: \"a/b\" cannot be part of a folder's name; use 1 to 100 letters, digits, '.', '_' and '-'\n"
            "config: train.global_batch_size: 1 samples cannot be divided among launch.ranks: 2\n"
            "config: strategy: single trains on one rank, but launch.ranks is 2");
}

TEST(Check, PartsOfAScheduleMustFitTogether) {
  EXPECT_EQ(complaint("schedule: {name: multi_step, at: [20, 10]}"),
            "config: schedule: the steps of multi_step's `at` must be in order");
}

}  // namespace
}  // namespace phalanx
