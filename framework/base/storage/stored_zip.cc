// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/stored_zip.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in memory");

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56;
constexpr std::size_t kLongestComment = 65535;
constexpr std::uint64_t kLimit = 0xffffffff;  // also marks a number that is in the zip64 extra field
constexpr std::size_t kAlignment = 64;

template <class T>
T number(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::uint32_t checksum(const char* data, std::size_t bytes) {
  uLong crc = ::crc32(0, nullptr, 0);
  while (bytes > 0) {
    const auto count = static_cast<uInt>(std::min<std::size_t>(bytes, 1u << 30));
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(data), count);
    data += count;
    bytes -= count;
  }
  return static_cast<std::uint32_t>(crc);
}

[[noreturn]] void refuse(const std::string& path, std::uint64_t offset, const std::string& why) {
  throw DataError(path + ": byte " + std::to_string(offset) + ": " + why);
}

void read_at(std::ifstream& file, const std::string& path, std::uint64_t offset, char* into, std::uint64_t bytes) {
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file || (bytes > 0 && !file.read(into, static_cast<std::streamsize>(bytes)))) {
    refuse(path, offset,
           "the file ends within the " + std::to_string(bytes) + " bytes that start here: it was cut off");
  }
}

std::string read_at(std::ifstream& file, const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  read_at(file, path, offset, text.data(), bytes);
  return text;
}

struct Directory {
  std::uint64_t begin = 0, bytes = 0, entries = 0;
};

// Searches for the directory from the end of the file, because a comment of any length may follow it.
Directory find_directory(std::ifstream& file, const std::string& path, std::uint64_t size) {
  const std::uint64_t tail = std::min<std::uint64_t>(size, kEndBytes + kLongestComment);
  const std::string text = read_at(file, path, size - tail, tail);
  std::size_t at = text.size() < kEndBytes ? std::string::npos : text.size() - kEndBytes;
  while (at != std::string::npos && number<std::uint32_t>(text, at) != kEnd) at = at == 0 ? std::string::npos : at - 1;
  if (at == std::string::npos) {
    refuse(path, size, "the file ends without the directory of a zip archive: it was cut off, or is not a zip archive");
  }
  Directory found{.begin = number<std::uint32_t>(text, at + 16),
                  .bytes = number<std::uint32_t>(text, at + 12),
                  .entries = number<std::uint16_t>(text, at + 10)};
  if (at >= kLocator64Bytes && number<std::uint32_t>(text, at - kLocator64Bytes) == kLocator64) {
    const auto where = number<std::uint64_t>(text, at - kLocator64Bytes + 8);
    if (where > size) refuse(path, size - tail + at, "the zip64 directory starts after the end of the file");
    const std::string end = read_at(file, path, where, kEnd64Bytes);
    if (number<std::uint32_t>(end, 0) != kEnd64) refuse(path, where, "this is not a zip64 directory");
    found = {.begin = number<std::uint64_t>(end, 48),
             .bytes = number<std::uint64_t>(end, 40),
             .entries = number<std::uint64_t>(end, 32)};
  }
  if (found.begin > size || found.bytes > size - found.begin) {
    refuse(path, size - tail + at, "the directory of the zip archive lies beyond the end of the file");
  }
  return found;
}

// Numbers that do not fit into 32 bits are in the extra field with id 1, in this order.
void take_zip64(std::string_view extra, std::uint64_t& bytes, std::uint64_t& stored, std::uint64_t& header) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const auto id = number<std::uint16_t>(extra, at), length = number<std::uint16_t>(extra, at + 2);
    at += 4;
    if (at + length > extra.size()) return;
    std::size_t next = at;
    for (auto* one : {&bytes, &stored, &header}) {
      if (id != 1 || *one != kLimit || next + 8 > at + length) continue;
      *one = number<std::uint64_t>(extra, next);
      next += 8;
    }
    at += length;
  }
}

}  // namespace

