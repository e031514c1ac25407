#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/comm/call.h"
#include "framework/comm/flight_recorder.h"
#include "framework/comm/part_layout.h"
#include "framework/comm/reduction.h"
#include "framework/comm/store.h"
#include "framework/comm/work.h"

namespace phalanx {

class Communicator;
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// Messages between two ranks are told apart by tags from 0 to kMaxTag. The tags above, up to kMaxAnyTag, are the
/// algorithms' own. MPI promises no more (MPI_TAG_UB).
inline constexpr int kMaxTag = 16383;
inline constexpr int kMaxAnyTag = 32767;

/// An ordered group of ranks that talk to each other. Always a parameter: there is no current communicator.
///
/// Every rank of the group calls the same operations in the same order, and operations complete in that order; send and
/// recv alone go their own way. A call returns at once; its tensors belong to the operation until the Work is complete.
/// Where backends run operations in wait() (see OperationQueue), ranks that share several communicators launch on all
/// of them in one common order.
///
/// Tensors are dense, contiguous, on the CPU, of dtype uint8, int8, int16, int32, int64, float16, bfloat16, float32,
/// float64 or bool, and of the same dtype on all ranks. They are runs of elements: shapes do not matter beyond their
/// number. Zero elements are fine. P is the number of ranks. Parts are in rank order, one behind the other.
///
/// Errors: arguments that no rank could accept throw std::invalid_argument from the call, before anything is sent.
/// What goes wrong between ranks is a CommError from Work::wait(); it names operation, sequence number, group, ranks
/// and seconds waited. Nothing waits longer than the group's timeout.
///
/// Threads: any thread may launch and wait; the order of launches between threads is the caller's business.
/// Destroying a communicator leaves the group: peers that still wait for this rank get CommError::kPeerLost.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // for messages: "world", "world/1" after split(1, ...)

  /// Root's elements to all ranks.
  virtual Work broadcast(at::Tensor tensor, int root) = 0;

  /// All ranks' elements combined, in root's tensor. The others' tensors are only read.
  virtual Work reduce(at::Tensor tensor, Reduction op, int root) = 0;

  /// In place: all ranks' elements combined, on all ranks, bitwise the same everywhere.
  virtual Work all_reduce(at::Tensor tensor, Reduction op) = 0;

  /// Part r of all ranks' inputs combined, in rank r's output. `output` may be this rank's part of `input`; the rest
  /// of input is only read.
  /// `counts`: elements of each part; empty: P equal parts.
  virtual Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts = {}) = 0;

  /// Every rank's input, on every rank. `input` may be this rank's part of `output`.
  /// `counts`: elements of each rank's input; empty: all have as many.
  virtual Work all_gather(at::Tensor output, at::Tensor input, Counts counts = {}) = 0;

  /// Every rank's input, on root. `output` is ignored elsewhere and may be undefined there; on root `input` may be its
  /// part of it. `counts` as in all_gather, and known to all ranks.
  virtual Work gather(at::Tensor output, at::Tensor input, int root, Counts counts = {}) = 0;

  /// Part r of root's input to rank r. `input` is ignored elsewhere and may be undefined there; on root `output` may be
  /// its part of it. `counts`: elements of each part, known to all ranks.
  virtual Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts = {}) = 0;

  /// Part r of rank s's input becomes part s of rank r's output. The tensors must not overlap.
  /// `output_counts[s]`: elements that come from rank s, `input_counts[r]`: that go to rank r; both or none are empty.
  virtual Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts = {}, Counts input_counts = {}) = 0;

  /// One message. Messages of one sender, receiver and tag arrive in the order in which they were sent, and a recv of
  /// another number of bytes than was sent is a mismatch at the receiver. These operations are not ordered with any
  /// others: they move on while this rank waits for anything on any communicator of its world, and complete when the
  /// tensor may be used again, which for a send may be before it is received. Waiting for a message does not bring
  /// about operations that were launched and not waited for. A rank may send to itself.
  virtual Work send(at::Tensor tensor, int peer, int tag = 0) = 0;
  virtual Work recv(at::Tensor tensor, int peer, int tag = 0) = 0;

  /// Completes when every rank has called it; fails if one has not within `timeout` (absent: the group's).
  virtual Work barrier(std::optional<Seconds> timeout = {}) = 0;

  /// An operation of the caller's own: `body` runs when its turn comes, in the order of launch with all others, and may
  /// use everything of this communicator and those of its world; what it launches runs at once inside it. This is how
  /// algorithms made of sends and receives become asynchronous. `call` is for records and messages.
  virtual Work run(const Call& call, std::function<void()> body) = 0;

  /// Ranks of equal color, ordered by key, then by rank. Collective, blocking. A negative color takes part but gets
  /// nullptr.
  virtual CommunicatorPtr split(int color, int key) = 0;

  /// Zeroed memory that this communicator moves fastest (for shm: mapped by every rank), and that begins with a cache
  /// line of 64 bytes. Collective, blocking, with the same arguments on all ranks. The memory lives as long as any
  /// tensor that views it, also after the communicator.
  virtual at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) = 0;

  /// Whether all ranks have memory in common; alike on all of them. One rank has.
  virtual bool shares_memory() const = 0;

  /// Zeroed memory that is the same on all ranks: what one writes the others read, in an order that nothing promises
  /// but operations of this communicator between the two. Collective, blocking, as allocate(). To the operations it is
  /// memory like any other. Throws ConfigError without shares_memory().
  virtual at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) = 0;

  /// What this rank has launched lately, on all communicators of its world.
  virtual const FlightRecorder& recorder() const = 0;
};

}  // namespace phalanx
