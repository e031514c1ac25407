// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/npy_file.h"

#include <c10/util/Half.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>

#include "datasets/malformed.h"
#include "framework/base/checked_product.h"
#include "framework/base/error.h"
#include "framework/base/mapped_file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestNumber = 8;  // bytes

// Reads a little-endian number; both formats are little-endian.
std::uint64_t number_at(std::string_view bytes, std::size_t offset, int size) {
  std::uint64_t value = 0;
  for (int i = size; i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[offset + static_cast<std::size_t>(i)]);
  return value;
}

template <class T, bool is_big_endian>
double convert(const char* from) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if (is_big_endian) std::ranges::reverse(bytes);
  return static_cast<double>(std::bit_cast<T>(bytes));
}

template <bool is_big_endian>
double convert_half(const char* from) {
  std::array<char, 2> bytes{from[0], from[1]};
  if (is_big_endian) std::ranges::reverse(bytes);
  return static_cast<double>(
      static_cast<float>(c10::Half(std::bit_cast<std::uint16_t>(bytes), c10::Half::from_bits())));
}

struct NumberType {
  std::string_view name;  // without the byte order
  std::int64_t bytes;
  double (*little)(const char*);
  double (*big)(const char*);
};

template <class T>
constexpr NumberType number_type(std::string_view name) {
  return {name, sizeof(T), convert<T, false>, convert<T, true>};
}

constexpr std::array kTypes{number_type<float>("f4"),
                            number_type<double>("f8"),
                            NumberType{"f2", 2, convert_half<false>, convert_half<true>},
                            number_type<std::uint8_t>("u1"),
                            number_type<std::uint8_t>("b1"),
                            number_type<std::uint16_t>("u2"),
                            number_type<std::uint32_t>("u4"),
                            number_type<std::uint64_t>("u8"),
                            number_type<std::int8_t>("i1"),
                            number_type<std::int16_t>("i2"),
                            number_type<std::int32_t>("i4"),
                            number_type<std::int64_t>("i8")};

}  // namespace

// Reads one .npy file, which begins at `offset` of `path`, where `path` may be an archive.
class NpyReader {
 public:
  NpyReader(const fs::path& path, std::int64_t offset, std::string_view bytes)
      : path_(path), offset_(offset), bytes_(bytes) {}

  NpyArray read(std::shared_ptr<const void> owner) {
    if (!bytes_.starts_with(std::string_view("\x93NUMPY", 6)) || bytes_.size() < 12) {
      fail(0, "not a NumPy array: it does not begin with 93 NUMPY");
    }
    const int size = bytes_[6] == 1 ? 2 : 4;
    const auto length = number_at(bytes_, 8, size), begin = static_cast<std::uint64_t>(8 + size);
    if (length > bytes_.size() - begin) fail(8, "the file ends within its header");
    header_ = bytes_.substr(begin, length);
    NpyArray array;
    array.shape_ = shape();
    array.columns_first_ = value_of("'fortran_order'").starts_with("True") && array.shape_.size() > 1;
    if (!checked_product(array.shape_, kLargestNumber)) fail(10, "the shape is too large");
    array.size_ = *checked_product(array.shape_);
    set_type(quoted("'descr'"), array);
    array.numbers_ = bytes_.substr(begin + length);
    array.owner_ = std::move(owner);
    const auto wanted = static_cast<std::uint64_t>(array.size_ * array.item_);
    if (array.numbers_.size() != wanted) {
      fail(begin + length, "has " + std::to_string(array.numbers_.size()) + " bytes of numbers, but its shape needs " +
                               std::to_string(wanted));
    }
    return array;
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& why) const {
    throw_malformed(path_, offset_ + static_cast<std::int64_t>(offset), why);
  }

  std::string_view value_of(std::string_view key) const {
    const auto at = header_.find(key);
    const auto colon = at == std::string_view::npos ? at : header_.find(':', at);
    const auto begin = colon == std::string_view::npos ? colon : header_.find_first_not_of(" :", colon);
    if (begin == std::string_view::npos) fail(10, "the header has no " + std::string(key));
    return header_.substr(begin);
  }

  std::string quoted(std::string_view key) const {
    const auto value = value_of(key);
    const auto end = value.find('\'', 1);
    if (!value.starts_with('\'') || end == std::string_view::npos) {
      fail(10, "arrays with several fields are not supported; save each field as a separate array");
    }
    return std::string(value.substr(1, end - 1));
  }

  std::vector<std::int64_t> shape() const {
    const auto text = value_of("'shape'");
    std::vector<std::int64_t> sizes;
    for (const char *next = text.data() + 1, *const end = text.data() + std::min(text.find(')'), text.size());
         next < end;) {
      std::int64_t size = -1;
      const auto [stop, error] = std::from_chars(next, end, size);
      if (error != std::errc() || size < 0)
        fail(10, "expected a shape in the header, got " + std::string(text.substr(0, 40)));
      sizes.push_back(size);
      next = stop;
      while (next < end && (*next == ',' || *next == ' ')) ++next;
    }
    return sizes;
  }

