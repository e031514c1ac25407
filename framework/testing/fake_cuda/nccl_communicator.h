// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/testing/fake_cuda/nccl_operation.h"
#include "framework/testing/fake_cuda/nccl_segment.h"

namespace phalanx::testing {

/// A rank's communicator. As with the real one, a call of a non-blocking communicator returns at once,
/// and a thread carries it out after a random delay; until then, ncclInProgress is the state of the communicator, and
/// no other call is accepted.
class FakeNcclCommunicator : public std::enable_shared_from_this<FakeNcclCommunicator> {
 public:
  using Job = std::function<ncclResult_t()>;

  FakeNcclCommunicator(int rank, int ranks, int device, bool blocking);
  ~FakeNcclCommunicator();
  FakeNcclCommunicator(const FakeNcclCommunicator&) = delete;
  FakeNcclCommunicator& operator=(const FakeNcclCommunicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return ranks_; }

  /// Returns ncclInvalidArgument if a call is in progress, and otherwise the communicator's state.
  ncclResult_t check_ready() const;

  /// Returns the state, or the error of break_nccl(), or ncclInvalidUsage once only some ranks have captured an
  /// operation into a graph.
  ncclResult_t async_error() const;
  void set_error(ncclResult_t result) { state_ = result; }

  /// Runs the job, or starts a thread that does so.
  ncclResult_t run(Job job);

  /// Jobs. `name` is that of the segment.
  ncclResult_t connect(const std::string& name);
  ncclResult_t split(int color, int key, bool blocking, std::shared_ptr<FakeNcclCommunicator>& child);
  ncclResult_t launch(const std::vector<NcclCall>& calls, bool captured);
  ncclResult_t finish_operations();

  /// Ends the job and the operations in progress, once hold_nccl_aborts() lets it, and then waits until all graphs that
  /// have operations of the communicator are destroyed. Returns ncclInternalError if one still exists after 10 seconds,
  /// so that tests end.
  ncclResult_t abort();

  /// Waits for the job.
  void join();

 private:
  // The memory of an operation on a stream: addresses and numbers of allocations. It exists as long as the operation.
  using Buffers = std::vector<std::pair<const void*, std::uint64_t>>;

  ncclResult_t enqueue(const std::vector<NcclCall>& calls, bool captured);
  void count_freed_early();

  const int rank_, ranks_, device_;
  const bool blocking_;
  std::shared_ptr<NcclSegment> segment_;
  std::atomic<ncclResult_t> state_{ncclSuccess};
  std::atomic<bool> aborted_{false};
  std::atomic<int> outstanding_{0};  // operations on streams
  std::atomic<int> in_graphs_{0};    // operations that graphs have
  std::mutex buffers_mutex_;         // locked after the mutex of the streams
  std::vector<std::weak_ptr<const Buffers>> buffers_;
  std::mt19937_64 dice_;
  std::thread thread_;
};

/// The text of ncclGetLastError().
void set_last_nccl_error(const std::string& text);
std::string last_nccl_error();

}  // namespace phalanx::testing
