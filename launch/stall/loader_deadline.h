// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "framework/comm/store/store.h"
#include "framework/observe/hang/rank_page.h"

namespace phalanx {

/// Ends a run whose loader gives no batch in time. A thread looks at the page of the rank from time to time, because
/// the thread that waits for the batch may be in a system call that never returns. Time in which the whole process was
/// stopped does not count.
class LoaderDeadline {
 public:
  struct Options {
    const RankPage* page = nullptr;  // of this rank; must outlive this object
    int rank = 0;
    std::string dataset{};  // its name
    Seconds deadline{600};  // must be positive

    /// Ends the process. Called in the thread of this object, at most once, with the reason, which names the rank, the
    /// dataset, the step and what the loader is doing.
    std::function<void(const std::string& reason)> end;
  };

  explicit LoaderDeadline(Options options);
  ~LoaderDeadline();
  LoaderDeadline(const LoaderDeadline&) = delete;
  LoaderDeadline& operator=(const LoaderDeadline&) = delete;

 private:
  void watch(const std::stop_token& stop);
  std::string reason() const;

  Options options_;
  std::jthread thread_;  // last, because it uses the other members
};

}  // namespace phalanx
