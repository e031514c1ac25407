// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/prometheus.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/http_server.h"
#include "framework/observe/metrics/exposition.h"
#include "framework/observe/testing/metrics_record.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using testing::timed_record;

TEST(Exposition, HasHelpAndTypeOfEveryMetric) {
  const std::string text = to_text({.run = "a \"b\"\\", .ranks = 2, .last = {{"train", timed_record()}}});
  EXPECT_THAT(text, StartsWith("# HELP phalanx_run_info Information about the run; always 1.\n"
                               "# TYPE phalanx_run_info gauge\n"
                               "phalanx_run_info{name=\"a \\\"b\\\"\\\\\",ranks=\"2\",version=\""));
  for (const char* line :
       {"\nphalanx_metric{split=\"train\",name=\"loss\"} 0.5\n", "\nphalanx_step 300\n", "\nphalanx_epoch 1\n",
        "\nphalanx_samples_per_second{split=\"train\"} 1000\n", "\nphalanx_learning_rate 0.1\n",
        "\nphalanx_step_seconds{phase=\"forward\",rank=\"0\"} 0.002\n",
        "\nphalanx_step_seconds{phase=\"hooks\",rank=\"1\"} 0\n", "\n# TYPE phalanx_step_seconds gauge\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Exposition, OmitsWhatWasNotMeasured) {
  EXPECT_THAT(to_text({.run = "a", .ranks = 1}), AllOf(HasSubstr("phalanx_run_info"), Not(HasSubstr("phalanx_step"))));
}

TEST(Exposition, NonFiniteValuesAreWrittenAsPrometheusReadsThem) {
  auto diverged = timed_record();
  diverged.metrics = {{"loss", NAN}, {"norm", INFINITY}};
  EXPECT_THAT(to_text({.run = "a", .ranks = 1, .last = {{"train", diverged}}}),
              AllOf(HasSubstr("name=\"loss\"} NaN\n"), HasSubstr("name=\"norm\"} +Inf\n")));
}

TEST(Exposition, HasThePlannedStepsAndTheTimeOfTheLastMeasurement) {
  Exposition run{.run = "a", .ranks = 1, .planned_steps = 1200};
  EXPECT_THAT(to_text(run), AllOf(HasSubstr("\nphalanx_planned_steps 1200\n"), Not(HasSubstr("timestamp"))));
  run.add(timed_record());
  EXPECT_THAT(to_text(run),
              AllOf(HasSubstr("\nphalanx_step 300\n"), HasSubstr("\nphalanx_measured_timestamp_seconds ")));
}

TEST(Exposition, HasWhatFailuresHaveCost) {
  Exposition run{.run = "a", .ranks = 1, .restarts = 2, .failures = {.seconds = 12.5, .goodput = 0.75}};
  EXPECT_THAT(to_text(run), AllOf(HasSubstr("\nphalanx_restarts 2\n"), HasSubstr("\nphalanx_lost_ranks 0\n"),
                                  HasSubstr("\nphalanx_lost_seconds 12.5\n"), HasSubstr("\nphalanx_goodput 0.75\n")));
  auto record = timed_record();
  record.failures = {.ranks = 1, .seconds = 13, .goodput = 0.5, .returned = 1};
  run.add(record);
  run.add({.split = "test", .metrics = {}});
  EXPECT_THAT(to_text(run), AllOf(HasSubstr("\nphalanx_lost_ranks 1\n"), HasSubstr("\nphalanx_lost_seconds 13\n"),
                                  HasSubstr("\nphalanx_goodput 0.5\n"), HasSubstr("\nphalanx_returned_ranks 1\n")));
}

// A connection to a port of this host.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  bool say(const std::string& bytes) {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Returns all data until the other side closes the connection.
  std::string hear() {
    std::string all;
    char piece[512];
    for (ssize_t count = 0; (count = ::recv(socket_.get(), piece, sizeof(piece), 0)) > 0;) {
      all.append(piece, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  Descriptor socket_;
};

std::string answer(const PrometheusEndpoint& endpoint, const std::string& what, const std::string& headers = "") {
  Client client(endpoint.port());
  EXPECT_TRUE(client.say(what + " HTTP/1.1\r\nHost: here\r\n" + headers + "\r\n"));
  return client.hear();
}

TEST(Prometheus, ServesWhatWasMeasuredLast) {
  PrometheusEndpoint endpoint({}, {.run = "run", .ranks = 2});
  EXPECT_THAT(answer(endpoint, "GET /metrics"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), Not(HasSubstr("phalanx_step "))));
  endpoint.add(timed_record());
  const auto after = answer(endpoint, "GET /metrics?format=text");
  EXPECT_THAT(after, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(after, HasSubstr("\nphalanx_step 300\n"));
  const auto text = after.substr(after.find("\r\n\r\n") + 4);
  EXPECT_THAT(after, HasSubstr("\r\nContent-Length: " + std::to_string(text.size()) + "\r\n"));
  EXPECT_EQ(answer(endpoint, "HEAD /metrics"), answer(endpoint, "GET /metrics").substr(0, after.size() - text.size()));
}

TEST(Prometheus, ServesNothingElse) {
  PrometheusEndpoint endpoint({}, {.run = "run", .ranks = 1});
  EXPECT_THAT(answer(endpoint, "GET /"), StartsWith("HTTP/1.1 404 "));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(answer(endpoint, method + std::string(" /metrics"), "Content-Length: 0\r\n"),
                AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  }
  EXPECT_THAT(answer(endpoint, "nonsense"), StartsWith("HTTP/1.1 400 "));
  Client endless(endpoint.port());
  while (endless.say(std::string(4096, 'x'))) {
  }
  Client(endpoint.port()).say("GET /metrics HTTP/1.1\r\n\r\n");  // closes the connection at once
  EXPECT_THAT(answer(endpoint, "GET /metrics"), StartsWith("HTTP/1.1 200 "));
}

// If connections were served one after another, the endpoint would wait for each of them.
TEST(Prometheus, SilentConnectionsDoNotDelayAScrape) {
  PrometheusEndpoint endpoint({}, {.run = "run", .ranks = 1});
  for (const std::size_t silent : {std::size_t{20}, HttpServer::kMaxConnections + 10}) {
    std::vector<std::unique_ptr<Client>> clients;
    for (std::size_t i = 0; i < silent; ++i) clients.push_back(std::make_unique<Client>(endpoint.port()));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(answer(endpoint, "GET /metrics"), StartsWith("HTTP/1.1 200 "));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

TEST(Prometheus, AConnectionThatStaysSilentIsClosed) {
  PrometheusEndpoint endpoint({}, {.run = "run", .ranks = 1});
  Client silent(endpoint.port());
  EXPECT_EQ(silent.hear(), "");
}

TEST(Prometheus, EndsWhateverItsClientsDo) {
  auto endpoint =
      std::make_unique<PrometheusEndpoint>(PrometheusEndpoint::Address{}, Exposition{.run = "run", .ranks = 1});
  Client slow(endpoint->port()), waiting(endpoint->port());
  std::atomic<bool> over = false;
  std::thread dripping([&] {
    while (!over && slow.say("G")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_TRUE(waiting.say("G"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // by then the slow client is most likely being served
  endpoint.reset();
  over = true;
  dripping.join();
  EXPECT_EQ(waiting.hear(), "");
}

TEST(Prometheus, APortThatIsInUseIsAnErrorThatSaysSo) {
  const PrometheusEndpoint first({}, {.run = "run", .ranks = 1});
  const std::string port = std::to_string(first.port());
  EXPECT_THAT([&] { PrometheusEndpoint({.port = first.port()}, {.run = "run", .ranks = 1}); },
              ThrowsMessage<ConfigError>("watch.prometheus: cannot listen at 127.0.0.1:" + port +
                                         ": Address already in use; choose another port"));
}

TEST(Prometheus, LeavesSignalsAsTheyWere) {
  struct sigaction before{}, after{};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  {
    const PrometheusEndpoint endpoint({}, {.run = "run", .ranks = 1});
  }
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace phalanx
