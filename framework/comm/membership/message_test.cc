// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/membership/message.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "framework/base/error.h"

namespace phalanx::membership {
namespace {

std::string refusal_of(const std::string& bytes) {
  try {
    (void)decoded(bytes);
  } catch (const CommError& error) {
    return error.what();
  }
  return "none";
}

TEST(AgreementMessage, BytesThatAreNoMessageAreRefused) {
  const Message message{.kind = Message::Kind::kPropose,
                        .view = 3,
                        .ballot = {2, 1},
                        .ended = {4, 5},
                        .proposal = {.members = {{.id = 1, .claim = {6, 7}}, {.id = 2}}}};
  const std::string bytes = encoded(message);
  EXPECT_EQ(decoded(bytes), message);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(refusal_of(bytes.substr(0, length)), "none") << length << " bytes";
  }
  EXPECT_NE(refusal_of(bytes + '\0').find("it is too long"), std::string::npos);
  const auto with = [&](std::size_t at, char byte) {
    std::string changed = bytes;
    changed[at] = byte;
    return refusal_of(changed);
  };
  constexpr std::size_t kEnded = 2 + 7 * 8;  // where the list of those that have ended begins
  EXPECT_NE(with(0, 9).find("another version"), std::string::npos);
  EXPECT_NE(with(1, 9).find("its kind is unknown"), std::string::npos);
  EXPECT_NE(with(1, 4 - 1).find("a proposal where none belongs"), std::string::npos) << "a kPromise without a ballot";
  EXPECT_NE(with(9, '\x80').find("the number of a view is negative"), std::string::npos);
  EXPECT_NE(with(kEnded + 4, 5).find("not in ascending order"), std::string::npos);
  EXPECT_NE(with(kEnded + 2, 2).find("more than 65536 members"), std::string::npos);
  EXPECT_NE(with(kEnded, 9).find("too short"), std::string::npos);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {  // whatever arrives, it is refused or a message that can be sent again
    std::string changed = bytes;
    for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<char>(random());
    if (refusal_of(changed) != "none") continue;
    EXPECT_EQ(encoded(decoded(changed)), changed);
  }
}

}  // namespace
}  // namespace phalanx::membership
