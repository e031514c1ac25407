// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/transport.h"

#if __has_include(<gloo/transport/tcp/socket.h>)
#include <gloo/transport/tcp/error.h>
#include <gloo/transport/tcp/socket.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "framework/base/no_sigpipe.h"
#include "framework/comm/launch/host_lease.h"

namespace phalanx::gloo {
namespace {

namespace tcp = ::gloo::transport::tcp;
using Clock = std::chrono::steady_clock;

// The interval at which a wait checks for events that Gloo does not report.
constexpr std::chrono::milliseconds kLook{50};

// The time for which a wait polls. A round trip between two hosts takes 10 to 50 us.
constexpr std::chrono::microseconds kPoll{200};

// A thread that has given way for so long had to wait for one that computes, not for one that handles a message.
constexpr std::chrono::microseconds kOtherThread{50};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool names(const ::gloo::WeakNonOwningPtr<tcp::UnboundBuffer>& name, const Buffer& buffer) {
  const ::gloo::NonOwningPtr<tcp::UnboundBuffer> named(name);
  return named.operator->() == static_cast<const tcp::UnboundBuffer*>(&buffer);
}

}  // namespace

std::string text_of(const std::exception& error) {
  const std::string text = error.what();
  const auto end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

#if __has_include(<gloo/transport/tcp/socket.h>)

// Gloo from 2023 on: a device listens for all of its pairs, and gives them their sockets.
Link::Link(tcp::Context* context, tcp::Device* device, int peer, std::chrono::milliseconds timeout)
    : GuardedPair(context, device, peer, timeout) {}

void Link::adopt(Descriptor socket) {
  connectCallback(std::make_shared<tcp::Socket>(socket.release()), tcp::Error::kSuccess);
}

#else

// Gloo until 2022: each pair listens for one connection. Closing its socket removes it from Gloo's loop, too.
Link::Link(tcp::Context* context, tcp::Device* device, int peer, std::chrono::milliseconds timeout)
    : GuardedPair(context, device, peer, timeout) {
  const std::lock_guard lock(m_);
  ::close(std::exchange(fd_, -1));
  state_ = INITIALIZING;
}

void Link::adopt(Descriptor socket) {
  const std::lock_guard lock(m_);
  fd_ = socket.release();
  handleConnected();
}

#endif

Link::~Link() {
  const std::lock_guard lock(m_);
  if (state_ != CLOSED) Pair::changeState(CLOSED);
}

bool Link::holds(const Buffer& buffer) {
  const std::lock_guard lock(m_);
  const auto is_it = [&](const auto& operation) { return names(std::get<0>(operation), buffer); };
  for (const auto* pending : {&localPendingSend_, &localPendingRecv_}) {
    for (const auto& [slot, operations] : *pending) {
      if (std::ranges::any_of(operations, is_it)) return true;
    }
  }
  return names(rx_.ubuf, buffer) || std::ranges::any_of(tx_, [&](const auto& op) { return names(op.ubuf, buffer); });
}

std::optional<std::string> Link::closed() {
  const std::lock_guard lock(m_);
  if (state_ != CLOSED) return std::nullopt;
  if (ex_ == nullptr) return "connection closed";
  try {
    std::rethrow_exception(ex_);
  } catch (const std::exception& error) {
    return text_of(error);
  }
}

bool Link::write(tcp::Op& op) {
  const NoSigpipe guard;
  return Pair::write(op);
}

void Transport::throw_if_lost(const Buffer& buffer, double seconds) {
  end_without_lease();
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    if (is_known_to_have_ended(standing_.number_of(peer))) throw Lost{peer, "the launcher says so", seconds};
    if (auto why = link(peer).closed(); why && link(peer).holds(buffer)) throw Lost{peer, *std::move(why), seconds};
  }
  if (check_) check_();
}

std::vector<int> Transport::needed_by(const Buffer& buffer) {
  std::vector<int> peers;
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank && link(peer).holds(buffer)) peers.push_back(peer);
  }
  return peers;
}

std::unique_ptr<::gloo::transport::Pair>& Transport::createPair(int peer) {
  return pairs_[peer] = std::make_unique<Link>(this, device_.get(), peer, getTimeout());
}

std::unique_ptr<::gloo::transport::UnboundBuffer> Transport::createUnboundBuffer(void* data, std::size_t bytes) {
  return std::make_unique<Buffer>(shared_from_this(), data, bytes);
}

void Buffer::send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  post(peer, [&] { UnboundBuffer::send(peer, slot, offset, bytes); });
}

void Buffer::recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  post(peer, [&] { UnboundBuffer::recv(peer, slot, offset, bytes); });
}

template <class Post>
void Buffer::post(int peer, const Post& post) {
  try {
    post();
  } catch (const std::exception&) {
    if (auto why = transport().link(peer).closed()) throw Lost{peer, *std::move(why), 0};
    throw;
  }
}

bool Buffer::waitRecv(int* rank, std::chrono::milliseconds timeout) {
  await(recvCv_, recvCompletions_, timeout);
  if (rank != nullptr) *rank = recvRank_;
  return true;
}

bool Buffer::waitSend(int* rank, std::chrono::milliseconds timeout) {
  await(sendCv_, sendCompletions_, timeout);
  if (rank != nullptr) *rank = sendRank_;
  return true;
}

// Gives way to other threads, such as those of ranks that share the core, and stops as soon as one of them has computed
// there: its message would come later if this thread went on.
void Buffer::poll(const int& completions) {
  const auto is_ready = [&] {
    const std::lock_guard lock(m_);
    return completions > 0 || ex_ != nullptr;
  };
  if (!Link::kPolls || is_ready()) return;
  const auto peers = transport().needed_by(*this);
  for (const int peer : peers) transport().link(peer).begin_polling();
  const auto end = Clock::now() + kPoll;
  for (auto waited = kPoll.zero(); !is_ready() && waited < kOtherThread;) {
    for (const int peer : peers) transport().link(peer).read_arrived();
    const auto before = Clock::now();
    if (before >= end) break;
    std::this_thread::yield();
    waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - before);
  }
  for (const int peer : peers) transport().link(peer).end_polling();
}

// When a connection closes, Gloo reports the messages that were posted on it, but not a message that was partly
// transferred.
void Buffer::await(std::condition_variable& changed, int& completions, std::chrono::milliseconds timeout) {
  const auto start = Clock::now();
  if (timeout == ::gloo::transport::kUnsetTimeout) timeout = context_->getTimeout();
  const auto deadline = start + timeout;
  bool reported = false;
  poll(completions);
  std::unique_lock lock(m_);
  while (completions == 0) {
    const auto next_look = std::min(deadline, Clock::now() + kLook);
    changed.wait_until(lock, next_look, [&] { return completions > 0 || (ex_ != nullptr && !reported); });
    if (completions > 0) break;
    reported = ex_ != nullptr;
    lock.unlock();  // Gloo's thread takes this lock while it holds the lock of a connection
    transport().throw_if_lost(*this, seconds_since(start));
    if (Clock::now() >= deadline) throw Absent{transport().needed_by(*this), seconds_since(start)};
    lock.lock();
  }
  --completions;
}

bool Buffer::received() {
  const std::lock_guard lock(m_);
  return recvCompletions_ > 0;
}

bool Buffer::sent() {
  const std::lock_guard lock(m_);
  return sendCompletions_ > 0;
}

}  // namespace phalanx::gloo
