// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/server_lost.h"
#include "framework/ps/sparse/sparse_table.h"
#include "framework/ps/testing/service.h"

// Parts of tables on several servers, each in its own process. The servers are killed, stopped and restarted under
// load.
namespace phalanx::ps {
namespace {

using enum testing::Rule;
using ::testing::AllOf;
using testing::filled;
using ::testing::HasSubstr;
using testing::kSecret;
using ::testing::Not;
using ::testing::ThrowsMessage;
using testing::unix_address;

const TableSpec kTwoClients = [] {
  TableSpec spec = testing::kIntegers;
  spec.clients = 2;
  return spec;
}();

class Process {
 public:
  explicit Process(const std::string& address) : address_(address) { start(); }
  ~Process() { end(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns once the server listens: a leader continues without a member if no process listens at its address.
  void start() {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) throw Error("no pipe");
    const Descriptor told(ready[0]);
    Descriptor tells(ready[1]);
    process_ = ::fork();
    if (process_ == 0) serve(tells.get());
    tells.close();
    char byte = 0;
    if (::read(told.get(), &byte, 1) != 1) throw Error("a server did not start at " + address_);
  }
  void send(int signal) const { ::kill(process_, signal); }
  void end(int signal) {
    if (process_ <= 0) return;
    send(signal);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  const std::string& address() const { return address_; }

 private:
  [[noreturn]] void serve(int tells) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      const Server server({.listen = {address_}, .secret = kSecret});
      if (::write(tells, "r", 1) != 1) ::_exit(1);
      while (true) ::pause();
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }

  std::string address_;
  pid_t process_ = -1;
};

class Failover : public ::testing::Test {
 protected:
  void start(int servers, int replicas) {
    replicas_ = replicas;
    for (int i = 0; i < servers; ++i) servers_.push_back(std::make_unique<Process>(unix_address()));
  }

  std::unique_ptr<Client> client(int number, bool come_back = true) {
    ClientOptions options{.number = number,
                          .secret = kSecret,
                          .timeout = Seconds(30),
                          .come_back = come_back,
                          .replicas = replicas_,
                          .failover = Seconds(1)};
    for (const auto& server : servers_) options.servers.push_back({server->address()});
    return std::make_unique<Client>(options);
  }

