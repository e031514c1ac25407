// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "framework/collectives/recording/recorder.h"
#include "framework/collectives/recording/recording.h"
#include "framework/comm/decorator.h"

namespace phalanx::recording {

/// A communicator that records what this rank receives, so that the rank can be replayed alone: the result and the
/// digest of the input of each operation, in order, and the groups that are split from it.
///
/// It claims that ranks do not share memory (shares_memory()), since it could not see their writes. It takes tensors on
/// the CPU only, even if the inner communicator takes others: operations on tensors of devices reach it by a
/// communicator that stages them in host memory. Groups cannot shrink().
///
/// Thread-safe if the inner communicator is.
class RecordingCommunicator final : public Decorator {
 public:
  /// `group` is the number of this group in the recording.
  RecordingCommunicator(CommunicatorPtr inner, std::shared_ptr<Recorder> recorder, std::uint32_t group);

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  std::string why_no_shrink() const override;
  bool takes(c10::DeviceType device) const override { return device == c10::DeviceType::CPU; }
  bool shares_memory() const override { return size() == 1; }
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  class ReceivedMessage;
  struct Counters;

  Work launch_message(Operation operation);

  std::shared_ptr<Recorder> recorder_;
  std::uint32_t group_;
  std::shared_ptr<Counters> counters_;
};

/// Records a world and the groups that will be split from it. Not collective.
CommunicatorPtr record(CommunicatorPtr world, const std::shared_ptr<Recorder>& recorder);

}  // namespace phalanx::recording
