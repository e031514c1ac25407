// SPDX-License-Identifier: Apache-2.0
#include "tools/download/http.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>

#include "framework/base/descriptor.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

constexpr std::size_t kLongestHeader = 64 << 10;
constexpr double kConnectSeconds = 20;

struct Url {
  bool secure = false;
  std::string host, port, path;
};

Url parse(const std::string& url) {
  Url parts;
  std::string_view rest = url;
  parts.secure = rest.starts_with("https://");
  if (!parts.secure && !rest.starts_with("http://"))
    throw HttpError(url + ": is no address that begins with http(s)://");
  rest.remove_prefix(parts.secure ? 8 : 7);
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto authority = rest.substr(0, slash);
  parts.path = slash < rest.size() ? std::string(rest.substr(slash)) : "/";
  const auto colon = authority.rfind(':');
  parts.host = std::string(authority.substr(0, colon));
  parts.port =
      colon == std::string_view::npos ? (parts.secure ? "443" : "80") : std::string(authority.substr(colon + 1));
  const auto unfit = [](char c) { return c <= ' ' || c == 127; };
  if (parts.host.empty() || std::ranges::any_of(url, unfit)) throw HttpError(url + ": has no host, or a space in it");
  return parts;
}

// A connection whose every read and write has a deadline.
class Connection {
 public:
  Connection(const std::string& url, const Url& parts, double timeout) : url_(url), timeout_(timeout) {
    try {
      socket_ = connect_to(parts.host + ":" + parts.port, std::min(timeout, kConnectSeconds));
    } catch (const CannotConnect& error) {
      throw HttpError(url_ + ": " + error.what());
    }
    if (parts.secure) encrypt(parts.host);
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const auto count = repeat(
          [&]() -> int {
            if (tls_) return SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()));
            return static_cast<int>(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL));
          },
          POLLOUT);
      if (count == 0) fail("the server has closed the connection");
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // 0: the server has closed the connection.
  std::size_t read(std::span<char> bytes) {
    return static_cast<std::size_t>(repeat(
        [&]() -> int {
          if (tls_) return SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
          return static_cast<int>(::recv(socket_.get(), bytes.data(), bytes.size(), 0));
        },
        POLLIN));
  }

  [[noreturn]] void fail(const std::string& why) const { throw HttpError(url_ + ": " + why); }

 private:
  void encrypt(const std::string& host) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (!context_ || SSL_CTX_set_default_verify_paths(context_.get()) != 1) fail("OpenSSL has no certificates");
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    tls_.reset(SSL_new(context_.get()));
    if (!tls_ || SSL_set_tlsext_host_name(tls_.get(), host.c_str()) != 1 || !expect(host) ||
        SSL_set_fd(tls_.get(), socket_.get()) != 1) {
      fail("OpenSSL cannot start a connection");
    }
    repeat([&] { return SSL_connect(tls_.get()); }, POLLIN);
  }

  // That the certificate is of this host.
  bool expect(const std::string& host) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str()) == 1 ||
           SSL_set1_host(tls_.get(), host.c_str()) == 1;
  }

  // Calls until it is done; 0: the other side has closed the connection.
  template <class Call>
  int repeat(const Call& call, short plain_event) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_);
    for (;;) {
      ERR_clear_error();
      const int result = call();
      if (result > 0) return result;
      short event = plain_event;
      if (tls_) {
        const int error = SSL_get_error(tls_.get(), result);
        if (error == SSL_ERROR_ZERO_RETURN) return 0;
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) fail("TLS: " + tls_reason(error));
        event = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      } else {
        if (result == 0) return 0;
        if (!not_ready()) fail(std::generic_category().message(errno));
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd ready{.fd = socket_.get(), .events = event, .revents = 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) {
        fail("nothing has come for " + std::to_string(static_cast<int>(timeout_)) + " seconds");
      }
    }
  }

  std::string tls_reason(int error) const {
    const auto verified = SSL_get_verify_result(tls_.get());
    if (verified != X509_V_OK)
      return std::string("the certificate is refused: ") + X509_verify_cert_error_string(verified);
    const auto code = ERR_get_error();
    if (code == 0) return error == SSL_ERROR_SYSCALL ? "the connection was cut" : "the connection has failed";
    std::array<char, 256> text{};
    ERR_error_string_n(code, text.data(), text.size());
    return text.data();
  }

  template <auto Free>
  struct Freed {
    void operator()(auto* pointer) const { Free(pointer); }
  };

  std::string url_;
  double timeout_;
  Descriptor socket_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> tls_;
};

