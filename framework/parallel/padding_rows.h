// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// While one lives that was made with true, the thread that made it computes rows of padding (Batch::valid). They take
/// part in the arithmetic alone, so layers that count what all ranks compute leave them out.
class PaddingRows {
 public:
  explicit PaddingRows(bool padding) : before_(current_) { current_ = padding; }
  ~PaddingRows() { current_ = before_; }
  PaddingRows(const PaddingRows&) = delete;
  PaddingRows& operator=(const PaddingRows&) = delete;

  /// Returns what this thread's innermost one was made with; false outside of all.
  static bool current() { return current_; }

 private:
  static inline thread_local bool current_ = false;
  bool before_;
};

}  // namespace phalanx
