// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/access_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace phalanx::testing {

std::vector<Race> AccessTable::note(const std::vector<Access>& accesses, const Moment& now, const VectorClock& clock) {
  std::vector<Race> races;
  for (const auto& access : accesses) find_races(access, now, clock, races);
  if (!races.empty()) return races;
  // Reads first: an operator in place is then the last writer, and has no readers.
  for (const bool writes : {false, true}) {
    for (const auto& access : accesses) {
      if (access.writes == writes && access.bytes > 0) add(access, now);
    }
  }
  return races;
}

AccessTable::Segments::const_iterator AccessTable::first_overlap(const std::byte* begin) const {
  auto found = segments_.upper_bound(begin);
  if (found != segments_.begin() && std::prev(found)->second.end > begin) --found;
  return found;
}

void AccessTable::find_races(const Access& access, const Moment& now, const VectorClock& clock,
                             std::vector<Race>& races) const {
  const auto is_over = [&](const Moment& earlier) { return earlier.time <= clock.at(earlier.stream); };
  const std::byte* const end = access.begin + access.bytes;
  for (auto at = first_overlap(access.begin); at != segments_.end() && at->first < end; ++at) {
    const Segment& segment = at->second;
    if (!is_over(segment.writer)) {
      races.push_back({.earlier = segment.writer, .later = now, .earlier_writes = true, .later_writes = access.writes});
    }
    if (!access.writes) continue;
    for (const auto& reader : segment.readers) {
      if (!is_over(reader)) races.push_back({.earlier = reader, .later = now, .later_writes = true});
    }
  }
}

void AccessTable::split_at(const std::byte* place) {
  const auto after = segments_.upper_bound(place);
  if (after == segments_.begin()) return;
  const auto found = std::prev(after);
  if (found->first == place || found->second.end <= place) return;
  segments_.emplace_hint(after, place, found->second);
  found->second.end = place;
}

void AccessTable::add(const Access& access, const Moment& now) {
  const std::byte* const end = access.begin + access.bytes;
  split_at(access.begin);
  split_at(end);
  if (access.writes) {
    segments_.erase(segments_.lower_bound(access.begin), segments_.lower_bound(end));
    segments_.emplace(access.begin, Segment{.end = end, .writer = now, .readers = {}});
    return;
  }
  const std::byte* place = access.begin;
  for (auto at = segments_.lower_bound(place); place < end; ++at) {
    const bool gap = at == segments_.end() || at->first > place;
    if (gap) {  // memory that nobody has written
      const std::byte* const until = at == segments_.end() ? end : std::min(end, at->first);
      at = segments_.emplace_hint(at, place, Segment{.end = until, .writer = {}, .readers = {}});
    }
    auto& readers = at->second.readers;
    std::erase_if(readers, [&](const Moment& reader) { return reader.stream == now.stream; });
    readers.push_back(now);
    place = at->second.end;
  }
}

void AccessTable::forget(const std::byte* begin, std::size_t bytes, int stream) {
  const std::byte* const end = begin + bytes;
  split_at(begin);
  split_at(end);
  for (auto at = segments_.lower_bound(begin); at != segments_.end() && at->first < end; ++at) {
    Segment& segment = at->second;
    if (segment.writer.stream == stream) segment.writer = {};
    std::erase_if(segment.readers, [&](const Moment& reader) { return reader.stream == stream; });
  }
}

}  // namespace phalanx::testing
