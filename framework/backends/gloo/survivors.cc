// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/survivors.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/backends/gloo/connect.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_lease.h"
#include "framework/comm/membership/agreement.h"

namespace phalanx::gloo {
namespace {

using membership::Agreement;
using membership::Certainty;
using Clock = std::chrono::steady_clock;

// The first byte of what members send each other: a message of the agreement, or where a member of a new view listens.
constexpr char kAgreement = 'm', kAddress = 'a';

struct Address {
  std::int64_t view = 0;
  std::string text{};
};

std::string encoded(const Address& address) {
  std::string text(1, kAddress);
  text.append(reinterpret_cast<const char*>(&address.view), sizeof(address.view));
  return text + address.text;
}

[[noreturn]] void lose(const std::string& why) { throw CommError(CommError::Kind::kPeerLost, why); }

// A member that joined the agreement on a view again would have forgotten what it has promised and accepted there.
[[noreturn]] void refuse_second_call(const Group& group, const std::string& failure) {
  const std::string where = "shrink of " + group.describe() + ": ";
  if (failure.empty()) lose(where + "this group has been shrunk before; use the group that the first call returned");
  lose(where + "an earlier call on this group has failed, and it cannot be repeated, because the others rely on what " +
       "this rank has promised them; end this rank. The earlier failure: " + failure);
}

class Survival {
 public:
  explicit Survival(Group& group)
      : group_(group),
        control_(*group.transport().standing().control),
        links_(control_),
        view_(group.transport().standing().view) {}

  std::shared_ptr<Transport> run() {
    for (std::size_t failed_with = 0;;) {  // members of the view that could not connect
      view_ = agree();
      const std::size_t members = view_.members.size();
      if (auto transport = connect_all(/*may_fail=*/members != failed_with)) return transport;
      failed_with = members;
    }
  }

 private:
  // Returns the next view.
  View agree() {
    agreement_.emplace(view_, control_.own);
    addresses_.clear();
    for (const auto& [from, message] : std::exchange(early_, {})) early_or_now(from, message);
    tell_losses();
    send(agreement_->start({}));
    const auto begin = Clock::now();
    auto since = begin;  // when the wait for those that are awaited began
    bool led = agreement_->leads();
    while (!agreement_->commit()) {
      heard_ = false;
      pump();
      tell_losses();
      const auto now = Clock::now();
      const bool leads = agreement_->leads();
      if (leads != std::exchange(led, leads) || (!leads && heard_)) since = now;
      if (agreement_->fenced() || agreement_->commit()) break;
      if (now - begin > 2 * group_.timeout() + kGrace) give_up(now - begin);
      // A member that does not lead waits longer, since its leader waits for others.
      if (now - since <= group_.timeout() * (leads ? 2 : 3) / 2) continue;
      send(agreement_->timeout());
      since = now;
    }
    end_without_lease();
    if (const auto& commit = agreement_->commit()) control_.commits.insert({view_.number, *commit});
    if (!agreement_->commit()) lose(where() + "the others have found that this rank refuses connections");
    if (!agreement_->decision())
      lose(where() + "the others waited " + seconds(group_.timeout()) + " for this rank and have continued without it");
    return agreement_->decision()->view;
  }

  // Returns nothing if a member of the new view is lost before all are connected. Without `may_fail`, throws that
  // error: the same members would try the same again.
  std::shared_ptr<Transport> connect_all(bool may_fail) {
    const auto rank = std::ranges::find(view_.members, control_.own, &phalanx::Member::id) - view_.members.begin();
    const Member member{.group = group_.name() + "/survivors",
                        .rank = static_cast<int>(rank),
                        .size = static_cast<int>(view_.members.size()),
                        .timeout = group_.timeout(),
                        .endpoint = group_.transport().endpoint(),
                        .standing = {.control = group_.transport().standing().control, .view = view_},
                        .check = [this] { check(); },
                        .lasting_check = group_.transport().check()};
    try {
      return connect(member, group_.transport().device(), [this](const std::string& own) { return exchange(own); });
    } catch (const CommError& error) {
      if (!may_fail || !error.secondary()) throw;
      return nullptr;
    }
  }

  // Returns after the others have received this rank's address, because it sends nothing while it dials them.
  std::vector<std::string> exchange(const std::string& own) {
    std::map<std::int64_t, std::uint64_t> sent;
    for (const auto& member : view_.members) {
      sent[member.id] = links_.send(member.id, encoded(Address{.view = view_.number, .text = own}));
    }
    addresses_[control_.own] = own;
    const auto deadline = Clock::now() + group_.timeout();
    std::vector<std::string> addresses;
    for (const auto& member : view_.members) {
      while (!addresses_.contains(member.id) || !links_.has_received(member.id, sent[member.id])) {
        check();
        if (Clock::now() > deadline)
          throw CommError(CommError::Kind::kTimeout,
                          where() + "rank " + std::to_string(member.id) + " does not say where it listens");
      }
      addresses.push_back(addresses_.at(member.id));
    }
    return addresses;
  }

