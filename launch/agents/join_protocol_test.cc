// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/join_protocol.h"

#include <gmock/gmock.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(JoinRequest, IsTheSameAfterAWayThroughAClaim) {
  const JoinRequest request{.host = "node \"3\"", .ranks = 4, .versions = {{"Phalanx", "1"}}};
  const std::string claim = to_claim(request);
  EXPECT_EQ(claim.size(), join_protocol().claim_bytes);
  const auto parsed = parse_join_request(claim);
  EXPECT_EQ(parsed.host, request.host);
  EXPECT_EQ(parsed.ranks, 4);
  EXPECT_EQ(parsed.versions, request.versions);
}

TEST(JoinRequest, IsRefusedIfItIsMalformed) {
  EXPECT_THAT([] { parse_join_request("garbage"); }, ThrowsMessage<DataError>(HasSubstr("the request to join")));
  EXPECT_THAT([] { parse_join_request(to_claim({.host = "a", .ranks = 0})); },
              ThrowsMessage<DataError>(HasSubstr("ranks: is not between 1 and 4096")));
  EXPECT_THROW(parse_join_request(R"({"host": 3, "ranks": 1, "versions": {}})"), DataError);
  EXPECT_THROW(to_claim({.host = std::string(2000, 'a')}), ConfigError);
}

TEST(JoinAnswer, IsTheSameAfterAWayThroughText) {
  const JoinAnswer answer{.folder = "/a folder",
                          .command = {"train", "--set=a b"},
                          .variables = "A=1\nB=2\n",
                          .token_file = "/a/token",
                          .token = "x",
                          .secret_is_of_job = false};
  const std::string text = to_text(answer);
  ASSERT_EQ(length_of_answer(text.substr(0, kLengthDigits)), text.size() - kLengthDigits);
  const auto parsed = parse_join_answer(text.substr(kLengthDigits));
  EXPECT_EQ(parsed.refusal, "");
  EXPECT_EQ(parsed.folder, answer.folder);
  EXPECT_EQ(parsed.command, answer.command);
  EXPECT_EQ(parsed.variables, answer.variables);
  EXPECT_EQ(parsed.token_file, answer.token_file);
  EXPECT_EQ(parsed.token, answer.token);
  EXPECT_FALSE(parsed.secret_is_of_job);
}

TEST(JoinAnswer, HasALimitedLength) {
  for (const char* digits : {"", "0000000a", "1", "99999999", "-0000001"}) {
    EXPECT_THROW(length_of_answer(digits), DataError) << digits;
  }
  EXPECT_THROW(to_text(JoinAnswer{.variables = std::string(kMostAnswer, 'x')}), Error);
}

}  // namespace
}  // namespace phalanx
