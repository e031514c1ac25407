// SPDX-License-Identifier: Apache-2.0
// Tests the formats in which TensorBoard and Prometheus read metrics.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/watch/exposition.h"
#include "engine/watch/prometheus.h"
#include "engine/watch/tensorboard.h"
#include "engine/watch/text_endpoint.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/crc32c.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

MetricsRecord logged_record() {
  return {.step = 300,
          .epoch = 1,
          .split = "train",
          .metrics = {{"loss", 0.5}, {"accuracy", 0.875}},
          .samples_per_second = 1000,
          .seconds = 2.5,
          .learning_rate = 0.1,
          .times = StepTimes{.steps = 20, .ranks = {{0.001, 0.002, 0.003, 0.004, 0.005, 0.006}, {}}}};
}

template <class T>
T take(const std::string& bytes, std::size_t& at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  at += sizeof(value);
  return value;
}

// Returns the records of a TFRecord file. Expects that both checksums of each record are correct.
std::vector<std::string> records(const std::string& path) {
  const auto unmasked = [](std::uint32_t masked) { return std::rotl(masked - 0xa282ead8u, 15); };
  const std::string file = read_file(path);
  std::vector<std::string> all;
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t begin = at;
    const auto length = take<std::uint64_t>(file, at);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file, at)), crc32c(file.data() + begin, 8));
    all.push_back(file.substr(at, length));
    at += length;
    EXPECT_EQ(unmasked(take<std::uint32_t>(file, at)), crc32c(all.back().data(), length));
  }
  return all;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

class TensorBoardTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = ::testing::TempDir() + "/tensorboard";
};

TEST_F(TensorBoardTest, RecordsAreFramedAndBeginWithTheVersion) {
  TensorBoard board(folder_);
  board.resume_after(299);
  board.add(logged_record());
  ASSERT_THAT(files_in(folder_), SizeIs(1));
  EXPECT_THAT(std::filesystem::path(files_in(folder_)[0]).filename().string(), StartsWith("events.out.tfevents."));
  const auto all = records(files_in(folder_)[0]);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_THAT(all[0], HasSubstr("\x1a\x0d"
                                "brain.Event:2"));
  // Field 2, the first step of this file, is 300. Field 7, the session log, has the status "start".
  EXPECT_THAT(all[1], HasSubstr("\x10\xac\x02\x3a\x02\x08\x01"));
}

TEST_F(TensorBoardTest, AScalarIsATagAndAFloat) {
  EventFile file(folder_, 0);
  file.add(5, {{"t", 0.5}});
  const auto event = records(file.path()).back();
  EXPECT_EQ(event[0], '\x09') << "field 1, a double: the time";
  // Step 5, then a summary of 10 bytes: a value of 8 bytes with tag "t" and the float 0.5.
  EXPECT_EQ(event.substr(9), std::string("\x10\x05\x2a\x0a\x0a\x08\x0a\x01t\x15\0\0\0\x3f", 14));
}

TEST_F(TensorBoardTest, EveryMeasuredValueHasATag) {
  TensorBoard board(folder_);
  board.add(logged_record());
  auto test = logged_record();
  test.split = "test";
  test.learning_rate.reset();
  test.times.reset();
  board.add(test);
  const auto all = records(files_in(folder_)[0]);
  for (const char* tag : {"train/loss", "train/accuracy", "train/samples_per_second", "train/learning_rate",
                          "step_ms/data", "step_ms/communication"}) {
    EXPECT_THAT(all[2], HasSubstr(tag));
  }
  EXPECT_THAT(all[3], AllOf(HasSubstr("test/loss"), Not(HasSubstr("learning_rate")), Not(HasSubstr("step_ms"))));
}

TEST_F(TensorBoardTest, AResumedRunBeginsANewFile) {
  TensorBoard(folder_).add(logged_record());
  TensorBoard(folder_).add(logged_record());
  ASSERT_THAT(files_in(folder_), SizeIs(2));
  for (const auto& file : files_in(folder_)) {
    EXPECT_THAT(records(file)[1], HasSubstr("\x10\x01\x3a\x02\x08\x01")) << "a new file begins, with step 1";
  }
}