  // Throws if not all members of the new view can be connected any more.
  void check() {
    pump();
    for (const auto& member : view_.members) {
      if (control_.gone.contains(member.id)) lose("a member of the new group has ended");
    }
    for (const auto& [from, message] : early_) {
      if (message.view == view_.number) lose("a member has ended the new group");
    }
  }

  // A host that is silent refuses no connections, but the launcher knows when its ranks have ended.
  void pump() {
    end_without_lease();
    for (std::size_t id = 0; id < control_.numbers.size(); ++id) {
      if (is_known_to_have_ended(control_.numbers[id])) control_.gone.insert(static_cast<std::int64_t>(id));
    }
    links_.pump([this](std::int64_t from, std::string_view text) { receive(from, text); });
  }

  void receive(std::int64_t from, std::string_view text) {
    if (text.starts_with(kAgreement)) return early_or_now(from, message_of(from, text.substr(1)));
    std::int64_t view = 0;
    if (!text.starts_with(kAddress) || text.size() < 1 + sizeof(view) || text.size() > 256) {
      refuse(from, "it is of an unknown kind");
    }
    std::memcpy(&view, text.data() + 1, sizeof(view));
    heard_ = true;
    // An address may come before the decision on its view.
    if (view == agreement_->view().number + 1) addresses_[from] = text.substr(1 + sizeof(view));
  }

  membership::Message message_of(std::int64_t from, std::string_view bytes) const {
    try {
      return membership::decoded(bytes);
    } catch (const CommError& error) {
      refuse(from, error.what());
    }
  }

  [[noreturn]] void refuse(std::int64_t from, const std::string& why) const {
    throw CommError(CommError::Kind::kSystem, where() + "rank " + std::to_string(from) + " has sent a wrong message (" +
                                                  why + "); run the same program on all ranks");
  }

  void early_or_now(std::int64_t from, const membership::Message& message) {
    heard_ = true;
    if (message.view > agreement_->view().number) {
      early_.emplace_back(from, message);
    } else if (message.view == agreement_->view().number) {
      send(agreement_->receive(from, message));
    } else if (const auto past = control_.commits.find(message.view);
               past != control_.commits.end() && message.kind != membership::Message::Kind::kCommit) {
      send({{from, past->second}});
    }
  }

  void tell_losses() {
    for (const auto id : control_.gone) {
      if (!agreement_->ended().contains(id)) send(agreement_->lost(id, Certainty::kCertain));
    }
  }

  void send(const membership::Outgoing& outgoing) {
    for (const auto& [to, message] : outgoing) links_.send(to, kAgreement + membership::encoded(message));
  }

  [[noreturn]] void give_up(Clock::duration waited) const {
    std::vector<std::string> silent;
    for (const auto id : agreement_->silent()) {
      const auto problem = links_.problem(id);
      silent.push_back(std::to_string(id) + (problem.empty() ? "" : " (" + problem + ")"));
    }
    lose(where() + "the others waited " + seconds(group_.timeout()) +
         " for this rank and may have continued without it: rank" + (silent.size() == 1 ? " " : "s ") +
         join(silent, ", ") + " may be alive but did not answer within " + seconds(waited) +
         ", and only more than half of a group may go on without such ranks");
  }

  static std::string seconds(Seconds time) {
    std::ostringstream text;
    text.precision(3);
    text << time.count() << " s";
    return text.str();
  }

  std::string where() const { return "shrink of " + group_.describe() + ": "; }

  static constexpr std::chrono::milliseconds kGrace{100};

  Group& group_;
  Control& control_;
  ControlLinks links_;
  View view_;  // of the group; then the one that was agreed on
  std::optional<Agreement> agreement_;
  std::vector<std::pair<std::int64_t, membership::Message>> early_;  // messages of views to come
  std::map<std::int64_t, std::string> addresses_;                    // of the members of the next view
  bool heard_ = false;                                               // from any member, in the last pump()
};

}  // namespace

std::shared_ptr<Transport> connect_survivors(Group& group) {
  group.abandon("rank " + std::to_string(group.rank()) + " of " + group.name() + " has called shrink");
  const auto& standing = group.transport().standing();
  const auto [call, is_first] = standing.control->calls.try_emplace(standing.view.number);
  if (!is_first) refuse_second_call(group, call->second);
  try {
    return Survival(group).run();
  } catch (const std::exception& error) {
    call->second = error.what();
    throw;
  }
}

}  // namespace phalanx::gloo
