// SPDX-License-Identifier: Apache-2.0
#include "launch/job/invitations.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kInvitationPoll{5};
constexpr std::chrono::milliseconds kAskAgain{100};

// The time after which the first rank tries again to invite newcomers. Each attempt costs a step's time.
constexpr std::chrono::seconds kInvitationPause{60};

// A look into the meeting folder may be a round trip to a file server.
constexpr std::chrono::milliseconds kLookForNewcomers{50};

}  // namespace

Invitations::Invitations(const FaultsConfig& faults) {
  const auto folder = environment(kMeetingFolder);
  if (faults.replaces() && folder) meeting_.emplace(*folder);
}

std::vector<Newcomer> Invitations::waiting(const Ranks& ranks) {
  if (!meeting_ || Clock::now() < next_invitation_) return {};
  try {
    auto waiting = meeting_->waiting();
    const MeshShape shape = mesh_shape(ranks.mesh, static_cast<std::int64_t>(ranks.members.size()));
    const auto size = static_cast<std::size_t>(ranks_per_replica(shape));
    waiting.resize(waiting.size() / size * size);
    return waiting;
  } catch (const Error& error) {
    invite_later(error, ranks.first);
    return {};
  }
}

bool Invitations::newcomers_wait(const Ranks& ranks) {
  const auto now = Clock::now();
  if (meeting_ && now >= next_look_) {
    next_look_ = now + kLookForNewcomers;
    newcomers_seen_ = !waiting(ranks).empty();
  }
  return newcomers_seen_;
}

std::optional<Attempt> Invitations::invite(const Ranks& ranks) {
  const auto newcomers = waiting(ranks);
  if (newcomers.empty()) return std::nullopt;
  try {
    return meeting_->invite(ranks.members, newcomers);
  } catch (const Error& error) {
    invite_later(error, ranks.first);
    return std::nullopt;
  }
}

void Invitations::postpone(const Ranks& ranks) {
  invite_later(Error("a rank cannot write to the meeting folder, as its log says; newcomers wait"), ranks.first);
}

void Invitations::note_part(const Attempt& attempt, const Ranks& ranks) {
  try {
    meeting_->note_part(attempt);
  } catch (const Error& error) {
    invite_later(error, ranks.first);
  }
}

// Tells the person once that the folder in which newcomers wait cannot be used.
void Invitations::invite_later(const Error& error, bool first) {
  next_invitation_ = Clock::now() + kInvitationPause;
  log_warning() << "newcomers are not invited: " << error.what();
  if (!first || std::exchange(told_, true)) return;
  print_to_console(std::string("Lost ranks are not replaced at present, and training goes on without them: ") +
                   error.what());
}

bool ask_for_invitation(const MeetingFolder& meeting, const Newcomer& self, const std::function<bool()>& stopped) {
  for (bool told = false; !stopped(); std::this_thread::sleep_for(kAskAgain)) {
    try {
      meeting.wait(self);
      return true;
    } catch (const Error& error) {
      if (std::exchange(told, true)) continue;
      print_to_console("Rank " + std::to_string(self.number) +
                       " cannot ask to take part, and tries again until it can: " + error.what());
    }
  }
  return false;
}

std::optional<Attempt> await_invitation(const MeetingFolder& meeting, int number,
                                        const std::function<bool()>& stopped) {
  while (true) {
    if (auto attempt = meeting.invitation(number)) return attempt;
    if (stopped()) break;
    std::this_thread::sleep_for(kInvitationPoll);
  }
  try {
    meeting.note_end(number);  // the others may be about to invite it
  } catch (const Error& error) {
    log_warning() << "the others are not told that this rank ends: " << error.what();
  }
  return std::nullopt;
}

}  // namespace phalanx
