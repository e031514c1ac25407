// SPDX-License-Identifier: Apache-2.0
#include "launch/run_rank.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/reason.h"
#include "framework/ps/server_lost.h"
#include "launch/exit_status.h"
#include "launch/failure.h"

namespace phalanx {

int run_rank(int rank, const std::string& log_folder, const std::string& log, const std::function<int()>& body) {
  const auto leave = [&](const std::string& message, bool secondary) {
    leave_failure(log_folder, {.rank = rank,
                               .host = host_name(),
                               .log = log,
                               .message = message,
                               .secondary = secondary,
                               .time = failure_time()});
  };
  try {
    return body();
  } catch (const ConfigError& error) {
    leave(error.what(), false);
    return kUsage;
  } catch (const ps::ServerLost& error) {
    leave(error.what(), false);
    return kRankDied;
  } catch (const CommError& error) {
    leave(error.what(), error.secondary());
  } catch (const std::exception& error) {
    leave(reason(error), false);
  } catch (...) {
    leave("an exception that is not a std::exception", false);
  }
  return kFailed;
}

void run_rank_threads(int ranks, const std::function<void(const RankInfo& rank_info)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body({.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks});
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace phalanx
