// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/http_get.h"
#include "framework/base/http/http_server.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr double kDeadline = 60;  // seconds
constexpr std::size_t kLong = 300'000;

HttpResponse answer(const HttpRequest& request) {
  if (request.path == "/hello") return {.body = "hello\n"};
  if (request.path == "/long") return {.body = std::string(kLong, 'x')};
  if (request.path == "/query") return {.body = request.query.at("a") + "|" + request.query.at("b")};
  if (request.path == "/moved") return {.status = 302, .location = "/hello"};
  if (request.path == "/broken") throw std::runtime_error("it is broken");
  if (request.path == "/events") return {.content_type = "text/event-stream", .body = ": hello\n\n", .events = true};
  return {.status = 404, .body = "404 Not Found\n"};
}

class HttpTest : public ::testing::Test {
 protected:
  std::string address(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }
  std::string get(const std::string& path) const { return http_get(parse_http_address(address(path)), kDeadline); }

  std::unique_ptr<HttpServer> server_ = std::make_unique<HttpServer>("127.0.0.1", 0, answer);
};

// A connection that sends a request and reads the answer as it comes.
class Client {
 public:
  Client(int port, const std::string& request) : socket_(connect_to("127.0.0.1:" + std::to_string(port), kDeadline)) {
    EXPECT_EQ(::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }

  // Reads until the answer contains `words`, and returns it. Without words, reads until the server closes the
  // connection.
  std::string read_until(const std::string& words) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kDeadline);
    while (words.empty() || text_.find(words) == std::string::npos) {
      pollfd file{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      ::poll(&file, 1, 100);
      char piece[4096];
      const ssize_t count = ::recv(socket_.get(), piece, sizeof(piece), 0);
      if (count == 0) break;
      if (count > 0) text_.append(piece, static_cast<std::size_t>(count));
      if (std::chrono::steady_clock::now() > end) break;
    }
    return text_;
  }

 private:
  Descriptor socket_;
  std::string text_;
};

TEST_F(HttpTest, APageIsServedAndRead) {
  EXPECT_EQ(get("/hello"), "hello\n");
  EXPECT_EQ(get("/long"), std::string(kLong, 'x'));
}

TEST_F(HttpTest, QueriesAreDecoded) { EXPECT_EQ(get("/query?a=1%202&b=%3Cx"), "1 2|<x"); }

TEST_F(HttpTest, AStatusOtherThan200IsAnErrorOfTheReader) {
  EXPECT_THAT([&] { get("/absent"); },
              ThrowsMessage<Error>(address("/absent") + ": the server answers \"404 Not Found\""));
  EXPECT_THAT([&] { get("/broken"); }, ThrowsMessage<Error>(HasSubstr("500")));
}

TEST_F(HttpTest, ARedirectionNamesTheOtherPage) {
  EXPECT_THAT(Client(server_->port(), "GET /moved HTTP/1.1\r\nHost: here\r\n\r\n").read_until(""),
              AllOf(StartsWith("HTTP/1.1 302 "), HasSubstr("\r\nLocation: /hello\r\n")));
}

TEST_F(HttpTest, EventsReachEveryStream) {
  const std::string request = "GET /events HTTP/1.1\r\nHost: here\r\n\r\n";
  Client one(server_->port(), request), other(server_->port(), request);
  for (auto* client : {&one, &other}) {
    EXPECT_THAT(client->read_until(": hello"), HasSubstr("\r\nContent-Type: text/event-stream\r\n"));
  }
  for (const char* data : {"{\"a\":1}", "{\"a\":2}"}) server_->send_event("jobs", data);
  for (auto* client : {&one, &other}) {
    EXPECT_THAT(client->read_until("{\"a\":2}"), HasSubstr("event: jobs\ndata: {\"a\":1}\n\n"));
  }
}

TEST_F(HttpTest, AnEventStreamOutlivesTheTimeAfterWhichOtherConnectionsAreClosed) {
  Client client(server_->port(), "GET /events HTTP/1.1\r\nHost: here\r\n\r\n");
  client.read_until(": hello");
  std::this_thread::sleep_for(std::chrono::seconds(HttpServer::kIdleSeconds + 1));
  server_->send_event("jobs", "late");
  EXPECT_THAT(client.read_until("late"), HasSubstr("data: late"));
}

TEST_F(HttpTest, TheServerEndsWhileClientsWaitForEvents) {
  Client client(server_->port(), "GET /events HTTP/1.1\r\nHost: here\r\n\r\n");
  client.read_until(": hello");
  server_.reset();
  EXPECT_THAT(client.read_until(""), Not(HasSubstr("event:")));
}

TEST_F(HttpTest, EventsForClientsThatHaveGoneAreDropped) {
  {
    Client(server_->port(), "GET /events HTTP/1.1\r\nHost: here\r\n\r\n").read_until(": hello");
  }
  for (int i = 0; i < 10; ++i) server_->send_event("jobs", "x");
  EXPECT_EQ(get("/hello"), "hello\n");
}

TEST_F(HttpTest, AHostThatDoesNotExistIsAnError) {
  EXPECT_THAT(
      [] { HttpServer("no host", 0, answer); },
      ThrowsMessage<ConfigError>(AllOf(StartsWith("cannot listen at no host:0: "), EndsWith("choose another port"))));
}

TEST(HttpGet, ParsesAddresses) {
  const auto full = parse_http_address("http://node7:9400/metrics?x=1");
  EXPECT_EQ(full.host + " " + std::to_string(full.port) + " " + full.path, "node7 9400 /metrics?x=1");
  const auto six = parse_http_address("http://[::1]");
  EXPECT_EQ(six.host + " " + std::to_string(six.port) + " " + six.path, "::1 80 /");
  for (const char* wrong :
       {"https://a/", "node7:9400", "http://", "http://a:0/", "http://a:99999/", "http://a:x/", "http://a/\r\nb"}) {
    EXPECT_THAT([&] { parse_http_address(wrong); },
                ThrowsMessage<ConfigError>(HasSubstr("expected http://HOST:PORT/PATH")));
  }
}

TEST(HttpGet, AnAnswerThatDoesNotComeIsAnError) {
  const Descriptor listener = listen_at("127.0.0.1:0");
  EXPECT_THAT([&] { http_get(parse_http_address("http://" + address_of(listener.get()) + "/"), 0.2); },
              ThrowsMessage<Error>(HasSubstr("no answer in time")));
}

TEST(HttpGet, AnAnswerThatIsCutShortIsAnError) {
  const Descriptor listener = listen_at("127.0.0.1:0");
  std::thread server([&] {
    Descriptor client;
    while (!client.valid()) client = accept_from(listener.get());
    pollfd request{.fd = client.get(), .events = POLLIN, .revents = 0};
    ::poll(&request, 1, -1);
    char bytes[1024];
    (void)!::recv(client.get(), bytes, sizeof(bytes), 0);  // closing a connection with unread bytes would reset it
    const std::string part = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort";
    (void)!::send(client.get(), part.data(), part.size(), MSG_NOSIGNAL);
  });
  EXPECT_THAT([&] { http_get(parse_http_address("http://" + address_of(listener.get()) + "/"), kDeadline); },
              ThrowsMessage<Error>(HasSubstr("closed before the end")));
  server.join();
}

TEST(HttpGet, APortWithoutAServerIsAnError) {
  const std::string address = address_of(listen_at("127.0.0.1:0").get());
  EXPECT_THAT([&] { http_get(parse_http_address("http://" + address + "/"), kDeadline); },
              ThrowsMessage<Error>(HasSubstr("cannot connect to " + address)));
}

}  // namespace
}  // namespace phalanx
