// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/base/device_graph.h"
#include "framework/testing/fake_device/access_table.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {

/// A graph of the fake device. As with CUDA graphs, recorded work has not been executed when the recording ends:
/// memory has its former contents. During the recording, the host can neither read what kernels write nor pass data to
/// them, nor free cached memory; new memory comes from a pool of the graph's own. The thread that records cannot wait
/// for the device (refuse_while_recording()). The current stream must not be the default one. All threads of the
/// process are recorded.
class FakeGraph final : public DeviceGraph {
 public:
  ~FakeGraph() override;

  void capture_begin() override;
  void capture_end() override;
  void replay() override;

  /// Returns true if the work of this thread is being recorded.
  static bool records();

  /// Throws c10::Error if this thread has begun a recording: as with cudaStreamCaptureModeThreadLocal, it may not make
  /// calls that wait for a device, ask whether work is complete, or allocate or free memory without LibTorch's
  /// allocator. `call` is for the message.
  static void refuse_while_recording(std::string_view call);

  /// While an object of this class exists, the work of this thread belongs to an operation that is recorded as a whole
  /// or not at all.
  class Whole {
   public:
    Whole();
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    bool recorded() const { return recorded_; }

    // Set what a replay does, and which memory it uses, if the operation is recorded.
    void add(std::function<void()> call) const;
    void uses(const std::vector<Access>& accesses) const;

   private:
    bool recorded_;
  };

  /// Adds an operation to the graph that is being recorded, by any thread: `make` is called by each replay.
  static void add_polled(std::string_view name, std::function<Streams::Poll()> make, std::vector<Access> accesses);

 private:
  struct Call {
    std::function<void()> body;             // either this
    std::function<Streams::Poll()> polled;  // or that
    std::string_view name;
  };
  std::vector<Call> calls_;
  std::vector<Access> accesses_;
  std::vector<std::byte> memory_before_;
  std::int64_t pool_ = 0;
};

}  // namespace phalanx::testing