struct Reply {
  int status = 0;
  std::string header;  // names in lower case
  std::string body;    // what has come with it

  // Empty: there is none.
  std::string field(const std::string& name) const {
    const auto at = header.find("\n" + name + ":");
    if (at == std::string::npos) return "";
    const auto begin = header.find_first_not_of(' ', at + name.size() + 2);
    return header.substr(begin, header.find_first_of("\r\n", begin) - begin);
  }
};

std::int64_t number(std::string_view text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Reply read_header(Connection& connection) {
  std::string text;
  std::array<char, 4096> some{};
  std::size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    const auto count = connection.read(some);
    if (count == 0 || text.size() > kLongestHeader) connection.fail("the server does not answer as HTTP servers do");
    text.append(some.data(), count);
  }
  Reply reply{.header = text.substr(0, end + 2), .body = text.substr(end + 4)};
  if (!reply.header.starts_with("HTTP/1.")) connection.fail("the server does not answer as HTTP servers do");
  reply.status = static_cast<int>(number(std::string_view(reply.header).substr(std::min<std::size_t>(9, end))));
  std::ranges::transform(reply.header, reply.header.begin(), [](unsigned char c) { return std::tolower(c); });
  return reply;
}

// Where the body begins in the file, and how large that is.
std::pair<std::int64_t, std::int64_t> extent(const Connection& connection, const Reply& reply, std::int64_t offset) {
  if (!reply.field("transfer-encoding").empty()) connection.fail("the server does not say how large the file is");
  const auto length = number(reply.field("content-length"));
  if (length < 0) connection.fail("the server does not say how large the file is");
  if (reply.status == 200) return {0, length};
  const auto range = reply.field("content-range");  // "bytes 5-9/10"
  const auto slash = range.find('/');
  const auto begin = range.starts_with("bytes ") ? number(std::string_view(range).substr(6)) : -1;
  const auto size = slash == std::string::npos ? -1 : number(std::string_view(range).substr(slash + 1));
  if (begin != offset || size != offset + length) connection.fail("the server gives another part than was asked for");
  return {begin, size};
}

}  // namespace

void http_get(const std::string& url, std::int64_t offset, double timeout,
              const std::function<void(std::int64_t begin, std::int64_t size)>& start,
              const std::function<void(std::span<const char>)>& take) {
  const Url parts = parse(url);
  Connection connection(url, parts, timeout);
  const std::string range = offset > 0 ? "Range: bytes=" + std::to_string(offset) + "-\r\n" : "";
  connection.write("GET " + parts.path + " HTTP/1.1\r\nHost: " + parts.host +
                   "\r\nUser-Agent: phalanx\r\nAccept-Encoding: identity\r\n" + range + "Connection: close\r\n\r\n");
  const Reply reply = read_header(connection);
  if (reply.status != 200 && !(reply.status == 206 && offset > 0)) {
    connection.fail("the server answers with status " + std::to_string(reply.status) +
                    (reply.status / 100 == 3 ? ", a redirection, which is not followed" : ""));
  }
  const auto [begin, size] = extent(connection, reply, offset);
  start(begin, size);
  auto left = size - begin;
  const auto give = [&](std::span<const char> bytes) {
    const auto count = std::min(static_cast<std::int64_t>(bytes.size()), left);
    take(bytes.first(static_cast<std::size_t>(count)));
    left -= count;
  };
  give(reply.body);
  std::array<char, 64 << 10> bytes{};
  while (left > 0) {
    const auto count = connection.read(bytes);
    if (count == 0) connection.fail("the connection was cut, " + std::to_string(left) + " bytes before the end");
    give(std::span(bytes).first(count));
  }
}

}  // namespace phalanx
