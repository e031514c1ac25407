// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/watched_rank.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/loss.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/verdict.h"
#include "launch/local/supervisor.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// The launcher of the job speaks for all ranks.
Supervisor::Policy policy_of(const WatchedRank& options) {
  const std::chrono::duration<double> lost_after(options.lost_after);
  return {.stop = SIGUSR1,
          .orphaned = SIGKILL,
          .after_failure = {},
          .forced = {{milliseconds(0), SIGKILL}},
          .stopped = std::chrono::duration_cast<milliseconds>(lost_after),
          .others_elsewhere = true,
          .quiet = true};
}

int run_and_record(const WatchedRank& options, const std::function<int()>& body) {
  try {
    return body();
  } catch (...) {
    return record_exception(std::current_exception(), options.rank, options.log_folder,
                            log_path(options.log_folder, options.rank));
  }
}

// Returns true if the others go on without a rank that leaves with this status, whether it has failed or not.
bool leaves_alone(const WatchedRank& options, int status) {
  if (is_noted_as_lost(options.rank, options.log_folder)) return true;
  return is_failure(status) &&
         is_loss(options.rank, status, failure_left_by(options.rank, options.log_folder), options.log_folder);
}

// Ends the rank's process. exit() would wait for the others, which may wait for the end of this rank.
[[noreturn]] void leave(const WatchedRank& options, int status) {
  if (leaves_alone(options, status)) {
    std::fflush(nullptr);
    ::raise(SIGKILL);
  }
  std::exit(status);
}

// The status with which a rank leaves, in memory that it shares with its parent.
class SharedStatus {
 public:
  SharedStatus()
      : status_(static_cast<std::atomic<int>*>(
            ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (status_ == MAP_FAILED) throw Error("cannot share memory: " + std::generic_category().message(errno));
  }
  ~SharedStatus() { ::munmap(status_, sizeof *status_); }
  SharedStatus(const SharedStatus&) = delete;
  SharedStatus& operator=(const SharedStatus&) = delete;

  int set(int status) {
    status_->store(status);
    return status;
  }

  // Returns true if the rank has left with a status other than 0, although SIGKILL has ended it: so the backend tells
  // ranks that do not leave at the same time.
  bool has_left(int wait_status) const {
    return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL && status_->load() != 0;
  }

 private:
  std::atomic<int>* status_;  // 0: it is still there
};

// Makes sure that there is a reason, which the others tell.
void explain(const WatchedRank& options, const Supervisor::End& end) {
  if (!failed(end.status) || end.by_supervisor || failure_left_by(options.rank, options.log_folder)) return;
  if (is_noted_as_lost(options.rank, options.log_folder)) return;
  write_failure(options.log_folder,
                {.rank = options.rank,
                 .host = host_name(),
                 .message = end.stopped ? describe_stop(options.lost_after) : describe_end(end.status),
                 .time = end.time,
                 .status = exit_status_of(end.status)});
}

}  // namespace

int run_watched(const WatchedRank& options, const std::function<int()>& body) {
  SharedStatus left;
  Supervisor supervisor(policy_of(options));
  supervisor.start([&]() -> int { leave(options, left.set(run_and_record(options, body))); });
  const auto end = supervisor.run().front();
  if (!left.has_left(end.status)) explain(options, end);
  if (WIFSIGNALED(end.status)) ::raise(SIGKILL);
  return WEXITSTATUS(end.status);
}

}  // namespace phalanx
