// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator that compares the calls of all ranks before it performs an operation. It is for debugging programs
/// whose ranks disagree, on backends that would otherwise hang or mix up their data (mpi and gloo; inproc and shm
/// always compare).
///
/// Before each operation the ranks gather their calls. If operation, dtype, size, root, reduction (including the name
/// of a custom one), counts or the sizes of memory differ, all ranks get CommError::kMismatch, which names the same two
/// ranks and the call of each. In that case only the calls have been sent, and the group stays usable. If they agree,
/// the inner communicator performs the operation and reports its errors. For an uneven all_to_all, the counts that each
/// rank sends are compared with the counts that its receiver expects.
///
/// The cost is an all_gather of 80 bytes per rank and operation. Not compared are send, recv and the calls of run() for
/// Op::kSend, kRecv or kNone, because not all ranks take part in them. A barrier with its own timeout is not compared
/// either, because the timeout counts from its call.
///
/// Thread-safe if the inner communicator is.
class CheckedCommunicator final : public Decorator {
 public:
  explicit CheckedCommunicator(CommunicatorPtr inner);

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  // Runs `start`, which launches the operation on the inner communicator, in the body of the operation, after the ranks
  // have agreed on the call.
  template <class Start>
  Work check_first(const Call& call, const std::string& note, Start start);

  // The number of operations compared so far, which numbers the operations in messages.
  std::shared_ptr<std::atomic<std::uint64_t>> compared_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace phalanx
