// SPDX-License-Identifier: Apache-2.0
#include "engine/config/expectation.h"

#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::complaint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

ExpectConfig expecting(const std::string& yaml) { return config::load_as<ExpectConfig>("expect", yaml, "test.yaml"); }

std::string complaint_about(const std::string& expect, const std::string& more = "") {
  return complaint("expect: " + expect + more);
}

TEST(Expectation, TheOldKeyIsRefusedWithTheNewSpelling) {
  EXPECT_THAT([] { expecting("{test_accuracy: 0.97}"); },
              ThrowsMessage<ConfigError>(HasSubstr(
                  "expect.test_accuracy: is no longer a key: write expect: {test: {accuracy: {min: 0.97}}}")));
}

TEST(Expectation, IsDumpedInTheFormInWhichItIsLoaded) {
  auto expected = expecting(
      "{test: {loss: {max: 0.5}, accuracy: {min: 0.25}}, epochs: {3: {test: {loss: {max: 1}}}}, resume_at: 0.5, "
      "reach: [{metric: accuracy, value: 0.9, epochs: 2}], same_as: {config: single.yaml, steps: 100}}");
  const std::string text = config::dump_as("expect", expected);
  EXPECT_THAT(text, HasSubstr("test: {accuracy: {min: 0.25}, loss: {max: 0.5}}"));
  ExperimentConfig again;
  config::load_text(again, "model: mlp\n" + text, "dump.yaml");
  EXPECT_EQ(config::dump_as("expect", again.expect), text);
  EXPECT_EQ(again.expect.epochs.at("3").test.at("loss").max, 1);
  EXPECT_EQ(again.expect.reach.at(0).epochs, 2);
  EXPECT_EQ(again.expect.same_as.steps, 100);
}

TEST(Expectation, KeysOfABoundAreChecked) {
  EXPECT_THAT([] { expecting("{test: {accuracy: {least: 0.97}}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("expect.test.accuracy.least: unknown key")));
  EXPECT_THAT([] { expecting("{test: {accuracy: 0.97}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("expect.test.accuracy: expected a section")));
}

TEST(Expectation, WhatTakesOtherRunsIsLeftToRegress) {
  EXPECT_THAT(left_to_regress(expecting("{test: {loss: {max: 1}}, throughput: {min: 1}, traffic: {tolerance: 0}}")),
              IsEmpty());
  EXPECT_THAT(left_to_regress(expecting("{throughput: {of_median: 0.95}, same_as: {config: a.yaml}, resume_at: 0.5, "
                                        "scaling: {min: 0.7}, faults: {injected: 3}}")),
              ElementsAre("expect.throughput.of_median", "expect.same_as", "expect.resume_at", "expect.scaling",
                          "expect.faults"));
}

TEST(Expectation, OfAnEpochMustBeMeasuredAfterIt) {
  const std::string train = ", train: {epochs: 4}";
  EXPECT_EQ(complaint_about("{epochs: {2: {test: {loss: {max: 1}}}, 4: {train: {loss: {max: 1}}}}}", train), "");
  for (const std::string wrong : {"0", "5", "two", "1.5", "-1"}) {
    EXPECT_EQ(complaint_about("{epochs: {" + wrong + ": {test: {loss: {max: 1}}}}}", train),
              "config: expect.epochs." + wrong + ": must be the number of an epoch, from 1 to train.epochs: 4");
  }
  EXPECT_EQ(complaint_about("{epochs: {3: {test: {loss: {max: 1}}}}}", train + ", evaluate: {every_epochs: 2}"),
            "config: expect.epochs.3: no evaluation follows this epoch, since evaluate.every_epochs is 2");
  EXPECT_EQ(complaint_about("{epochs: {3: {train: {loss: {max: 1}}}}}", train + ", evaluate: {every_epochs: 0}"), "");
  EXPECT_EQ(complaint_about("{epochs: {4: {test: {loss: {max: 1}}}}}", train + ", evaluate: {every_epochs: 0}"), "");
  EXPECT_EQ(complaint_about("{epochs: {3: {test: {loss: {max: 1}}}}}", train + ", evaluate: {validation: 0.1}"),
            "config: expect.epochs.3.test: only the final model is tested, since evaluate.validation holds out samples "
            "for the evaluations before");
  EXPECT_EQ(complaint_about("{epochs: {1: {test: {loss: {}}}}}", train),
            "config: expect.epochs.1.test.loss: needs a min, a max or both");
}

TEST(Expectation, OfATimeNeedsAMetricAValueAndALimit) {
  EXPECT_EQ(complaint_about("{reach: [{metric: accuracy, value: 0.9, seconds: 30}]}"), "");
  EXPECT_EQ(complaint_about("{reach: [{}]}"),
            "config: expect.reach[0]: needs the name of a metric\n"
            "config: expect.reach[0]: needs a value\n"
            "config: expect.reach[0]: needs seconds, epochs or both");
  EXPECT_EQ(complaint_about("{reach: [{metric: accuracy, value: 97, epochs: 2}]}"),
            "config: expect.reach[0]: cannot be met: accuracy is always between 0 and 1");
  EXPECT_THAT([] { expecting("{reach: [{split: tset, metric: loss, value: 1, epochs: 2}]}"); },
              ThrowsMessage<ConfigError>(HasSubstr("must be train, validation or test")));
}

TEST(Expectation, OfMemoryIsANumberOfBytes) {
  EXPECT_EQ(complaint_about("{memory: {max: 1.5 GB}}"), "");
  EXPECT_EQ(complaint_about("{memory: {max: 0}}"), "config: expect.memory.max: must be above 0");
  EXPECT_THAT(complaint_about("{memory: {max: much}}"), HasSubstr("config: expect.memory.max: "));
}

TEST(Expectation, OfOtherRunsIsChecked) {
  EXPECT_EQ(complaint_about("{same_as: {config: single.yaml, tolerance: 0}, resume_at: 0.5}"), "");
  EXPECT_EQ(complaint_about("{same_as: {steps: 10}}"),
            "config: expect.same_as.config: is missing: name the config whose losses are the same");
  for (const std::string wrong : {"0", "1"}) {
    EXPECT_EQ(complaint_about("{resume_at: " + wrong + "}"),
              "config: expect.resume_at: must be above 0 and below 1, so that there are steps before and after");
  }
  EXPECT_EQ(complaint_about("{scaling: {min: 0.7}}", ", launch: {ranks: 2}"), "");
  EXPECT_EQ(complaint_about("{scaling: {min: 0.7}}"),
            "config: expect.scaling.min: compares with one rank, but this run trains on one rank itself");
  const std::string saved = ", checkpoint: {every_steps: 5}";
  EXPECT_EQ(complaint_about("{faults: {injected: 10, survived: 9}}", saved), "");
  EXPECT_EQ(complaint_about("{faults: {injected: 10, survived: 11}}", saved),
            "config: expect.faults.survived: 11 is more than expect.faults.injected: 10");
  EXPECT_EQ(complaint_about("{faults: {injected: 10}}"),
            "config: expect.faults.injected: needs a run that saves checkpoints, from which it goes on after a fault; "
            "set checkpoint.every_steps");
  EXPECT_THAT([] { expecting("{throughput: {nights: 0}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("must be between 1 and 1000, got 0")));
}

}  // namespace
}  // namespace phalanx
