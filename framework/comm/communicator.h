// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/TensorOptions.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/comm/operations/call.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/operation.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/comm/operations/place.h"
#include "framework/comm/operations/reduction.h"
#include "framework/comm/operations/work.h"
#include "framework/comm/store/store.h"

namespace phalanx {

class Communicator;
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// The largest tag of a message between two ranks, from 0. Tags above it, up to kMaxAnyTag, are reserved for
/// algorithms. MPI does not guarantee more (MPI_TAG_UB).
inline constexpr int kMaxTag = 16383;
inline constexpr int kMaxAnyTag = 32767;

/// An ordered group of ranks that communicate. It is always passed as a parameter: there is no current communicator.
///
/// Every rank of the group calls the same operations in the same order, and operations complete in that order; only
/// send and recv are not ordered. A call returns at once; its tensors belong to the operation until the Work is
/// complete. If the backend runs operations in wait() (see OperationQueue), ranks that share several communicators must
/// launch on all of them in one common order.
///
/// Tensors are dense, contiguous, on a device for which takes() returns true, of dtype uint8, int8, int16, int32,
/// int64, float16, bfloat16, float32, float64 or bool, and of the same dtype on all ranks. An operation sees a tensor
/// as a run of elements: only the number of elements matters, not the shape. Zero elements are allowed. P is the number
/// of ranks. Parts are in rank order, one after the other.
///
/// Devices: an operation on device tensors runs after everything that was launched on the current stream before it, and
/// Work defines when its result may be used. All tensors of an operation are on one device.
///
/// Errors: a call throws std::invalid_argument, before anything is sent, if no rank could accept its arguments. An
/// error between ranks is a CommError from Work::wait(); it names the operation, sequence number, group, ranks and
/// seconds waited. Nothing waits longer than the group's timeout.
///
/// An operation is complete on a rank when its tensors may be used. A rank that needs nothing from the others, such as
/// the root of a broadcast, may complete it before they have launched it. It then learns of their errors in one of its
/// next operations: of a lost rank as soon as it needs that rank, and of a mismatch in the first collective that waits
/// for the ranks that disagree, or follows an operation that does. That collective is performed before it reports the
/// error, which names the earlier one.
///
/// Threads: any thread may launch, and wait for a Work that no other thread uses (work.h). Callers must order the
/// launches of different threads themselves. Destroying a communicator leaves the group: peers that still wait for this
/// rank get CommError::kPeerLost.
///
/// Each operation is defined once here, and its `place`, the line that calls it, is recorded with it. It checks its
/// arguments and passes an Operation to launch(), which backends and decorators implement; allocations are passed to
/// do_allocate() in the same way.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // for messages: "world", "world/1" after split(1, ...)

  /// Returns true if tensors may be on such a device. The same on all ranks.
  virtual bool takes(c10::DeviceType device) const = 0;

  /// Returns true if operations on floating-point tensors of such a device become part of the graph (DeviceGraph) that
  /// is being recorded on the current stream, if there is one. Otherwise they make the host wait for the device, which
  /// a graph does not permit. Does not hold for barriers and messages. The same on all ranks.
  virtual bool in_graphs(c10::DeviceType /*device*/) const { return false; }

  /// Returns true if operations may have this Operation::way. The same on all ranks.
  virtual bool offers(NativeWay way) const { return way == NativeWay::kDefault; }

  /// Copies root's elements to all ranks.
  Work broadcast(at::Tensor tensor, int root, Place place = Place::current());

  /// Combines all ranks' elements into root's tensor. The tensors of the other ranks are only read.
  Work reduce(at::Tensor tensor, Reduction op, int root, Place place = Place::current());

  /// Combines all ranks' elements in place. The result is bitwise the same on all ranks.
  Work all_reduce(at::Tensor tensor, Reduction op, Place place = Place::current());

