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

// Octal digits between spaces, or, with the highest bit set, a big-endian number (GNU).
std::optional<std::int64_t> number(const Block& block, std::size_t begin, std::size_t length) {
  if ((static_cast<unsigned char>(block[begin]) & 0x80U) != 0) {
    std::int64_t value = 0;
    for (auto i = begin + length - 8; i < begin + length; ++i) {
      value = value << 8 | static_cast<unsigned char>(block[i]);
    }
    return value >= 0 ? std::optional(value) : std::nullopt;
  }
  auto digits = field(block, begin, length);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

// The sum of all bytes, of which the field of the sum itself counts as spaces.
bool has_its_checksum(const Block& block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return number(block, 148, 8) == sum;
}

// Records "LENGTH KEY=VALUE\n".
std::map<std::string, std::string> pax_records(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto equals = text.find('=');
    const auto key = static_cast<std::size_t>(end - text.data()) + 1;
    if (error != std::errc() || length > text.size() || equals >= length || key > equals) break;
    records[std::string(text.substr(key, equals - key))] = text.substr(equals + 1, length - equals - 2);
    text.remove_prefix(length);
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

  void take(const Block& block) {
    const auto stated = number(block, 124, 12);
    if (!stated) fail("the size of a file is not a number");
    const char type = block[156];
    if (type == 'L') {
      const auto text = content(*stated);
      next_["path"] = text.substr(0, text.find('\0'));
    } else if (type == 'x') {
      next_ = pax_records(content(*stated));
    }
    auto size = *stated;
    if (type == '0' || type == '\0') size = add(block, size);
    const auto padded = (size + kBlock - 1) / kBlock * kBlock;
    if (offset_ + kBlock + size > size_) fail("the archive ends within a file of " + std::to_string(size) + " bytes");
    offset_ = std::min(offset_ + kBlock + padded, size_);
  }

  // How long the file really is.
  std::int64_t add(const Block& block, std::int64_t size) {
    std::string name(field(block, 0, 100));
    const auto prefix = field(block, 345, 155);
    if (field(block, 257, 5) == "ustar" && block[263] == '0' && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    if (const auto found = next_.find("path"); found != next_.end()) name = found->second;
    if (const auto found = next_.find("size"); found != next_.end()) {
      const auto& digits = found->second;
      std::from_chars(digits.data(), digits.data() + digits.size(), size);
    }
    next_.clear();
    entries_.push_back({.name = std::move(name), .offset = offset_ + kBlock, .size = size});
    return size;
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
