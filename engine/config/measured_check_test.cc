// SPDX-License-Identifier: Apache-2.0
#include "engine/config/measured_check.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

std::string missing(const std::string& yaml, bool validation = true) {
  try {
    check_measured(
        config::load_as<ExpectConfig>("expect", yaml, "test.yaml"),
        {.train = {{"loss", 0}}, .evaluation = {{"loss", 0}, {"accuracy", 0}}, .has_validation = validation});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MeasuredCheck, ListsAllMetricsThatAreMissing) {
  EXPECT_EQ(missing("{train: {loss: {max: 1}}, validation: {accuracy: {min: 0}}, test: {accuracy: {min: 0}}, "
                    "epochs: {1: {test: {loss: {max: 1}}}}, reach: [{metric: accuracy, value: 1, epochs: 1}]}"),
            "");
  EXPECT_EQ(missing("{train: {accuracy: {min: 0}}, epochs: {1: {test: {auc: {min: 0}}}}, "
                    "reach: [{split: train, metric: f1, value: 1, epochs: 1}]}"),
            "config: expect.train.accuracy: none of watch.meters measures \"accuracy\"; they measure: loss\n"
            "config: expect.epochs.1.test.auc: none of evaluate.meters measures \"auc\"; they measure: loss, accuracy\n"
            "config: expect.reach[0]: none of watch.meters measures \"f1\"; they measure: loss");
  EXPECT_EQ(
      missing("{validation: {loss: {max: 1}}, reach: [{split: validation, metric: loss, value: 1, epochs: 1}]}", false),
      "config: expect.validation: there is no validation split; set evaluate.validation\n"
      "config: expect.reach[0]: there is no validation split; set evaluate.validation");
}

}  // namespace
}  // namespace phalanx
