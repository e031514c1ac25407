// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store_client.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "framework/comm/launch/host_network.h"
#include "framework/comm/store/polling.h"
#include "framework/comm/store/store_address.h"
#include "framework/comm/store/store_protocol.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kConnect{10};  // for one attempt; not every address of a host needs to answer
constexpr Seconds kGrace{1};     // for an answer, beyond the time that a get() may wait for its key

struct Reply {
  ReplyHeader header{};
  std::string value{};
};

// Exchanges proofs with the server. Throws CommError: kSystem if the two ends do not know the same secret, another kind
// if a new attempt may succeed.
void greet_store(TimedStream& stream, const std::string& secret, TimedStream::Deadline deadline) {
  const auto result = greet(stream, kStoreHandshake, secret, "", deadline);
  if (result == HandshakeResult::kRefused) {
    throw CommError(CommError::Kind::kSystem,
                    "refused, since this rank's secret differs from that of rank 0; give all ranks of the job the same "
                    "(PHALANX_JOB_SECRET or PHALANX_JOB_SECRET_FILE)");
  }
  if (result == HandshakeResult::kImpostor) {
    throw CommError(
        CommError::Kind::kSystem,
        "the process that listens there does not know this job's secret (PHALANX_JOB_SECRET); check that the "
        "address (MASTER_ADDR, MASTER_PORT) is that of rank 0");
  }
}

class Connecting {
 public:
  Connecting(const std::string& name, const std::string& host, int port, const std::string& secret, Seconds timeout)
      : name_(name), host_(host), address_(with_port(host, port)), secret_(secret), timeout_(timeout) {}

  TimedStream connected() {
    using std::chrono::milliseconds;
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
    for (milliseconds nap{5}; true; nap = std::min(nap * 3 / 2, milliseconds(250))) {
      if (auto stream = attempt(deadline)) return *std::move(stream);
      if (Clock::now() + nap >= deadline) give_up();
      std::this_thread::sleep_for(nap);
    }
  }

 private:
  std::optional<TimedStream> attempt(TimedStream::Deadline deadline) {
    reached_ = false;
    try {
      const Seconds left = std::clamp<Seconds>(deadline - Clock::now(), Seconds(0), kConnect);
      TimedStream stream(connect_to(address_, left.count()));
      reached_ = true;
      greet_store(stream, secret_, deadline);
      return stream;
    } catch (const CommError& error) {
      if (error.kind() == CommError::Kind::kSystem) {
        throw CommError(CommError::Kind::kSystem, name_ + ": " + error.what());
      }
      why_ = error.what();
    } catch (const Error& error) {
      why_ = error.what();
    }
    return {};
  }

  [[noreturn]] void give_up() const {
    if (reached_) {
      throw CommError(CommError::Kind::kTimeout,
                      name_ + ": waited " + in_seconds(timeout_) +
                          ", but the process that listens there does not answer as the " +
                          "store of a job with a secret (" + why_ + "); check that the address (MASTER_ADDR, " +
                          "MASTER_PORT) is that of rank 0 and that rank 0 has the secret, too (PHALANX_JOB_SECRET)");
    }
    if (const auto no_address = why_unresolved(host_); !no_address.empty()) {
      throw CommError(CommError::Kind::kSystem, unresolved(name_, host_, no_address));
    }
    throw CommError(CommError::Kind::kTimeout, unreachable(name_, host_, why_));
  }

  const std::string name_, host_, address_, secret_;
  const Seconds timeout_;
  bool reached_ = false;  // the last attempt made a connection
  std::string why_{};     // reason why it failed
};

class StoreClient final : public Store {
 public:
  StoreClient(std::string name, TimedStream stream, Seconds timeout)
      : name_(std::move(name)), stream_(std::move(stream)), timeout_(timeout) {}

