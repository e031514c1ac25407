// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/connector.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/ps/protocol/greeting.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kLeastForMember(1);  // the least time for a server to say whether it leads
constexpr std::chrono::milliseconds kBetweenFirstAttempts(100);

}  // namespace

Connector::Connector(const LinkOptions& options, Channel::AllocatePayload allocate_payload)
    : options_(options), incarnation_(random_text().substr(0, 16)), allocate_payload_(std::move(allocate_payload)) {}

HandshakeResult Connector::connect_first() {
  const auto begin = Clock::now(), deadline = after(options_.timeout);
  bool logged = false;
  while (true) {
    try {
      return connect(begin, deadline);
    } catch (const CannotConnect& error) {
      if (!options_.reconnects() || Clock::now() >= deadline) std::rethrow_exception(options_.lost(error.what()));
      if (!std::exchange(logged, true)) {
        log_warning() << error.what() << "; trying for " << format_text("%g", options_.timeout.count()) << " s";
      }
    } catch (const Error& error) {
      std::rethrow_exception(options_.lost(error.what()));
    }
    std::this_thread::sleep_for(kBetweenFirstAttempts);
  }
}

HandshakeResult Connector::connect(Clock::time_point lost_at, Clock::time_point deadline) {
  Search result = search(false, deadline);
  const bool may_fail_over = options_.replicated() && !result.found;
  if (may_fail_over && (result.leader_has_ended || Clock::now() >= lost_at + duration_of(options_.failover))) {
    result = search(true, deadline);
  }
  if (result.found) return *std::move(result.found);
  const std::string message = "cannot reach a parameter server: " + join(result.failures, "; ");
  if (options_.replicated() && !options_.come_back && result.all_have_ended) throw AllHaveEnded(message);
  if (result.none_answered || options_.replicated()) throw CannotConnect(message);
  throw Error(message);
}

// Finds the first address at which a server proves that it knows the secret, and leads.
Connector::Search Connector::search(bool take_over, Clock::time_point deadline) {
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
    const bool has_ended = try_member(member, greeting, deadline, search);
    if (search.found) {
      leader_ = member;
      return search;
    }
    if (member == leader_) search.leader_has_ended = has_ended;
    search.all_have_ended = search.all_have_ended && has_ended;
  }
  return search;
}

// Tries the addresses of a member. Returns true if the member has ended: nothing listens at any of its addresses.
bool Connector::try_member(std::size_t member, const Greeting& greeting, Clock::time_point deadline, Search& search) {
  bool has_ended = true;
  for (const auto& address : options_.members[member]) {
    try {
      const auto end =
          options_.replicated() ? std::min(deadline, after(std::max(options_.failover, kLeastForMember))) : deadline;
      search.found = greet_server(address, greeting, options_.secret, allocate_payload_, end, stopping_);
      return false;
    } catch (const ConnectionRefused& error) {
      search.failures.emplace_back(error.what());
    } catch (const CannotConnect& error) {
      has_ended = false;
      search.failures.emplace_back(error.what());
    } catch (const Error& error) {
      has_ended = search.none_answered = false;
      search.failures.emplace_back(error.what());
    }
  }
  return has_ended;
}

}  // namespace phalanx::ps
