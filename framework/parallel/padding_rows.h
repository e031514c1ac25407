// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// While one made with true exists, the thread that made it computes rows of padding (Batch::valid). Such rows only
/// take part in the arithmetic, so layers that count what all ranks compute skip them.
class PaddingRows {
 public:
  explicit PaddingRows(bool padding) : before_(current_) { current_ = padding; }
  ~PaddingRows() { current_ = before_; }
  PaddingRows(const PaddingRows&) = delete;
  PaddingRows& operator=(const PaddingRows&) = delete;

  /// Returns the argument of the innermost PaddingRows of this thread, or false outside of any.
  static bool current() { return current_; }

 private:
  static inline thread_local bool current_ = false;
  bool before_;
};

}  // namespace phalanx
