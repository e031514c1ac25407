#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/ps/deadline.h"

namespace phalanx::ps {

/// Keeps log lines that others can cause at will from filling the disk: lets one pass per interval and counts the rest.
class Seldom {
 public:
  explicit Seldom(Seconds interval) : interval_(interval) {}

  /// Returns the text to append to a line that is due, such as " (and 12 more)". Returns nothing if the line is to be
  /// left out.
  std::optional<std::string> pass() {
    if (Clock::now() < next_) {
      ++left_out_;
      return {};
    }
    next_ = after(interval_);
    const std::string more = left_out_ > 0 ? " (and " + std::to_string(left_out_) + " more)" : "";
    left_out_ = 0;
    return more;
  }

 private:
  Seconds interval_;
  Clock::time_point next_{};
  std::int64_t left_out_ = 0;
};

}  // namespace phalanx::ps