TEST_F(TensorBoardTest, AFolderThatCannotBeCreatedIsAnErrorThatNamesTheFile) {
  EXPECT_THAT([] { TensorBoard("/proc/absent").add(logged_record()); },
              ThrowsMessage<DataError>(AllOf(StartsWith("/proc/absent/events"), HasSubstr("cannot be opened"))));
}

TEST(Exposition, HasHelpAndTypeOfEveryMetric) {
  const std::string text = to_text({.run = "a \"b\"\\", .ranks = 2, .last = {{"train", logged_record()}}});
  EXPECT_THAT(text, StartsWith("# HELP phalanx_run_info Information about the run; always 1.\n"
                               "# TYPE phalanx_run_info gauge\n"
                               "phalanx_run_info{name=\"a \\\"b\\\"\\\\\",ranks=\"2\",version=\""));
  for (const char* line :
       {"\nphalanx_reading{split=\"train\",name=\"loss\"} 0.5\n", "\nphalanx_step 300\n", "\nphalanx_epoch 1\n",
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
  auto diverged = logged_record();
  diverged.metrics = {{"loss", NAN}, {"norm", INFINITY}};
  EXPECT_THAT(to_text({.run = "a", .ranks = 1, .last = {{"train", diverged}}}),
              AllOf(HasSubstr("name=\"loss\"} NaN\n"), HasSubstr("name=\"norm\"} +Inf\n")));
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
  OwnedFile socket_;
};

std::string answer(const PrometheusEndpoint& endpoint, const std::string& what, const std::string& headers = "") {
  Client client(endpoint.port());
  EXPECT_TRUE(client.say(what + " HTTP/1.1\r\nHost: here\r\n" + headers + "\r\n"));
  return client.hear();
}

TEST(Prometheus, ServesWhatWasMeasuredLast) {
  PrometheusEndpoint endpoint({}, "run", 2);
  EXPECT_THAT(answer(endpoint, "GET /metrics"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), Not(HasSubstr("phalanx_step "))));
  endpoint.add(logged_record());
  const auto after = answer(endpoint, "GET /metrics?format=text");
  EXPECT_THAT(after, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(after, HasSubstr("\nphalanx_step 300\n"));
  const auto text = after.substr(after.find("\r\n\r\n") + 4);
  EXPECT_THAT(after, HasSubstr("\r\nContent-Length: " + std::to_string(text.size()) + "\r\n"));
  EXPECT_EQ(answer(endpoint, "HEAD /metrics"), answer(endpoint, "GET /metrics").substr(0, after.size() - text.size()));
}

TEST(Prometheus, ServesNothingElse) {
  PrometheusEndpoint endpoint({}, "run", 1);
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
  PrometheusEndpoint endpoint({}, "run", 1);
  for (const std::size_t silent : {std::size_t{20}, TextEndpoint::kMaxConnections + 10}) {
    std::vector<std::unique_ptr<Client>> clients;
    for (std::size_t i = 0; i < silent; ++i) clients.push_back(std::make_unique<Client>(endpoint.port()));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(answer(endpoint, "GET /metrics"), StartsWith("HTTP/1.1 200 "));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

TEST(Prometheus, AConnectionThatStaysSilentIsClosed) {
  PrometheusEndpoint endpoint({}, "run", 1);
  Client silent(endpoint.port());
  EXPECT_EQ(silent.hear(), "");
}

TEST(Prometheus, EndsWhateverItsClientsDo) {
  auto endpoint = std::make_unique<PrometheusEndpoint>(PrometheusConfig{}, "run", 1);
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
  const PrometheusEndpoint first({}, "run", 1);
  const std::string port = std::to_string(first.port());
  EXPECT_THAT([&] { PrometheusEndpoint({.port = first.port()}, "run", 1); },
              ThrowsMessage<ConfigError>("watch.prometheus: cannot listen at 127.0.0.1:" + port +
                                         ": Address already in use; choose another port"));
}

TEST(Prometheus, LeavesSignalsAsTheyWere) {
  struct sigaction before{}, after{};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  {
    const PrometheusEndpoint endpoint({}, "run", 1);
  }
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace phalanx
