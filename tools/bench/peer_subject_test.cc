// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/peer_subject.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tools/bench/child.h"

namespace phalanx::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A subject whose process is a shell script.
std::unique_ptr<Subject> subject_of(const std::string& script, int ranks = 2) {
  const auto child = std::make_shared<Child>(std::vector<std::string>{"sh", "-c", script});
  return std::make_unique<PeerSubject>("peer", ranks, std::shared_ptr<LineSocket>(child, &child->lines()), Seconds(20));
}

TEST(PeerSubject, SendsTheCaseAndReturnsTheTimeOfOneOperation) {
  const auto subject = subject_of(R"(read line; [ "$line" = "prepare 1 all_gather 4 2 registered" ] && echo ok
    read line; [ "$line" = "run 1 20" ] && echo 12.5
    read line; [ "$line" = "drop 1" ] && echo ok)");
  const auto trial = subject->prepare({.op = "all_gather", .memory = "registered", .bytes = 16});
  EXPECT_EQ(trial->run(20), 12.5);
}

TEST(PeerSubject, RefusesAnAnswerThatIsNoTime) {
  const auto subject = subject_of("while read line; do echo ok; done");
  const auto trial = subject->prepare({.op = "barrier"});
  EXPECT_THAT([&] { trial->run(1); }, ThrowsMessage<Error>(HasSubstr("expected a time, got \"ok\"")));
}

TEST(PeerSubject, ReportsAProcessThatHasEnded) {
  const auto subject = subject_of("read line; echo ok");
  const auto trial = subject->prepare({.op = "barrier"});
  EXPECT_THAT([&] { trial->run(1); }, ThrowsMessage<Error>(HasSubstr("has ended")));
}

TEST(PeerSubject, HasNoPartnerToSendToAlone) {
  EXPECT_EQ(subject_of("cat", 1)->absent({.op = "send_recv"}), "needs two ranks");
  EXPECT_EQ(subject_of("cat", 2)->absent({.op = "send_recv"}), "");
}

}  // namespace
}  // namespace phalanx::bench
