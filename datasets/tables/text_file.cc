// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/text_file.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "datasets/gzip_file.h"
#include "datasets/malformed.h"
#include "datasets/text/unicode.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kChunk = 1 << 18;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw DataError(path.string() + ": " + why);
}

std::string read_whole(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) refuse(path, "no such file");
  GzipFile file(path);
  std::string text;
  for (std::size_t got = kChunk; got == kChunk;) {
    const auto size = text.size();
    text.resize(size + kChunk);
    got = file.read({reinterpret_cast<std::uint8_t*>(text.data()) + size, kChunk});
    text.resize(size + got);
  }
  return text;
}

void check_encoding(const std::filesystem::path& path, std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    refuse(path, "is UTF-16 text; convert it: iconv -f UTF-16 -t UTF-8");
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto length = unicode::size_of_character(text.substr(at, 4));
    if (length == 0 || text[at] == '\0') {
      throw_malformed(path, static_cast<std::int64_t>(at),
                      "is not UTF-8 text; convert it, as from Latin-1: iconv -f LATIN1 -t UTF-8");
    }
    at += length;
  }
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  std::string text = read_whole(path);
  check_encoding(path, text);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

}  // namespace phalanx