  // Runs two clients, each in a thread. `between` is called while they run; its argument waits until both have done a
  // number of rounds.
  void run(const std::function<void(Client& client, int number, std::atomic<int>& rounds)>& body,
           const std::function<void(const std::function<void(int)>& wait_for_rounds)>& between) {
    std::atomic<int> rounds = 0, running = 2;
    std::vector<std::thread> threads;
    for (int number = 0; number < 2; ++number) {
      threads.emplace_back([&, number] {
        try {
          const auto own = client(number);
          body(*own, number, rounds);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "client " << number << ": " << error.what();
        }
        --running;
      });
    }
    between([&](int count) {
      while (rounds < count && running == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    for (auto& thread : threads) thread.join();
  }

  // Pushes and exchanges, and counts the ones that were acknowledged.
  void add(Client& client, std::atomic<int>& rounds, int count) {
    Table table = client.create(kTwoClients);
    for (int round = 0; round < count; ++round, ++rounds) {
      auto values = filled(1);
      client.push(table, values, {.rule = kAdd}).wait();
      ++acknowledged_;
      client.exchange(table, values, {.rule = kAdd}).wait();
      ++acknowledged_;
    }
  }

  void expect_sum() {
    const auto reader = client(5);
    Table table = reader->create(kTwoClients);
    auto sum = filled(0);
    reader->pull(table, sum).wait();
    EXPECT_TRUE(sum.equal(filled(acknowledged_)))
        << sum[0].item<std::int64_t>() << " and " << sum[4999].item<std::int64_t>() << " of " << acknowledged_;
    EXPECT_EQ(reader->lost_updates(), 0);
  }

  void wait_for_copies(int copies) {
    const auto asks = client(6);
    for (int tries = 0; tries < 1000; ++tries) {
      int least = 100;
      for (const auto& status : asks->status()) {
        least = std::min(least, nlohmann::json::parse(status).at("copies").get<int>());
      }
      if (least >= copies) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "fewer than " << copies << " copies";
  }

  std::vector<std::unique_ptr<Process>> servers_;
  int replicas_ = 1;
  std::atomic<std::int64_t> acknowledged_ = 0;
};

TEST_F(Failover, NothingIsLostOrDoubledWhenAServerIsKilledUnderLoad) {
  for (int victim = 0; victim < 2; ++victim) {
    servers_.clear(), acknowledged_ = 0;
    start(2, 2);
    run([&](Client& client, int, std::atomic<int>& rounds) { add(client, rounds, 150); },
        [&](const auto& wait_for_rounds) {
          wait_for_rounds(60);
          servers_[victim]->end(SIGKILL);
        });
    EXPECT_EQ(acknowledged_, 600);
    expect_sum();
  }
}

TEST_F(Failover, AServerThatIsStartedAgainBecomesACopyThatMayTakeOver) {
  start(2, 2);
  run([&](Client& client, int, std::atomic<int>& rounds) { add(client, rounds, 150); },
      [&](const auto& wait_for_rounds) {
        wait_for_rounds(40);
        servers_[0]->end(SIGKILL);
        wait_for_rounds(80);
        servers_[0]->start();
        wait_for_copies(2);
        wait_for_rounds(120);
        servers_[1]->end(SIGKILL);
      });
  EXPECT_EQ(acknowledged_, 600);
  expect_sum();
}

TEST_F(Failover, ALeaderThatOnlySeemedLostGivesWay) {
  start(2, 2);
  run([&](Client& client, int, std::atomic<int>& rounds) { add(client, rounds, 150); },
      [&](const auto& wait_for_rounds) {
        wait_for_rounds(60);
        servers_[0]->send(SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        servers_[0]->send(SIGCONT);
        wait_for_rounds(120);
      });
  EXPECT_EQ(acknowledged_, 600);
  expect_sum();
}

// A silent leader breaks no connection, so it is found by pinging it.
TEST_F(Failover, ALeaderThatIsSilentIsReplaced) {
  start(2, 2);
  run([&](Client& client, int, std::atomic<int>& rounds) { add(client, rounds, 150); },
      [&](const auto& wait_for_rounds) {
        wait_for_rounds(60);
        servers_[0]->send(SIGSTOP);
        std::this_thread::sleep_for(std::chrono::seconds(6));
        servers_[0]->send(SIGCONT);
        wait_for_rounds(300);
      });
  EXPECT_EQ(acknowledged_, 600);
  expect_sum();
  const auto asks = client(6);
  EXPECT_GT(nlohmann::json::parse(asks->status()[0]).at("epoch").get<int>(), 0) << "no server took over";
}

TEST_F(Failover, EmbeddingsAreNeitherLostNorDoubled) {
  const TableSpec spec{.name = "rows", .rules = {"add"}, .dim = 4, .sparse = {.capacity = 1000}};
  start(2, 2);
  const at::Tensor keys = at::arange(100, at::kLong), ones = at::full({100, 4}, 1.0F);
  run(
      [&](Client& client, int, std::atomic<int>& rounds) {
        SparseTable table(client, spec);
        for (int round = 0; round < 200; ++round, ++rounds) {
          table.push(keys, ones, {}).wait();
          table.pull(keys);
        }
      },
      [&](const auto& wait_for_rounds) {
        wait_for_rounds(100);
        servers_[1]->end(SIGKILL);
      });
  const auto reader = client(2);
  SparseTable table(*reader, spec);
  EXPECT_TRUE(table.pull(keys).equal(at::full({100, 4}, 400.0F)));
}

TEST_F(Failover, BulkSynchronousClientsReadTheSameValuesAllAlong) {
  TableSpec spec = kTwoClients;
  spec.staleness = 0;
  start(2, 2);
  run(
      [&](Client& client, int, std::atomic<int>& rounds) {
        Table table = client.create(spec);
        for (int step = 0; step < 100; ++step, ++rounds) {
          auto values = filled(0);
          client.pull(table, values).wait();
          // The other client may be one clock ahead and have pushed for it, but not two.
          EXPECT_GE(values.min().item<std::int64_t>(), 2 * step);
          EXPECT_LT(values.max().item<std::int64_t>(), 2 * (step + 1));
          client.push(table, filled(1), {.rule = kAdd, .tick = true}).wait();
        }
        auto last = filled(0);
        client.pull(table, last).wait();
        EXPECT_TRUE(last.equal(filled(200)));
      },
      [&](const auto& wait_for_rounds) {
        wait_for_rounds(50);
        servers_[0]->end(SIGKILL);
        wait_for_rounds(100);
      });
}

TEST_F(Failover, NobodyWaitsForServersThatHaveAllEndedAndDoNotComeBack) {
  start(2, 2);
  const auto reader = client(0, /*come_back=*/false);
  Table table = reader->create(kTwoClients);
  for (const auto& server : servers_) server->end(SIGKILL);
  auto values = filled(0);
  EXPECT_THAT([&] { reader->pull(table, values).wait(); },
              ThrowsMessage<ServerLost>(
                  AllOf(HasSubstr("cannot reach a parameter server"), Not(HasSubstr("has not come back within")))));
}

TEST_F(Failover, ReplicasNeedAsManyServers) {
  start(1, 2);
  EXPECT_THROW(client(0), ConfigError);
}

}  // namespace
}  // namespace phalanx::ps
