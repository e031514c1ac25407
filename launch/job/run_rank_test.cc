// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_rank.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/log.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/thread_ranks.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using Body = std::function<int(const ExperimentConfig&, const ExperimentContext&)>;

constexpr const char* kTinyRun = R"(
model: {name: mlp, hidden: [4]}
dataset: {name: digits, train_samples: 20, test_samples: 10}
train: {global_batch_size: 10, max_steps: 2}
watch: {progress: false, report: false}
device: cpu
)";

class RunRank : public ::testing::Test {
 protected:
  RunRank() {
    config::load_text(job_.config, kTinyRun, "t.yaml");
    job_.quiet = true;
    job_.run_dir = scratch_.path("run");
  }
  ~RunRank() override { configure_log({}); }  // a rank that is a process opens the log of the whole process

  // Runs all ranks as threads of this process and returns their statuses.
  std::vector<int> run_threads(int ranks) {
    const RunFolder folder = RunFolder::create(job_.run_dir);
    job_.config.launch.ranks = ranks;
    job_.config.backend = "inproc";
    return testing::run_as_threads(job_, folder, ranks);
  }

  // Runs this process as the only rank of a launcher such as torchrun.
  int run_alone() {
    LaunchEnvironment launched;
    launched.launcher = "torchrun";
    return run_rank(job_, {.launched = launched});
  }

  std::vector<Failure> failures() const { return take_failures(job_.run_dir + "/logs"); }
  std::string log(int rank) const { return read_file(RunFolder(job_.run_dir).log(rank)); }

  testing::Scratch scratch_;
  Job job_;
};

TEST_F(RunRank, GivesTheBodyTheWorldTheDataAndTheFolder) {
  job_.body = [&](const ExperimentConfig& config, const ExperimentContext& context) {
    EXPECT_EQ(&config, &job_.config);
    EXPECT_EQ(context.world->size(), 3);
    EXPECT_EQ(context.splits.train->size(), 20);
    EXPECT_EQ(context.folder.path(), job_.run_dir);
    EXPECT_TRUE(context.device.is_cpu());
    EXPECT_EQ(context.servers, nullptr);
    EXPECT_FALSE(context.stop_asked());
    return context.world->rank();
  };
  EXPECT_THAT(run_threads(3), ElementsAre(0, 1, 2)) << "the body's results are the statuses";
  EXPECT_THAT(failures(), IsEmpty());
  EXPECT_THAT(log(0), AllOf(HasSubstr("kernels: "), HasSubstr("rank 0 of 3"), HasSubstr("computes with ")));
  EXPECT_THAT(log(2), HasSubstr("rank 2 of 3"));
}

TEST_F(RunRank, TrainsWithoutABody) {
  EXPECT_THAT(run_threads(2), ElementsAre(kDone, kDone));
  EXPECT_TRUE(std::filesystem::exists(RunFolder(job_.run_dir).summary()));
  EXPECT_THAT(failures(), IsEmpty());
}

TEST_F(RunRank, LogsAnExceptionAndLeavesItAsAFailure) {
  job_.body = [](const ExperimentConfig&, const ExperimentContext& context) -> int {
    if (context.world->rank() == 1) throw std::runtime_error("out of paper");
    return kDone;
  };
  EXPECT_THAT(run_threads(2), ElementsAre(kDone, kFailed));
  EXPECT_THAT(failures(), ElementsAre(AllOf(Field(&Failure::rank, 1), Field(&Failure::message, "out of paper"),
                                            Field(&Failure::log, RunFolder(job_.run_dir).log(1)))));
  EXPECT_THAT(log(1), HasSubstr("out of paper"));
}

TEST_F(RunRank, ShowsWhereAConfigErrorWasSet) {
  job_.sources.overrides = {"train.max_steps=2"};
  job_.body = [](const ExperimentConfig&, const ExperimentContext&) -> int {
    throw ConfigError("train.max_steps: too few");
  };
  EXPECT_THAT(run_threads(1), ElementsAre(kUsage));
  EXPECT_THAT(failures().at(0).message, HasSubstr("--set train.max_steps=2"));
}

TEST_F(RunRank, AServingRankDoesNotCallTheBody) {
  job_.config.roles.server = 1;
  job_.body = [](const ExperimentConfig&, const ExperimentContext& context) {
    EXPECT_EQ(context.world->size(), 2);
    EXPECT_NE(context.servers, nullptr);
    return static_cast<int>(kTimeUp);
  };
  EXPECT_THAT(run_threads(3), ElementsAre(kTimeUp, kTimeUp, kDone));
  EXPECT_THAT(log(2), HasSubstr("all ranks that train have left"));
}

TEST_F(RunRank, WithoutASupervisorTheRanksMakeTheFolderThemselves) {
  job_.body = [&](const ExperimentConfig&, const ExperimentContext& context) {
    EXPECT_EQ(context.folder.path(), job_.run_dir);
    EXPECT_THROW((void)context.folder.claim(), ConfigError) << "another run could use the folder";
    return 7;
  };
  EXPECT_EQ(run_alone(), 7);
  EXPECT_TRUE(std::filesystem::exists(RunFolder(job_.run_dir).config()));
  EXPECT_THAT(log(0), HasSubstr("started by torchrun, connects by inproc, computes with "));
}

TEST_F(RunRank, WithoutASupervisorTheRanksReportTheirFailureThemselves) {
  job_.body = [](const ExperimentConfig&, const ExperimentContext&) -> int { throw DataError("file is short"); };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_alone(), kFailed);
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, AllOf(HasSubstr("Rank 0 of 1"), HasSubstr("file is short")));
  EXPECT_THAT(failures(), IsEmpty()) << "they would be reported again";
}

TEST_F(RunRank, ThrowsAsLongAsThereIsNoFolderForAFailure) {
  std::filesystem::create_directory(job_.run_dir);
  write_atomically(job_.run_dir + "/summary.json", "{}");
  EXPECT_THAT([&] { run_alone(); }, ThrowsMessage<ConfigError>(HasSubstr("already holds a run")));
}

TEST_F(RunRank, DataOfThreadsThatCannotBeMadeIsLoggedByRank0) {
  const RunFolder folder = RunFolder::create(job_.run_dir);
  job_.config = {};
  config::load_text(job_.config, kTinyRun, "t.yaml", {"dataset={name: mnist, root: /no/such/folder}"});
  EXPECT_THAT([&] { prepare_threads(job_, folder); }, ThrowsMessage<Error>(HasSubstr("/no/such/folder")));
  EXPECT_THAT(log(0), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace phalanx
