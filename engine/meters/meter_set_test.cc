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

struct Root {
  std::vector<MeterConfig> meters;

  template <class V>
  void visit(V& v) {
    v("meters", meters, "under test");
  }
};

Root loaded(const std::string& meters) {
  Root root;
  config::load_text(root, "meters: " + meters, "test.yaml");
  return root;
}

TEST(MeterSet, AListInAConfigReadsInItsOrder) {
  const auto root = loaded("[{meter: perplexity}, {meter: {name: class_error, k: 5}}, {meter: loss}]");
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
    std::string names;
    for (const auto& [name, value] : MeterSet(root.meters).take(*group)) names += name + " ";
    EXPECT_EQ(names, "perplexity class_error_top5 loss ");
  });
}

TEST(MeterSet, ItsConfigReadsBackWhatItWrites) {
  auto root = loaded("[{meter: accuracy}, {meter: {name: class_error, k: 5}}]");
  const std::string text = config::dump(root);
  EXPECT_EQ(text, "meters:\n  - {meter: {name: accuracy}}\n  - {meter: {name: class_error, k: 5}}\n");
  Root copy;
  config::load_text(copy, text, "dump.yaml");
  EXPECT_EQ(config::dump(copy), text);
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
