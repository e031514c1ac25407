// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/recording/recorded_links.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/collectives/recording/comparison.h"
#include "framework/collectives/recording/recorder.h"
#include "framework/collectives/recording/replay.h"
#include "framework/ps/recording/replayed_links.h"
#include "framework/ps/sparse/sparse_table.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using enum testing::Rule;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kSecret;
using testing::Service;
using ::testing::ThrowsMessage;

const TableSpec kNumbers{.name = "numbers", .elements = 9, .rules = {"copy", "add"}};
const TableSpec kRows{.name = "rows",
                      .rules = {"sgd"},
                      .dim = 2,
                      .sparse = {.keys = 100, .capacity = 50, .initial = "normal", .scale = 1}};

// The answers that a client has got from its servers, in words and in tensors.
struct Learned {
  std::vector<at::Tensor> tensors{};
  std::vector<std::string> texts{};
};

// Makes requests of every kind, waits for them in another order, and pushes `update`.
Learned make_requests(Client& client, double update) {
  Learned learned;
  Table table = client.create(kNumbers);
  client.push(table, at::full({9}, 1.5F), {.rule = kCopy}).wait();
  at::Tensor early = at::zeros({9}), late = at::zeros({9}), both = at::full({9}, update, at::kFloat);
  Work first = client.pull(table, early);
  Work exchange = client.exchange(table, both, {.rule = kAdd, .scale = 2, .tick = true});
  Work last = client.pull(table, late);
  last.wait(), exchange.wait(), first.wait();
  learned.tensors = {early, both, late};

  SparseTable rows(client, kRows);
  const at::Tensor keys = at::tensor({7, 30, 7}, at::kLong);
  learned.tensors.push_back(rows.pull(keys));
  rows.push(keys, at::full({3, 2}, 0.25F), {}).wait();
  learned.tensors.push_back(rows.pull(keys));
  for (std::size_t server = 0; server < client.servers(); ++server) {
    learned.tensors.push_back(rows.read_rows(server).numbers);
  }

  TableSpec other = kNumbers;
  other.elements = 10;
  try {
    (void)client.create(other);
  } catch (const Error& refused) {
    learned.texts.emplace_back(refused.what());
  }
  for (auto& status : client.status()) learned.texts.push_back(std::move(status));
  learned.texts.push_back(std::to_string(client.lost_updates()));
  return learned;
}

class RecordedClient : public ::testing::Test {
 protected:
  RecordedClient() : folder_(::testing::TempDir() + "recorded_client_" + std::to_string(count_++)) {
    std::filesystem::remove_all(folder_);
  }

  std::shared_ptr<recording::Recorder> recorder() const {
    auto recorder = std::make_shared<recording::Recorder>(
        folder_, recording::Header{.rank = 0, .ranks = 1, .backend = "inproc", .config = "seed: 7\n"});
    recorder->add_group({.name = "world"});
    return recorder;
  }

  std::shared_ptr<recording::Replay> replay() const {
    return std::make_shared<recording::Replay>(std::make_unique<recording::Recording>(folder_, 0));
  }

  static ClientOptions options(const std::vector<std::vector<std::string>>& servers, std::shared_ptr<Links> links) {
    return {.servers = servers, .secret = kSecret, .timeout = Seconds(30), .links = std::move(links)};
  }

  // Makes the requests of make_requests(). With an end, the run ended well.
  Learned record(double update = 0.5, bool end = true) const {
    Service service(2, "unix");
    const auto to = recorder();
    std::optional<Client> client(
        std::in_place,
        options({service.servers()[0]->addresses(), service.servers()[1]->addresses()}, record_links(to)));
    Learned learned = make_requests(*client, update);
    client.reset();
    if (end) to->end_run(0, 0);
    return learned;
  }

  // Makes the same requests without servers, and at the end one that was not recorded, if `more`.
  Learned replay_requests(double update = 0.5, bool more = false) const {
    Client client(options({{"unix:@nobody"}, {"unix:@nobody"}}, replay_links(replay())));
    Learned learned = make_requests(client, update);
    if (more) (void)client.create({.name = "more", .elements = 1, .rules = {"copy"}});
    return learned;
  }

  std::string folder_;

 private:
  static inline int count_ = 0;
};

