// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/http_server.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/event_streams.h"
#include "framework/base/http/http_authentication.h"
#include "framework/base/http/used_proofs.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/log_rate_limiter.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxRequest = 16384;
// Connections beyond kMaxConnections that exist until the oldest ones are closed. Further ones wait in the system.
constexpr unsigned kSpareConnections = 16;

constexpr const char* kRealm = "phalanx";
constexpr unsigned kNonceSeconds = 300;  // time within which a client must use a nonce
constexpr unsigned kNonces = 1024;       // nonces that are remembered, so that none is used twice

// Returns a listening socket. Throws ConfigError with the reason that listen_at() gives.
Descriptor listen_for_http(const std::string& address, int port) {
  const bool six = address.find(':') != std::string::npos;
  const std::string where = (six ? "[" + address + "]" : address) + ":" + std::to_string(port);
  try {
    return listen_at(where);
  } catch (const Error& error) {
    const std::string message = error.what(), expected = "cannot listen at " + where;
    throw ConfigError((message.starts_with(expected) ? message : expected + ": " + message) + "; choose another port");
  }
}

int port_of(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

MHD_Result add_to_query(void* query, MHD_ValueKind, const char* key, const char* value) {
  static_cast<std::map<std::string, std::string>*>(query)->emplace(key, value == nullptr ? "" : value);
  return MHD_YES;
}

HttpResponse refusal(int status, const std::string& text) { return {.status = status, .body = text + "\n"}; }

}  // namespace

