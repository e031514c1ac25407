#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "engine/watch/metrics_log.h"

namespace phalanx {

/// Tells a person how training goes: one line that is redrawn on a terminal, plain lines elsewhere. What does not fit
/// beside a bar into a narrow terminal is left out, the least important first.
class Progress {
 public:
  struct Total {
    std::int64_t epochs = 0;
    std::int64_t steps = 0;  // over all epochs
    std::int64_t steps_per_epoch = 0;
  };

  /// `terminal`: whether `file`, which must outlive this, ends at one.
  Progress(std::FILE* file, bool terminal, Total total);
  ~Progress();  // leaves the terminal on a fresh line

  void update(const Measurement& train);  // as often as one likes; drawn at most ten times a second
  void result(const Measurement& test);   // a line that stays

 private:
  using Clock = std::chrono::steady_clock;

  std::string line(const Measurement& train) const;
  void clear();

  std::FILE* file_;
  Total total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point last_{};
};

}  // namespace phalanx
