// SPDX-License-Identifier: Apache-2.0
#include "engine/config/expectation.h"

#include <gmock/gmock.h>

#include <cmath>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ExpectConfig expecting(const std::string& yaml) { return config::load_as<ExpectConfig>("expect", yaml, "test.yaml"); }

TEST(Expectation, ValuesEqualToABoundMeetIt) {
  const auto expected = expecting("{test: {accuracy: {min: 0.5, max: 0.75}}}").test;
  check_expected(expected, {{"accuracy", 0.5}}, "test");
  check_expected(expected, {{"accuracy", 0.75}}, "test");
  EXPECT_THAT([&] { check_expected(expected, {{"accuracy", 0.4999}}, "test"); },
              ThrowsMessage<Error>("the test accuracy is 0.4999, but expect.test.accuracy.min asks for 0.5 at least"));
  EXPECT_THAT([&] { check_expected(expected, {{"accuracy", 0.7501}}, "test"); },
              ThrowsMessage<Error>("the test accuracy is 0.7501, but expect.test.accuracy.max asks for 0.75 at most"));
}

TEST(Expectation, NonFiniteValuesMeetNoBound) {
  EXPECT_THROW(check_expected(expecting("{test: {loss: {max: 1}}}").test, {{"loss", NAN}}, "test"), Error);
  EXPECT_THROW(check_expected(expecting("{test: {loss: {min: 1}}}").test, {{"loss", NAN}}, "test"), Error);
}

TEST(Expectation, TheOldKeyIsRefusedWithTheNewSpelling) {
  EXPECT_THAT([] { expecting("{test_accuracy: 0.97}"); },
              ThrowsMessage<ConfigError>(HasSubstr(
                  "expect.test_accuracy: is no longer a key: write expect: {test: {accuracy: {min: 0.97}}}")));
}

TEST(Expectation, IsDumpedInTheFormInWhichItIsLoaded) {
  auto expected = expecting("{test: {loss: {max: 0.5}, accuracy: {min: 0.25}}, train: {}}");
  const std::string text = config::dump_as("expect", expected);
  EXPECT_THAT(text, HasSubstr("test: {accuracy: {min: 0.25}, loss: {max: 0.5}}"));
}

TEST(Expectation, KeysOfABoundAreChecked) {
  EXPECT_THAT([] { expecting("{test: {accuracy: {least: 0.97}}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("expect.test.accuracy.least: unknown key")));
  EXPECT_THAT([] { expecting("{test: {accuracy: 0.97}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("expect.test.accuracy: expected a section")));
}

}  // namespace
}  // namespace phalanx
