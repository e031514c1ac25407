// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/recording.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/read_at.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"

namespace phalanx::recording {
namespace {

constexpr std::uint32_t kMaxGroups = 1 << 16;  // and connections to servers

struct FileName {
  int rank = -1;
  std::int64_t segment = -1;
};

// Returns nullopt if the file is not part of a recording: "rank2.rec" or "rank2.40.rec".
std::optional<FileName> parse_name(const std::string& name) {
  constexpr std::string_view kBegin = "rank", kEnd = ".rec";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  const char* at = name.data() + kBegin.size();
  const char* const end = name.data() + name.size() - kEnd.size();
  FileName found;
  auto [next, error] = std::from_chars(at, end, found.rank);
  if (error != std::errc() || found.rank < 0) return std::nullopt;
  if (next == end) return found;
  if (*next != '.') return std::nullopt;
  const auto [last, error_of_segment] = std::from_chars(next + 1, end, found.segment);
  if (error_of_segment != std::errc() || last != end || found.segment < 0) return std::nullopt;
  return found;
}

std::vector<FileName> files_in(const std::string& folder) {
  std::vector<FileName> files;
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    if (const auto name = parse_name(each->path().filename().string())) files.push_back(*name);
  }
  if (error) throw ConfigError(folder + ": cannot be read as the folder of a recording: " + error.message());
  return files;
}

std::string missing(const std::string& folder, int rank) {
  std::vector<std::string> there;
  for (const int recorded : recorded_ranks(folder)) there.push_back(std::to_string(recorded));
  if (there.empty()) return folder + " has no recording: framework.record of a config writes one";
  return folder + " has no recording of rank " + std::to_string(rank) + ", only of rank " + join(there, ", ") +
         "; framework.record_ranks says which ranks are recorded";
}

std::string place_in(const std::string& path, std::int64_t offset) {
  return path + ": offset " + std::to_string(offset);
}

std::uint64_t number_in(const std::string& payload) {
  std::uint64_t number = 0;
  std::memcpy(&number, payload.data(), std::min(payload.size(), sizeof(number)));
  return number;
}

}  // namespace

/// A file of a recording, open for reading.
struct RecordingFile {
  explicit RecordingFile(const std::string& name) : path(name), descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status = {};
    if (!descriptor.valid() || ::fstat(descriptor.get(), &status) != 0) {
      throw DataError(path + ": cannot be read: " + std::strerror(errno));
    }
    size = status.st_size;
    std::string magic(std::min<std::size_t>(kMagicBytes, static_cast<std::size_t>(size)), '\0');
    read(magic.data(), magic.size(), 0);
    if (magic == kMagic) return;
    throw DataError(path + ": is no recording that this version of Phalanx can read: it does not begin with \"" +
                    std::string(kMagic, kMagicBytes - 1) + "\"");
  }

  void read(void* to, std::size_t bytes, std::int64_t offset) const {
    if (read_at(descriptor.get(), to, bytes, offset) == static_cast<std::int64_t>(bytes)) return;
    throw DataError(place_in(path, offset) + ": cannot be read: " + std::strerror(errno));
  }

  std::string path;
  Descriptor descriptor;
  std::int64_t size = 0;
};

namespace {

std::string payload_of(const Located& entry) {
  std::string bytes(entry.head.payload, '\0');
  entry.file->read(bytes.data(), bytes.size(), entry.payload_at);
  if (crc32c(bytes.data(), bytes.size()) == entry.head.payload_sum) return bytes;
  throw DataError(place_in(entry.file->path, entry.payload_at) + ": the recording is damaged: the checksum of " +
                  std::to_string(bytes.size()) + " bytes is wrong");
}

RecordedOperation operation_at(const Located& entry) {
  RecordedOperation operation{.head = entry.head, .received = payload_of(entry)};
  const std::size_t sums = std::size_t{entry.head.pieces} * sizeof(std::uint32_t);
  if (sums > operation.received.size()) {
    throw DataError(place_in(entry.file->path, entry.payload_at) + ": has fewer bytes than its checksums need");
  }
  operation.piece_sums.resize(entry.head.pieces);
  if (sums > 0) std::memcpy(operation.piece_sums.data(), operation.received.data(), sums);
  operation.received.erase(0, sums);
  return operation;
}

}  // namespace

