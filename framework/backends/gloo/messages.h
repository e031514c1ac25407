// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/backends/gloo/group.h"
#include "framework/backends/gloo/loopback.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::gloo {

/// Sends and receives of one rank in one group. Gloo's thread moves them, even if no thread of the program waits.
///
/// A message of up to kFirstBytes is one message of Gloo: the number of bytes, and then the bytes. A longer one is two
/// messages: the number of bytes, and then the bytes directly from tensor to tensor. So a receiver that expects another
/// number of bytes finds out, and takes the message anyway, so that the sender can go on. A send is complete when the
/// receiver has asked for it and the bytes are on their way.
///
/// Thread-safe. Works may outlive it.
class Messages : public std::enable_shared_from_this<Messages> {
 public:
  static constexpr std::size_t kFirstBytes = 4096;

  Messages(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue,
           std::shared_ptr<FlightRecorder::Group> record);
  ~Messages();

  Work send(at::Tensor tensor, const Call& call);
  Work recv(at::Tensor tensor, const Call& call);

 private:
  class Message;
  class Sending;
  class Receiving;
  class SelfSending;
  class SelfReceiving;
  class State;
  struct Drain;

  // Identifies the second part of message `number` between this rank and `peer` with `tag`.
  struct Route {
    int peer = 0;
    int tag = 0;
    std::uint64_t number = 0;

    std::uint64_t first_slot() const;
    std::uint64_t rest_slot(std::size_t bytes) const;
  };
  using Numbers = std::map<std::pair<int, int>, std::uint64_t>;

  Work start(std::unique_ptr<Message> message);
  void drain(const Route& route, std::size_t bytes);

  std::shared_ptr<Group> group_;
  std::shared_ptr<OperationQueue> queue_;
  std::shared_ptr<FlightRecorder::Group> record_;
  Loopback loopback_;
  std::mutex mutex_;  // held while a message is posted, so that messages are posted in the order of their numbers
  Numbers sent_, received_;
  std::list<Drain> drains_;
};

}  // namespace phalanx::gloo
