// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/GraphImplInterface.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace phalanx::testing {

/// A graph of the fake device. As with CUDA graphs, recorded work has not been executed when the recording ends:
/// memory has its former contents. During the recording, the host can neither read what kernels write nor pass data to
/// them. All threads of the process are recorded.
class FakeGraph final : public at::GraphImplInterface {
 public:
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override;
  void capture_end() override;
  void instantiate() override {}
  void replay() override;
  void reset() override { calls_.clear(); }
  c10::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

  /// Returns true if the work of this thread is being recorded.
  static bool records();

  /// While an object of this class exists, the work of this thread belongs to an operation that is recorded as a whole
  /// or not at all.
  class Whole {
   public:
    Whole();
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    bool recorded() const { return recorded_; }
    void add(std::function<void()> call) const;  // sets what a replay does, if recorded

   private:
    bool recorded_;
  };

  ~FakeGraph() override;

 private:
  std::vector<std::function<void()>> calls_;
  std::vector<std::byte> memory_before_;
};

}  // namespace phalanx::testing
