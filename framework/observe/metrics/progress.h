// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "framework/base/console.h"
#include "framework/observe/metrics/metrics_record.h"
#include "framework/observe/metrics/styled_text.h"

namespace phalanx {

/// Shows the progress of training: one line that is redrawn on a terminal, and plain lines on other outputs. Items that
/// do not fit into a narrow terminal are dropped, the least important first, but a number is never cut. A terminal may
/// change its width at any time.
class Progress {
 public:
  struct Total {
    std::int64_t epochs = 0;
    std::int64_t steps = 0;  // total of all epochs
    std::int64_t steps_per_epoch = 0;
  };

  /// `terminal`: true if `console` is a terminal; `colors`: true if it shows colors. The console must outlive the
  /// object.
  Progress(Console& console, bool terminal, Total total, bool colors = false);
  ~Progress();  // leaves the terminal on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const MetricsRecord& train);  // may be called at any rate; drawn at most ten times a second
  void result(const MetricsRecord& test);   // writes a permanent line about a test, or about the training of an epoch

 private:
  using Clock = std::chrono::steady_clock;

  // The items of a result's line in addition to its metrics.
  struct ResultItems {
    bool split = false, more = false, step = false, epoch = false, time = false, rate = false;
  };

  StyledText text() const { return StyledText(colors_); }
  int width() const;
  StyledText result_line(const MetricsRecord& test, std::size_t count, ResultItems items) const;
  StyledText metrics(const Metrics& metrics, std::size_t count) const;
  StyledText bar(double share, int cells) const;
  StyledText line(const MetricsRecord& train) const;
  StyledText line_with_bar(const MetricsRecord& train, const StyledText& epoch, int width) const;
  std::string clearing() const;

  Console& console_;
  Total total_;
  bool terminal_, colors_;
  int drawn_columns_ = 0;  // of the line on the terminal; 0 without a line
  Clock::time_point last_{};
};

/// Returns true if the user wants colors on a terminal, which is unless NO_COLOR is set (no-color.org) or TERM is dumb.
bool wants_colors();

}  // namespace phalanx
