// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/context.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>
#include <sys/epoll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/backends/gloo/control.h"
#include "framework/base/descriptor.h"

/// Gloo's TCP transport with our own waits. Gloo's waits do not say which rank is missing, go on until the timeout if a
/// peer dies in the middle of a message, and cannot test without blocking. An error that Gloo's thread does not handle
/// ends the process. Gloo's algorithms run on these classes unchanged.
///
/// The classes derive from Gloo's own, and support its versions from 2022-05 (Debian 12) to 2025-09 (Debian 14).
namespace phalanx::gloo {

/// Thrown by waits if peers did not come in time.
struct Absent {
  std::vector<int> ranks;
  double seconds = 0;  // time that the wait took
};

/// Thrown by waits, sends and receives if the connection to a peer is closed.
struct Lost {
  int rank = -1;
  std::string why;
  double seconds = 0;  // time that the wait took
};

class Buffer;

/// Returns the message of an error from Gloo without the file and line of Gloo's source.
std::string text_of(const std::exception& error);

/// A pair that closes its connection on an error that it cannot handle. The arguments of handleEvents() differ between
/// versions of Gloo; `Handle` is its type.
template <class Handle>
class GuardedPair;

template <class... Arguments>
class GuardedPair<void (::gloo::transport::tcp::Pair::*)(Arguments...)> : public ::gloo::transport::tcp::Pair {
 public:
  using Pair::Pair;

  /// Threads that wait can read what arrives: false for versions of Gloo whose events come with other arguments.
  static constexpr bool kPolls = std::is_same_v<std::tuple<Arguments...>, std::tuple<int>>;

  /// Called in Gloo's thread, where no exception may escape. Events before the pair is connected are those of a socket
  /// at which it listens, to which only strangers connect.
  void handleEvents(Arguments... arguments) override {
    if (!is_connected()) return;
    try {
      Pair::handleEvents(arguments...);
    } catch (const std::exception& error) {
      close_after(error);
    }
  }

  /// Between these calls, which nest, threads that wait read what arrives, and Gloo's thread is not woken for it. They
  /// do nothing without kPolls.
  void begin_polling() {
    if constexpr (kPolls) {
      const std::lock_guard lock(m_);
      if (pollers_++ == 0) watch_for(0);
    }
  }
  void end_polling() {
    if constexpr (kPolls) {
      const std::lock_guard lock(m_);
      if (--pollers_ == 0) watch_for(EPOLLIN);
    }
  }

  /// Reads in this thread what has arrived.
  void read_arrived() {
    if constexpr (kPolls) handleEvents(EPOLLIN);
  }

 private:
  // A thread that closes the connection waits for Gloo's thread while it has the lock, so Gloo's thread must not wait
  // for the lock. If it is taken, the next event fails like this one.
  void close_after(const std::exception& error) {
    const std::unique_lock lock(m_, std::try_to_lock);
    if (lock && ex_ == nullptr) signalException(text_of(error));
  }

  // Gloo's thread goes on to write what did not fit into the socket.
  void watch_for(int events) {
    if (!tx_.empty()) events |= EPOLLOUT;
    if (state_ == CONNECTED) device_->registerDescriptor(fd_, events, this);
  }

  bool is_connected() {
    const std::unique_lock lock(m_, std::try_to_lock);  // as in Gloo, which tries again if a thread has the lock
    return lock && state_ == CONNECTED;
  }

  int pollers_ = 0;
};

/// The connection to one peer. It listens nowhere: the socket comes from connect(), which has checked who the peer is.
/// Thread-safe, like Gloo's own pair.
class Link final : public GuardedPair<decltype(&::gloo::transport::tcp::Pair::handleEvents)> {
 public:
  Link(::gloo::transport::tcp::Context* context, ::gloo::transport::tcp::Device* device, int peer,
       std::chrono::milliseconds timeout);

