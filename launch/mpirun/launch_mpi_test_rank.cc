// SPDX-License-Identifier: Apache-2.0
// A rank for launch_mpi_test: launch_mpi_test_rank LOG_FOLDER WHAT, where rank 1 does WHAT and rank 0 waits for a stop.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/launch/launch_environment.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/record_exception.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/mpirun/watched_rank.h"
#include "launch/rank/launcher_watch.h"
#include "launch/signals/stop_signal.h"

namespace {

int wait_for_stop() {
  while (!phalanx::stop_requested()) ::usleep(1000);
  return phalanx::kInterrupted;
}

// Rank 0 reports the loss of rank 1, and then rank 1 is killed.
int echo(int rank, const std::string& folder) {
  if (rank == 0) {
    phalanx::write_failure(folder, {.rank = 0, .message = "rank 1 is gone", .secondary = true, .time = 1});
    return wait_for_stop();
  }
  while (!std::filesystem::exists(folder + "/rank0.failure")) ::usleep(1000);
  return ::raise(SIGKILL);
}

// Rank 1 is killed after the beginning of training, and rank 0 goes on and notes it.
int die(int rank, const std::string& folder) {
  if (rank == 1) {
    return phalanx::run_watched({.rank = 1, .log_folder = folder}, [&folder] {
      while (!phalanx::training_has_begun(folder)) ::usleep(1000);
      return ::raise(SIGKILL);
    });
  }
  return phalanx::run_watched({.rank = 0, .log_folder = folder}, [&folder] {
    phalanx::note_training(folder);  // written now, because the launcher removes notes of earlier jobs
    while (phalanx::read_failures(folder).empty()) ::usleep(1000);
    ::usleep(500'000);  // mpirun would end this rank within this time
    phalanx::mark_lost(folder, phalanx::read_failures(folder).front());
    std::printf("goes on\n");
    phalanx::note_end_of_run(folder, phalanx::kDone);
    return phalanx::kDone;
  });
}

// Both ranks stop because their time is up, and leave as ranks of mpi do that do not leave together.
int stop(int rank, const std::string& folder) {
  return phalanx::run_watched({.rank = rank, .log_folder = folder}, [rank, &folder] {
    if (rank == 0) phalanx::note_end_of_run(folder, phalanx::kTimeUp);
    std::atexit([] { ::raise(SIGKILL); });
    return phalanx::kTimeUp;
  });
}

// Rank 1 has done its part, and leaves. Rank 0 is lost with its parent, as with its host, before it has saved anything.
int leave_first(int rank, const std::string& folder) {
  if (rank == 1) return phalanx::run_watched({.rank = rank, .log_folder = folder}, [] { return phalanx::kDone; });
  return ::raise(SIGKILL);
}

int work(int rank, const std::string& folder, const std::string& what) {
  if (what == "die") return die(rank, folder);
  if (what == "stop") return stop(rank, folder);
  if (what == "leave_first") return leave_first(rank, folder);
  if (what == "echo") return echo(rank, folder);
  if (what == "throw" && rank == 1) throw std::runtime_error("loss is not finite");
  if (what == "expect") throw phalanx::ExpectationError("expect.test.loss.max: wanted <= 1, got 2");
  if (what == "hang" && rank == 1) {
    for (;;) ::pause();
  }
  return wait_for_stop();
}

}  // namespace

int main(int, char** arguments) {
  const std::string folder = arguments[1];
  const auto launched = phalanx::detect_launch_environment();
  const int rank = launched->rank_info.rank;
  phalanx::end_with_launcher(*launched);
  phalanx::install_stop_signal(phalanx::StopOn::kLauncher);
  try {
    std::ofstream(folder + "/ready" + std::to_string(rank)) << ::getpid();
    return work(rank, folder, arguments[2]);
  } catch (...) {
    return phalanx::record_exception(std::current_exception(), rank, folder, phalanx::log_path(folder, rank));
  }
}
