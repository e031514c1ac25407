#include "datasets/images/tar_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "datasets/malformed.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kLongestName = 1 << 20;  // of an extended header; more is damage

using Block = std::array<char, kBlock>;

std::string_view field(const Block& block, std::size_t begin, std::size_t length) {
  const std::string_view all(block.data() + begin, length);
  return all.substr(0, all.find('\0'));
}

// Parses all of `digits`. Returns nothing if they are not a number or if it is negative.
std::optional<std::int64_t> whole_number(std::string_view digits, int base) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

// Octal digits between spaces, or, with the highest bit set, a big-endian number (GNU).
std::optional<std::int64_t> number(const Block& block, std::size_t begin, std::size_t length) {
  if ((static_cast<unsigned char>(block[begin]) & 0x80U) != 0) {
    std::int64_t value = static_cast<unsigned char>(block[begin]) & 0x7fU;
    for (auto i = begin + 1; i < begin + length; ++i) {
      if (value >> 55 != 0) return std::nullopt;  // negative, or larger than any file
      value = value << 8 | static_cast<unsigned char>(block[i]);
    }
    return value;
  }
  auto digits = field(block, begin, length);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  return whole_number(digits.substr(0, digits.find(' ')), 8);
}

// The sum of all bytes, of which the field of the sum itself counts as spaces.
bool has_its_checksum(const Block& block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number(block, 148, 8) == sum;
}

// Records "LENGTH KEY=VALUE\n", where LENGTH is the size of the whole record. Returns nothing if one is malformed.
std::optional<std::map<std::string, std::string>> pax_records(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    const auto space = text.find(' ');
    const auto length = whole_number(text.substr(0, space), 10);
    if (!length || *length > static_cast<std::int64_t>(text.size())) return std::nullopt;
    const auto record = text.substr(0, static_cast<std::size_t>(*length));
    const auto equals = record.find('=');
    if (equals == std::string_view::npos || equals < space || record.back() != '\n') return std::nullopt;
    records[std::string(record.substr(space + 1, equals - space - 1))] =
        record.substr(equals + 1, record.size() - equals - 2);
    text.remove_prefix(record.size());
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
      if (!has_its_checksum(block)) fail("not a header of a tar archive (compressed ones have to be unpacked)");
      take(block);
    }
    if (entries_.empty() || offset_ != size_) fail("the archive ends early");
    return std::move(entries_);  // some writers leave out the two empty blocks at the end
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
    if (size > kLongestName) fail("an extended header of " + std::to_string(size) + " bytes");
    std::string text(static_cast<std::size_t>(size), '\0');
    file_.seekg(offset_ + kBlock);
    file_.read(text.data(), size);
    if (!file_) fail("the archive ends early");
    return text;
  }

  // Reads a header and skips its content. An extended header describes the next ordinary header, whatever its type.
  void take(const Block& block) {
    auto size = number(block, 124, 12);
    if (!size) fail("the size of a file is not a number");
    const char type = block[156];
    if (type == 'L') {
      const auto text = content(*size);
      next_["path"] = text.substr(0, text.find('\0'));
    } else if (type == 'x') {
      auto records = pax_records(content(*size));
      if (!records) fail("a malformed extended header");
      next_.merge(*records);
    } else if (type != 'K' && type != 'g') {
      const auto extended = std::exchange(next_, {});
      if (const auto found = extended.find("size"); found != extended.end()) {
        size = whole_number(found->second, 10);
        if (!size) fail("the size of a file is \"" + found->second + "\", not a number");
      }
      const auto path = extended.find("path");
      std::string name = path != extended.end() ? path->second : name_in(block);
      if (type == '0' || type == '\0') {
        entries_.push_back({.name = std::move(name), .offset = offset_ + kBlock, .size = *size});
      }
    }
    if (*size > size_ - offset_ - kBlock) {
      fail("the archive ends within a file of " + std::to_string(*size) + " bytes");
    }
    const auto padded = (*size + kBlock - 1) / kBlock * kBlock;
    offset_ = std::min(offset_ + kBlock + padded, size_);
  }

  static std::string name_in(const Block& block) {
    const std::string name(field(block, 0, 100));
    const auto prefix = field(block, 345, 155);
    const bool has_prefix = field(block, 257, 5) == "ustar" && block[263] == '0' && !prefix.empty();
    return has_prefix ? std::string(prefix) + "/" + name : name;
  }

  [[noreturn]] void fail(const std::string& problem) const { throw_malformed(path_, offset_, problem); }

  std::filesystem::path path_;
  std::ifstream file_;
  std::int64_t size_ = 0, offset_ = 0;
  std::map<std::string, std::string> next_;  // what an extended header says of the next file
  std::vector<TarEntry> entries_;
};

}  // namespace

std::vector<TarEntry> index_tar(const std::filesystem::path& file) { return Reader(file).index(); }

}  // namespace phalanx
