// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/checkpoints/checkpoints.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/testing/durable.h"
#include "framework/ps/testing/service.h"
#include "framework/testing/scratch.h"

namespace phalanx::ps {
namespace {

namespace fs = std::filesystem;

using enum testing::Rule;
using testing::durable;
using testing::filled;
using testing::kIntegers;
using testing::retrying;

HostState state_of(std::int64_t value) {
  return {.description = "state " + std::to_string(value), .tensors = {{"1/values", filled(value)}}};
}

TEST(Checkpoints, KeepTwoAndLoadTheNewestCompleteOne) {
  const phalanx::testing::Scratch scratch;
  Checkpoints checkpoints(scratch.folder());
  std::string file;
  for (int i = 1; i <= 4; ++i) {
    Checkpoints::lay_out(state_of(i), file);
    checkpoints.write(file);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.folder()), fs::directory_iterator()), 4)
      << "two files of each";
  std::vector<std::string> refused;
  const auto newest = [&] {
    refused.clear();
    return Checkpoints(scratch.folder()).newest([&](const std::string& why) { refused.push_back(why); });
  };
  ASSERT_TRUE(newest());
  EXPECT_EQ(newest()->description, "state 4");
  EXPECT_TRUE(newest()->tensors.at(0).second.equal(filled(4)));
  EXPECT_TRUE(refused.empty());

  const std::string last = scratch.folder() + "/shards-0000000004.safetensors";
  {
    std::fstream damage(last, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(1000);
    damage.put('\x55');
  }
  ASSERT_TRUE(newest());
  EXPECT_EQ(newest()->description, "state 3");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find(last), std::string::npos) << refused[0];

  fs::resize_file(scratch.folder() + "/shards-0000000003.safetensors", 100);
  EXPECT_FALSE(newest());
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_THROW(Server(durable(scratch.folder(), "127.0.0.1:0")), Error)
      << "starting from the beginning would hide the loss";
}

TEST(Checkpoints, AFullDiskDoesNotEndTheServer) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const phalanx::testing::Scratch scratch;
  // The file of the next checkpoint is a link to a disk without space.
  const std::string next = scratch.folder() + "/shards-0000000001.safetensors.tmp";
  auto server = std::make_unique<Server>(durable(scratch.folder(), "127.0.0.1:0", Seconds(0.05)));
  fs::create_symlink("/dev/full", next);
  Client client(retrying(server->addresses()[0]));
  Table table = client.create(kIntegers);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  // The failed attempt removes the link, so the next one succeeds.
  for (int tries = 0; tries < 1000 && !fs::exists(scratch.folder() + "/shards-0000000001.json"); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(fs::is_symlink(next));
  EXPECT_TRUE(Checkpoints(scratch.folder()).newest([](const std::string& why) { ADD_FAILURE() << why; }));
  client.push(table, filled(1), {.rule = kAdd}).wait();
}

TEST(Checkpoints, AServerThatCannotWriteItsLastOneSaysWhy) {
  const phalanx::testing::Scratch scratch;
  Server server(durable(scratch.folder(), "127.0.0.1:0", Seconds(3600)));
  {
    Client client(retrying(server.addresses()[0]));
    Table table = client.create(kIntegers);
    client.push(table, filled(1), {.rule = kAdd}).wait();
  }
  fs::remove_all(scratch.folder());
  try {
    server.stop();
    FAIL() << "the last checkpoint was lost without an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace phalanx::ps
