#include "framework/ps/link.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/comm/part_layout.h"
#include "framework/ps/authentication.h"
#include "framework/ps/greeting.h"

namespace phalanx::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kSpin(50);  // for a reply, before the thread sleeps
constexpr std::uint64_t kSmall = 4096;          // bytes that travel through the connection in any case
constexpr std::uint64_t kWorthAThread = 65536;  // bytes that do not go through a socket at once

Clock::time_point after(Seconds seconds) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds); }

// A server that woke up after we had given up on it would write into this memory: nobody else must ever get it.
void keep_for_good(Link::RequestPtr request) { new Link::RequestPtr(std::move(request)); }

// A part of a tensor that is dense in memory.
at::Tensor bytes_of(const at::Tensor& tensor, std::uint64_t begin, std::uint64_t count) {
  const auto size = static_cast<std::uint64_t>(tensor.element_size());
  return elements_of(tensor, static_cast<std::int64_t>(begin / size), static_cast<std::int64_t>(count / size));
}

}  // namespace

Link::Link(const Options& options) : timeout_(options.timeout), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.valid()) throw Error(std::string("cannot connect to a parameter server: ") + std::strerror(errno));
  connect(options);
  greet(options);
}

Link::~Link() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, request] : in_flight_) {
      if (request->message.header.in_memory()) keep_for_good(request);
    }
  }
  moved_.notify_all();
  wake_poller();
  if (thread_.joinable()) thread_.join();
}

void Link::wake_poller() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));  // a counter of 0 has room for one more
}

void Link::connect(const Options& options) {
  std::vector<std::string> failures;
  for (const auto& address : options.addresses) {
    try {
      channel_ = std::make_unique<Channel>(connect_to(address, options.timeout.count()), [this](const Message& begun) {
        const auto found = in_flight_.find(begun.header.id);
        if (found == in_flight_.end() || begun.header.payload_bytes != found->second->transfer.returned) {
          throw ConnectionError("the server sent values that nobody asked for");
        }
        const Transfer& transfer = found->second->transfer;
        return bytes_of(found->second->tensor, transfer.returned_at, transfer.returned);
      });
      address_ = address;
      return;
    } catch (const Error& error) {
      failures.emplace_back(error.what());
    }
  }
  throw CommError(CommError::Kind::kPeerLost, "cannot reach a parameter server: " + join(failures, "; "));
}

// Before anything else is in flight.
Message Link::converse(Message message) {
  auto request = std::make_shared<Request>();
  request->message = std::move(message);
  request->what = "greeting";
  send(request);
  wait(request);
  return std::move(request->reply);
}

void Link::greet(const Options& options) {
  Greeting greeting{.job = options.job, .client = options.number};
  greeting.incarnation = random_text().substr(0, 16);
  greeting.nonce = random_text();
  const std::string check = random_text();
  if (address_.starts_with("unix:")) {
    greeting.memory = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(check.data()));
    greeting.memory_check = check;
  }
  const auto hello = [](Greeting said) {
    return Message{.header = {.verb = Verb::kHello}, .text = config::dump(said)};
  };
  const std::string nonce = converse(hello(greeting)).text;
  greeting.proof = proof(options.secret, Role::kClient, greeting.nonce, nonce, greeting.identity());
  const Message reply = converse(hello(greeting));
  if (!equal_proofs(reply.text, proof(options.secret, Role::kServer, greeting.nonce, nonce, greeting.identity()))) {
    throw Error("parameter server " + address_ + " does not know the secret");
  }
  reaches_memory_ = reply.header.version == 1;
  if (!reaches_memory_ && greeting.memory != 0) {
    log_info() << "parameter server " << address_
               << " cannot reach the memory of this process: values travel through the socket";
  }
}

