#include "datasets/tables/text_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

#include "datasets/malformed.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kChunk = 1 << 18;

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<std::remove_pointer_t<gzFile>, Close>;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw DataError(path.string() + ": " + why);
}

std::string read_whole(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) refuse(path, "no such file");
  errno = 0;
  const File file(gzopen(path.c_str(), "rb"));
  if (!file) refuse(path, std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), kChunk);
  std::string text;
  for (;;) {
    const auto size = text.size();
    text.resize(size + kChunk);
    const int got = gzread(file.get(), text.data() + size, kChunk);
    int code = Z_OK;
    const char* const reason = gzerror(file.get(), &code);
    if (got < 0) refuse(path, code == Z_ERRNO ? std::strerror(errno) : std::string("gzip: ") + reason);
    text.resize(size + static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) == kChunk) continue;
    if (code == Z_BUF_ERROR) refuse(path, "the gzip file is cut short");
    return text;
  }
}

// Returns the number of bytes of the character that begins at `at`, or 0 if there is none (RFC 3629).
std::size_t length_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : std::uint8_t{0};
  };
  const auto follows = [&](std::size_t i, std::uint8_t least = 0x80, std::uint8_t most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  const auto first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void check_encoding(const std::filesystem::path& path, std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    refuse(path, "is UTF-16 text; convert it: iconv -f UTF-16 -t UTF-8");
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto length = length_of_character(text, at);
    if (length == 0) {
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
