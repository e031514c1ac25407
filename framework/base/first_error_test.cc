// SPDX-License-Identifier: Apache-2.0
#include "framework/base/first_error.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

TEST(FirstError, IsThrownAfterEverythingWasDone) {
  std::vector<int> done;
  FirstError error;
  for (const int number : {1, 2, 3}) {
    error.of([&] {
      done.push_back(number);
      if (number > 1) throw std::runtime_error("number " + std::to_string(number));
    });
  }
  EXPECT_THAT(done, ElementsAre(1, 2, 3));
  EXPECT_THAT([&] { error.rethrow(); }, ThrowsMessage<std::runtime_error>("number 2"));
}

TEST(FirstError, IsNoneIfNothingHasFailed) {
  FirstError error;
  error.of([] {});
  EXPECT_NO_THROW(error.rethrow());
}

}  // namespace
}  // namespace phalanx