void Link::send(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    request->finished = true;
    request->error = broken_;
    return;
  }
  Message sent{.header = request->message.header, .text = request->message.text};
  sent.header.id = request->message.header.id = next_id_++;
  const at::Tensor& tensor = request->tensor;
  const Transfer& transfer = request->transfer;
  const std::uint64_t bytes = std::max(transfer.sent, transfer.returned);
  if (tensor.defined()) {
    sent.header.dtype = static_cast<std::uint8_t>(transfer.dtype);
    sent.header.payload_bytes = transfer.sent;
    if (reaches_memory_ && bytes > kSmall) {
      sent.header.flags |= kInMemory;
      sent.header.address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    } else if (transfer.sent > 0) {
      sent.payload = bytes_of(tensor, 0, transfer.sent);
    }
  }
  request->message.header = sent.header;
  in_flight_.emplace(sent.header.id, request);
  try {
    channel_->send(std::move(sent));
  } catch (const std::exception&) {
    fail_all(std::current_exception());
  }
  const bool streams = !request->message.header.in_memory() && bytes > kWorthAThread;
  if (streams && !thread_.joinable()) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  if (streams) moved_.notify_all();
  if (polling_ && channel_->has_output()) wake_poller();  // it does not know yet that there is something to write
}

bool Link::done(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  if (!request->finished && !polling_) move_on();
  return request->finished;
}

// What can be done without waiting. Under the lock.
void Link::move_on() {
  if (broken_) return;
  try {
    channel_->flush();
    while (auto reply = channel_->receive()) take(*std::move(reply));
  } catch (const std::exception&) {
    fail_all(std::current_exception());
  }
}

void Link::take(Message reply) {
  const auto found = in_flight_.find(reply.header.id);
  if (found == in_flight_.end()) throw ConnectionError("the server answered a request that nobody made");
  const RequestPtr request = found->second;
  in_flight_.erase(found);
  if (reply.header.status == Status::kRefused) {
    request->error =
        std::make_exception_ptr(Error(request->what + ": parameter server " + address_ + " refused it: " + reply.text));
  } else {
    request->done(reply.header);
  }
  request->reply = std::move(reply);
  request->finished = true;
}

void Link::fail_all(const std::exception_ptr& error) {
  std::string why;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    why = cause.what();
  }
  broken_ = std::make_exception_ptr(
      CommError(CommError::Kind::kPeerLost, "parameter server " + address_ + " is lost: " + why));
  for (const auto& [id, request] : in_flight_) {
    request->error = std::make_exception_ptr(
        CommError(CommError::Kind::kPeerLost, request->what + ": parameter server " + address_ + " is lost: " + why));
    request->finished = true;
  }
  in_flight_.clear();
  moved_.notify_all();
}

// One thread waits at the socket, the others for that one.
void Link::poll_once(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
  if (polling_) {
    moved_.wait_until(lock, deadline);
    return;
  }
  std::array<pollfd, 2> ready{
      pollfd{channel_->socket(), static_cast<short>(channel_->has_output() ? POLLIN | POLLOUT : POLLIN), 0},
      pollfd{wake_.get(), POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  polling_ = true;
  lock.unlock();
  const int count = ::poll(ready.data(), ready.size(), static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000)));
  lock.lock();
  polling_ = false;
  if (std::uint64_t woken = 0; ready[1].revents != 0) (void)!::read(wake_.get(), &woken, sizeof(woken));
  if (count > 0) move_on();
  moved_.notify_all();
}

void Link::wait(const RequestPtr& request) {
  const auto deadline = after(timeout_), spin_end = Clock::now() + kSpin;
  std::unique_lock lock(mutex_);
  while (!request->finished) {
    if (Clock::now() < spin_end && !polling_) {
      move_on();
      if (request->finished) break;
      lock.unlock();
      ::sched_yield();
      lock.lock();
      continue;
    }
    if (Clock::now() >= deadline) {
      for (const auto& [id, other] : in_flight_) {
        if (other->message.header.in_memory()) keep_for_good(other);
      }
      fail_all(std::make_exception_ptr(
          Error("no answer to " + request->what + " within " + format_text("%g", timeout_.count()) + " s")));
      request->error = std::make_exception_ptr(CommError(
          CommError::Kind::kTimeout, request->what + ": parameter server " + address_ + " did not answer within " +
                                         format_text("%g", timeout_.count()) + " s"));
      break;
    }
    poll_once(lock, deadline);
  }
  if (const auto error = std::exchange(request->error, nullptr)) std::rethrow_exception(error);
}

// The client's own thread: moves what travels through the connection while nobody waits.
void Link::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (in_flight_.empty()) {
      moved_.wait(lock, [this] { return stopping_ || !in_flight_.empty(); });
    } else {
      poll_once(lock, after(Seconds(1)));
    }
  }
}

}  // namespace phalanx::ps