  void set(const std::string& key, const std::string& value) override {
    if (value.size() > kMaxValueBytes) {
      refuse("set", key,
             "the value has " + std::to_string(value.size()) + " bytes; at most " + std::to_string(kMaxValueBytes) +
                 " are allowed");
    }
    exchange("set", {.verb = StoreVerb::kSet, .argument = static_cast<std::int64_t>(value.size())}, key, value);
  }

  std::string get(const std::string& key) override {
    Reply reply;
    const auto there = [&] {
      reply = exchange("get", {.verb = StoreVerb::kGet}, key);
      return reply.header.status == StoreStatus::kDone;
    };
    if (poll_until(there, timeout_)) return std::move(reply.value);
    throw CommError(CommError::Kind::kTimeout,
                    describe("get", key) + ": waited " + in_seconds(timeout_) + ", but no rank has set it");
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const auto reply = exchange("add", {.verb = StoreVerb::kAdd, .argument = amount}, key).header;
    if (reply.status == StoreStatus::kNotANumber) refuse("add", key, "its value is not a number");
    return reply.result;
  }

 private:
  std::string describe(const char* operation, const std::string& key) const {
    return std::string(operation) + " \"" + key + "\" of " + name_;
  }

  [[noreturn]] void refuse(const char* operation, const std::string& key, const std::string& why) const {
    throw CommError(CommError::Kind::kSystem, describe(operation, key) + ": " + why);
  }

  // Sends a request and receives the reply. If that fails half way, the stream cannot be used again. Threads that wait
  // for their turn then fail at once, so that none of them waits much longer than one deadline.
  Reply exchange(const char* operation, RequestHeader header, const std::string& key, const std::string& value = {}) {
    if (key.size() > kMaxKeyBytes) {
      refuse(operation, key.substr(0, 64) + "...", "a key has at most " + std::to_string(kMaxKeyBytes) + " bytes");
    }
    header.key_bytes = static_cast<std::uint32_t>(key.size());
    std::string request(reinterpret_cast<const char*>(&header), sizeof(header));
    request += key;
    request += value;
    try {
      const std::lock_guard lock(mutex_);
      const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_ + kGrace);
      if (!stream_) throw CommError(CommError::Kind::kPeerLost, "the connection was closed");
      auto stream = std::exchange(stream_, {});
      auto reply = exchange(*stream, request, header.verb, deadline);
      stream_ = std::move(stream);
      return reply;
    } catch (const CommError& error) {
      if (error.kind() == CommError::Kind::kTimeout) {
        throw CommError(error.kind(), describe(operation, key) + ": waited " + in_seconds(timeout_) +
                                          ", but the store does not answer");
      }
      throw CommError(error.kind(), describe(operation, key) + ": the connection is lost (" + error.what() + ")");
    }
  }

  static Reply exchange(TimedStream& stream, const std::string& request, StoreVerb verb,
                        TimedStream::Deadline deadline) {
    Reply reply;
    stream.send(request, deadline);
    const std::string header = stream.receive(sizeof(ReplyHeader), deadline);
    std::memcpy(&reply.header, header.data(), sizeof(ReplyHeader));
    if (verb == StoreVerb::kGet && reply.header.status == StoreStatus::kDone) {
      const auto bytes = static_cast<std::size_t>(reply.header.result);
      if (bytes > kMaxValueBytes) throw CommError(CommError::Kind::kPeerLost, "received a malformed reply");
      reply.value = stream.receive(bytes, deadline);
    }
    return reply;
  }

  const std::string name_;
  std::mutex mutex_;
  std::optional<TimedStream> stream_;  // none after an exchange has failed
  const Seconds timeout_;
};

}  // namespace

StorePtr connect_to_store(const std::string& name, const std::string& host, int port, const std::string& secret,
                          Seconds timeout) {
  auto stream = Connecting(name, host, port, secret, timeout).connected();
  return std::make_shared<StoreClient>(name, std::move(stream), timeout);
}

}  // namespace phalanx
