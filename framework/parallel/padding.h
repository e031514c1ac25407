#pragma once

namespace phalanx {

/// While one lives with `only`, what the thread that made it computes is padding alone, with weight 0: a share of a
/// batch that has no samples. Layers learn nothing of it, and need not be able to: batch norm uses the statistics that
/// it has.
class PaddingOnly {
 public:
  explicit PaddingOnly(bool only);
  ~PaddingOnly();
  PaddingOnly(const PaddingOnly&) = delete;
  PaddingOnly& operator=(const PaddingOnly&) = delete;

  /// Of this thread's innermost one; false where there is no such scope.
  static bool current();

 private:
  bool before_;
};

}  // namespace phalanx
