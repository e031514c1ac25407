// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/event_file.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/wall_clock.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): each field is a varint of its number
// and wire type, and then its value.
enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, WireType type) { return varint(static_cast<std::uint64_t>(field) << 3 | type); }
std::string integer(int field, std::int64_t value) {
  return key(field, kVarint) + varint(static_cast<std::uint64_t>(value));
}
std::string real(int field, double value) { return key(field, kFixed64) + raw(value); }
std::string real32(int field, float value) { return key(field, kFixed32) + raw(value); }
std::string bytes(int field, const std::string& value) { return key(field, kLength) + varint(value.size()) + value; }

// Field numbers of the messages.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;  // Event
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;                                     // Summary, Summary.Value
constexpr int kStatus = 1, kSessionStart = 1;                                             // SessionLog

std::string time_field() { return real(kWallTime, wall_seconds()); }

// Returns the masked CRC-32C. Checksums of data that contains checksums are weak, so the format stores them masked.
std::uint32_t masked_crc(const std::string& data) {
  return std::rotr(crc32c(data.data(), data.size()), 15) + 0xa282ead8u;
}

// Returns a file name whose order is the order of creation, because TensorBoard reads the files of a folder in the
// order of their names. A counter orders files that are created in the same second.
std::string file_name() {
  static std::atomic<int> count{0};
  char number[40];
  const auto seconds = std::chrono::system_clock::to_time_t(wall_time());
  std::snprintf(number, sizeof(number), "%010lld", static_cast<long long>(seconds));
  return "events.out.tfevents." + std::string(number) + "." + host_name() + "." + std::to_string(::getpid()) + "." +
         std::to_string(count++);
}

std::string path_in(const std::string& folder) {
  std::error_code error;  // ignored, since opening the file then fails with the reason
  std::filesystem::create_directories(folder, error);
  return folder + "/" + file_name();
}

// Returns a record of a TFRecord file.
std::string framed(const std::string& event) {
  const std::string length = raw(static_cast<std::uint64_t>(event.size()));
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

}  // namespace

EventFile::EventFile(const std::string& folder, std::int64_t first_step) : file_(path_in(folder)) {
  begin_ = framed(time_field() + bytes(kFileVersion, "brain.Event:2")) +
           framed(time_field() + integer(kStep, first_step) + bytes(kSessionLog, integer(kStatus, kSessionStart)));
}

void EventFile::add(std::int64_t step, const std::vector<TaggedValue>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    summary += bytes(kValue, bytes(kTag, tag) + real32(kSimpleValue, static_cast<float>(value)));
  }
  file_.add(std::exchange(begin_, "") + framed(time_field() + integer(kStep, step) + bytes(kSummary, summary)));
}

}  // namespace phalanx