// Has the callbacks of libmicrohttpd, which calls them on a single thread, so connections_ needs no lock.
class HttpServer::Server {
 public:
  Server(const std::string& address, int port, Handler handler, std::optional<std::string> secret)
      : handler_(std::move(handler)), secret_(std::move(secret)), token_(secret_ ? http_token(*secret_) : "") {
    Descriptor listener = listen_for_http(address, port);
    port_ = port_of(address_of(listener.get()));
    const BlockedSignals blocked;  // signals must go to threads that expect them
    daemon_ =
        ::MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0,
                           nullptr, nullptr, &Server::on_request, this, MHD_OPTION_LISTEN_SOCKET, listener.get(),
                           MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequest,
                           MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(kMaxConnections) + kSpareConnections,
                           MHD_OPTION_DIGEST_AUTH_RANDOM, random_.size(), random_.data(), MHD_OPTION_NONCE_NC_SIZE,
                           kNonces, MHD_OPTION_NOTIFY_CONNECTION, &Server::on_connection, this, MHD_OPTION_END);
    if (daemon_ == nullptr) throw ConfigError("cannot serve HTTP: libmicrohttpd does not start");
    listener.release();  // the daemon closes it
  }

  ~Server() {
    streams_.end();
    ::MHD_stop_daemon(daemon_);
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  EventStreams& streams() { return streams_; }

 private:
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url, const char* method,
                               const char* version, const char*, std::size_t*, void**) {
    return static_cast<Server*>(self)->answer(connection, url, method, version);
  }

  MHD_Result answer(MHD_Connection* connection, const std::string& url, const std::string& method,
                    const std::string& version) {
    if (const int proof = check_proof(connection); proof != MHD_YES) return challenge(connection, proof);
    HttpResponse response;
    if (!version.starts_with("HTTP/1.")) {
      response = refusal(400, "400 Bad Request");
    } else if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      response = refusal(405, "405 Method Not Allowed");
    } else {
      response = handle(connection, url);
    }
    MHD_Response* made = response.events ? streams_.open(connection, std::move(response.body))
                                         : ::MHD_create_response_from_buffer(response.body.size(), response.body.data(),
                                                                             MHD_RESPMEM_MUST_COPY);
    if (made == nullptr) return MHD_NO;  // closes the connection
    const auto add = [made](const char* name, const std::string& value) {
      if (!value.empty()) ::MHD_add_response_header(made, name, value.c_str());
    };
    add(MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type);
    add(MHD_HTTP_HEADER_LOCATION, response.location);
    add(MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    add(MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    add(MHD_HTTP_HEADER_CONNECTION, response.events ? "" : "close");
    const MHD_Result queued = ::MHD_queue_response(connection, static_cast<unsigned>(response.status), made);
    ::MHD_destroy_response(made);
    return queued;
  }

  // Returns MHD_YES if the client has proved that it knows the secret, MHD_INVALID_NONCE if it did so with a nonce that
  // is too old or was used before, and MHD_NO otherwise.
  int check_proof(MHD_Connection* connection) {
    if (!secret_) return MHD_YES;
    const char* given = ::MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (given == nullptr) return MHD_NO;
    if (equal_hashes(given, "Bearer " + token_)) return MHD_YES;
    // The proof must not contain escapes, which would hide it from UsedProofs.
    if (std::strchr(given, '\\') != nullptr) return MHD_NO;
    const int proof = ::MHD_digest_auth_check2(connection, kRealm, kHttpUser.c_str(), secret_->c_str(), kNonceSeconds,
                                               MHD_DIGEST_ALG_SHA256);
    return proof != MHD_YES || used_proofs_.are_new(given) ? proof : MHD_INVALID_NONCE;
  }

  MHD_Result challenge(MHD_Connection* connection, int proof) {
    const bool tried =
        ::MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION) != nullptr;
    if (tried && proof == MHD_NO) {
      if (const auto more = log_refused_.pass()) {
        log_warning() << "HTTP, port " << port_ << ": refused a request of " << peer_of(connection)
                      << ": it does not know the job's secret (PHALANX_JOB_SECRET)" << *more;
      }
    }
    const std::string text = "401 Unauthorized: the name is " + kHttpUser + ", the password the job's secret\n";
    MHD_Response* made =
        ::MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
    if (made == nullptr) return MHD_NO;
    ::MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result queued =
        ::MHD_queue_auth_fail_response2(connection, kRealm, opaque_.c_str(), made,
                                        proof == MHD_INVALID_NONCE ? MHD_YES : MHD_NO, MHD_DIGEST_ALG_SHA256);
    ::MHD_destroy_response(made);
    return queued;
  }

  static std::string peer_of(MHD_Connection* connection) {
    const auto* info = ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? "a client" : phalanx::peer_of(info->connect_fd);
  }

  HttpResponse handle(MHD_Connection* connection, const std::string& url) const {
    HttpRequest request{.path = url};
    ::MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &add_to_query, &request.query);
    try {
      return handler_(request);
    } catch (const std::exception& error) {
      return refusal(500, error.what());
    }
  }

  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    static_cast<Server*>(self)->follow(connection, what == MHD_CONNECTION_NOTIFY_STARTED);
  }

  // Keeps a list of the connections, and ends the oldest one if there are too many.
  void follow(MHD_Connection* connection, bool started) {
    if (!started) {
      connections_.remove(connection);
      return;
    }
    connections_.push_back(connection);
    if (connections_.size() <= kMaxConnections) return;
    const auto* info = ::MHD_get_connection_info(connections_.front(), MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) ::shutdown(info->connect_fd, SHUT_RDWR);
    connections_.pop_front();
  }

  const Handler handler_;
  const std::optional<std::string> secret_;
  const std::string token_, random_ = random_text(), opaque_ = random_text();
  UsedProofs used_proofs_{std::chrono::seconds(kNonceSeconds), opaque_};
  LogRateLimiter log_refused_{std::chrono::minutes(1)};
  int port_ = 0;
  EventStreams streams_;
  std::list<MHD_Connection*> connections_;  // oldest first
  MHD_Daemon* daemon_ = nullptr;
};

HttpServer::HttpServer(const std::string& address, int port, Handler handler, std::optional<std::string> secret)
    : server_(std::make_unique<Server>(address, port, std::move(handler), std::move(secret))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return server_->port(); }

void HttpServer::send_event(std::string_view name, std::string_view data) { server_->streams().send(name, data); }

}  // namespace phalanx
