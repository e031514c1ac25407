// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/flight_recorder.h"
#include "framework/comm/store.h"
#include "framework/comm/work.h"

namespace phalanx::nccl {

using Clock = std::chrono::steady_clock;

struct Member {
  std::string group;
  int rank = 0, size = 1;
  int device = 0;
  Seconds timeout{};
};

/// Waits until a communicator has taken a call, which with us never blocks: its result, or ncclInProgress where the
/// deadline passed first.
ncclResult_t settle(ncclComm_t comm, ncclResult_t result, Clock::time_point deadline);

/// The first error of a group, if it has one. Operations share it with their group and outlive it.
class Health {
 public:
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  void throw_if_broken() const;
  bool fail(std::exception_ptr error);  // whether it is the first

 private:
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

/// A communicator of NCCL, which takes calls of one thread at a time: whoever calls it holds the mutex. Memory that it
/// knows may outlive it.
struct Handle {
  std::mutex mutex;
  ncclComm_t comm = nullptr;  // null: it is gone
};

/// One rank's communicator of NCCL, and the stream on which its operations run.
///
/// A thread watches the operations in flight: one that takes longer than the timeout, or an error that NCCL reports
/// later, ends the communicator (ncclCommAbort). What waits on the device then goes on, and every operation in flight
/// or launched later throws the CommError. So it does after an error of CUDA, such as that of a kernel that failed.
/// Thread-safe.
///
/// An operation that is launched while the current stream is recorded becomes part of that graph, of which the Work is
/// waited for before the recording ends. Of its replays nobody keeps deadlines.
///
/// What it cannot do: ranks that call different operations are not told so (kMismatch), but time out.
class Group {
 public:
  /// Takes over `comm`.
  Group(Member member, ncclComm_t comm, std::shared_ptr<FlightRecorder> recorder);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const Member& member() const { return member_; }
  const std::shared_ptr<FlightRecorder>& recorder() const { return recorder_; }
  const std::shared_ptr<Handle>& handle() const { return handle_; }
  std::string describe() const;  // for messages: "world, rank 0 of 2"

  /// Launches what `body` gives to the stream: after everything on the current stream, and before what will be on those
  /// whose owners wait for the Work. `tensors` are kept until the device is done with them.
  using Body = std::function<void(ncclComm_t comm, cudaStream_t stream)>;
  Work launch(const Call& call, std::vector<at::Tensor> tensors, const Body& body);

  /// Throws the CommError of a call that NCCL did not take; the group is broken then. With the handle's mutex.
  [[noreturn]] void fail(const std::string& what, ncclResult_t result);
  void throw_if_broken() const { health_->throw_if_broken(); }

 private:
  class InFlight;

  void launch_now(InFlight& operation, const std::string& what, const Body& body);
  void watch();
  bool look();
  void end_late(const InFlight& first);
  void abort(std::exception_ptr error);
  void leave() noexcept;

  Member member_;
  std::shared_ptr<Handle> handle_ = std::make_shared<Handle>();
  c10::cuda::CUDAStream stream_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::shared_ptr<FlightRecorder::Group> record_;
  std::shared_ptr<Health> health_ = std::make_shared<Health>();

  std::mutex mutex_;  // taken after the handle's
  std::condition_variable changed_;
  std::deque<std::shared_ptr<InFlight>> in_flight_;
  std::vector<at::Tensor> used_;  // by operations that are complete; to free memory may take a while, see launch()
  bool stopped_ = false;
  std::thread watcher_;
};

}  // namespace phalanx::nccl
