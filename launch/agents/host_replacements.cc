// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/host_replacements.h"

#include <algorithm>

#include "launch/agents/agent.h"
#include "launch/failure/failure.h"
#include "launch/local/print_to_console.h"

namespace phalanx {

bool HostReplacements::takes_part(std::size_t host) const {
  return std::ranges::any_of(ranks_.running(host), [&](int number) { return !waits(number); });
}

bool HostReplacements::anyone_takes_part() const {
  for (std::size_t host = 0; host < ranks_.hosts(); ++host) {
    if (takes_part(host)) return true;
  }
  return false;
}

void HostReplacements::take(const RankNotice& notice) {
  if (!ranks_.is_running(notice.number)) return;
  ranks_.end(notice.number);
  if (notice.lost) replace(notice.number);
}

void HostReplacements::lose(std::size_t host, const std::string& reason, bool host_lost) {
  const auto ended = ranks_.running(host);
  if (host_lost) ranks_.lose(host);
  for (const int number : ended) {
    ranks_.end(number);
    replacements_.notes().note_end(number);
    if (!waits(number)) {
      uncertain_.push_back(number);
      continue;
    }
    mark_lost(options_.log_folder,
              {.rank = number, .host = ranks_.name(host), .message = reason, .time = failure_time()});
    print_to_console("Rank " + std::to_string(number) +
                     ", which was to take the place of a lost one, has failed: " + reason);
    replace(number);
  }
}

void HostReplacements::note_certain(std::size_t host) { replace_those_in(ranks_.all(host)); }

void HostReplacements::look() {
  if (!uncertain_.empty()) replace_those_in(lost_ranks(options_.log_folder));
  replace_unplaced();
}

// Plans no more processes than there is room for, beyond those that are expected.
void HostReplacements::replace_unplaced() {
  while (!unplaced_.empty() && ranks_.free_slots() > replacements_.pending() &&
         ranks_.running() + expected() < most()) {
    const auto [number, lost_at] = unplaced_.front();
    unplaced_.pop_front();
    replace(number, lost_at);
  }
}

void HostReplacements::replace_those_in(const std::vector<int>& ended) {
  const auto first = std::ranges::stable_partition(uncertain_, [&](int number) {
                       return std::ranges::find(ended, number) == ended.end();
                     }).begin();
  const std::vector<int> numbers(first, uncertain_.end());
  uncertain_.erase(first, uncertain_.end());
  for (const int number : numbers) replace(number);
}

void HostReplacements::join(std::size_t host, int processes) {
  for (int i = 0; i < processes; ++i) {
    replacements_.add(supervisor_, [this, host](const Newcomer& newcomer) {
      const bool started = start(newcomer, ranks_.room_on(host));
      if (started && !unplaced_.empty()) unplaced_.pop_front();
      return started;
    });
  }
}

void HostReplacements::replace(int number, Time lost_at) {
  const auto start_it = [this, number](const Newcomer& newcomer) {
    const auto place = ranks_.room_for(number);
    if (!place) unplaced_.push_back({.number = number, .lost_at = newcomer.lost_at});
    return start(newcomer, place);
  };
  replacements_.replace(number, supervisor_, start_it, lost_at);
}

// Returns the most processes that may run at a time.
int HostReplacements::most() const { return std::max(options_.max_ranks, options_.replacements.ranks); }

bool HostReplacements::start(Newcomer newcomer, std::optional<HostRanks::Place> place) {
  if (!anyone_takes_part()) return false;  // the job is about to end
  if (!place) {
    print_to_console(newcomer.in_place_of == kNobody
                         ? "A rank of a host that has joined is not started: the host is lost, or has no free slot"
                         : "No process takes the place of rank " + std::to_string(newcomer.in_place_of) +
                               " yet: no host has a free slot (launch.hosts)");
    return false;
  }
  newcomer.local_rank = place->slot;
  newcomer.local_size = ranks_.shares_of_cores(*place);
  options_.tell(place->host, std::string(kStartRank) + " " + to_text(newcomer));
  ranks_.start(newcomer.number, *place);
  return true;
}

}  // namespace phalanx