std::vector<int> recorded_ranks(const std::string& folder) {
  std::vector<int> ranks;
  for (const auto& file : files_in(folder)) {
    if (file.segment < 0) ranks.push_back(file.rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

Recording::Recording(const std::string& folder, int rank) {
  std::vector<std::int64_t> segments;
  bool found = false;
  for (const auto& file : files_in(folder)) {
    if (file.rank != rank) continue;
    found |= file.segment < 0;
    if (file.segment >= 0) segments.push_back(file.segment);
  }
  if (!found) throw ConfigError(missing(folder, rank));
  std::ranges::sort(segments);
  scan(file_of(folder, rank), streams_);
  if (header_.config.empty()) throw DataError(file_of(folder, rank) + ": ends before its header is complete");
  if (groups_.empty()) throw DataError(file_of(folder, rank) + ": ends before its first group is complete");
  if (!segments.empty()) begins_at_ = segments.front();
  for (const auto segment : segments) scan(file_of(folder, rank, segment), begins_at_ > 0 ? later_ : streams_);
  // An operation is recorded when it is complete, so messages and answers need not be in the order of their launch.
  for (auto* const streams : {&streams_, &later_}) {
    for (auto& [stream, entries] : *streams) {
      std::ranges::stable_sort(entries, {}, [](const Located& entry) { return entry.head.sequence; });
    }
  }
}

void Recording::scan(const std::string& path, Streams& streams) {
  auto file = std::make_shared<RecordingFile>(path);
  bytes_ += file->size;
  auto offset = static_cast<std::int64_t>(kMagicBytes);
  while (true) {
    Located entry{.order = found_, .file = file, .payload_at = offset + static_cast<std::int64_t>(sizeof(EntryHead))};
    if (entry.payload_at > file->size) return;  // killed while it wrote
    file->read(&entry.head, sizeof(EntryHead), offset);
    if (entry.head.marker != kMarker || sum_of_head(entry.head) != entry.head.head_sum) {
      throw DataError(place_in(path, offset) + ": the recording is damaged: the checksum of this entry is wrong");
    }
    if (entry.head.payload > static_cast<std::uint64_t>(file->size - entry.payload_at)) return;
    offset = entry.payload_at + static_cast<std::int64_t>(entry.head.payload);
    add(entry, streams);
  }
}

void Recording::add(const Located& entry, Streams& streams) {
  const EntryHead& head = entry.head;
  const std::string& path = entry.file->path;
  switch (head.kind) {
    case EntryKind::kHeader:
      header_ = header_in(payload_of(entry), path);
      return;
    case EntryKind::kGroup:
      if (head.group >= kMaxGroups) throw DataError(place_in(path, entry.payload_at) + ": has too many groups");
      groups_.resize(std::max<std::size_t>(groups_.size(), head.group + 1));
      groups_[head.group] = group_in(payload_of(entry), path);
      return;
    case EntryKind::kOperation:
      if (head.op > Op::kCustom || head.reduction > static_cast<std::uint8_t>(Reduction::Kind::kCustom) ||
          head.dtype < 0 || head.dtype >= static_cast<std::int8_t>(c10::ScalarType::NumOptions)) {
        throw DataError(place_in(path, entry.payload_at) + ": has an operation of an unknown kind");
      }
      if (head.group >= groups_.size()) throw DataError(place_in(path, entry.payload_at) + ": has an unknown group");
      streams[Stream::of(head)].push_back(entry);
      ++found_;
      return;
    case EntryKind::kServer:
      if (head.group >= kMaxGroups) throw DataError(place_in(path, entry.payload_at) + ": has too many servers");
      servers_.resize(std::max<std::size_t>(servers_.size(), head.group + 1));
      servers_[head.group] = payload_of(entry);
      return;
    case EntryKind::kAnswer:
      if (head.group >= servers_.size()) throw DataError(place_in(path, entry.payload_at) + ": has an unknown server");
      streams[Stream::of(head)].push_back(entry);
      ++found_;
      return;
    case EntryKind::kStep:
      steps_[head.step] = number_in(payload_of(entry));
      return;
    case EntryKind::kEnd:
      at_end_ = number_in(payload_of(entry));
      return;
  }
  throw DataError(place_in(path, entry.payload_at) + ": has an entry of an unknown kind");
}

const GroupInfo& Recording::group(std::uint32_t number) const {
  if (number < groups_.size()) return groups_[number];
  throw DataError("the recording has no group " + std::to_string(number));
}

std::optional<std::string> Recording::server(std::uint32_t number) const {
  return number < servers_.size() ? std::optional(servers_[number]) : std::nullopt;
}

std::optional<RecordedOperation> Recording::next(const Stream& stream) {
  Located entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end() || found->second.empty()) return std::nullopt;
    entry = std::move(found->second.front());
    found->second.pop_front();
  }
  return operation_at(entry);
}

std::optional<RecordedOperation> Recording::find(const Stream& stream, std::uint64_t sequence) {
  Located entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return std::nullopt;
    auto& entries = found->second;
    while (!entries.empty() && entries.front().head.sequence < sequence) entries.pop_front();
    if (entries.empty() || entries.front().head.sequence != sequence) return std::nullopt;
    entry = std::move(entries.front());
    entries.pop_front();
  }
  return operation_at(entry);
}

std::optional<std::uint64_t> Recording::first_sequence(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.empty()) return std::nullopt;
  return found->second.front().head.sequence;
}

std::optional<EntryHead> Recording::first_left() const {
  const std::lock_guard lock(mutex_);
  const Located* first = nullptr;
  for (const auto& [stream, entries] : streams_) {
    if (!entries.empty() && (first == nullptr || entries.front().order < first->order)) first = &entries.front();
  }
  return first == nullptr ? std::nullopt : std::optional(first->head);
}

void Recording::skip_to_segment() {
  const std::lock_guard lock(mutex_);
  streams_ = std::exchange(later_, {});
}

std::optional<std::uint64_t> Recording::parameters_after(std::int64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? std::nullopt : std::optional(found->second);
}

std::string describe(const EntryHead& head, const Recording& recording) {
  const std::string when = head.step > 0 ? ", in step " + std::to_string(head.step) : ", before the first step";
  if (head.kind == EntryKind::kAnswer) {
    const auto server = recording.server(head.group);
    return (head.sequence == 0 ? "the attempt to connect" : "request " + std::to_string(head.sequence)) + " to " +
           server.value_or("an unknown server") + when;
  }
  const bool message = head.op == Op::kSend || head.op == Op::kRecv;
  return describe(head.call()) + (message ? ", message " : ", operation ") + std::to_string(head.sequence) +
         " of group " + recording.group(head.group).name + when;
}

}  // namespace phalanx::recording
