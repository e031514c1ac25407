// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/exit_status.h"
#include "launch/temporary_folder.h"
#include "tools/regress/place.h"
#include "tools/regress/places/host_list.h"
#include "tools/regress/places/local_job.h"
#include "tools/regress/places/process.h"

namespace phalanx::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr double kDeadline = 60;

TEST(Capture, ReturnsWhatAProgramPrintsAndItsStatus) {
  const auto done = capture({"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(done.status, 7);
  EXPECT_EQ(done.output, "out");
  EXPECT_EQ(done.errors, "err");
  EXPECT_EQ(capture({"pwd"}, "/").output, "/");
}

TEST(Capture, TellsWhyAProgramCannotBeStarted) {
  const auto done = capture({"no-such-program-at-all"});
  EXPECT_EQ(done.status, 127);
  EXPECT_THAT(done.errors, HasSubstr("cannot start no-such-program-at-all: No such file"));
}

TEST(Capture, EndsAProgramThatTakesTooLong) { EXPECT_EQ(capture({"sleep", "1000"}, "", 0.1).status, 124); }

class LocalJobTest : public ::testing::Test {
 protected:
  Job job(const std::string& script, double time_limit = 0) const {
    return {.name = "test", .command = {"sh", "-c", script}, .folder = folder_.path(), .time_limit = time_limit};
  }

  JobEnd end_of(RunningJob& running) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(kDeadline);
    while (std::chrono::steady_clock::now() < deadline) {
      if (const auto end = running.poll()) return *end;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ADD_FAILURE() << "the job has not ended";
    return {};
  }

  void wait_for(const std::string& file) const {
    while (!std::filesystem::exists(folder_.path() + "/" + file)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  TemporaryFolder folder_;
  PlaceOptions options_{.owner = folder_.path()};
};

TEST_F(LocalJobTest, WritesItsOutputIntoItsFolder) {
  LocalJob running(job("echo out; echo err >&2; exit 4"), options_);
  const auto end = end_of(running);
  EXPECT_EQ(end.exit_status, 4);
  EXPECT_THAT(end.infrastructure_error, IsEmpty());
  EXPECT_EQ(read_file(folder_.path() + "/stdout.log"), "out\n");
  EXPECT_EQ(read_file(folder_.path() + "/stderr.log"), "err\n");
}

TEST_F(LocalJobTest, EndsAtItsTimeLimitEvenIfItIgnoresSigterm) {
  LocalJob running(job("trap '' TERM; while :; do sleep 0.01; done", 0.2), options_);
  const auto end = end_of(running);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.exit_status, 128 + SIGKILL);
  EXPECT_THAT(end.infrastructure_error, IsEmpty());
}

TEST_F(LocalJobTest, KilledByItsOwnerHasNoInfrastructureError) {
  LocalJob running(job("sleep 1000"), options_);
  running.kill();
  EXPECT_THAT(end_of(running).infrastructure_error, IsEmpty());
}

TEST_F(LocalJobTest, KilledByOthersMayBeRetried) {
  LocalJob running(job("kill -9 $$"), options_);
  EXPECT_THAT(end_of(running).infrastructure_error, HasSubstr("signal 9 from outside"));
}

TEST_F(LocalJobTest, AProgramThatCannotBeStartedMayBeRetried) {
  Job missing = job("");
  missing.command = {"/no/such/program"};
  LocalJob running(missing, options_);
  EXPECT_THAT(end_of(running).infrastructure_error, HasSubstr("cannot start /no/such/program"));
}

TEST_F(LocalJobTest, NoProcessOutlivesItsOwner) {
  const std::string owner = folder_.path() + "/x";
  {
    LocalJob running(job("sleep 1000 & touch " + folder_.path() + "/started; wait"), {.owner = owner});
    wait_for("started");
  }
  EXPECT_EQ(kill_owned(owner), 0);
}

TEST_F(LocalJobTest, OrphansAreFoundByTheirOwnerEvenInSessionsOfTheirOwn) {
  LocalJob running(job("setsid sleep 1000 & touch " + folder_.path() + "/started; wait"), options_);
  wait_for("started");
  EXPECT_GE(kill_owned(folder_.path()), 2);
  EXPECT_EQ(kill_owned(folder_.path()), 0);
}

TEST(InfrastructureError, IsAnyFailureOfMachineNetworkOrDisk) {
  EXPECT_EQ(infrastructure_error(kFailed, "noise\nx: No space left on device\n"), "x: No space left on device");
  EXPECT_THAT(infrastructure_error(kRankDied, "ssh: connect to host b port 22: Connection refused"),
              HasSubstr("host b"));
  EXPECT_THAT(infrastructure_error(kFailed, "the loss is not finite"), IsEmpty());
}

TEST(InfrastructureError, IsNeverAnUnmetExpectationOrARefusedConfig) {
  for (const int status : {kDone, kUsage, kExpectationFailed}) {
    EXPECT_THAT(infrastructure_error(status, "No space left on device"), IsEmpty());
  }
}

TEST(Hosts, AreParsedAndMustDiffer) {
  EXPECT_THAT(parse_hosts("a,b:4"), SizeIs(2));
  EXPECT_THAT([] { parse_hosts("a,a"); }, ThrowsMessage<ConfigError>(HasSubstr("a is named twice")));
  EXPECT_THROW(parse_hosts(""), ConfigError);
  EXPECT_THROW(parse_hosts("a;b"), ConfigError);
}

TEST(Hosts, AreTakenInTheirOrderIfThereAreEnough) {
  EXPECT_THAT(choose_hosts({true, false, false}, 2), ElementsAre(1, 2));
  EXPECT_THAT(choose_hosts({true, false, true}, 2), IsEmpty());
  EXPECT_EQ(hosts_override({"a", "b"}, 4), "launch.hosts=[a:2, b:2]");
}

TEST(Places, AnUnknownOneIsRefusedWithTheNearest) {
  EXPECT_THAT([] { make_place("lokal", "/x"); },
              ThrowsMessage<ConfigError>(HasSubstr("--on lokal: unknown place \"lokal\"")));
  EXPECT_THAT([] { make_place("local:x", "/x"); }, ThrowsMessage<ConfigError>(HasSubstr("local has no argument")));
}

TEST(Places, LocalGivesEachRankACoreButNotMoreThanThereAre) {
  const auto place = make_place("local", "/x");
  EXPECT_EQ(place->slots_of({.ranks = 1}), 1);
  EXPECT_EQ(place->slots_of({.ranks = 10'000}), place->slots());
  EXPECT_EQ(place->most_hosts(), 1);
}

}  // namespace
}  // namespace phalanx::regress
