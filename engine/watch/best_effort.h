#pragma once

#include <functional>

namespace phalanx {

/// Does what only watches a run, which must not end because it cannot be watched: on a full disk, for example.
class BestEffort {
 public:
  /// Calls `task`. If it throws, the reason is written to the log and to standard error, once until a call has
  /// succeeded again, followed by what happens now: "metrics.jsonl: No space left; the run goes on, and retries".
  void attempt(const std::function<void()>& task, const char* what_happens_now);

 private:
  bool told_ = false;
};

}  // namespace phalanx
