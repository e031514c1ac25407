// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/TensorOptions.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/comm/call.h"
#include "framework/comm/flight_recorder.h"
#include "framework/comm/operation.h"
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
/// Tensors are dense, contiguous, on a device that takes() names, of dtype uint8, int8, int16, int32, int64, float16,
/// bfloat16, float32, float64 or bool, and of the same dtype on all ranks. They are runs of elements: shapes do not
/// matter beyond their number. Zero elements are fine. P is the number of ranks. Parts are in rank order, one behind
/// the other.
///
/// Devices: an operation on device tensors comes after what was launched on the current stream before it, and Work says
/// when its result may be used. All tensors of an operation are on one device.
///
/// Errors: arguments that no rank could accept throw std::invalid_argument from the call, before anything is sent.
/// What goes wrong between ranks is a CommError from Work::wait(); it names operation, sequence number, group, ranks
/// and seconds waited. Nothing waits longer than the group's timeout.
///
/// Threads: any thread may launch and wait; the order of launches between threads is the caller's business.
/// Destroying a communicator leaves the group: peers that still wait for this rank get CommError::kPeerLost.
///
/// The operations are defined once: each checks its arguments and passes what they make on to launch(), which backends
/// and decorators implement, as do_allocate() for memory.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // for messages: "world", "world/1" after split(1, ...)

  /// Whether tensors may be on such a device; alike on all ranks.
  virtual bool takes(c10::DeviceType device) const = 0;

  /// Root's elements to all ranks.
  Work broadcast(at::Tensor tensor, int root);

  /// All ranks' elements combined, in root's tensor. The others' tensors are only read.
  Work reduce(at::Tensor tensor, Reduction op, int root);

  /// In place: all ranks' elements combined, on all ranks, bitwise the same everywhere.
  Work all_reduce(at::Tensor tensor, Reduction op);

  /// Part r of all ranks' inputs combined, in rank r's output. `output` may be this rank's part of `input`; the rest
  /// of input is only read.
  /// `counts`: elements of each part; empty: P equal parts.
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts = {});

  /// Every rank's input, on every rank. `input` may be this rank's part of `output`.
  /// `counts`: elements of each rank's input; empty: all have as many.
  Work all_gather(at::Tensor output, at::Tensor input, Counts counts = {});

  /// Every rank's input, on root. `output` is ignored elsewhere and may be undefined there; on root `input` may be its
  /// part of it. `counts` as in all_gather, and known to all ranks.
  Work gather(at::Tensor output, at::Tensor input, int root, Counts counts = {});

  /// Part r of root's input to rank r. `input` is ignored elsewhere and may be undefined there; on root `output` may be
  /// its part of it. `counts`: elements of each part, known to all ranks.
  Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts = {});

  /// Part r of rank s's input becomes part s of rank r's output. The tensors must not overlap.
  /// `output_counts[s]`: elements that come from rank s, `input_counts[r]`: that go to rank r; both or none are empty.
  Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts = {}, Counts input_counts = {});

  /// One message. Messages of one sender, receiver and tag arrive in the order in which they were sent, and a recv of
  /// another number of bytes than was sent is a mismatch at the receiver. These operations are not ordered with any
  /// others: they move on while this rank waits for anything on any communicator of its world, and complete when the
  /// tensor may be used again, which for a send may be before it is received. Waiting for a message does not bring
  /// about operations that were launched and not waited for. A rank may send to itself.
  Work send(at::Tensor tensor, int peer, int tag = 0);
  Work recv(at::Tensor tensor, int peer, int tag = 0);

  /// Completes when every rank has called it; fails if one has not within `timeout` (absent: the group's).
  Work barrier(std::optional<Seconds> timeout = {});

  /// What the operations above come to: launches one whose arguments have been checked (framework/comm/arguments.h).
  /// For decorators and backends, and for who launches operations whichever they are.
  virtual Work launch(Operation operation) = 0;

  /// An operation of the caller's own: `body` runs when its turn comes, once, in the order of launch with all others,
  /// and may use everything of this communicator and those of its world; what it launches runs at once inside it. This
  /// is how algorithms made of sends and receives become asynchronous. `call` is for records and messages.
  virtual Work run(const Call& call, std::function<void()> body) = 0;

  /// Ranks of equal color, ordered by key, then by rank. Collective, blocking. A negative color takes part but gets
  /// nullptr.
  virtual CommunicatorPtr split(int color, int key) = 0;

  /// The group of those ranks that are still there, in their order here. Blocking, and collective among them: a rank
  /// that has got an error which says that others are gone calls this, and whoever waits for it on this communicator
  /// gets kPeerLost and can do the same. The communicator itself is of no use after that; groups that were split from
  /// it are split from the new one again.
  ///
  /// Ranks that have ended or have destroyed their communicator are not waited for, those that are there and do not
  /// come are for the group's timeout: after that the others go on without them, and they get kPeerLost if they should
  /// come. All ranks that get a group get the same one, also if others end meanwhile. Throws ConfigError where a
  /// backend cannot: inproc and shm can.
  virtual CommunicatorPtr shrink() = 0;

  /// Zeroed memory that this communicator moves fastest (for shm: mapped by every rank), and that begins with a cache
  /// line of 64 bytes. Collective, blocking, with the same arguments on all ranks. The memory lives as long as any
  /// tensor that views it, also after the communicator.
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options);

  /// Whether all ranks have memory in common; alike on all of them. One rank has.
  virtual bool shares_memory() const = 0;

  /// Zeroed memory that is the same on all ranks: what one writes the others read, in an order that nothing promises
  /// but operations of this communicator between the two. Collective, blocking, as allocate(). To the operations it is
  /// memory like any other. Throws ConfigError without shares_memory().
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options);

  /// Memory that may be asked for, as far as this rank can tell: what both functions above come to. Ranks that disagree
  /// about the call get CommError::kMismatch wherever this meets the other ranks. For decorators and backends.
  virtual at::Tensor do_allocate(const Allocation& allocation) = 0;

  /// What this rank has launched lately, on all communicators of its world.
  virtual const FlightRecorder& recorder() const = 0;
};

/// For backends that cannot shrink(): says so, and what to do instead.
[[noreturn]] void refuse_shrink(const std::string& backend);

}  // namespace phalanx
