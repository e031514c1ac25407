// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/meter_set.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<MeterConfig> loaded(const std::string& meters) {
  return config::load_as<std::vector<MeterConfig>>("meters", meters, "test.yaml");
}

TEST(MeterSet, AListInAConfigReadsInItsOrder) {
  const auto meters = loaded("[{meter: perplexity}, {meter: {name: class_error, k: 5}}, {meter: loss}]");
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
    std::string names;
    for (const auto& [name, value] : MeterSet(meters).take(*group)) names += name + " ";
    EXPECT_EQ(names, "perplexity class_error_top5 loss ");
  });
}

TEST(MeterSet, ItsConfigReadsBackWhatItWrites) {
  const std::string list = "\n  - {meter: {name: accuracy}}\n  - {meter: {name: class_error, k: 5}}\n";
  const auto meters = loaded("[{meter: accuracy}, {meter: {name: class_error, k: 5}}]");
  EXPECT_EQ(config::dump_as("meters", meters), "meters:" + list);
  EXPECT_EQ(config::dump_as("meters", loaded(list)), "meters:" + list);
}

TEST(MeterSet, MistakesInItsConfigAreErrors) {
  EXPECT_THAT([] { loaded("[{meter: acuracy}]"); }, ThrowsMessage<ConfigError>(HasSubstr("did you mean \"accuracy\"")));
  EXPECT_THAT([] { loaded("[{meter: {name: accuracy, k: 5}}]"); },
              ThrowsMessage<ConfigError>(HasSubstr("class_error")));
  EXPECT_THAT([] { loaded("[{}]"); }, ThrowsMessage<ConfigError>(HasSubstr("meters[0].meter: missing")));
  EXPECT_THAT([] { loaded("[accuracy]"); }, ThrowsMessage<ConfigError>(HasSubstr("expected a section")));
}

}  // namespace
}  // namespace phalanx
