// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "framework/collectives/recording/format.h"
#include "framework/collectives/recording/named_memory.h"

namespace phalanx::recording {

class AppendedFile;

/// Writes the recording of one rank. Each entry is handed to the system at once, so it survives the death of the
/// process, though not of the machine.
///
/// Without a ring, everything is in one file. With a ring (Header::last), begin_segment() starts a new file, and the
/// recorder keeps the last two, so that at least the last Header::last steps are there.
///
/// Thread-safe. Functions that write throw DataError naming the file if it cannot be written.
class Recorder {
 public:
  /// Creates the folder if necessary, and the rank's first file in it. Throws ConfigError if the folder has a recording
  /// of this rank already.
  Recorder(const std::string& folder, const Header& header);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Adds a group and returns its number. The world is the first one.
  std::uint32_t add_group(const GroupInfo& group);

  /// Adds a connection to a server and returns its number, from 0.
  std::uint32_t add_server(const std::string& name);

  /// The file and the step to which operations belong that are launched now. An operation belongs to the segment in
  /// which it was launched, even if it ends after the next one has begun.
  struct Place {
    std::shared_ptr<AppendedFile> file;
    std::int64_t step = 0;
  };
  Place place() const;

  /// Writes an operation, or the answer of a server. `head` has everything but the checksums and the size of the
  /// payload, which is the concatenation of `parts`.
  void add(const Place& place, EntryHead head, std::span<const std::string_view> parts);

  /// Says that step `step`, from 1, begins. With a ring, a segment begins if Header::last steps have passed.
  void begin_step(std::int64_t step);

  /// Records the checksum of the parameters that the rank updates, after `step` steps, or at the end of the run.
  void end_step(std::int64_t step, std::uint64_t checksum) { add_mark(EntryKind::kStep, step, checksum); }
  void end_run(std::int64_t step, std::uint64_t checksum) { add_mark(EntryKind::kEnd, step, checksum); }

  /// Returns the number of bytes that have been written, including segments that are no longer kept.
  std::int64_t bytes() const { return bytes_.load(); }

  NamedMemory& memory() { return memory_; }

 private:
  void begin_segment(std::int64_t step);
  void add_mark(EntryKind kind, std::int64_t step, std::uint64_t checksum);

  const std::string folder_;
  const int rank_;
  const std::int64_t last_;
  NamedMemory memory_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::uint32_t> groups_{0}, servers_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<AppendedFile> first_;
  Place now_;
  std::int64_t segment_ = -1, segment_before_ = -1;  // their first steps; -1: no such segment
};

}  // namespace phalanx::recording
