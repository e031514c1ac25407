// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/worlds.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/comm/backend.h"
#include "framework/testing/own_mpirun.h"
#include "framework/testing/scratch.h"

namespace phalanx::testing {
namespace {

constexpr const char* kHybridOfShm = "hybrid_of_shm";
constexpr const char* kGlooProcesses = "gloo_processes";
constexpr const char* kMpiProcesses = "mpi_processes";

bool has_hosts(const std::string& backend) { return backend == "hybrid" || backend == kHybridOfShm; }

CommunicatorPtr connect(const std::string& backend, RankInfo rank_info, StorePtr store, Seconds timeout) {
  const auto choice = backend == kHybridOfShm
                          ? config::load_as<Backends::Choice>("backend", "{name: hybrid, inter: shm}", "run_ranks")
                          : Backends::Choice(backend == kGlooProcesses ? "gloo" : backend);
  return choice.make(ConnectOptions{rank_info, std::move(store), timeout});
}

RankInfo rank_info_of(int rank, int ranks) {
  return {.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
}

// Assigns the current process to one of several simulated hosts.
RankInfo take_place_on_host(int rank, int ranks) {
  const int per_host = ranks > 4 ? 3 : 2;
  const int host = rank / per_host;
  ::setenv("PHALANX_HOST_KEY", ("host" + std::to_string(host)).c_str(), 1);
  return {.rank = rank,
          .size = ranks,
          .local_rank = rank % per_host,
          .local_size = std::min(per_host, ranks - host * per_host)};
}

// Destroys the world before reporting a failure, so that the peers of a failed rank do not wait for it.
void run_rank(const std::string& backend, RankInfo rank_info, const StorePtr& store, const RankBody& body,
              Seconds timeout) {
  std::optional<std::string> failure;
  try {
    body(connect(backend, rank_info, store, timeout));
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (failure) ADD_FAILURE() << "rank " << rank_info.rank << " of " << rank_info.size << ": " << *failure;
}

void run_threads(const std::string& backend, int ranks, const RankBody& body, Seconds timeout) {
  const StorePtr store = make_hash_store(timeout);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(backend, rank_info_of(rank, ranks), store, body, timeout); });
  }
}

[[noreturn]] void run_child(const std::string& backend, int rank, int ranks, const std::string& store_path,
                            const RankBody& body, Seconds timeout) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const RankInfo rank_info = has_hosts(backend) ? take_place_on_host(rank, ranks) : rank_info_of(rank, ranks);
  run_rank(backend, rank_info, make_file_store(store_path, ranks, timeout), body, timeout);
  ::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

void run_processes(const std::string& backend, int ranks, const RankBody& body, Seconds timeout) {
  const Scratch folder;
  std::vector<pid_t> children;
  ::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_child(backend, rank, ranks, folder.path("store"), body, timeout);
    children.push_back(child);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ::waitpid(children[rank], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << rank << " of " << ranks << " failed or died";
  }
}

CommunicatorPtr connect_by_mpi(const std::string& backend, Seconds timeout) {
  RankInfo rank_info = detect_launch_environment().value_or(LaunchEnvironment{}).rank_info;
  if (backend == "hybrid") rank_info = take_place_on_host(rank_info.rank, rank_info.size);
  return connect(backend, rank_info, nullptr, timeout);
}

void run_under_mpirun(const std::string& backend, int ranks, const RankBody& body, Seconds timeout) {
  static const CommunicatorPtr all = connect_by_mpi(backend, timeout);  // MPI can be initialized only once in a program
  ASSERT_GE(all->size(), ranks) << "start this test with mpirun -np " << ranks << " or more";
  const auto world = all->split(all->rank() < ranks ? 0 : -1, all->rank());
  try {
    if (world) body(world);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << all->rank() << " of " << ranks << ": " << error.what();
  }
  all->barrier().wait();
}

}  // namespace

void run_ranks(const std::string& backend, int ranks, const RankBody& body, Seconds timeout) {
  for (const auto* const name : {"inproc", "gloo", "staged", "on_device", "on_cuda"}) {
    if (backend == name) return run_threads(backend, ranks, body, timeout);
  }
  if (backend == kMpiProcesses) {
    return run_under_own_mpirun(ranks, [&] {
      run_rank("mpi", detect_launch_environment().value_or(LaunchEnvironment{}).rank_info, nullptr, body, timeout);
    });
  }
  if (backend == "mpi" || (backend == "hybrid" && detect_launch_environment())) {
    return run_under_mpirun(backend, ranks, body, timeout);
  }
  if (backend == "shm" || backend == kGlooProcesses || has_hosts(backend))
    return run_processes(backend, ranks, body, timeout);
  FAIL() << "no way to run ranks of backend " << backend;
}

}  // namespace phalanx::testing
