// SPDX-License-Identifier: Apache-2.0
#include "tools/history/origin.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "engine/checkpoint/folder.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/storage/disk.h"

namespace phalanx::history {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

class OriginTest : public ::testing::Test {
 protected:
  OriginTest() {
    fs::remove_all(folder_);
    fs::create_directories(checkpoint_);
    write(run_ + "/config.yaml", "name: tiny\n");
    write(run_ + "/weights.safetensors", "the final weights");
    write(run_ + "/summary.json", R"({"name": "tiny", "steps": 16, "ranks": 2, "strategy": {"name": "all_reduce"},
                                      "provenance": {"commit": "abc", "host": "node7"}})");
  }

  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  // Writes a checkpoint of one file with this provenance.
  void write_checkpoint(const Manifest::Strings& provenance) const {
    const Manifest manifest{.position = {.step = 8},
                            .ranks = 2,
                            .metrics = {{"accuracy", 0.97}},
                            .config = "name: tiny\n",
                            .provenance = provenance,
                            .files = {write_synced(checkpoint_ + "/weights-00001-of-00001.safetensors", "weights")}};
    write(checkpoint_ + "/manifest.json", to_text(manifest));
  }

  const std::string folder_ = fs::canonical(::testing::TempDir()).string() + "/origin";
  const std::string run_ = folder_ + "/runs/1";
  const std::string checkpoint_ = run_ + "/checkpoints/step-00000008";
};

TEST_F(OriginTest, OfACheckpointIsInItsManifest) {
  write_checkpoint({{"commit", "abc"}, {"host", "node7"}, {"config_sha256", "0123"}, {"time", "2026-01-01T02:00:00Z"}});
  for (const char* file : {"", "/manifest.json", "/weights-00001-of-00001.safetensors"}) {
    const auto origin = find_origin(checkpoint_ + file);
    ASSERT_TRUE(origin) << file;
    EXPECT_EQ(origin->record, checkpoint_ + "/manifest.json");
    EXPECT_EQ(origin->run, run_);
    EXPECT_THAT(origin->facts, AllOf(Contains(Pair("kind", "checkpoint")), Contains(Pair("step", "8")),
                                     Contains(Pair("commit", "abc")), Contains(Pair("config_sha256", "0123")),
                                     Contains(Pair("accuracy", "0.97"))));
  }
}

TEST_F(OriginTest, OfAnOlderCheckpointHasTheDigestOfItsConfig) {
  write_checkpoint({{"commit", "abc"}});
  EXPECT_THAT(find_origin(checkpoint_)->facts, Contains(Pair("config_sha256", sha256("name: tiny\n"))));
}

TEST_F(OriginTest, OfACheckpointThatWasCopiedHasNoRun) {
  write_checkpoint({{"commit", "abc"}});
  fs::create_directories(folder_ + "/kept/best");
  fs::copy(checkpoint_, folder_ + "/kept/best/one", fs::copy_options::recursive);
  EXPECT_EQ(find_origin(folder_ + "/kept/best/one")->run, "");
}

TEST_F(OriginTest, OfAFileThatWasChangedIsRefused) {
  write_checkpoint({{"commit", "abc"}});
  write(checkpoint_ + "/weights-00001-of-00001.safetensors", "wEights");
  EXPECT_THAT([&] { find_origin(checkpoint_ + "/weights-00001-of-00001.safetensors"); },
              ThrowsMessage<DataError>(HasSubstr("weights-00001-of-00001.safetensors")));
}

TEST_F(OriginTest, OfFinalWeightsIsInTheSummary) {
  for (const char* file : {"", "/weights.safetensors"}) {
    const auto origin = find_origin(run_ + file);
    ASSERT_TRUE(origin) << file;
    EXPECT_EQ(origin->record, run_ + "/summary.json");
    EXPECT_THAT(origin->facts,
                AllOf(Contains(Pair("kind", "run")), Contains(Pair("strategy", "all_reduce")),
                      Contains(Pair("host", "node7")), Contains(Pair("config_sha256", sha256("name: tiny\n")))));
  }
}

TEST_F(OriginTest, OfACopyIsThatOfTheFileWithTheSameBytes) {
  const std::string copy = folder_ + "/model.safetensors";
  write(folder_ + "/runs/another.bin", "THE FINAL WEIGHTS");
  write(copy, "the final weights");
  EXPECT_FALSE(find_origin(copy));
  EXPECT_EQ(find_copy(copy, folder_), run_ + "/weights.safetensors");
  write(copy, "the finer weights");
  EXPECT_FALSE(find_copy(copy, folder_));
  EXPECT_FALSE(find_copy(folder_, folder_)) << "a folder";
}

TEST_F(OriginTest, OfAFileThatDoesNotExistIsAnError) {
  EXPECT_THAT([&] { find_origin(folder_ + "/absent"); },
              ThrowsMessage<DataError>(HasSubstr("/absent: No such file or directory")));
}

}  // namespace
}  // namespace phalanx::history
