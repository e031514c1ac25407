// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "framework/base/error.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kTimeout{30};

std::string problem(const std::string& url) {
  try {
    rendezvous(url, kTimeout);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

class Rendezvous : public ::testing::Test {
 protected:
  Rendezvous() { clear(); }
  ~Rendezvous() override { clear(); }

  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
                             "TORCHELASTIC_RESTART_COUNT", "PHALANX_JOB_SECRET", "PHALANX_JOB_SECRET_FILE"}) {
      ::unsetenv(name);
    }
  }

  // Both ranks of `url`, to which their rank is added, exchange values.
  static void meet(const std::string& url) {
    auto second = std::async(std::launch::async, [&] { return rendezvous(url + "rank=1", kTimeout); });
    const auto first = rendezvous(url + "rank=0", kTimeout);
    const auto other = second.get();
    EXPECT_EQ(first.rank, 0);
    EXPECT_EQ(other.rank, 1);
    EXPECT_EQ(other.size, 2);
    first.store->set("note", "from 0");
    EXPECT_EQ(other.store->get("note"), "from 0");
  }
};

TEST_F(Rendezvous, ByFile) {
  const auto path = ::testing::TempDir() + "rendezvous_test-" + std::to_string(::getpid());
  meet("file://" + path + "?world_size=2&");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Rendezvous, ByTcp) { meet("tcp://127.0.0.1:" + std::to_string(testing::free_port()) + "?world_size=2&"); }

TEST_F(Rendezvous, ByEnvironment) {
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_ADDR", "localhost", 1);
  ::setenv("MASTER_PORT", std::to_string(testing::free_port()).c_str(), 1);
  meet("env://?");
}

TEST_F(Rendezvous, SaysWhereTheStoreIs) {
  const int port = testing::free_port();
  const auto met = rendezvous("tcp://127.0.0.1:" + std::to_string(port) + "?rank=0&world_size=1", kTimeout);
  EXPECT_EQ(met.host, "127.0.0.1");
}

// The brackets of [::1] are tested with 127.0.0.1, which every host has.
TEST_F(Rendezvous, AnAddressMayHaveBrackets) {
  for (const std::string host : {"127.0.0.1", "[127.0.0.1]"}) {
    ::setenv("MASTER_ADDR", host.c_str(), 1);
    ::setenv("MASTER_PORT", std::to_string(testing::free_port()).c_str(), 1);
    EXPECT_EQ(rendezvous("env://?rank=0&world_size=1", kTimeout).size, 1) << host;
  }
}

TEST_F(Rendezvous, AnAgentHostsTheStoreOfAllAttempts) {
  const int port = testing::free_port();
  const auto agent = make_tcp_store({"localhost", port, StoreHost::kThisProcess, 1, kTimeout});
  agent->set("phalanx/attempt_0/rendezvous_1/note", "from an attempt that failed");
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  ::setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
  meet("tcp://localhost:" + std::to_string(port) + "?world_size=2&");
}

TEST_F(Rendezvous, TheStoreOfAnAgentHasNoValuesOfAnEarlierRendezvous) {
  const int port = testing::free_port();
  const auto agent = make_tcp_store({"localhost", port, StoreHost::kThisProcess, 1, kTimeout});
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const std::string url = "tcp://localhost:" + std::to_string(port) + "?world_size=1&rank=0";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rendezvous(url, kTimeout).store->add("count", 1), 1);
}

TEST_F(Rendezvous, ASecretOfTheJobIsReadFromTheEnvironmentOrAFile) {
  const auto path = ::testing::TempDir() + "rendezvous_test-secret-" + std::to_string(::getpid());
  std::ofstream(path) << "a secret of the tests\n";
  ::chmod(path.c_str(), 0600);
  const int port = testing::free_port();
  const std::string url = "tcp://127.0.0.1:" + std::to_string(port) + "?world_size=1&rank=0";
  ::setenv("PHALANX_JOB_SECRET_FILE", path.c_str(), 1);
  const auto met = rendezvous(url, kTimeout);
  const auto join = [port](const std::string& secret) {
    return make_tcp_store({"127.0.0.1", port, StoreHost::kPeer, 1, kTimeout, secret, 1});
  };
  met.store->set("note", "a word");
  EXPECT_EQ(join("a secret of the tests")->get("note"), "a word");
  EXPECT_THROW(join("another secret of the tests"), CommError);
  ::setenv("PHALANX_JOB_SECRET", "another secret of the tests", 1);
  EXPECT_THAT(problem(url), HasSubstr("are both set"));
  ::unsetenv("PHALANX_JOB_SECRET_FILE");
  ::setenv("PHALANX_JOB_SECRET", "short", 1);
  EXPECT_THAT(problem(url), HasSubstr("at least 16 characters"));
  std::filesystem::remove(path);
}

TEST_F(Rendezvous, WithASecretValuesInTheStoreOfAnAgentAreSealed) {
  const int port = testing::free_port();
  const auto agent = make_tcp_store({"localhost", port, StoreHost::kThisProcess, 1, kTimeout});
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  ::setenv("PHALANX_JOB_SECRET", "a secret of the tests", 1);
  meet("tcp://localhost:" + std::to_string(port) + "?world_size=2&");
  EXPECT_THAT(agent->get("sealed/phalanx/attempt_0/rendezvous_1/note"), AllOf(HasSubstr("from 0"), Not("from 0")));
}

TEST_F(Rendezvous, TheEnvironmentCompletesAUrl) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "1", 1);
  const auto path = ::testing::TempDir() + "rendezvous_test-alone-" + std::to_string(::getpid());
  EXPECT_EQ(rendezvous("file://" + path, kTimeout).size, 1);
}

TEST_F(Rendezvous, SaysWhatIsWrongWithAUrl) {
  const std::string two = "?rank=0&world_size=2";
  EXPECT_THAT(problem("/tmp/store"), HasSubstr("env://"));
  EXPECT_THAT(problem("udp://host:1" + two), HasSubstr("\"udp\""));
  EXPECT_THAT(problem("tcp://host" + two), HasSubstr("tcp://host:port"));
  EXPECT_THAT(problem("tcp://host:99999" + two), HasSubstr("65535"));
  EXPECT_THAT(problem("tcp://host:port" + two), HasSubstr("\"port\""));
  EXPECT_THAT(problem("file://relative" + two), HasSubstr("file:///path"));
  EXPECT_THAT(problem("file:///tmp/store?rank=2&world_size=2"), HasSubstr("rank 2 is not one of 2"));
  EXPECT_THAT(problem("file:///tmp/store?rank=0&size=2"), HasSubstr("\"size\""));
  EXPECT_THAT(problem("file:///tmp/store?rank=0"), HasSubstr("set WORLD_SIZE"));
  EXPECT_THAT(problem("env://" + two), HasSubstr("MASTER_ADDR is not set"));
}

}  // namespace
}  // namespace phalanx
