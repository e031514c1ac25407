// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/host_ranks.h"

#include <algorithm>

namespace phalanx {

HostRanks::HostRanks(const std::vector<HostShare>& shares) {
  for (const auto& share : shares) {
    const std::size_t host = add(share.host, std::max(share.slots, share.ranks));
    hosts_[host].ranks = share.ranks;
    for (int slot = 0; slot < share.ranks; ++slot) start(share.first_rank + slot, {.host = host, .slot = slot});
  }
}

std::size_t HostRanks::add(const std::string& name, int slots) {
  hosts_.push_back({.name = name, .slots = slots});
  return hosts_.size() - 1;
}

int HostRanks::shares_of_cores(Place place) const {
  const Host& host = hosts_.at(place.host);
  return place.slot < host.ranks ? host.ranks : host.slots;
}

void HostRanks::lose(std::size_t host) {
  hosts_.at(host).lost = true;
  for (const int number : running(host)) end(number);
}

std::optional<HostRanks::Place> HostRanks::room_for(int number) const {
  const auto process = processes_.find(number);
  if (process != processes_.end()) {
    const auto [host, own] = process->second.place;
    if (const auto slot = free_slot(host, own)) return Place{.host = host, .slot = *slot};
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (const auto place = room_on(host)) return place;
  }
  return std::nullopt;
}

std::optional<HostRanks::Place> HostRanks::room_on(std::size_t host) const {
  const auto slot = free_slot(host);
  return slot ? std::optional(Place{.host = host, .slot = *slot}) : std::nullopt;
}

int HostRanks::free_slots() const {
  int free = 0;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!is_lost(host)) free += hosts_[host].slots - static_cast<int>(running(host).size());
  }
  return free;
}

int HostRanks::running() const {
  return static_cast<int>(std::ranges::count_if(processes_, [](const auto& one) { return one.second.running; }));
}

void HostRanks::start(int number, Place place) { processes_[number] = {.place = place}; }

void HostRanks::end(int number) {
  const auto process = processes_.find(number);
  if (process != processes_.end()) process->second.running = false;
}

bool HostRanks::is_running(int number) const {
  const auto process = processes_.find(number);
  return process != processes_.end() && process->second.running;
}

std::vector<int> HostRanks::running(std::size_t host) const {
  std::vector<int> numbers = all(host);
  std::erase_if(numbers, [&](int number) { return !is_running(number); });
  return numbers;
}

std::vector<int> HostRanks::all(std::size_t host) const {
  std::vector<int> numbers;
  for (const auto& [number, process] : processes_) {
    if (process.place.host == host) numbers.push_back(number);
  }
  return numbers;
}

// Returns the wanted slot of a host if it is free, or else its first free one.
std::optional<int> HostRanks::free_slot(std::size_t host, std::optional<int> wanted) const {
  if (is_lost(host)) return std::nullopt;
  std::vector<bool> taken(static_cast<std::size_t>(hosts_.at(host).slots));
  for (const int number : running(host)) taken.at(static_cast<std::size_t>(processes_.at(number).place.slot)) = true;
  if (wanted && !taken.at(static_cast<std::size_t>(*wanted))) return wanted;
  const auto free = std::ranges::find(taken, false);
  return free == taken.end() ? std::nullopt : std::optional(static_cast<int>(free - taken.begin()));
}

}  // namespace phalanx
