// SPDX-License-Identifier: Apache-2.0
#include "tools/download/fetch.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "tools/download/http.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int kFruitlessTries = 3;  // tries of one server without progress in a row, before the next server

[[noreturn]] void fail(const fs::path& path) {
  throw DataError(path.string() + ": " + std::generic_category().message(errno));
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::span<const char> bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string digits() {
    std::array<unsigned char, 32> sum{};
    EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr);
    std::string text;
    for (const auto byte : sum) {
      for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Returns the checksum of a whole file, or an empty string if the file does not exist.
std::string checksum(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return "";
    fail(path);
  }
  Sha256 sum;
  std::array<char, 64 << 10> bytes{};
  for (;;) {
    const auto count = ::read(file.get(), bytes.data(), bytes.size());
    if (count < 0) fail(path);
    if (count == 0) return sum.digits();
    sum.add(std::span(bytes).first(static_cast<std::size_t>(count)));
  }
}

// The part of a file that has been received.
class Part {
 public:
  explicit Part(fs::path path)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644)) {
    if (!file_.valid()) fail(path_);
    have_ = ::lseek(file_.get(), 0, SEEK_END);
  }

  std::int64_t have() const { return have_; }

  void clear() {
    if (::ftruncate(file_.get(), 0) != 0) fail(path_);
    have_ = 0;
  }

  void add(std::span<const char> bytes) {
    while (!bytes.empty()) {
      const auto count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        throw DataError(path_.string() + ": " + std::generic_category().message(errno) + ", after " +
                        std::to_string(have_) + " bytes, which are kept; make room, and run this again to continue");
      }
      have_ += count;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  void keep_as(const fs::path& path) {
    if (::fsync(file_.get()) != 0 || ::rename(path_.c_str(), path.c_str()) != 0) fail(path_);
  }

 private:
  fs::path path_;
  Descriptor file_;
  std::int64_t have_ = 0;
};

// Receives the rest of the file from one mirror. Returns an empty string, or the reason why the mirror failed.
std::string take_from(const std::string& url, std::int64_t max_bytes, Part& part, const FetchOptions& options) {
  for (int fruitless = 0;;) {
    const auto before = part.have();
    std::int64_t size = -1;
    try {
      http_get(
          url, before, options.timeout,
          [&](std::int64_t begin, std::int64_t whole) {
            if (whole > max_bytes) {
              throw HttpError(url + ": the file has " + format_bytes(whole) + ", more than the limit of " +
                              format_bytes(max_bytes) + " for it (with --url, --max_size sets the limit)");
            }
            size = whole;
            if (begin == 0 && part.have() > 0) part.clear();
          },
          [&](std::span<const char> bytes) {
            part.add(bytes);
            options.progress(part.have(), size);
          });
      return "";
    } catch (const HttpError& error) {
      // With status 416 there is nothing beyond our part: it is complete, or belongs to another file.
      if (size < 0 && before > 0 && std::string(error.what()).find("status 416") != std::string::npos) return "";
      fruitless = part.have() > before ? 0 : fruitless + 1;
      if (size < 0 || fruitless == kFruitlessTries) return error.what();
    } catch (const DataError&) {
      throw;
    } catch (const Error& error) {
      return error.what();  // the host has no address
    }
  }
}

}  // namespace

bool fetch(const RemoteFile& file, const fs::path& folder, const FetchOptions& options) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DataError(folder.string() + ": " + error.message());
  const auto path = folder / file.name;
  if (const auto there = checksum(path); there == file.sha256) {
    return false;
  } else if (!there.empty()) {
    throw DataError(path.string() + ": exists, but its SHA-256 is " + there + ", not " + file.sha256 +
                    "; move it elsewhere to download the right file");
  }
  const auto part_path = folder / (file.name + ".part");
  Part part(part_path);
  std::string said;
  for (const auto& url : file.mirrors) {
    for (const bool again : {false, true}) {
      const bool resumed = part.have() > 0;
      if (const auto why = take_from(url, file.max_bytes, part, options); !why.empty()) {
        said += "\n  " + why;
        break;
      }
      const auto sum = checksum(part_path);
      if (sum == file.sha256) {
        part.keep_as(path);
        return true;
      }
      part.clear();
      // The earlier bytes may belong to another file, so try once more from the beginning.
      if (resumed && !again) continue;
      said += "\n  " + url + ": the SHA-256 of the downloaded file is " + sum + ", not " + file.sha256;
      break;
    }
  }
  throw DataError(path.string() + ": no mirror has provided it:" + said +
                  (part.have() > 0 ? "\nThe part that was downloaded is kept; run this again to continue." : ""));
}

}  // namespace phalanx
