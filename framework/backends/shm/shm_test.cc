// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <string>
#include <vector>

#include "framework/backends/shm/readable_by.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/locality.h"

namespace {

std::vector<unsigned long> readers;  // named by this process, in order

}  // namespace

// Replaces the C library's function to record its arguments, because the system does not report who may read a process.
extern "C" int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long arguments[4];
  for (auto& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_PTRACER) readers.push_back(arguments[0]);
  return static_cast<int>(::syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]));
}

namespace phalanx::shm {
namespace {

using Named = std::vector<unsigned long>;

// Connects rank 0 of two, where `card` is the card that rank 1 has published.
std::string problem_with_peer(const std::string& card) {
  const auto store = make_hash_store(Seconds(5));
  store->set("shm/card/1", card);
  try {
    (void)Backends::Choice("shm").make({.rank_info = {0, 2, 0, 2}, .store = store, .timeout = Seconds(5)});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "connected";
}

TEST(Shm, RefusesAPeerInAnotherPidNamespaceWithTheSameHostName) {
  const std::string process = std::to_string(::getpid()), elsewhere = "9bd9bb7e-0000/pid:[4026532999]";
  const auto problem = problem_with_peer(process + " " + host_name() + " " + elsewhere + " 1 0");
  EXPECT_NE(problem.find("rank 1"), std::string::npos) << problem;
  EXPECT_NE(problem.find("in another container"), std::string::npos) << problem;
  EXPECT_NE(problem.find(elsewhere), std::string::npos) << problem;
}

TEST(Shm, RefusesAPeerOfAnotherHost) {
  const auto problem = problem_with_peer("1 elsewhere " + process_ids_key() + " 1 0");
  EXPECT_NE(problem.find("rank 1 on elsewhere"), std::string::npos) << problem;
}

TEST(Shm, LetsNoPeerReadThisProcessWithoutFetching) {
  readers.clear();
  ::setenv("PHALANX_SHM_FETCH", "off", 1);
  const auto store = make_hash_store(Seconds(5));
  const auto world = Backends::Choice("shm").make({.rank_info = {0, 1, 0, 1}, .store = store, .timeout = Seconds(5)});
  ::unsetenv("PHALANX_SHM_FETCH");
  EXPECT_EQ(readers, Named{});
}

TEST(ReadableBy, AllowsASinglePeerAndWithdrawsThatAtItsEnd) {
  readers.clear();
  {
    const ReadableBy one({7, 7});
  }
  EXPECT_EQ(readers, (Named{7, 0}));
}

TEST(ReadableBy, AllowsAllProcessesIfThereAreSeveralPeers) {
  readers.clear();
  {
    const ReadableBy one({7});
    const ReadableBy other({8});
  }
  EXPECT_EQ(readers, (Named{7, PR_SET_PTRACER_ANY, 7, 0}));
}

}  // namespace
}  // namespace phalanx::shm
