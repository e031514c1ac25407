// SPDX-License-Identifier: Apache-2.0
// Connecting and reconnecting of a link.
#include <algorithm>
#include <chrono>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/ps/greeting.h"
#include "framework/ps/link.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kLeast(1);  // the least time for a server to say whether it leads
constexpr std::chrono::milliseconds kBetweenAttempts(100);

// The server that came back does not have the state of the former one.
class Refusal : public Error {
 public:
  using Error::Error;
};

}  // namespace

// The returned function is called with the lock held, once the channel belongs to the link.
Channel::MakeRoom Link::room_for_replies() {
  return [this](const Message& begun) {
    const auto found = in_flight_.find(begun.header.id);
    if (found == in_flight_.end() || begun.header.payload_bytes != found->second->transfer.returned) {
      throw ConnectionError("the server sent values that were not requested");
    }
    const Transfer& transfer = found->second->transfer;
    return bytes_of(found->second->tensor, transfer.returned_at, transfer.returned);
  };
}

// Tries all members and finds the first address at which a server proves that it knows the secret, and leads. The lock
// must not be held.
Link::Search Link::search(bool take_over, TimePoint deadline) {
  Search search;
  Greeting greeting{.job = options_.job, .client = options_.number, .incarnation = incarnation_};
  if (options_.replicated()) {
    for (const auto& addresses : options_.members) greeting.chain.push_back(join(addresses, ","));
    greeting.take_over = take_over;
    greeting.failover = options_.failover.count();
  }
  for (std::size_t i = 0; i < options_.members.size(); ++i) {
    const std::size_t member = (leader_ + i + (take_over ? 1 : 0)) % options_.members.size();
    greeting.member = static_cast<std::int64_t>(member);
    bool has_ended = true;
    for (const auto& address : options_.members[member]) {
      try {
        const auto end =
            options_.replicated() ? std::min(deadline, after(std::max(options_.failover, kLeast))) : deadline;
        search.found = greet_server(address, greeting, options_.secret, room_for_replies(), end, stopping_);
        leader_ = member;
        return search;
      } catch (const ConnectionRefused& error) {
        search.failures.emplace_back(error.what());
      } catch (const CannotConnect& error) {
        has_ended = false;
        search.failures.emplace_back(error.what());
      } catch (const Error& error) {
        has_ended = search.nobody_there = false;
        search.failures.emplace_back(error.what());
      }
    }
    if (member == leader_) search.leader_has_ended = has_ended;
  }
  return search;
}

// Makes one attempt. The lock must not be held.
Greeted Link::connect(TimePoint deadline) {
  Search found = search(false, deadline);
  const bool may_fail_over = options_.replicated() && !found.found;
  if (may_fail_over && (found.leader_has_ended || Clock::now() >= lost_at_ + duration_of(options_.failover))) {
    found = search(true, deadline);
  }
  if (found.found) return *std::move(found.found);
  const std::string message = "cannot reach a parameter server: " + join(found.failures, "; ");
  if (found.nobody_there || options_.replicated()) throw CannotConnect(message);
  throw Error(message);
}