TEST_F(RecordedClient, LearnsTheSameWithoutServers) {
  const Learned recorded = record(), replayed = replay_requests();
  ASSERT_EQ(recorded.tensors.size(), replayed.tensors.size());
  for (std::size_t i = 0; i < recorded.tensors.size(); ++i) {
    EXPECT_TRUE(at::equal(recorded.tensors[i], replayed.tensors[i])) << i;
  }
  EXPECT_EQ(recorded.texts, replayed.texts);
  EXPECT_EQ(recorded.tensors[0].min().item<float>(), 1.5F);
  EXPECT_EQ(recorded.tensors[1].min().item<float>(), 2.5F);
  EXPECT_THAT(recorded.texts.front(), HasSubstr("refused it: "));
}

TEST_F(RecordedClient, NothingIsLeftAfterTheLastRequest) {
  record();
  const auto whole = replay();
  Client client(options({{"unix:@nobody"}, {"unix:@nobody"}}, replay_links(whole)));
  EXPECT_TRUE(whole->recording().first_left());
  make_requests(client, 0.5);
  EXPECT_FALSE(whole->recording().first_left());
  EXPECT_GT(whole->operations(), 20);
}

TEST_F(RecordedClient, AnotherUpdateIsADifference) {
  record();
  EXPECT_THAT([&] { replay_requests(0.75); },
              ThrowsMessage<recording::ReplayDifference>(
                  AllOf(HasSubstr("its input of request 4 to parameter server 0 (tables of \"default\")"),
                        HasSubstr("has other bits"))));
}

TEST_F(RecordedClient, AnotherRequestIsADifferenceOrTheEnd) {
  record();
  EXPECT_THAT([&] { replay_requests(0.5, true); },
              ThrowsMessage<recording::ReplayDifference>(
                  HasSubstr("it waits for creation of table \"more\", but the recorded rank did not")));
  std::filesystem::remove_all(folder_);
  record(0.5, false);
  EXPECT_THAT([&] { replay_requests(0.5, true); },
              ThrowsMessage<recording::RecordingEnded>(HasSubstr("was waiting for creation of table \"more\"")));
}

// A rank that restores a checkpoint makes requests that the recorded rank did not make there.
TEST_F(RecordedClient, GetsNothingWhileTheReplayIsDetached) {
  record();
  const auto alone = replay();
  const auto links = replay_links(alone);
  Client client(options({{"unix:@nobody"}, {"unix:@nobody"}}, links));
  EXPECT_FALSE(links->tables_are_there());
  alone->detach();
  EXPECT_TRUE(links->tables_are_there());
  Table table = client.create({.name = "another", .elements = 2, .rules = {"copy"}});
  at::Tensor values = at::full({2}, 4.0F);
  client.exchange(table, values, {}).wait();
  EXPECT_TRUE(at::equal(values, at::full({2}, 4.0F)));
  SparseTable rows(client, kRows);
  EXPECT_EQ(rows.read_rows(0).keys.numel(), 0);
  EXPECT_EQ(alone->operations(), 0);
}

TEST_F(RecordedClient, AServerThatCannotBeReachedCannotBeReachedInTheReplay) {
  const std::vector<std::vector<std::string>> nobody{{testing::unix_address()}};
  std::string recorded, replayed;
  try {
    const Client client(options(nobody, record_links(recorder())));
  } catch (const CommError& error) {
    recorded = error.what();
  }
  try {
    const Client client(options({{"unix:@other"}}, replay_links(replay())));
  } catch (const CommError& error) {
    replayed = error.what();
  }
  EXPECT_THAT(recorded, HasSubstr(nobody[0][0]));
  EXPECT_EQ(recorded, replayed);
}

TEST_F(RecordedClient, TwoRunsAreComparedByWhatWasSentAndReceived) {
  record();
  const std::string first = folder_;
  const auto differ = [&](double update) {
    folder_ = first + "_other";
    std::filesystem::remove_all(folder_);
    record(update);
    const recording::Recording one(first, 0), other(folder_, 0);
    const auto found = recording::compare(one, other);
    return found ? found->text : "";
  };
  EXPECT_EQ(differ(0.5), "") << "numbers of the servers' work, and times, do not count";
  EXPECT_THAT(differ(0.75),
              AllOf(HasSubstr("the input of request 4 to parameter server "), HasSubstr(" itself computed")));
}

}  // namespace
}  // namespace phalanx::ps
