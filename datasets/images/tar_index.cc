// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/tar_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "datasets/malformed.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kLongestName = 1 << 20;  // longest name in an extended header; a longer one means damage

using Block = std::array<char, kBlock>;

std::string_view field(const Block& block, std::size_t begin, std::size_t length) {
  const std::string_view all(block.data() + begin, length);
  return all.substr(0, all.find('\0'));
}

// Parses the whole text as a non-negative number.
std::optional<std::int64_t> whole_number(std::string_view digits, int base) {
  std::uint64_t value = 0;  // unsigned, because a signed number would accept a minus sign
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && value <= std::numeric_limits<std::int64_t>::max() ? std::optional(static_cast<std::int64_t>(value))
                                                                    : std::nullopt;
}

// Parses octal digits between spaces or, if the highest bit is set, a big-endian number (GNU).
std::optional<std::int64_t> number(const Block& block, std::size_t begin, std::size_t length) {
  if (static_cast<unsigned char>(block[begin]) == 0x80U) {
    std::uint64_t value = 0;
    for (auto i = begin + 1; i < begin + length; ++i) {
      if (value >> 55 != 0) return std::nullopt;  // one more byte would overflow an int64
      value = value << 8 | static_cast<unsigned char>(block[i]);
    }
    return static_cast<std::int64_t>(value);
  }
  auto digits = field(block, begin, length);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  return whole_number(digits.substr(0, digits.find(' ')), 8);
}

// The checksum is the sum of all bytes, where the bytes of the checksum field count as spaces.
bool has_its_checksum(const Block& block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number(block, 148, 8) == sum;
}

// Parses records "LENGTH KEY=VALUE
// ", where LENGTH is the length of the whole record. Returns nullopt if they are damaged.
std::optional<std::map<std::string, std::string>> pax_records(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    const auto space = text.find(' '), equals = text.find('=');
    const auto length = whole_number(text.substr(0, std::min(space, text.size())), 10);
    if (!length || static_cast<std::uint64_t>(*length) > text.size()) return std::nullopt;
    const auto end = static_cast<std::size_t>(*length);
    // The space must come before the equals sign, and the equals sign before the line feed at the end.
    if (equals == std::string_view::npos || space > equals || equals + 2 > end || text[end - 1] != '\n') {
      return std::nullopt;
    }
    records[std::string(text.substr(space + 1, equals - space - 1))] = text.substr(equals + 1, end - equals - 2);
    text.remove_prefix(end);
  }
  return records;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
    std::error_code error;
    size_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
    if (error || !file_) throw DataError(path.string() + ": cannot be read: " + error.message());
  }

  std::vector<TarEntry> index() {
    while (offset_ + kBlock <= size_) {
      const Block block = read<Block>();
      if (std::ranges::all_of(block, [](char byte) { return byte == 0; })) return std::move(entries_);
      if (!has_its_checksum(block)) fail("not a header of a tar archive (compressed archives must be unpacked)");
      take(block);
    }
    if (entries_.empty() || offset_ != size_) fail("the archive ends early");
    return std::move(entries_);  // some writers omit the two empty blocks at the end
  }

 private:
  template <class T>
  T read() {
    T value{};
    file_.seekg(offset_);
    file_.read(value.data(), static_cast<std::streamsize>(value.size()));
    if (!file_) fail("cannot be read");
    return value;
  }

  std::string content(std::int64_t size) {
    if (size > kLongestName) fail("an extended header is too large: " + std::to_string(size) + " bytes");
    std::string text(static_cast<std::size_t>(size), '\0');
    file_.seekg(offset_ + kBlock);
    file_.read(text.data(), size);
    if (!file_) fail("the archive ends early");
    return text;
  }

  // Returns the content up to its first NUL.
  std::string text(std::int64_t size) {
    auto name = content(size);
    name.resize(std::min(name.find('\0'), name.size()));
    return name;
  }

  void take(const Block& block) {
    const auto stated = number(block, 124, 12);
    if (!stated) fail("the size of a file is not a number");
    auto size = *stated;
    switch (block[156]) {
      case 'L':
        next_["path"] = text(size);
        break;
      case 'K':
        next_["linkpath"] = text(size);
        break;
      case 'x': {
        auto records = pax_records(content(size));
        if (!records) fail("a damaged extended header");
        next_ = std::move(*records);
        break;
      }
      case 'g':  // global header, for all files
        break;
      default:
        size = finish(block, size);
    }
    if (size > size_ - offset_ - kBlock) fail("the archive ends within a file of " + std::to_string(size) + " bytes");
    const auto padded = (size + kBlock - 1) / kBlock * kBlock;
    offset_ = std::min(offset_ + kBlock + padded, size_);
  }

  // Adds the entry that follows extended headers, if it is a file. Returns the true size of its content.
  std::int64_t finish(const Block& block, std::int64_t size) {
    const auto extended = std::exchange(next_, {});
    if (const auto found = extended.find("size"); found != extended.end()) {
      const auto real = whole_number(found->second, 10);
      if (!real) fail("an extended header has a size that is not a number: \"" + found->second + '"');
      size = *real;
    }
    const auto extended_or = [&](const char* key, std::string otherwise) {
      const auto found = extended.find(key);
      return found == extended.end() ? std::move(otherwise) : found->second;
    };
    std::string name(field(block, 0, 100));
    const auto prefix = field(block, 345, 155);
    if (field(block, 257, 5) == "ustar" && block[263] == '0' && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    name = extended_or("path", std::move(name));
    const char type = block[156];
    if (type == '1') add_link(std::move(name), extended_or("linkpath", std::string(field(block, 157, 100))));
    if (type >= '1' && type <= '6') return 0;  // links, devices and folders have no content, whatever size they state
    if (type != '0' && type != '\0' && type != '7') return size;
    entries_.push_back({.name = std::move(name), .offset = offset_ + kBlock, .size = size});
    return size;
  }

  void add_link(std::string name, const std::string& target) {
    for (; named_ < entries_.size(); ++named_) by_name_.emplace(entries_[named_].name, named_);
    const auto found = by_name_.find(target);
    if (found == by_name_.end()) fail(name + " is a link to " + target + ", which does not come before it");
    const auto [offset, size] = std::pair(entries_[found->second].offset, entries_[found->second].size);
    entries_.push_back({.name = std::move(name), .offset = offset, .size = size});
  }

  [[noreturn]] void fail(const std::string& problem) const { throw_malformed(path_, offset_, problem); }

  std::filesystem::path path_;
  std::ifstream file_;
  std::int64_t size_ = 0, offset_ = 0;
  std::map<std::string, std::string> next_;  // fields of an extended header for the next file
  std::vector<TarEntry> entries_;
  std::map<std::string, std::size_t> by_name_;  // the first entry of each name, among the first named_ entries
  std::size_t named_ = 0;                       // advances only at links, which most archives do not have
};

}  // namespace

std::vector<TarEntry> index_tar(const std::filesystem::path& file) { return Reader(file).index(); }

}  // namespace phalanx
