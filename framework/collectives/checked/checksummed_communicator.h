// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator that checks that each message arrives as it was sent. The sender computes the CRC-32C of each message
/// and sends it right after the message; the receiver computes it again. If they differ, the receiver's Work::wait()
/// throws CommError::kSystem, which names both ranks, the operation and its sequence number in the group. Messages of
/// send() and recv() are numbered separately on each rank.
///
/// Collectives on CPU tensors consist of such messages: they are performed by the direct algorithms
/// (framework/collectives/direct.h), which combine in rank order, rather than by the inner communicator. Every part of
/// a sum that travels is therefore checked, which a comparison of the results would not do. Not checked are barriers,
/// memory of allocate_shared(), which ranks read without messages, and tensors on devices.
///
/// The cost is a message of 8 bytes for each message, two passes over the data, and the loss of the faster collectives
/// of the inner communicator, such as reductions in shared memory.
///
/// Thread-safe if the inner communicator is.
class ChecksummedCommunicator final : public Decorator {
 public:
  explicit ChecksummedCommunicator(CommunicatorPtr inner);

  bool offers(NativeWay way) const override { return way == NativeWay::kDefault; }

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  std::atomic<std::uint64_t> collectives_{0}, messages_{0};  // launched so far; the latter differ between ranks
};

/// Flips a bit of the next message that the rank with this recorder (Communicator::recorder()) sends through a
/// ChecksummedCommunicator, after its checksum was computed. For tests. Thread-safe.
void damage_next_message(const FlightRecorder& sender);

}  // namespace phalanx