  void set_type(const std::string& type, NpyArray& array) const {
    const std::string_view name = type.empty() ? "" : std::string_view(type).substr(1);
    const auto found = std::ranges::find(kTypes, name, &NumberType::name);
    const bool is_big = type.starts_with('>');
    if (found == kTypes.end() || !(is_big || type.starts_with('<') || type.starts_with('|'))) {
      fail(10, "numbers of type " + type + ", which are not supported; save them as float32, uint8 or int64");
    }
    array.item_ = found->bytes;
    array.convert_ = is_big ? found->big : found->little;
    array.is_of_bytes_ = name == "u1";
  }

  const fs::path& path_;
  std::int64_t offset_;
  std::string_view bytes_, header_{};
};

namespace {

std::string inflated(const fs::path& path, std::int64_t offset, std::string_view bytes, std::uint64_t size) {
  // A deflate stream expands at most 1032 times, so a wrong header cannot make us allocate more than that.
  if (size / 1032 > bytes.size() + 1) throw_malformed(path, offset, "the archive claims a size that it cannot have");
  std::string out(size, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(size);
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw_malformed(path, offset, "zlib cannot start");
  const int status = inflate(&stream, Z_FINISH);
  const bool good = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!good) throw_malformed(path, offset, "the compressed stream is damaged");
  return out;
}

// Follows PKWARE's APPNOTE 6.3: the end of the file has the offset of the directory; an entry there has the offset of
// its data.
NpyArray read_from_archive(const fs::path& path, const std::shared_ptr<const MappedFile>& mapped,
                           const std::string& array) {
  const std::string_view file = mapped->bytes();
  constexpr std::size_t kEnd = 22, kEntry = 46, kLocal = 30;
  const auto fail = [&](std::size_t offset, const std::string& why) {
    throw_malformed(path, static_cast<std::int64_t>(offset), why);
  };
  const auto end = file.rfind("PK\x05\x06");
  if (end == std::string_view::npos || file.size() - end < kEnd) fail(file.size(), "not a complete .npz archive");
  std::size_t at = number_at(file, end + 16, 4);
  std::string names;
  for (auto left = number_at(file, end + 10, 2); left > 0; --left) {
    if (at > file.size() || file.size() - at < kEntry || !file.substr(at).starts_with("PK\x01\x02")) {
      fail(std::min(at, file.size()), "the archive's directory is damaged");
    }
    const auto name_size = number_at(file, at + 28, 2);
    const auto name = file.substr(at + kEntry, name_size);
    if (name == array + ".npy") {
      const auto method = number_at(file, at + 10, 2), packed = number_at(file, at + 20, 4),
                 size = number_at(file, at + 24, 4), local = number_at(file, at + 42, 4);
      if (packed == 0xffffffff || size == 0xffffffff) {
        fail(at, "an array of 4 GB or more; save it as a separate .npy file");
      }
      if (local > file.size() || file.size() - local < kLocal) fail(at, "the archive's directory is damaged");
      const auto begin = local + kLocal + number_at(file, local + 26, 2) + number_at(file, local + 28, 2);
      if (begin > file.size() || file.size() - begin < packed) fail(at, "the file ends within " + std::string(name));
      const auto bytes = file.substr(begin, packed);
      const auto offset = static_cast<std::int64_t>(begin);
      if (method != 0 && method != 8) {
        fail(at + 10, "compression " + std::to_string(method) + ", which NumPy does not write");
      }
      std::shared_ptr<const void> owner = mapped;
      std::string_view unpacked = bytes;
      if (method == 8) {
        const auto memory = std::make_shared<const std::string>(inflated(path, offset, bytes, size));
        unpacked = *memory;
        owner = memory;
      }
      const auto* const data = reinterpret_cast<const Bytef*>(unpacked.data());
      if (::crc32_z(0, data, unpacked.size()) != number_at(file, at + 16, 4)) {
        fail(begin, std::string(name) + " does not match its checksum: the file is damaged");
      }
      return NpyReader(path, offset, unpacked).read(std::move(owner));
    }
    names += (names.empty() ? "" : ", ") + std::string(name.substr(0, name.rfind('.')));
    at += kEntry + name_size + number_at(file, at + 30, 2) + number_at(file, at + 32, 2);
  }
  throw DataError(path.string() + (array.empty() ? ": is an archive; name one of its arrays, as FILE:ARRAY: " + names
                                                 : ": has no array \"" + array + "\"; it has " + names));
}

}  // namespace

double NpyArray::operator[](std::int64_t index) const {
  std::int64_t place = index;
  if (columns_first_) {
    place = 0;
    for (std::int64_t axis = std::ssize(shape_), step = size_; axis-- > 0;) {
      const auto length = shape_[static_cast<std::size_t>(axis)];
      step /= length;
      place += index % length * step;
      index /= length;
    }
  }
  return convert_(numbers_.data() + place * item_);
}

NpyArray read_npy(const fs::path& path, const std::string& array) {
  const auto file = std::make_shared<const MappedFile>(path.string());
  const bool is_archive = file->bytes().starts_with("PK");
  if (array.empty() && !is_archive) return NpyReader(path, 0, file->bytes()).read(file);
  return read_from_archive(path, file, array);
}

}  // namespace phalanx
