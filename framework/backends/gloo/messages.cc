// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/messages.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <optional>
#include <string>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/comm/operations/abandonable.h"

namespace phalanx::gloo {
namespace {

// The first bytes of slots. Slots of Gloo's own algorithms begin with 1 to 8.
constexpr std::uint64_t kFirst = 0x41, kRest = 0x42;
constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
constexpr std::size_t kShort = Messages::kFirstBytes - kHeaderBytes;

}  // namespace

// Messages of one slot arrive in the order of posting, which Gloo keeps.
std::uint64_t Messages::Route::first_slot() const { return kFirst << 56 | static_cast<std::uint64_t>(tag); }

// Includes the number and the size of the message, so that it matches no message with another number or size.
std::uint64_t Messages::Route::rest_slot(std::size_t bytes) const {
  return kRest << 56 | mix(mix(static_cast<std::uint64_t>(tag), number), bytes) >> 8;
}

/// One message, on one side.
class Messages::Message {
 public:
  Message(Messages& owner, at::Tensor tensor, const Call& call)
      : owner_(owner.shared_from_this()), call_(call), tensor_(std::move(tensor)), bytes_(tensor_.nbytes()) {}
  virtual ~Message() = default;

  // Starts the message. Errors are thrown when it is waited for.
  void start() {
    ticket_ = owner_->queue_->recorder().launched(*owner_->record_, call_);
    try {
      post();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void wait() {
    const std::lock_guard lock(mutex_);
    if (!complete_) owner_->queue_->recorder().started(ticket_);
    complete();
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

  // Breaks the group, unless the message is complete. Then it fails without waiting.
  void abandon() {
    if (poll()) return;
    group().abandon(abandoned(name() + " of " + group().describe()).what());
    const std::lock_guard lock(mutex_);
    complete();
  }

  bool poll() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;  // another thread is waiting
    if (!complete_ && (error_ || ready())) complete();
    return complete_;
  }

 protected:
  virtual void post() = 0;
  virtual bool ready() = 0;  // finish() will not block
  virtual void finish() = 0;

  Group& group() const { return *owner_->group_; }
  Route& route() { return route_; }
  std::byte* data() const { return static_cast<std::byte*>(tensor_.data_ptr()); }
  std::size_t bytes() const { return bytes_; }
  bool is_short() const { return bytes_ <= kShort; }
  bool peer_is_gone() const { return group().transport().link(call_.peer).closed().has_value(); }

  void open_buffers(std::size_t first_bytes) {
    payload_.resize(first_bytes);
    auto transport = group().transport().shared_from_this();
    first_.emplace(transport, payload_.data(), first_bytes);
    if (!is_short()) rest_.emplace(transport, data(), bytes());
  }

  [[noreturn]] void mismatch(std::uint64_t sent) const {
    throw CommError(CommError::Kind::kMismatch, name() + " of " + group().describe() + ": expected " +
                                                    std::to_string(bytes_) + " bytes, but rank " +
                                                    std::to_string(call_.peer) + " sent " + std::to_string(sent));
  }

  Messages& owner() const { return *owner_; }
  const Call& call() const { return call_; }

  std::vector<std::byte> payload_;      // the first part
  std::optional<Buffer> first_, rest_;  // as posted; empty for a message to this rank

 private:
  std::string name() const { return describe(call_) + " #" + std::to_string(ticket_.sequence); }

  void complete() {
    if (std::exchange(complete_, true)) return;
    try {
      group().guard([&] { return name(); },
                    [&] {
                      if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
                      finish();
                    });
    } catch (...) {
      error_ = std::current_exception();
    }
    owner_->queue_->recorder().finished(ticket_, error_ == nullptr);
    rest_.reset();  // blocks until Gloo's thread no longer uses the tensor
    tensor_.reset();
  }

  std::shared_ptr<Messages> owner_;
  Call call_;
  at::Tensor tensor_;
  std::size_t bytes_;
  Route route_;
  FlightRecorder::Ticket ticket_;
  std::mutex mutex_;
  std::exception_ptr error_;
  bool complete_ = false;
};

class Messages::Sending final : public Message {
 public:
  using Message::Message;

 private:
  void post() override {
    const std::uint64_t header = bytes();
    open_buffers(kHeaderBytes + (is_short() ? bytes() : 0));
    std::memcpy(payload_.data(), &header, kHeaderBytes);
    if (is_short() && bytes() > 0) std::memcpy(payload_.data() + kHeaderBytes, data(), bytes());
    const std::lock_guard lock(owner().mutex_);
    route() = {call().peer, call().tag, owner().sent_[{call().peer, call().tag}]++};
    first_->send(call().peer, route().first_slot());
    if (rest_) rest_->send(call().peer, route().rest_slot(bytes()));
  }

  bool ready() override { return (first_->sent() && (!rest_ || rest_->sent())) || peer_is_gone(); }

  void finish() override {
    first_->waitSend(nullptr, group().timeout());
    if (rest_) rest_->waitSend(nullptr, group().timeout());
  }
};

class Messages::Receiving final : public Message {
 public:
  using Message::Message;

 private:
  void post() override {
    open_buffers(kFirstBytes);
    const std::lock_guard lock(owner().mutex_);
    route() = {call().peer, call().tag, owner().received_[{call().peer, call().tag}]++};
    first_->recv(call().peer, route().first_slot());
    if (rest_) rest_->recv(call().peer, route().rest_slot(bytes()));
  }

  bool ready() override {
    return (first_->received() && (!rest_ || sent_bytes() != bytes() || rest_->received())) || peer_is_gone();
  }

  void finish() override {
    first_->waitRecv(nullptr, group().timeout());
    if (const auto sent = sent_bytes(); sent != bytes()) {
      if (sent > kShort) owner().drain(route(), sent);
      mismatch(sent);
    }
    if (rest_) {
      rest_->waitRecv(nullptr, group().timeout());
    } else if (bytes() > 0) {
      std::memcpy(data(), payload_.data() + kHeaderBytes, bytes());
    }
  }

  std::uint64_t sent_bytes() const {
    std::uint64_t sent = 0;
    std::memcpy(&sent, payload_.data(), kHeaderBytes);
    return sent;
  }
};

class Messages::SelfSending final : public Message {
 public:
  using Message::Message;

 private:
  void post() override { owner().loopback_.send(call().tag, {data(), data() + bytes()}); }
  bool ready() override { return true; }
  void finish() override {}
};

class Messages::SelfReceiving final : public Message {
 public:
  using Message::Message;

 private:
  void post() override { from_self_ = owner().loopback_.recv(call().tag); }
  bool ready() override { return from_self_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  void finish() override {
    if (from_self_.wait_for(group().timeout()) != std::future_status::ready) {
      throw Absent{{group().rank()}, Seconds(group().timeout()).count()};
    }
    const auto payload = from_self_.get();
    if (payload.size() != bytes()) mismatch(payload.size());
    if (bytes() > 0) std::memcpy(data(), payload.data(), bytes());
  }

  std::future<Loopback::Payload> from_self_;
};

// The Work of a message. done() is const, but it can make progress.
class Messages::State final : public Work::State, public Abandonable {
 public:
  explicit State(std::unique_ptr<Message> message) : message_(std::move(message)) {}
  void wait() override { message_->wait(); }
  bool done() const override { return message_->poll(); }
  void abandon() override { message_->abandon(); }

 private:
  std::unique_ptr<Message> message_;
};

// Receives a message of a size that its receiver did not expect.
struct Messages::Drain {
  Drain(Transport& transport, std::size_t bytes)
      : payload(bytes), buffer(transport.shared_from_this(), payload.data(), bytes) {}

  std::vector<std::byte> payload;
  Buffer buffer;
};

Messages::Messages(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue,
                   std::shared_ptr<FlightRecorder::Group> record)
    : group_(std::move(group)), queue_(std::move(queue)), record_(std::move(record)) {}

Messages::~Messages() = default;

Work Messages::send(at::Tensor tensor, const Call& call) {
  if (call.peer == group_->rank()) return start(std::make_unique<SelfSending>(*this, std::move(tensor), call));
  return start(std::make_unique<Sending>(*this, std::move(tensor), call));
}

Work Messages::recv(at::Tensor tensor, const Call& call) {
  if (call.peer == group_->rank()) return start(std::make_unique<SelfReceiving>(*this, std::move(tensor), call));
  return start(std::make_unique<Receiving>(*this, std::move(tensor), call));
}

Work Messages::start(std::unique_ptr<Message> message) {
  message->start();
  return Work(std::make_shared<State>(std::move(message)));
}

void Messages::drain(const Route& route, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(drains_, [](Drain& drain) { return drain.buffer.received(); });
  drains_.emplace_back(group_->transport(), bytes).buffer.recv(route.peer, route.rest_slot(bytes));
}

}  // namespace phalanx::gloo
