// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
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
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backends/nccl/event.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/work.h"
#include "framework/comm/store/store.h"

namespace phalanx::nccl {

using Clock = std::chrono::steady_clock;

struct Member {
  std::string group;
  int rank = 0, size = 1;
  int device = 0;
  Seconds timeout{};
};

/// Blocks until a nonblocking communicator has carried out a call, such as enqueued an operation. Returns the result of
/// the call, or ncclInProgress if the deadline passes first.
ncclResult_t settle(ncclComm_t comm, ncclResult_t result, Clock::time_point deadline);

/// Returns true if the work that is put on the stream becomes part of a graph.
bool is_recording(cudaStream_t stream);

/// The first error of a group, if any. Operations share it with their group and may outlive the group.
class Health {
 public:
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  void throw_if_broken() const;
  bool fail(std::exception_ptr error);  // returns true if it is the first

 private:
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

/// An NCCL communicator. It accepts calls from one thread at a time, so callers must hold the mutex. Memory that is
/// registered with it may outlive it.
struct Handle {
  std::mutex mutex;
  ncclComm_t comm = nullptr;  // null: destroyed or aborted
};

/// One rank's NCCL communicator and the stream on which its operations run.
///
/// The communicator is non-blocking: a call returns at once, and NCCL carries it out in a thread of its own. Launching
/// waits for that thread, which connects to the peers in the first calls, up to the timeout. A blocking communicator
/// would save the thread, but could not be aborted while a call waits for a lost peer: ncclCommAbort() frees it, and
/// the call may still use it.
///
/// A thread watches the operations in flight. If one takes longer than the timeout, or NCCL reports an error later, it
/// aborts the communicator (ncclCommAbort). Work that waits on the device then goes on, and every operation that is in
/// flight or is launched later throws the CommError. Until the abort has ended, kernels may still write to the tensors
/// of operations in flight, which are kept until then. CUDA errors, such as a failed kernel, have the same effect.
/// Thread-safe.
///
/// An operation that is launched while the current stream is captured becomes part of that graph; its Work must be
/// waited for before the capture ends. The replays of the graph are watched in its place (watched_graph.h). The graph
/// must be destroyed before the group, whose destructor waits for NCCL, and NCCL waits for the graphs of a
/// communicator.
///
/// Limitation: ranks that call different operations time out instead of getting kMismatch.
class Group : public std::enable_shared_from_this<Group> {
 public:
  /// Takes ownership of `comm`. Operations run on a stream of LibTorch's pool, or on the given one.
  Group(Member member, ncclComm_t comm, std::shared_ptr<FlightRecorder> recorder,
        std::optional<c10::cuda::CUDAStream> stream = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const Member& member() const { return member_; }
  const std::shared_ptr<FlightRecorder>& recorder() const { return recorder_; }
  const std::shared_ptr<Handle>& handle() const { return handle_; }
  c10::cuda::CUDAStream stream() const { return stream_; }
  std::string describe() const;  // for messages: "world, rank 0 of 2"

  /// Enqueues the work of `body` on the group's stream, after all earlier work on the current stream. Later work on a
  /// stream is ordered after it if the stream's owner waits for the Work. The Work keeps `tensors` alive until it is
  /// waited for; if another stream than the current one waits, LibTorch's allocator keeps their memory until the device
  /// has finished. `calls` makes the calls of NCCL; `after` enqueues what follows them, once NCCL has enqueued them.
  struct Body {
    std::function<void(ncclComm_t comm, cudaStream_t stream)> calls, after;
  };
  Work launch(const Call& call, std::vector<at::Tensor> tensors, const Body& body) {
    return launch(call, std::move(tensors), body, nullptr);
  }

  /// The same for an operation whose caller launched it earlier, and perhaps in another thread.
  struct Origin {
    c10::cuda::CUDAStream stream;  // to which its tensors belong
    Event launched;                // the work that the operation comes after
    FlightRecorder::Ticket ticket{};
  };
  Work launch(const Call& call, std::vector<at::Tensor> tensors, const Body& body, const Origin& origin) {
    return launch(call, std::move(tensors), body, &origin);
  }

  /// Watches a graph that has these operations of the group, in this order, and that was launched on the current stream
  /// just now: as one operation, which the record shows as those in the graph. If it ends late or with an error, later
  /// operations and replays throw.
  void watch_replay(const std::vector<Call>& calls);

  /// Blocks the host until all launched operations are complete, or have failed. The caller must not hold the handle's
  /// mutex.
  void finish_operations();

  /// Breaks the group and throws the CommError of a call that NCCL did not accept. The caller must hold the handle's
  /// mutex.
  [[noreturn]] void fail(const std::string& what, ncclResult_t result);
  void throw_if_broken() const { health_->throw_if_broken(); }

 private:
  class InFlight;

  Work launch(const Call& call, std::vector<at::Tensor> tensors, const Body& body, const Origin* origin);
  using Operations = std::deque<std::shared_ptr<InFlight>>;

  void launch_now(const std::shared_ptr<InFlight>& operation, const Body& body, const Origin* origin);
  void add_in_flight(std::shared_ptr<InFlight> operation);
  Operations in_flight();
  void watch();
  bool look();
  void end_late(const InFlight& first);
  void abort(std::exception_ptr error, Operations running);
  void leave() noexcept;

  Member member_;
  std::shared_ptr<Handle> handle_ = std::make_shared<Handle>();
  c10::cuda::CUDAStream stream_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::shared_ptr<FlightRecorder::Group> record_;
  std::shared_ptr<Health> health_ = std::make_shared<Health>();

  std::mutex mutex_;  // acquired after the handle's mutex
  std::condition_variable changed_;
  Operations in_flight_;
  bool stopped_ = false;
  std::thread watcher_;
  std::thread aborting_;  // assigned once, by abort()
};

}  // namespace phalanx::nccl
