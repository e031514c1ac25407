// SPDX-License-Identifier: Apache-2.0
// Strategies whose parameter servers are replaced during training.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/testing/optimizer.h"
#include "engine/testing/strategy.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/comm/launch/locality.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/testing/service.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ps::testing::Service;
using ::testing::HasSubstr;
using testing::kElements;
using ::testing::ThrowsMessage;

ps::ServerList list_of(Service& service) {
  ps::ServerList list{.servers = {}, .secret = ps::testing::kSecret, .run = "a run", .retry = Seconds(30)};
  for (const auto& server : service.servers()) list.servers.push_back({host_key(), server->addresses()});
  return list;
}

// Returns the number of tables on the first of the servers.
std::size_t tables_on(const Service& service) {
  return nlohmann::json::parse(service.client()->status()[0]).at("tables").size();
}

struct MovingCase {
  std::string strategy;
  int ranks;
  bool in_turn = true;  // the ranks talk to the servers in order, unless they wait for each other there
};

// Returns the values of all ranks after each of 9 steps, either with the same single server throughout, or with one,
// two and one servers for three steps each.
std::vector<at::Tensor> train(const MovingCase& of, bool moves) {
  Service one(1, "unix"), two(2, "unix");
  std::vector<at::Tensor> seen;
  testing::run_ranks("inproc", of.ranks, [&](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const auto servers = std::make_shared<ps::CurrentServers>(list_of(one));
    const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 3.0 + group->rank())}, *group,
                                    1 << 20);
    const auto& bucket = parameters.buckets().at(0);
    const auto strategy =
        make_strategy(testing::load_strategy(of.strategy), {.mesh = Mesh(group), .group = group, .servers = servers});
    auto* const updater = strategy->extensions().updates_on_servers;
    const auto optimizer = updater ? updater->make_optimizer() : testing::make_optimizer("{name: sgd, lr: 0.1}");
    optimizer->attach(strategy->attach(parameters, optimizer->cut()));
    strategy->attach_state(optimizer->state());
    for (int step = 0; step < 9; ++step) {
      if (moves && step % 3 == 0 && step > 0) {
        servers->change(list_of(step == 3 ? two : one));
        group->barrier().wait();
        if (group->rank() == 0) {
          EXPECT_EQ(tables_on(step == 3 ? one : two), 0u) << "what was left is forgotten";
          EXPECT_GT(tables_on(step == 3 ? two : one), 0u);
        }
      }
      bucket.gradients.add_(testing::gradient_at(bucket.values, group->rank(), step));
      strategy->before_update(step);
      optimizer->update();
      for (int turn = 0; turn < group->size(); ++turn) {
        if (turn == (of.in_turn ? group->rank() : 0)) strategy->after_update(step);
        group->barrier().wait();
      }
      const at::Tensor all = testing::gather(bucket.values, *group);
      if (group->rank() == 0) seen.push_back(all);
    }
    strategy->finish();
    for (const auto& [name, value] : strategy->metrics()) {
      if (group->rank() == 0 && name == "pulls") {
        EXPECT_GE(value, 4) << "also those of servers that were left";
      }
    }
  });
  return seen;
}

class MovingServers : public ::testing::TestWithParam<MovingCase> {};

INSTANTIATE_TEST_SUITE_P(
    Strategies, MovingServers,
    ::testing::Values(MovingCase{"{name: downpour, every: 1}", 2}, MovingCase{"{name: ssp, staleness: 2}", 2},
                      MovingCase{"{name: downpour, every: 1, server_optimizer: adam}", 2},
                      MovingCase{"{name: easgd, every: 1}", 2},
                      MovingCase{"{name: easgd, every: 1, synchronous: true}", 1}, MovingCase{"sync_ps", 2},
                      MovingCase{"{name: sync_ps, server_optimizer: adam}", 2, false}, MovingCase{"dc_asgd", 1}));

TEST_P(MovingServers, ChangeNoBitOfTheResult) {
  const auto stayed = train(GetParam(), false), moved = train(GetParam(), true);
  ASSERT_EQ(moved.size(), 9u);
  for (std::size_t step = 0; step < moved.size(); ++step) EXPECT_TRUE(at::equal(moved[step], stayed[step])) << step;
}

// The group inside a host and the group between hosts have the same name.
TEST(ServersOfLevels, HaveTablesForEachLevel) {
  Service service(2, "unix");
  testing::run_ranks("inproc", 4, [&](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const auto values_after_steps = [&](const std::string& strategy_yaml, const StrategyContext& context) {
      const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 3.0)}, *group, 1 << 20);
      const auto& bucket = parameters.buckets().at(0);
      const auto strategy = make_strategy(testing::load_strategy(strategy_yaml), context);
      auto optimizer = testing::make_optimizer("{name: sgd, lr: 0.1}");
      optimizer->attach(strategy->attach(parameters, optimizer->cut()));
      strategy->attach_state(optimizer->state());
      for (int step = 0; step < 5; ++step) {
        bucket.gradients.add_(testing::gradient_at(bucket.values, group->rank(), step));
        strategy->before_update(step);
        optimizer->update();
        strategy->after_update(step);
      }
      strategy->finish();
      return bucket.values.clone();
    };
    const auto servers = std::make_shared<ps::CurrentServers>(list_of(service));
    const auto levels = values_after_steps("{intra: sync_ps, inter: sync_ps, ranks_per_group: 2}",
                                           {.mesh = Mesh(group), .group = group, .servers = servers});
    const auto expected = values_after_steps("all_reduce", {.mesh = Mesh(group), .group = group});
    EXPECT_TRUE(at::allclose(levels, expected, 1e-5)) << "rank " << group->rank();
  });
}

TEST(ReadAddresses, TakesOneFromEachLineAndNamesInvalidLines) {
  const std::string path = ::testing::TempDir() + "/servers";
  const auto read = [&](const std::string& text) {
    write_atomically(path, text);
    return ps::read_addresses(path);
  };
  EXPECT_EQ(read("# two\n10.0.0.1:7000  # the first\n\n unix:@name\r\n"),
            (std::vector<std::string>{"10.0.0.1:7000", "unix:@name"}));
  EXPECT_THAT([&] { read("a:1\nhere\n"); },
              ThrowsMessage<DataError>(HasSubstr("servers:2: \"here\" is not an address")));
  EXPECT_THAT([&] { read("a:1\na:1\n"); }, ThrowsMessage<DataError>(HasSubstr("servers:2: \"a:1\" is listed twice")));
  EXPECT_THAT([&] { read("# none\n"); }, ThrowsMessage<DataError>(HasSubstr("has no address of a server")));
  EXPECT_THAT([&] { read(std::string(100'000, 'x') + "\n"); },
              ThrowsMessage<DataError>(HasSubstr("servers:1: \"" + std::string(97, 'x') + "...\" is not an address")));
  EXPECT_THROW(ps::read_addresses(path + ".none"), DataError);
}

}  // namespace
}  // namespace phalanx
