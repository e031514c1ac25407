// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/comm/testing/store.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::kLong;
using testing::kSecret;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kShort{0.05};

std::string new_path(const std::string& name) {
  const auto path = ::testing::TempDir() + "store_test-" + std::to_string(::getpid()) + "-" + name;
  std::filesystem::remove(path);
  return path;
}

// Listens on a port, so that no other process can have it while this object lives.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET6, SOCK_STREAM, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
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
  const auto error = comm_error_of([&] { store.get("absent"); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("\"absent\""), HasSubstr("0.05 s")));
}

TEST(HashStore, StoresValues) {
  const auto store = make_hash_store(kLong);
  keep_notes(*store, *store);
  expect_timeout(*make_hash_store(kShort));
}

TEST(FileStore, WaitsNoLongerThanItMay) { expect_timeout(*make_file_store(new_path("waits"), 1, kShort)); }

TEST(FileStore, EndsAWaitWhenItsCheckThrows) {
  int calls = 0;
  const auto store = make_file_store(new_path("checked"), 1, kLong, [&] {
    if (++calls == 3) throw CommError(CommError::Kind::kSystem, "enough");
  });
  EXPECT_STREQ(comm_error_of([&] { store->get("absent"); }).what(), "enough");
}

TEST(FileStore, StoresValuesAndIsRemovedByTheLastRank) {
  const auto path = new_path("notes");
  auto one = make_file_store(path, 2, kLong);
  auto two = make_file_store(path, 2, kLong);
  keep_notes(*one, *two);
  one.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, IsAccessibleToItsOwnerOnly) {
  const auto path = new_path("private");
  const auto store = make_file_store(path, 1, kLong);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(FileStore, DoesNotFollowALink) {
  const auto path = new_path("link");
  std::filesystem::create_symlink("/dev/null", path);
  const auto error = comm_error_of([&] { make_file_store(path, 1, kLong); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), HasSubstr(path));
  std::filesystem::remove(path);
}

// Joins the store of `ranks`, sets a value there, and is killed.
void be_killed_as_rank(const std::string& path, int ranks) {
  const pid_t rank = ::fork();
  if (rank == 0) {
    const auto store = make_file_store(path, ranks, kLong);
    store->set("address", "of the dead run");
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(rank, nullptr, 0), rank);
  ASSERT_GT(std::filesystem::file_size(path), 0U);
}

TEST(FileStore, ReplacesTheFileOfADeadRun) {
  const auto path = new_path("stale");
  be_killed_as_rank(path, 2);
  be_killed_as_rank(path, 2);
  auto one = make_file_store(path, 2, kShort);
  expect_timeout(*one);
  EXPECT_THROW(one->get("address"), CommError);
  auto two = make_file_store(path, 2, kLong);
  one->set("address", "of this run");
  EXPECT_EQ(two->get("address"), "of this run");
  one.reset();
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, ReplacesAnyFileThatNoProcessUses) {
  const auto path = new_path("old");
  std::ofstream(path) << "left by a crash";
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto store = make_file_store(path, 1, kLong);
  store->set("key", "value");
  EXPECT_EQ(store->get("key"), "value");
}

TEST(FileStore, KeepsTheValuesOfARunningRank) {
  const auto path = new_path("living");
  const auto one = make_file_store(path, 3, kLong);
  one->set("address", "of this run");
  be_killed_as_rank(path, 3);
  EXPECT_EQ(make_file_store(path, 3, kLong)->get("address"), "of the dead run") << "which was a rank of this run";
}

TEST(FileStore, RanksThatStartTogetherAgreeOnOneFile) {
  for (int round = 0; round < 20; ++round) {
    const auto path = new_path("race" + std::to_string(round));
    be_killed_as_rank(path, 4);
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&] {
        const auto store = make_file_store(path, 4, kLong);
        store_barrier(*store, "all", 4);
      });
    }
  }
}

TEST(FileStore, DoesNotWaitForEverForItsLock) {
  const auto path = new_path("locked");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const auto error = comm_error_of([&] { make_file_store(path, 1, kShort); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("0.05 s"), HasSubstr("lock")));
  ::close(file);
  std::filesystem::remove(path);
}

