// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/idx_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "datasets/gzip_file.h"
#include "datasets/malformed.h"
#include "framework/base/checked_product.h"

namespace phalanx {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
// Bytes that are allocated before any value has been read, whatever size the header claims.
constexpr std::int64_t kChunk = 1 << 20;
constexpr std::int64_t kMost = 1 << 30;  // bytes that GzipFile reads at a time: fewer than 2^31

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    if (!text.empty()) text += ' ';
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

// Reads the parts of a file whose contents its header declares.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path) {}

  std::int64_t offset() const { return file_.offset(); }

  [[noreturn]] void fail(std::int64_t offset, const std::string& problem) const {
    throw_malformed(path_, offset, problem);
  }

  void read(std::span<std::uint8_t> bytes, const std::string& what) {
    if (file_.read(bytes) < bytes.size()) fail(offset(), "the file ends within " + what);
  }

  void expect_end() {
    std::array<std::uint8_t, 1> more{};
    const auto end = offset();
    if (file_.read(more) > 0) fail(end, "the file should end here, but there is more data");
  }

 private:
  std::filesystem::path path_;
  GzipFile file_;
};

void read_magic(Reader& file, int rank) {
  std::array<std::uint8_t, 4> magic{};
  file.read(magic, "the magic number");
  if (magic[0] != 0 || magic[1] != 0) file.fail(0, "not an IDX file: it starts with " + hex(magic) + ", not 00 00");
  if (magic[2] != kUnsignedByte) file.fail(2, "values of type " + hex({&magic[2], 1}) + ", expected 08 (bytes)");
  if (magic[3] != rank) {
    file.fail(3, std::to_string(magic[3]) + " dimensions, expected " + std::to_string(rank));
  }
}

// Returns sizes whose product fits in an int64.
std::vector<std::int64_t> read_shape(Reader& file, int rank) {
  std::vector<std::int64_t> shape;
  for (int dimension = 0; dimension < rank; ++dimension) {
    const auto offset = file.offset();
    std::array<std::uint8_t, 4> b{};
    file.read(b, "the sizes");
    const std::int64_t size = std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    if (size == 0) file.fail(offset, "dimension " + std::to_string(dimension) + " has size 0");
    shape.push_back(size);
    if (!checked_product(shape)) file.fail(offset, "more values than a file can hold");
  }
  return shape;
}

std::string product(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, int rank) {
  Reader file(path);
  IdxArray array;
  read_magic(file, rank);
  array.shape = read_shape(file, rank);
  const std::int64_t total = *checked_product(array.shape);
  const std::string what = "the " + product(array.shape) + " values that its header declares";
  for (std::int64_t have = 0; have < total;) {
    const std::int64_t part = std::min({total - have, std::max(have, kChunk), kMost});
    array.values.resize(static_cast<std::size_t>(have + part));
    file.read(std::span(array.values).subspan(static_cast<std::size_t>(have)), what);
    have += part;
  }
  file.expect_end();
  return array;
}

}  // namespace phalanx
