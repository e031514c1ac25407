// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator whose ranks compare what they call before they do it: for programs whose ranks disagree, on backends
/// that would hang or mix up their data then (mpi and gloo; inproc and shm compare in any case).
///
/// Before each operation the ranks gather their calls. Where operation, dtype, size, root, reduction (with the name of
/// a custom one), counts or the sizes of memory differ, all ranks get CommError::kMismatch, which names the same
/// two ranks and what each of them calls; nothing was sent then but the calls, and the group stays usable. Where they
/// agree, the operation is the inner communicator's, with its errors. An uneven all_to_all compares what each rank
/// sends with what its receiver expects.
///
/// Costs an all_gather of 80 bytes per rank and operation. send and recv are not compared, nor what run() is given for
/// Op::kSend, kRecv or kNone, because not all ranks take part. A barrier with a deadline of its own is not compared
/// either: the deadline counts from its call.
///
/// Thread-safe as its inner communicator.
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
  // `start` launches the operation on the inner communicator; it runs in the body, once the ranks have agreed.
  template <class Start>
  Work check_first(const Call& call, const std::string& note, Start start);

  // Number of operations compared so far: which one it is, for messages.
  std::shared_ptr<std::atomic<std::uint64_t>> compared_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace phalanx
