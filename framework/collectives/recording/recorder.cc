// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/recorder.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/new_file.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/write_all.h"

namespace phalanx::recording {
namespace {

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

/// A file to which entries are appended, each of them whole.
class AppendedFile {
 public:
  explicit AppendedFile(std::string path) : path_(std::move(path)), file_(create_new_file(path_)) {
    if (!file_.valid() && errno == EEXIST) {
      throw ConfigError("framework.record: " + path_ +
                        " exists: this folder has a recording already; name another folder, or remove it");
    }
    if (!file_.valid()) throw DataError(path_ + ": cannot be created: " + std::strerror(errno));
    write(kMagic);
  }

  // Returns the number of bytes that it has written.
  std::size_t append(EntryHead head, std::span<const std::string_view> parts) {
    head.payload = 0;
    head.payload_sum = 0;
    for (const auto part : parts) {
      head.payload += part.size();
      head.payload_sum = crc32c(part.data(), part.size(), head.payload_sum);
    }
    head.head_sum = sum_of_head(head);
    const std::lock_guard lock(mutex_);
    write(bytes_of(head));
    for (const auto part : parts) write(part);
    return sizeof(head) + head.payload;
  }

 private:
  void write(std::string_view text) {
    if (const int error = write_all(file_.get(), text); error != 0) {
      throw DataError(path_ + ": the recording cannot be written: " + std::strerror(error));
    }
  }

  const std::string path_;
  const Descriptor file_;
  std::mutex mutex_;
};

Recorder::Recorder(const std::string& folder, const Header& header)
    : folder_(folder), rank_(header.rank), last_(header.last) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw ConfigError("framework.record: " + folder_ + " cannot be created: " + error.message());
  first_ = std::make_shared<AppendedFile>(file_of(folder_, rank_));
  now_.file = first_;
  const std::string json = to_json(header);
  const std::array<std::string_view, 1> payload{json};
  bytes_ += static_cast<std::int64_t>(kMagicBytes + first_->append({.kind = EntryKind::kHeader}, payload));
}

Recorder::~Recorder() = default;

std::uint32_t Recorder::add_group(const GroupInfo& group) {
  const std::uint32_t number = groups_++;
  const std::string json = to_json(group);
  const std::array<std::string_view, 1> payload{json};
  bytes_ += static_cast<std::int64_t>(first_->append({.kind = EntryKind::kGroup, .group = number}, payload));
  return number;
}

std::uint32_t Recorder::add_server(const std::string& name) {
  const std::uint32_t number = servers_++;
  const std::array<std::string_view, 1> payload{name};
  bytes_ += static_cast<std::int64_t>(first_->append({.kind = EntryKind::kServer, .group = number}, payload));
  return number;
}

Recorder::Place Recorder::place() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void Recorder::add(const Place& place, EntryHead head, std::span<const std::string_view> parts) {
  head.step = place.step;
  bytes_ += static_cast<std::int64_t>(place.file->append(head, parts));
}

void Recorder::begin_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (last_ > 0 && (segment_ < 0 || (step - 1) % last_ == 0)) begin_segment(step - 1);
  now_.step = step;
}

void Recorder::begin_segment(std::int64_t step) {
  if (step == segment_) return;
  now_.file = std::make_shared<AppendedFile>(file_of(folder_, rank_, step));
  bytes_ += static_cast<std::int64_t>(kMagicBytes);
  if (segment_before_ >= 0) {
    std::error_code left_for_the_user;
    std::filesystem::remove(file_of(folder_, rank_, segment_before_), left_for_the_user);
  }
  segment_before_ = std::exchange(segment_, step);
}

void Recorder::add_mark(EntryKind kind, std::int64_t step, std::uint64_t checksum) {
  const std::array<std::string_view, 1> payload{bytes_of(checksum)};
  bytes_ += static_cast<std::int64_t>(place().file->append({.kind = kind, .step = step}, payload));
}

}  // namespace phalanx::recording
