// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/host_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/testing/scratch.h"
#include "framework/testing/worlds.h"

namespace phalanx::hybrid {
namespace {

namespace fs = std::filesystem;

// A separate folder for temporary files, so that the test sees files that remain.
class HostStores : public ::testing::Test {
 protected:
  HostStores() { ::setenv("TMPDIR", folder_.folder().c_str(), 1); }
  ~HostStores() override { ::unsetenv("TMPDIR"); }

  testing::Scratch folder_;
};

TEST_F(HostStores, ConnectTheRanksOfAHostWithoutAStoreOfTheWorld) {
  testing::run_ranks("inproc", 5, [](const CommunicatorPtr& world) {
    const Level hosts = split_by_key("host", world, std::to_string(world->rank() / 3));
    HostStore meeting(hosts, {{}, nullptr, Seconds(30)});
    EXPECT_EQ(meeting.store()->add("arrived", 1) > hosts.intra->size(), false) << "hosts share a store";
    store_barrier(*meeting.store(), "all", hosts.intra->size());
    EXPECT_EQ(meeting.store()->add("arrived", 0), hosts.intra->size());
    meeting.close(*hosts.intra);
  });
  EXPECT_TRUE(fs::is_empty(folder_.folder()));
}

TEST_F(HostStores, FailOnAllRanksWithoutAFolder) {
  ::setenv("TMPDIR", folder_.path("absent").c_str(), 1);
  std::atomic<int> refused = 0;
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    try {
      const HostStore meeting(split_by_key("host", world, "one"), {{}, nullptr, Seconds(30)});
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
      EXPECT_NE(std::string(error.what()).find("TMPDIR"), std::string::npos) << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace phalanx::hybrid