  /// Combines part r of all ranks' inputs into rank r's output. `output` may be this rank's part of `input`; the rest
  /// of `input` is only read.
  /// `counts`: elements of each part; empty: P equal parts.
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts = {},
                      Place place = Place::current());

  /// Collects the inputs of all ranks on every rank. `input` may be this rank's part of `output`.
  /// `counts`: elements of each rank's input; empty: the same for all ranks.
  Work all_gather(at::Tensor output, at::Tensor input, Counts counts = {}, Place place = Place::current());

  /// Collects the inputs of all ranks on root. On other ranks `output` is ignored and may be undefined. On root `input`
  /// may be its part of `output`. `counts` as in all_gather, and known to all ranks.
  Work gather(at::Tensor output, at::Tensor input, int root, Counts counts = {}, Place place = Place::current());

  /// Sends part r of root's input to rank r. On other ranks `input` is ignored and may be undefined. On root `output`
  /// may be its part of `input`. `counts`: elements of each part, known to all ranks.
  Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts = {}, Place place = Place::current());

  /// Sends part r of rank s's input to part s of rank r's output. The tensors must not overlap.
  /// `output_counts[s]`: elements that come from rank s; `input_counts[r]`: elements that go to rank r. Either both or
  /// neither are empty.
  Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts = {}, Counts input_counts = {},
                  Place place = Place::current());

  /// Send and receive one message. Messages of one sender, receiver and tag arrive in the order in which they were
  /// sent. If a recv has another number of bytes than the send, the receiver gets a mismatch. These operations are not
  /// ordered with any others: they make progress while this rank waits for anything on any communicator of its world.
  /// They complete when the tensor may be used again, which for a send may be before the message is received. Waiting
  /// for a message does not run operations that were launched and not waited for. A rank may send to itself.
  Work send(at::Tensor tensor, int peer, int tag = 0, Place place = Place::current());
  Work recv(at::Tensor tensor, int peer, int tag = 0, Place place = Place::current());

  /// Completes when every rank has called it. Fails if a rank has not called it within `timeout` (absent: the group's).
  Work barrier(std::optional<Seconds> timeout = {}, Place place = Place::current());

  /// Launches an operation whose arguments have been checked (framework/comm/operations/arguments.h). All operations
  /// above call it. For decorators and backends, and for code that launches any kind of operation.
  virtual Work launch(Operation operation) = 0;

  /// Launches an operation that the caller defines. `body` runs once, when all operations launched before it have run.
  /// It may use this communicator and the others of its world; an operation that it launches runs immediately within
  /// it. This makes algorithms that consist of sends and receives asynchronous. `call` is for records and messages.
  virtual Work run(const Call& call, std::function<void()> body) = 0;

  /// Returns the group of the ranks of equal color, ordered by key, then by rank. Collective, blocking. A rank with a
  /// negative color takes part but gets nullptr.
  virtual CommunicatorPtr split(int color, int key) = 0;

  /// Returns the group of the ranks that are still alive, in their order here. Blocking, and collective among them. A
  /// rank calls this after an error which says that other ranks are gone. Ranks that wait for it on this communicator
  /// then get kPeerLost and can do the same. The communicator cannot be used after that; groups that were split from it
  /// must be split from the new one again.
  ///
  /// Ranks that have ended or have destroyed their communicator are not waited for. Ranks that are alive but do not
  /// call this are waited for up to the group's timeout; then the others continue without them, and they get kPeerLost
  /// if they call it later. All ranks that get a group get the same one, even if others end during the call. On gloo,
  /// where ranks may be unable to reach each other, only more than half of the ranks, or half of them with rank 0, can
  /// continue without ranks that may be alive; the others get kPeerLost. On mpi, only ranks whose processes have ended
  /// can be left out: if others do not come in time, all get kTimeout. Throws ConfigError if why_no_shrink() says why.
  CommunicatorPtr shrink();

  /// Returns why shrink() is not possible, and what to do instead; empty: it is possible. The same on all ranks.
  /// inproc, shm and gloo can always do it, mpi if it was started with `mpirun --with-ft ulfm`, and hybrid if both of
  /// its backends can.
  virtual std::string why_no_shrink() const { return ""; }

  /// Returns the group that shrink() asks for. Not called if why_no_shrink() says why; must be overridden otherwise.
  /// For decorators and backends.
  virtual CommunicatorPtr do_shrink();

  /// Returns zeroed memory that this communicator moves fastest (for shm: mapped by every rank), aligned to a cache
  /// line of 64 bytes. Collective, blocking, with the same arguments on all ranks. The memory lives as long as any
  /// tensor that views it, even after the communicator is destroyed.
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options);

  /// Returns true if all ranks can share memory. The same on all ranks. Always true for one rank.
  virtual bool shares_memory() const = 0;

  /// Returns zeroed memory that is the same on all ranks: every rank reads what any of them writes. Only operations of
  /// this communicator order a write before a read. Collective and blocking like allocate(). Operations treat it like
  /// any other memory. Throws ConfigError unless shares_memory().
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options);

  /// Returns the memory that the two functions above ask for, after they have made the checks that need no other rank.
  /// Ranks that disagree about the call get CommError::kMismatch, at the point where this communicates with the other
  /// ranks. For decorators and backends.
  virtual at::Tensor do_allocate(const Allocation& allocation) = 0;

  /// Returns the record of the last operations of this rank, on all communicators of its world. A group that is built
  /// on this one, such as one of devices, records its operations there too.
  virtual FlightRecorder& recorder() const = 0;
};

/// Returns Communicator::why_no_shrink() of a backend that never can shrink().
std::string cannot_shrink(const std::string& backend);

}  // namespace phalanx
