// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/GraphImplInterface.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace phalanx::testing {

/// A graph of the pretended device. As with CUDA's, what is recorded has not happened when the recording ends: memory
/// is as it was before; and the host can neither read what kernels write nor give them anything while it records.
/// Recording is of all threads of the process.
class PretendedGraph final : public at::GraphImplInterface {
 public:
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override;
  void capture_end() override;
  void instantiate() override {}
  void replay() override;
  void reset() override { calls_.clear(); }
  c10::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

  /// Whether what this thread does is recorded.
  static bool records();

  /// While one lives, what this thread does is a part of something that is recorded as a whole, or not at all.
  class Whole {
   public:
    Whole();
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    bool recorded() const { return recorded_; }
    void add(std::function<void()> call) const;  // what a replay does, if it is recorded

   private:
    bool recorded_;
  };

  ~PretendedGraph() override;

 private:
  std::vector<std::function<void()>> calls_;
  std::vector<std::byte> memory_before_;
};

}  // namespace phalanx::testing
