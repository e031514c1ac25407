// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "framework/backends/nccl/group.h"
#include "framework/backends/nccl/message.h"
#include "framework/backends/nccl/own_stream.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// The tag of the host's messages that links exchange. Algorithms of framework/collectives use lower ones.
inline constexpr int kLinkTag = kMaxAnyTag;

/// A sender sends a header for each message through the host's group, in the order in which it calls ncclSend.
struct Header {
  std::int64_t tag = 0, bytes = 0;
};

/// One direction between this rank and a peer: all messages from one of them to the other. It has an NCCL communicator
/// of the two ranks and a stream of its own, so it waits for no other link, and ranks cannot deadlock, in whatever
/// order they send and receive. A thread connects it with the first message, and then hands messages to NCCL.
class MessageLink {
 public:
  struct Setup {
    CommunicatorPtr host;  // carries headers
    int peer = 0;
    int device = 0;
    Seconds timeout{};
  };

  /// `sends`: messages go from this rank to the peer.
  MessageLink(Setup setup, bool sends);
  virtual ~MessageLink() = default;
  MessageLink(const MessageLink&) = delete;
  MessageLink& operator=(const MessageLink&) = delete;

  /// Takes a message. It fails if an earlier one has broken the link.
  void post(const MessagePtr& message);

 protected:
  void start();  // the thread
  void stop();   // once all messages are decided; must be called by the destructor of each derived class

  /// Called by the thread while there are messages. Throws an error that breaks the link.
  virtual void serve() = 0;

  /// Called with the lock held: takes a message out of turn, if it need not wait for serve().
  virtual bool take_at_once(const MessagePtr&) { return false; }

  /// Called with the lock held: adds to the error of a message that the broken link gives up.
  virtual std::string hint() const { return ""; }

  const Setup& setup() const { return setup_; }
  Group& group() const { return *group_; }
  void connect(const ncclUniqueId& id);
  bool is_connected() const { return group_ != nullptr; }

  std::mutex mutex_;
  std::deque<MessagePtr> posted_;  // that are not decided yet

 private:
  void work();
  void break_off(const std::exception_ptr& error);

  Setup setup_;
  Member member_;
  OwnStream stream_;
  std::unique_ptr<Group> group_;  // null: not connected yet
  std::condition_variable changed_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace phalanx::nccl