StoredZip::StoredZip(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path + ": " + std::strerror(errno));
  std::error_code error;
  size_ = std::filesystem::file_size(path, error);
  if (error) throw DataError(path + ": " + error.message());  // a folder, for instance
  const Directory found = find_directory(file, path, size_);
  const std::string directory = read_at(file, path, found.begin, found.bytes);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < found.entries; ++i) {
    const auto here = found.begin + at;
    if (at + kCentralBytes > directory.size() || number<std::uint32_t>(directory, at) != kCentral) {
      refuse(path, here, "the directory of the zip archive is damaged");
    }
    const std::size_t name = number<std::uint16_t>(directory, at + 28),
                      extra = number<std::uint16_t>(directory, at + 30),
                      comment = number<std::uint16_t>(directory, at + 32);
    if (at + kCentralBytes + name + extra + comment > directory.size()) {
      refuse(path, here, "the directory of the zip archive is damaged");
    }
    Entry entry{.name = directory.substr(at + kCentralBytes, name),
                .header = number<std::uint32_t>(directory, at + 42),
                .bytes = number<std::uint32_t>(directory, at + 24),
                .crc = number<std::uint32_t>(directory, at + 16)};
    std::uint64_t stored = number<std::uint32_t>(directory, at + 20);
    take_zip64(std::string_view(directory).substr(at + kCentralBytes + name, extra), entry.bytes, stored, entry.header);
    if (number<std::uint16_t>(directory, at + 10) != 0 || stored != entry.bytes) {
      refuse(path, here,
             entry.name + " is compressed, but torch.save() writes without compression; save the model again");
    }
    if (entry.header > size_ || entry.bytes > size_ - entry.header) {
      refuse(path, here, entry.name + " lies beyond the end of the file");
    }
    entries_.push_back(std::move(entry));
    at += kCentralBytes + name + extra + comment;
  }
}

const StoredZip::Entry* StoredZip::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

void StoredZip::read(const Entry& entry, char* into) const {
  std::ifstream file(path_, std::ios::binary);
  const std::string local = read_at(file, path_, entry.header, kLocalBytes);
  if (number<std::uint32_t>(local, 0) != kLocal) refuse(path_, entry.header, entry.name + " does not begin here");
  const auto begin = entry.header + kLocalBytes + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28);
  read_at(file, path_, begin, into, entry.bytes);
  if (checksum(into, entry.bytes) != entry.crc) {
    refuse(path_, begin,
           "the " + std::to_string(entry.bytes) + " bytes of " + entry.name +
               " do not match their checksum: the file is damaged");
  }
}

std::string StoredZip::read(const Entry& entry) const {
  std::string content(entry.bytes, '\0');
  read(entry, content.data());
  return content;
}

void StoredZipWriter::check_size() const {
  if (file_.size() < kLimit && entries_ < 0xffff) return;
  throw DataError(path_ + ": would have more than 4 GB, or 65,534 tensors; write .safetensors instead");
}

// An extra field "FB", the same as LibTorch's, fills the space up to where the content begins.
void StoredZipWriter::add(const std::string& name, std::string_view content) {
  if (content.size() >= kLimit)
    throw DataError(path_ + ": " + name + " has more than 4 GB; write .safetensors instead");
  const auto header = static_cast<std::uint32_t>(file_.size());
  const auto bytes = static_cast<std::uint32_t>(content.size());
  const std::uint32_t crc = checksum(content.data(), content.size());
  const std::size_t unaligned = file_.size() + kLocalBytes + name.size() + 4;
  const auto padding = static_cast<std::uint16_t>((kAlignment - unaligned % kAlignment) % kAlignment);
  const auto describe = [&](std::string& to) {  // the fields that the local header and the directory have in common
    append<std::uint16_t>(to, 0);               // version needed
    append<std::uint16_t>(to, 0);               // flags
    append<std::uint16_t>(to, 0);               // compression method: stored
    append<std::uint16_t>(to, 0);               // time; constant, so that the same tensors give the same file
    append<std::uint16_t>(to, 0x21);            // date: 1 January 1980
    append(to, crc);
    append(to, bytes);
    append(to, bytes);
    append(to, static_cast<std::uint16_t>(name.size()));
  };
  append(file_, kLocal);
  describe(file_);
  append(file_, static_cast<std::uint16_t>(padding + 4));
  file_ += name + "FB";
  append(file_, padding);
  file_.append(padding, 'Z');
  file_ += content;
  append(directory_, kCentral);
  append<std::uint16_t>(directory_, 0);  // version made by
  describe(directory_);
  directory_.append(2 + 2 + 2 + 2 + 4, '\0');  // extra, comment, disk, attributes
  append(directory_, header);
  directory_ += name;
  ++entries_;
  check_size();
}

std::string StoredZipWriter::finish() {
  const auto begin = static_cast<std::uint32_t>(file_.size());
  file_ += directory_;
  check_size();
  append(file_, kEnd);
  file_.append(4, '\0');  // disks
  append(file_, entries_);
  append(file_, entries_);
  append(file_, static_cast<std::uint32_t>(directory_.size()));
  append(file_, begin);
  append<std::uint16_t>(file_, 0);
  return std::move(file_);
}

}  // namespace phalanx
