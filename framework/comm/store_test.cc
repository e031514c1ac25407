#include "framework/comm/store.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLong{30};
constexpr Seconds kShort{0.05};

std::string new_path(const std::string& name) {
  const auto path = ::testing::TempDir() + "store_test-" + std::to_string(::getpid()) + "-" + name;
  std::filesystem::remove(path);
  return path;
}

CommError error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return {CommError::Kind::kSystem, ""};
}

// A port on which this object listens; nobody else can have it meanwhile.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET6, SOCK_STREAM, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t length = sizeof(address);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), length);
    ::listen(socket_, 1);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin6_port);
  }
  ~Listener() { ::close(socket_); }
  int port() const { return port_; }

 private:
  int socket_;
  int port_;
};

using testing::free_port;

void keep_notes(Store& writer, Store& reader) {
  const std::string binary("a\0b\xff", 4);
  writer.set("binary", binary);
  writer.set("empty", "");
  EXPECT_EQ(reader.get("binary"), binary);
  EXPECT_EQ(reader.get("empty"), "");
  writer.set("binary", "new");
  EXPECT_EQ(reader.get("binary"), "new");
  EXPECT_EQ(writer.add("count", 2), 2);
  EXPECT_EQ(reader.add("count", -3), -1);
  auto later = std::async(std::launch::async, [&] { return reader.get("later"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  writer.set("later", "here");
  EXPECT_EQ(later.get(), "here");
}

void expect_timeout(Store& store) {
  const auto error = error_of([&] { store.get("absent"); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("\"absent\""), HasSubstr("0.05 s")));
}

TEST(HashStore, KeepsNotes) {
  const auto store = make_hash_store(kLong);
  keep_notes(*store, *store);
  expect_timeout(*make_hash_store(kShort));
}

TEST(FileStore, WaitsNoLongerThanItMay) { expect_timeout(*make_file_store(new_path("waits"), 1, kShort)); }

TEST(FileStore, KeepsNotesAndIsRemovedByTheLastToLeave) {
  const auto path = new_path("notes");
  auto one = make_file_store(path, 2, kLong);
  auto two = make_file_store(path, 2, kLong);
  keep_notes(*one, *two);
  one.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, IsNobodyElses) {
  const auto path = new_path("private");
  const auto store = make_file_store(path, 1, kLong);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(FileStore, DoesNotFollowALink) {
  const auto path = new_path("link");
  std::filesystem::create_symlink("/dev/null", path);
  const auto error = error_of([&] { make_file_store(path, 1, kLong); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), HasSubstr(path));
  std::filesystem::remove(path);
}

TEST(FileStore, RefusesWhatAnEarlierRunLeft) {
  const auto path = new_path("stale");
  std::ofstream(path) << "left by a crash";
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto error = error_of([&] { make_file_store(path, 1, kLong); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("earlier run"), HasSubstr("remove it")));
  std::filesystem::remove(path);
}

TEST(FileStore, SaysWhyAFileCannotBe) {
  const auto error = error_of([] { make_file_store("/no/such/folder/store", 1, kLong); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/no/such/folder/store"), HasSubstr("No such file or directory")));
}

TEST(TcpStore, KeepsNotes) {
  const int port = free_port();
  auto peer = std::async(std::launch::async, [port] { return make_tcp_store("localhost", port, false, 2, kLong); });
  const auto server = make_tcp_store("localhost", port, true, 2, kLong);
  const auto client = peer.get();
  keep_notes(*server, *client);
  keep_notes(*make_prefix_store("again", client), *make_prefix_store("again", server));
}

TEST(TcpStore, AThreadThatWaitsDoesNotKeepOthersWaiting) {
  const auto store = make_tcp_store("localhost", free_port(), true, 1, kLong);
  auto waiting = std::async(std::launch::async, [&] { return store->get("key"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store->set("key", "value");
  EXPECT_EQ(waiting.get(), "value");
}

TEST(TcpStore, SaysThatThePortIsTaken) {
  const Listener other;
  const auto error = error_of([&] { make_tcp_store("localhost", other.port(), true, 1, kLong); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(other.port())),
                                  HasSubstr("address already in use"), HasSubstr("MASTER_PORT")));
}

TEST(TcpStore, SaysThatNobodyAnswers) {
  const testing::SilentPort silent;
  const auto error = error_of([&] { make_tcp_store("localhost", silent.port(), false, 2, Seconds(1)); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(silent.port())), HasSubstr("cannot reach")));
}

TEST(TcpStore, SaysThatAnAddressCannotBeResolved) {
  ::testing::internal::CaptureStderr();
  const auto error = error_of([] { make_tcp_store("no.such.host.invalid", 29500, false, 2, Seconds(1)); });
  const std::string console = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot resolve the address no.such.host.invalid ("),
                                  HasSubstr("MASTER_ADDR"), Not(HasSubstr("firewall"))));
  EXPECT_THAT(console, AllOf(HasSubstr("cannot resolve the address"), Not(HasSubstr("frame #"))));
}

TEST(TcpStore, LeavesStackTracesOfItsAttemptsOut) {
  ::testing::internal::CaptureStderr();
  const auto error = error_of([] { make_tcp_store("127.0.0.1", free_port(), false, 2, Seconds(1)); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot reach it"), Not(HasSubstr("frame #"))));
}

TEST(TcpStore, SaysHowManyRanksCame) {
  const auto error = error_of([] { make_tcp_store("localhost", free_port(), true, 3, kShort); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("only 1 of 3 ranks"));
}

TEST(TcpStore, ALostServerIsALostPeer) {
  const int port = free_port();
  auto peer = std::async(std::launch::async, [port] { return make_tcp_store("localhost", port, false, 2, kLong); });
  auto server = make_tcp_store("localhost", port, true, 2, kLong);
  const auto client = peer.get();
  server.reset();
  EXPECT_EQ(error_of([&] { client->get("key"); }).kind(), CommError::Kind::kPeerLost);
}

TEST(TcpStore, ListensAtTheAddressThatWasAskedForOnly) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const int port = free_port();
    const auto store = make_tcp_store(host, port, true, 1, kLong);
    const std::string at = ":" + std::to_string(port);
    connect_to("127.0.0.1" + at, 10);
    EXPECT_THROW(connect_to("127.0.0.2" + at, 10), ConnectionRefused) << host;
  }
}

TEST(TcpStore, ServesAtIpv6) {
  try {
    (void)listen_at("[::1]:0");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const int port = free_port();
  auto peer = std::async(std::launch::async, [port] { return make_tcp_store("::1", port, false, 2, kLong); });
  const auto server = make_tcp_store("::1", port, true, 2, kLong);
  keep_notes(*server, *peer.get());
}

const std::string kSecret = "a secret of the tests";

TEST(SealedStore, KeepsNotes) {
  const int port = free_port();
  auto peer =
      std::async(std::launch::async, [port] { return make_tcp_store("127.0.0.1", port, false, 2, kLong, kSecret); });
  const auto server = make_tcp_store("127.0.0.1", port, true, 2, kLong, kSecret);
  const auto client = peer.get();
  keep_notes(*server, *client);
  constexpr int kRounds = 50;
  const auto count = [](Store& store) {
    for (int i = 0; i < kRounds; ++i) store.add("rounds", 1);
  };
  auto other = std::async(std::launch::async, [&] { count(*client); });
  count(*server);
  other.get();
  EXPECT_EQ(server->add("rounds", 0), 2 * kRounds);
}

// Whoever reaches the port is served by c10d; what he writes is not taken for a rank's.
TEST(SealedStore, AValueOfSomebodyWithoutTheSecretIsRefused) {
  const int port = free_port();
  const auto store = make_tcp_store("127.0.0.1", port, true, 1, kLong, kSecret);
  store->set("address", "10.0.0.1");
  store->set("other", "10.0.0.2");
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  c10d::TCPStore intruder("127.0.0.1", options);
  const auto refused = [&](const char* key) {
    const auto error = error_of([&] { store->get(key); });
    EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(key), HasSubstr("PHALANX_JOB_SECRET"), Not(HasSubstr(kSecret))));
  };
  intruder.set("sealed/new", {'x'});
  refused("new");
  intruder.set("sealed/address", intruder.get("sealed/other"));  // sealed, for another key
  refused("address");
  EXPECT_EQ(store->add("count", 1), 1);
  intruder.set("sealed/count", {'9'});
  EXPECT_THROW(store->add("count", 1), CommError);
}

TEST(SealedStore, ARankWithoutTheSecretHasNotJoined) {
  const int port = free_port();
  auto peer = std::async(std::launch::async, [port] { return make_tcp_store("127.0.0.1", port, false, 2, kLong); });
  const auto error = error_of([&] { make_tcp_store("127.0.0.1", port, true, 2, Seconds(1), kSecret); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("only 1 of 2 ranks"), HasSubstr("PHALANX_JOB_SECRET")));
  try {
    peer.get();
  } catch (const CommError&) {  // it may have come when the store was gone
  }
}

TEST(SealedStore, RefusesAShortSecret) {
  EXPECT_THROW(make_tcp_store("127.0.0.1", free_port(), true, 1, kLong, "fifteen letters"), ConfigError);
}

TEST(PrefixStore, UsersDoNotMeet) {
  const auto store = make_hash_store(kLong);
  make_prefix_store("a", store)->set("key", "1");
  make_prefix_store("b", store)->set("key", "2");
  EXPECT_EQ(make_prefix_store("a", store)->get("key"), "1");
  EXPECT_EQ(store->get("b/key"), "2");
}

TEST(StoreBarrier, NobodyPassesBeforeAllHaveArrived) {
  constexpr int kRanks = 4;
  const auto store = make_hash_store(kLong);
  std::atomic<int> arrived{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&] {
      ++arrived;
      store_barrier(*store, "start", kRanks);
      EXPECT_EQ(arrived, kRanks);
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(error_of([] { store_barrier(*make_hash_store(kShort), "alone", 2); }).kind(), CommError::Kind::kTimeout);
}

}  // namespace
}  // namespace phalanx
