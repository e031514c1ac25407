// SPDX-License-Identifier: Apache-2.0
#include "tools/download/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>

#include "framework/base/environment.h"

namespace phalanx {
namespace {

constexpr long kConnectSeconds = 20, kMaxRedirections = 10;

struct Closes {
  void operator()(CURL* transfer) const { curl_easy_cleanup(transfer); }
};
using Transfer = std::unique_ptr<CURL, Closes>;

template <class T>
T info(CURL* transfer, CURLINFO what) {
  T value{};
  curl_easy_getinfo(transfer, what, &value);
  return value;
}

// The values of "bytes 5-9/10"; -1 if missing.
struct ContentRange {
  std::int64_t begin = -1, size = -1;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

ContentRange content_range(CURL* transfer) {
  curl_header* found = nullptr;
  if (curl_easy_header(transfer, "Content-Range", 0, CURLH_HEADER, -1, &found) != CURLHE_OK) return {};
  const std::string_view range = found->value;
  const auto slash = range.find('/');
  if (!range.starts_with("bytes ") || slash == std::string_view::npos) return {};
  return {number(range.substr(6)), number(range.substr(slash + 1))};
}

// One answer of a server. It is checked when its first bytes arrive, or at its end if it has none.
class Answer {
 public:
  Answer(CURL* transfer, std::string url, std::int64_t offset,
         const std::function<void(std::int64_t begin, std::int64_t size)>& start,
         const std::function<void(std::span<const char>)>& take)
      : transfer_(transfer), url_(std::move(url)), offset_(offset), start_(start), take_(take) {
    curl_easy_setopt(transfer, CURLOPT_WRITEFUNCTION, &Answer::written);
    curl_easy_setopt(transfer, CURLOPT_WRITEDATA, this);
  }

  // Rethrows what the functions have thrown, or throws that the server has answered something else.
  void finish() {
    if (failure_) std::rethrow_exception(failure_);
  }

  void check() {
    if (checked_) return;
    checked_ = true;
    const long status = info<long>(transfer_, CURLINFO_RESPONSE_CODE);
    if (status != 200 && !(status == 206 && offset_ > 0)) {
      fail("the server answers with status " + std::to_string(status));
    }
    const auto length = info<curl_off_t>(transfer_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    if (length < 0) fail("the server does not say how large the file is");
    if (status == 200) return start_(0, length);
    const auto range = content_range(transfer_);
    if (range.begin != offset_ || range.size != offset_ + length) {
      fail("the server sent another part of the file than was requested");
    }
    start_(range.begin, range.size);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw HttpError(url_ + ": " + why); }

  // Called by curl; exceptions must not pass through its code.
  static std::size_t written(char* bytes, std::size_t, std::size_t count, void* answer) {
    auto& self = *static_cast<Answer*>(answer);
    try {
      self.check();
      self.take_(std::span<const char>(bytes, count));
      return count;
    } catch (...) {
      self.failure_ = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }

  CURL* transfer_;
  std::string url_;
  std::int64_t offset_;
  const std::function<void(std::int64_t begin, std::int64_t size)>& start_;
  const std::function<void(std::span<const char>)>& take_;
  bool checked_ = false;
  std::exception_ptr failure_;
};

void set_certificates(CURL* transfer) {
  // The programs of OpenSSL and curl honor these variables; libcurl does not.
  if (const auto file = environment("SSL_CERT_FILE")) curl_easy_setopt(transfer, CURLOPT_CAINFO, file->c_str());
  if (const auto folder = environment("SSL_CERT_DIR")) curl_easy_setopt(transfer, CURLOPT_CAPATH, folder->c_str());
}

}  // namespace

void http_get(const std::string& url, std::int64_t offset, double timeout,
              const std::function<void(std::int64_t begin, std::int64_t size)>& start,
              const std::function<void(std::span<const char>)>& take) {
  const bool secure = url.starts_with("https://");
  if (!secure && !url.starts_with("http://"))
    throw HttpError(url + ": is not an address that begins with http:// or https://");
  const Transfer transfer(curl_easy_init());
  if (!transfer) throw HttpError(url + ": curl cannot be started");
  CURL* const curl = transfer.get();
  std::array<char, CURL_ERROR_SIZE> reason{};
  const auto silence = std::max(1L, static_cast<long>(timeout));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "phalanx");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirections);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, std::min(silence, kConnectSeconds));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, silence);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set_certificates(curl);
  // Uses a range rather than CURLOPT_RESUME_FROM, which fails if a server sends the whole file instead.
  const auto range = std::to_string(offset) + "-";
  if (offset > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());

  Answer answer(curl, url, offset, start, take);
  const auto code = curl_easy_perform(curl);
  answer.finish();
  if (code == CURLE_OPERATION_TIMEDOUT && info<curl_off_t>(curl, CURLINFO_CONNECT_TIME_T) > 0) {
    throw HttpError(url + ": nothing was received for " + std::to_string(silence) + " seconds");
  }
  if (code != CURLE_OK) throw HttpError(url + ": " + (reason[0] != 0 ? reason.data() : curl_easy_strerror(code)));
  answer.check();
}

}  // namespace phalanx
