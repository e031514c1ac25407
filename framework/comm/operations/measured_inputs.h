// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace phalanx {

/// Marks operations whose inputs are measurements, such as times, sizes of memory or numbers of processes, which differ
/// between two runs that are otherwise equal. The mark belongs to all operations that the calling thread launches while
/// an object of this class exists. A replay of a recording gives this rank the recorded results of these operations,
/// also where the rank is the source, and does not compare their inputs.
class MeasuredInputs {
 public:
  MeasuredInputs() { ++depth(); }
  ~MeasuredInputs() { --depth(); }
  MeasuredInputs(const MeasuredInputs&) = delete;
  MeasuredInputs& operator=(const MeasuredInputs&) = delete;

  /// Returns true if operations that this thread launches now are marked.
  static bool marked() { return depth() > 0; }

  /// Restores, while it exists, the mark with which an operation was launched. The body of an operation may run in
  /// another thread, or while another operation is waited for.
  class Restored {
   public:
    explicit Restored(bool marked) : before_(std::exchange(depth(), marked ? 1 : 0)) {}
    ~Restored() { depth() = before_; }
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;

   private:
    int before_;
  };

 private:
  static int& depth() {
    static thread_local int depth = 0;
    return depth;
  }
};

}  // namespace phalanx
