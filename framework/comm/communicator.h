#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <memory>
#include <string>

#include "framework/comm/reduction.h"
#include "framework/comm/work.h"

namespace phalanx {

class Communicator;
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// An ordered group of ranks that talk to each other. Always a parameter: there is no current communicator.
///
/// Every rank of the group calls the same operations in the same order, and operations complete in that order. A call
/// returns at once; its tensor belongs to the operation until the Work is complete. Where backends run operations in
/// wait() (see OperationQueue), ranks that share several communicators launch on all of them in one common order.
///
/// Tensors are dense, contiguous, on the CPU, of dtype float32, float64 or int64, and of the same shape and dtype on
/// all ranks. Zero elements are fine.
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

  /// Root's elements to all ranks. Wire, direct memory: (P - 1) n bytes read; MPI: its choice.
  virtual Work broadcast(at::Tensor tensor, int root) = 0;

  /// In place: all ranks' elements combined, on all ranks, bitwise the same everywhere.
  virtual Work all_reduce(at::Tensor tensor, Reduction op) = 0;

  /// Completes when every rank has called it.
  virtual Work barrier() = 0;

  /// Ranks of equal color, ordered by key, then by rank. Collective, blocking. A negative color takes part but gets
  /// nullptr.
  virtual CommunicatorPtr split(int color, int key) = 0;

  /// Zeroed memory that this communicator moves fastest (for shm: mapped by every rank). Collective, blocking, with the
  /// same arguments on all ranks. The memory lives as long as any tensor that views it, also after the communicator.
  virtual at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) = 0;
};

/// Throws std::invalid_argument unless every backend could take these arguments; `operation` is named in the message.
void check_tensor(const char* operation, const at::Tensor& tensor);
void check_root(const char* operation, int root, int size);

}  // namespace phalanx