TEST(FileStore, SaysWhyAFileCannotBeCreated) {
  const auto error = comm_error_of([] { make_file_store("/no/such/folder/store", 1, kLong); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/no/such/folder/store"), HasSubstr("No such file or directory")));
}

TEST(FileStore, SaysSoonThatItsFolderIsGone) {
  const auto folder = new_path("gone");
  std::filesystem::create_directory(folder);
  const auto store = make_file_store(folder + "/store", 1, kLong);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(comm_error_of([&] { store->get("a"); }).kind(), CommError::Kind::kSystem);
}

// Without a secret, the server is c10d's; with one, it is a StoreServer.
class TcpStore : public ::testing::TestWithParam<bool> {
 protected:
  static StorePtr make(const std::string& host, int port, StoreHost hosted_by, int ranks, Seconds timeout = kLong) {
    const auto secret = GetParam() ? std::optional(kSecret) : std::nullopt;
    const int rank = hosted_by == StoreHost::kThisProcess ? 0 : 1;
    return make_tcp_store({host, port, hosted_by, ranks, timeout, secret, rank});
  }

  static StorePtr host(const std::string& host, int port, int ranks = 1, Seconds timeout = kLong) {
    return make(host, port, StoreHost::kThisProcess, ranks, timeout);
  }

  static StorePtr join(const std::string& host, int port, Seconds timeout = kLong) {
    return make(host, port, StoreHost::kPeer, 2, timeout);
  }

  // The two ranks of a job, the first of which hosts the store.
  static std::pair<StorePtr, StorePtr> both(const std::string& address) {
    const int port = free_port();
    auto peer = std::async(std::launch::async, [=] { return join(address, port); });
    auto server = host(address, port, 2);
    return {std::move(server), peer.get()};
  }
};

INSTANTIATE_TEST_SUITE_P(, TcpStore, ::testing::Bool(), [](const auto& secret) -> std::string {
  return secret.param ? "WithASecret" : "WithoutASecret";
});

TEST_P(TcpStore, StoresValues) {
  const auto [server, client] = both("localhost");
  keep_notes(*server, *client);
  keep_notes(*make_prefix_store("again", client), *make_prefix_store("again", server));
}

TEST_P(TcpStore, SumsOfManyThreadsAreExact) {
  constexpr int kThreads = 4, kRounds = 100;
  const auto [server, client] = both("localhost");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&store = i % 2 == 0 ? *server : *client] {
      for (int round = 0; round < kRounds; ++round) store.add("rounds", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(client->add("rounds", 0), kThreads * kRounds);
  EXPECT_EQ(server->get("rounds"), std::to_string(kThreads * kRounds));
}

TEST_P(TcpStore, StoresLongValues) {
  const auto [server, client] = both("localhost");
  const std::string value(5'000'000, 'v');
  server->set("long", value);
  EXPECT_EQ(client->get("long"), value);
}

TEST_P(TcpStore, AWaitingThreadDoesNotBlockOthers) {
  const auto store = host("localhost", free_port());
  auto waiting = std::async(std::launch::async, [&] { return store->get("key"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store->set("key", "value");
  EXPECT_EQ(waiting.get(), "value");
}

TEST_P(TcpStore, WaitsNoLongerThanItMay) { expect_timeout(*host("localhost", free_port(), 1, kShort)); }

TEST_P(TcpStore, SaysThatThePortIsTaken) {
  const Listener other;
  const auto error = comm_error_of([&] { host("localhost", other.port()); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(other.port())),
                                  HasSubstr("address already in use"), HasSubstr("MASTER_PORT")));
}

TEST_P(TcpStore, SaysThatTheServerDoesNotAnswer) {
  const testing::SilentPort silent;
  const auto error = comm_error_of([&] { join("localhost", silent.port(), Seconds(1)); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(silent.port())), HasSubstr("cannot reach")));
}

TEST_P(TcpStore, SaysThatAnAddressCannotBeResolved) {
  ::testing::internal::CaptureStderr();
  const auto error = comm_error_of([] { join("no.such.host.invalid", 29500, Seconds(1)); });
  const std::string console = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot resolve the address no.such.host.invalid ("),
                                  HasSubstr("MASTER_ADDR"), Not(HasSubstr("firewall"))));
  EXPECT_THAT(console, AllOf(HasSubstr("cannot resolve the address"), Not(HasSubstr("frame #"))));
}

TEST_P(TcpStore, OmitsStackTracesOfItsAttempts) {
  ::testing::internal::CaptureStderr();
  const auto error = comm_error_of([] { join("127.0.0.1", free_port(), Seconds(1)); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot reach it"), Not(HasSubstr("frame #")),
                                  HasSubstr("it was looked for at 127.0.0.1 through lo (127.0.0.1)")));
}

TEST_P(TcpStore, SaysHowManyRanksHaveJoined) {
  const auto error = comm_error_of([] { host("localhost", free_port(), 3, kShort); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("only 1 of 3 ranks"), HasSubstr("ranks 1, 2 are missing")));
  const auto of_two = comm_error_of([] { host("localhost", free_port(), 2, kShort); });
  EXPECT_THAT(of_two.what(), HasSubstr("; rank 1 is missing"));
}

TEST_P(TcpStore, TwoProcessesWithTheSameRankAreToldAtOnce) {
  const int port = free_port();
  auto server = std::async(std::launch::async, [port] { return host("localhost", port, 2); });
  const auto first = join("localhost", port);
  const auto error = comm_error_of([&] { join("localhost", port); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), HasSubstr("another process has joined as rank 1"));
  (void)server.get();
}

TEST_P(TcpStore, ALostServerIsALostPeer) {
  auto [server, client] = both("localhost");
  server.reset();
  for (int i = 0; i < 2; ++i) {
    const auto error = comm_error_of([&] { client->get("key"); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("get \"key\" of TCP store"), HasSubstr("the connection is lost")));
  }
}

TEST_P(TcpStore, ListensAtTheAddressThatWasAskedForOnly) {
  for (const std::string address : {"127.0.0.1", "localhost"}) {
    const int port = free_port();
    const auto store = host(address, port);
    const std::string at = ":" + std::to_string(port);
    connect_to("127.0.0.1" + at, 10);
    EXPECT_THROW(connect_to("127.0.0.2" + at, 10), ConnectionRefused) << address;
  }
}

TEST_P(TcpStore, ServesAtIpv6) {
  try {
    (void)listen_at("[::1]:0");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto [server, client] = both("::1");
  keep_notes(*server, *client);
}

// A store that torchrun's agent hosts. It admits everyone.
class SealedStore : public ::testing::Test {
 protected:
  StorePtr join() const { return make_tcp_store({"127.0.0.1", port_, StoreHost::kAgent, 2, kLong, kSecret}); }

  const int port_ = free_port();
  const StorePtr agent_ = make_tcp_store({"127.0.0.1", port_, StoreHost::kThisProcess, 1, kLong});
};

TEST_F(SealedStore, StoresValues) {
  const auto one = join(), other = join();
  keep_notes(*one, *other);
  constexpr int kRounds = 50;
  const auto count = [](Store& store) {
    for (int i = 0; i < kRounds; ++i) store.add("rounds", 1);
  };
  auto counting = std::async(std::launch::async, [&] { count(*other); });
  count(*one);
  counting.get();
  EXPECT_EQ(one->add("rounds", 0), 2 * kRounds);
}

TEST_F(SealedStore, AValueWrittenWithoutTheSecretIsRefused) {
  const auto store = join();
  store->set("address", "10.0.0.1");
  store->set("other", "10.0.0.2");
  const auto refused = [&](const char* key) {
    const auto error = comm_error_of([&] { store->get(key); });
    EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(key), HasSubstr("PHALANX_JOB_SECRET"), Not(HasSubstr(kSecret))));
  };
  agent_->set("sealed/new", "x");
  refused("new");
  agent_->set("sealed/address", agent_->get("sealed/other"));  // sealed, for another key
  refused("address");
  EXPECT_EQ(store->add("count", 1), 1);
  agent_->set("sealed/count", "9");
  EXPECT_THROW(store->add("count", 1), CommError);
}

TEST(PrefixStore, SeparatesUsers) {
  const auto store = make_hash_store(kLong);
  make_prefix_store("a", store)->set("key", "1");
  make_prefix_store("b", store)->set("key", "2");
  EXPECT_EQ(make_prefix_store("a", store)->get("key"), "1");
  EXPECT_EQ(store->get("b/key"), "2");
}

TEST(StoreBarrier, NoRankPassesBeforeAllHaveArrived) {
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
  EXPECT_EQ(comm_error_of([] { store_barrier(*make_hash_store(kShort), "alone", 2); }).kind(),
            CommError::Kind::kTimeout);
}

}  // namespace
}  // namespace phalanx
