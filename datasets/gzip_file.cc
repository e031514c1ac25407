// SPDX-License-Identifier: Apache-2.0
#include "datasets/gzip_file.h"

#include <cerrno>
#include <string_view>
#include <system_error>

#include "datasets/malformed.h"
#include "framework/base/error.h"

namespace phalanx {

GzipFile::GzipFile(const std::filesystem::path& path) : path_(path) {
  errno = 0;
  file_ = gzopen(path.c_str(), "rbe");
  if (file_ == nullptr) throw DataError(path_ + ": " + std::generic_category().message(errno ? errno : ENOMEM));
  gzbuffer(file_, 128 << 10);
}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
  const int got = gzread(file_, bytes.data(), static_cast<unsigned>(bytes.size()));
  const int system_error = errno;
  int code = Z_OK;
  const std::string_view reason = gzerror(file_, &code);  // "<path>: <what>"
  if (got < 0 && code == Z_ERRNO) throw_malformed(path_, offset_, std::generic_category().message(system_error));
  // gzread does not return up to a chunk of intact data before the damage, so this offset may be too low.
  if (got < 0) {
    throw_malformed(path_, offset_,
                    "the compressed stream is damaged: " + std::string(reason.substr(reason.rfind(':') + 2)));
  }
  offset_ += got;
  const auto count = static_cast<std::size_t>(got);
  truncated_ |= code == Z_BUF_ERROR;  // zlib 1.3.2 tells it once, with the last data
  if (count < bytes.size() && truncated_) throw_malformed(path_, offset_, "the compressed stream is truncated");
  return count;
}

}  // namespace phalanx
