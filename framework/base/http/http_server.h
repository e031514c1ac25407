// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

struct HttpRequest {
  std::string path;                            // "/metrics", decoded
  std::map<std::string, std::string> query{};  // decoded
};

/// The answer to a request.
struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::string location{};  // of a redirection
  bool events = false;     // the body is followed by server-sent events for as long as the connection lasts
};

/// Answers GET and HEAD over HTTP/1.1 during its lifetime. All connections share one thread of the server, which
/// receives no signals. Other methods get status 405, and malformed requests 400.
///
/// With a secret, only clients that prove that they know it are answered (http_authentication.h). Others get status
/// 401, and are logged at a limited rate. HTTP/1.1 is parsed first: libmicrohttpd reads at most 16 KiB for that.
///
/// No client can block another or the server: at most 16 KiB of a request are read, a connection on which nothing
/// happens for kIdleSeconds is closed, the oldest connection is closed if there are more than kMaxConnections, and the
/// destructor does not wait for clients.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens at `port` of `address`, a name or a number; port 0 selects any free port. The server's thread calls
  /// `handler` for each request; an exception becomes status 500. Throws ConfigError if it cannot listen: "cannot
  /// listen at 127.0.0.1:80: Permission denied; choose another port".
  HttpServer(const std::string& address, int port, Handler handler, std::optional<std::string> secret = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Sends an event to all connections whose response has `events`: `data` is one line. A client that does not read its
  /// events is dropped. Thread-safe; never blocks.
  void send_event(std::string_view name, std::string_view data);

  int port() const;

  static constexpr std::size_t kMaxConnections = 64;
  static constexpr unsigned kIdleSeconds = 2;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace phalanx