// Repeats the attempt, since external servers may be started after their clients.
Greeted Link::connect_first() {
  const auto deadline = after(options_.timeout);
  bool told = false;
  while (true) {
    try {
      return connect(deadline);
    } catch (const CannotConnect& error) {
      if (options_.retry <= Seconds(0) || Clock::now() >= deadline) std::rethrow_exception(lost(error.what()));
      if (!std::exchange(told, true)) {
        log_warning() << error.what() << "; trying for " << format_text("%g", options_.timeout.count()) << " s";
      }
    } catch (const Error& error) {
      std::rethrow_exception(lost(error.what()));
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

// Starts to use a new connection. The lock must be held, unless the link is still being constructed.
void Link::go_on_with(Greeted greeted) {
  channel_ = std::move(greeted.channel);
  address_ = greeted.address;
  reaches_memory_ = greeted.reaches_memory;
  start_ = greeted.start;
  heard_at_ = Clock::now();
  ping_ = nullptr;
}

// Handles a broken connection. The lock must be held.
void Link::lose(const std::exception_ptr& error) {
  if (options_.retry <= Seconds(0) || stopping_) return fail_all(error);
  log_warning() << "parameter server " << address_ << " is lost (" << what_of(error) << "): connecting again for "
                << format_text("%g", options_.retry.count()) << " s";
  channel_.reset();
  lost_at_ = Clock::now();
  give_up_at_ = std::min(give_up_at_, after(options_.retry));
  start_thread();
  moved_.notify_all();
}

// Pings the server if necessary. Silence alone proves nothing: a connection to a host that has died does not break, and
// a server that waits for other clients answers late. The lock must be held.
void Link::look_whether_it_lives() {
  const auto now = Clock::now();
  const auto failover = duration_of(options_.failover);
  if (!channel_ || now - heard_at_ < failover / 2) return;
  if (ping_ && ping_->finished) ping_ = nullptr;
  if (ping_ && now - pinged_at_ >= failover) {
    lose(std::make_exception_ptr(
        Error("it has not answered for " + format_text("%g", Seconds(now - heard_at_).count()) + " s")));
  } else if (!ping_) {
    ping_ = std::make_shared<Request>();
    ping_->message.header.verb = Verb::kPing;
    ping_->message.header.id = next_id_++;
    ping_->what = "check that it is alive";
    pinged_at_ = now;
    in_flight_.emplace(ping_->message.header.id, ping_);
    try {
      transmit(ping_);
    } catch (const std::exception&) {
      lose(std::current_exception());
    }
  }
}

// Makes one attempt to reconnect. Runs in the link's own thread.
void Link::reconnect(std::unique_lock<std::mutex>& lock) {
  auto known = tables_;
  std::int64_t lost = 0;
  const auto deadline = options_.replicated() ? give_up_at_ : std::min(give_up_at_, after(kAttempt));
  const auto start = start_;
  lock.unlock();
  std::optional<Greeted> greeted;
  std::exception_ptr error, final;
  try {
    greeted = connect(deadline);
    if (greeted->start != start) ask_for_versions(*greeted, known, lost, deadline);
  } catch (const Refusal&) {
    final = std::current_exception();
  } catch (const std::exception&) {
    greeted.reset();
    error = std::current_exception();
  }
  lock.lock();
  if (final) return fail_all(final);
  if (!greeted) {
    if (Clock::now() >= give_up_at_) {
      fail_all(std::make_exception_ptr(
          Error("it has not come back within " + format_text("%g", options_.retry.count()) + " s: " + what_of(error))));
    } else {
      moved_.wait_for(lock, kBetweenAttempts, [this] { return stopping_.load(); });
    }
    return;
  }
  for (const auto& [number, table] : known) {
    if (const auto found = tables_.find(number); found != tables_.end()) found->second.version = table.version;
  }
  lost_updates_ += lost;
  if (lost > 0) {
    log_warning() << "parameter server " << greeted->address << " has resumed from a checkpoint: " << lost
                  << " acknowledged updates are lost";
  }
  go_on_with(*std::move(greeted));
  connected_again_at_ = Clock::now();
  log_info() << "parameter server " << address_ << " is back: " << in_flight_.size() << " requests are sent again";
  try {
    for (const auto& [id, request] : in_flight_) {
      if (request->update.defined()) bytes_of(request->tensor, 0, request->transfer.sent).copy_(request->update);
      transmit(request);
    }
  } catch (const std::exception&) {
    lose(std::current_exception());
  }
  moved_.notify_all();
}

// Asks for the versions of all tables. Throws Refusal if the server does not have one of the tables.
void Link::ask_for_versions(Greeted& greeted, std::map<std::uint32_t, Known>& known, std::int64_t& lost,
                            TimePoint deadline) {
  for (auto& [number, table] : known) {
    const Message reply =
        converse(*greeted.channel, {.header = {.verb = Verb::kVersion, .table = number}, .text = table.name}, deadline,
                 stopping_);
    if (reply.header.status == Status::kRefused) {
      throw Refusal("it was restarted without a checkpoint that holds table \"" + table.name + "\": " + reply.text);
    }
    lost += std::max<std::int64_t>(0, table.version - reply.header.version);
    table.version = reply.header.version;
  }
}

}  // namespace phalanx::ps
