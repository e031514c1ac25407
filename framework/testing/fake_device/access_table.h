// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/testing/fake_device/vector_clock.h"

namespace phalanx::testing {

/// A range of device memory that an operator reads or writes.
struct Access {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

/// An operator, and when it ran: the time of its stream.
struct Moment {
  std::string_view name;  // refers to text that lives as long as the process
  int stream = 0;
  std::uint64_t time = 0;
};

/// Two operators of which neither waits for the other, although one of them writes what the other uses.
struct Race {
  Moment earlier, later;
  bool earlier_writes = false, later_writes = false;
};

/// The last writer and the later readers of every byte of device memory. Not thread-safe.
class AccessTable {
 public:
  /// Notes the accesses of one operator, whose stream knows `clock`. Returns the races with earlier operators. If there
  /// are any, nothing is noted.
  std::vector<Race> note(const std::vector<Access>& accesses, const Moment& now, const VectorClock& clock);

  /// Forgets the accesses of one stream to a range.
  void forget(const std::byte* begin, std::size_t bytes, int stream);

 private:
  // The accesses to a range of bytes that have had the same.
  struct Segment {
    const std::byte* end = nullptr;
    Moment writer;  // time 0: nobody has written
    std::vector<Moment> readers;
  };
  using Segments = std::map<const std::byte*, Segment>;  // by first byte; they do not overlap

  void find_races(const Access& access, const Moment& now, const VectorClock& clock, std::vector<Race>& races) const;
  void add(const Access& access, const Moment& now);
  void split_at(const std::byte* place);
  Segments::const_iterator first_overlap(const std::byte* begin) const;

  Segments segments_;
};

}  // namespace phalanx::testing