  /// Closes the connection, after all that was sent. Then Gloo's thread calls handleEvents() no more, which it must not
  /// do while a base class is destroyed.
  ~Link() override;

  /// Takes a connected socket. Must be called once, before anything is sent or received.
  void adopt(Descriptor socket);

  /// Returns true if a message from or into this buffer is still in flight on this connection.
  bool holds(const Buffer& buffer);

  /// Returns the reason why the connection is closed, or nothing if it is open.
  std::optional<std::string> closed();

 protected:
  bool write(::gloo::transport::tcp::Op& op) override;  // without SIGPIPE
};

/// The address at which a rank listens for its peers, and the secret that they must know.
struct Endpoint {
  std::string host{};
  std::string secret{};
};

/// The connections of one rank to all others of a group.
class Transport final : public ::gloo::transport::tcp::Context {
 public:
  Transport(std::shared_ptr<::gloo::transport::tcp::Device> device, int rank, int size, Endpoint endpoint)
      : Context(std::move(device), rank, size), endpoint_(std::move(endpoint)) {}

  /// Returns the endpoint of this rank, for the groups that are split from this one.
  const Endpoint& endpoint() const { return endpoint_; }

  /// Returns the meeting point of the ranks after a loss. Set before the group is used.
  const Standing& standing() const { return standing_; }
  void set_standing(Standing standing) { standing_ = std::move(standing); }

  /// A check that all waits call many times a second, by any thread; it may throw to end the wait. Set before the group
  /// is used. Null: there is none.
  const std::function<void()>& check() const { return check_; }
  void set_check(std::function<void()> check) { check_ = std::move(check); }

  Link& link(int peer) { return static_cast<Link&>(*getPair(peer)); }
  const std::shared_ptr<::gloo::transport::tcp::Device>& device() const { return device_; }

  /// Throws Lost if a peer that this buffer needs is gone, or if this process knows that any peer has ended on a host
  /// that is silent (host_lease.h). Throws what check() throws. Ends this process if its own lease is over.
  void throw_if_lost(const Buffer& buffer, double seconds);

  /// Returns the peers that this buffer needs.
  std::vector<int> needed_by(const Buffer& buffer);

  /// Closes all connections. Peers that wait for this rank, and all waits of this rank, get Lost.
  void close(const std::string& why) { signalException(why); }

  std::unique_ptr<::gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, std::size_t bytes) override;

 private:
  Endpoint endpoint_;
  Standing standing_;
  std::function<void()> check_;
};

/// Memory that messages are sent from or received into. It must outlive all posted messages, unless the group is
/// closed.
class Buffer final : public ::gloo::transport::tcp::UnboundBuffer {
 public:
  using UnboundBuffer::recv;  // from any of several ranks
  using UnboundBuffer::UnboundBuffer;

  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void send(int peer, std::uint64_t slot) { send(peer, slot, 0, size); }
  void recv(int peer, std::uint64_t slot) { recv(peer, slot, 0, size); }

  /// Block until one message is complete. Throw Lost, or Absent after `timeout`. For the first fraction of a
  /// millisecond, they read the connections themselves: messages that come soon then need no other thread, whose start
  /// takes longer than a small message.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;

  /// Returns true if the next wait for a received message will return at once. sent() does the same for sent messages.
  bool received();
  bool sent();

 private:
  Transport& transport() const { return static_cast<Transport&>(*context_); }
  template <class Post>
  void post(int peer, const Post& post);
  void poll(const int& completions);
  void await(std::condition_variable& changed, int& completions, std::chrono::milliseconds timeout);
};

/// The context that Gloo's algorithms are called with.
class Context final : public ::gloo::Context {
 public:
  explicit Context(std::shared_ptr<Transport> transport) : ::gloo::Context(transport->rank, transport->size) {
    setTimeout(transport->getTimeout());
    transportContext_ = std::move(transport);
  }
};

}  // namespace phalanx::gloo
