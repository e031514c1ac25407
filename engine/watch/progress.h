// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/watch/measurement.h"
#include "engine/watch/styled_text.h"
#include "framework/base/console.h"

namespace phalanx {

/// Tells a person how training goes: one line that is redrawn on a terminal, plain lines elsewhere. What does not fit
/// into a narrow terminal is left out, the least important first, and never a part of a number; a terminal may change
/// its width at any time.
class Progress {
 public:
  struct Total {
    std::int64_t epochs = 0;
    std::int64_t steps = 0;  // over all epochs
    std::int64_t steps_per_epoch = 0;
  };

  /// `terminal`: whether `console`, which must outlive this, ends at one; `colors`: whether it shows them.
  Progress(Console& console, bool terminal, Total total, bool colors = false);
  ~Progress();  // leaves the terminal on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const Measurement& train);  // as often as one likes; drawn at most ten times a second
  void result(const Measurement& test);   // a line that stays, of a test or of an epoch's training

 private:
  using Clock = std::chrono::steady_clock;

  // What a line of a result has beside its readings.
  struct Beside {
    bool split = false, more = false, step = false, epoch = false, time = false, rate = false;
  };

  StyledText text() const { return StyledText(colors_); }
  int width() const;
  StyledText result_line(const Measurement& test, std::size_t count, Beside beside) const;
  StyledText readings(const Readings& readings, std::size_t count) const;
  StyledText bar(double share, int cells) const;
  StyledText line(const Measurement& train) const;
  StyledText line_beside_bar(const Measurement& train, const StyledText& epoch, int width) const;
  std::string clearing() const;

  Console& console_;
  Total total_;
  bool terminal_, colors_;
  int drawn_columns_ = 0;  // of the line that is on the terminal; 0: none
  Clock::time_point last_{};
};

/// Whether a person wants colors on a terminal: unless NO_COLOR is set (no-color.org) or TERM is dumb.
bool wants_colors();

}  // namespace phalanx
