// SPDX-License-Identifier: Apache-2.0
// Threads of the test take the places of hosts that join.
#include "launch/agents/joins.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "framework/base/files.h"
#include "framework/base/secret_file.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "framework/testing/scratch.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool sends_at_once(const Descriptor& socket) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0 && value != 0;
}

// A job with two ranks, up to five of which may be there.
class JoinsOfHosts : public ::testing::Test {
 protected:
  void open(std::optional<std::string> secret = {}) {
    joins_.emplace(
        ranks_,
        Joins::Options{.port = {.run_folder = scratch_.folder(), .interface = "127.0.0.1", .secret = std::move(secret)},
                       .max_ranks = 5,
                       .token_file = scratch_.path("token"),
                       .expected = [this] { return expected_; },
                       .answer = [] { return JoinAnswer{.folder = "/", .command = {"train"}}; },
                       .join =
                           [this](const JoinRequest& request, const Descriptor& socket, const std::string& answer) {
                             joined_.push_back(request.ranks);
                             EXPECT_TRUE(sends_at_once(socket)) << "a beat and its answer are small";
                             const std::size_t host = ranks_.add(request.host, request.ranks);
                             for (int i = 0; i < request.ranks; ++i) {
                               ranks_.start(2 + i, *ranks_.room_on(host));
                             }
                             ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
                           }});
  }

  // Greets as a host does, and reads the answer if it is admitted.
  HandshakeResult ask(const JoinRequest& request, const std::string& secret) {
    const std::string text = read_file(scratch_.path("join.address"));
    const std::string address = text.substr(0, text.find('\n'));
    std::atomic<bool> done = false;
    auto result = HandshakeResult::kImpostor;
    std::thread host([&] {
      try {
        TimedStream stream(connect_to(address, 5));
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        result = greet(stream, join_protocol(), secret, to_claim(request), deadline);
        if (result == HandshakeResult::kAdmitted) {
          const auto length = length_of_answer(stream.receive(kLengthDigits, deadline));
          answer_ = parse_join_answer(stream.receive(length, deadline));
          EXPECT_TRUE(sends_at_once(stream.release()));
        }
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
      done = true;
    });
    ::testing::internal::CaptureStderr();
    while (!done) {
      joins_->look();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    host.join();
    printed_ = ::testing::internal::GetCapturedStderr();
    return result;
  }

  std::string own_secret() const { return read_secret(scratch_.path("join.secret")); }

  testing::Scratch scratch_;
  HostRanks ranks_{{{.host = "a", .first_rank = 0, .ranks = 2, .slots = 2}}};
  std::optional<Joins> joins_;
  int expected_ = 0;
  std::vector<int> joined_;
  JoinAnswer answer_;
  std::string printed_;
};

TEST_F(JoinsOfHosts, AreAnsweredUntilAllRanksAreThere) {
  open();
  EXPECT_EQ(ask(own_join_request(2), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_EQ(answer_.refusal, "");
  EXPECT_THAT(answer_.command, ElementsAre("train"));
  EXPECT_EQ(read_file(answer_.token_file), answer_.token);
  EXPECT_EQ(ask(own_join_request(4), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_THAT(joined_, ElementsAre(2, 1)) << "the job has room for one more rank only";
  EXPECT_THAT(printed_, HasSubstr(" joins, with ranks: 1\n"));
}

TEST_F(JoinsOfHosts, AreRefusedIfAllRanksAreThere) {
  open();
  EXPECT_EQ(ask(own_join_request(3), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_EQ(ask(own_join_request(1), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_EQ(answer_.refusal, "the job has 5 ranks, and no more may join (faults.max_ranks: 5)");
  EXPECT_THAT(joined_, ElementsAre(3));
}

TEST_F(JoinsOfHosts, LeaveRoomForProcessesInPlaceOfLostRanks) {
  open();
  ranks_.end(1);
  expected_ = 1;
  EXPECT_EQ(ask(own_join_request(4), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_THAT(joined_, ElementsAre(3));
  EXPECT_EQ(ask(own_join_request(1), own_secret()), HandshakeResult::kAdmitted);
  EXPECT_EQ(answer_.refusal, "the job has 4 ranks, soon 5, and no more may join (faults.max_ranks: 5)");
}

TEST_F(JoinsOfHosts, AreRefusedForHostsWithOtherVersions) {
  open();
  auto request = own_join_request(1);
  request.versions["Phalanx"] = "99";
  EXPECT_EQ(ask(request, own_secret()), HandshakeResult::kAdmitted);
  EXPECT_THAT(answer_.refusal, HasSubstr("Phalanx 99; install the same versions"));
  EXPECT_THAT(joined_, IsEmpty());
}

TEST_F(JoinsOfHosts, NeedTheSecretOfTheJob) {
  open("the secret of this job");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("join.secret")));
  EXPECT_EQ(ask(own_join_request(1), "another secret, as long"), HandshakeResult::kRefused);
  EXPECT_THAT(joined_, IsEmpty());
  EXPECT_EQ(ask(own_join_request(1), "the secret of this job"), HandshakeResult::kAdmitted);
}

TEST_F(JoinsOfHosts, LeaveNoFileBehind) {
  open();
  struct stat file{};
  ASSERT_EQ(::stat(scratch_.path("join.secret").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  EXPECT_THAT(joins_->invitation(), HasSubstr("PHALANX_JOB_SECRET_FILE=" + scratch_.path("join.secret")));
  EXPECT_THAT(joins_->invitation(), HasSubstr("train --join 127.0.0.1:"));
  joins_.reset();
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("join.secret")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("join.address")));
}

}  // namespace
}  // namespace phalanx
