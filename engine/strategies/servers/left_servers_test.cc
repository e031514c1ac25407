// SPDX-License-Identifier: Apache-2.0
// Strategies whose ranks leave their parameter servers, and go on with new tables there, as after the loss of a rank.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/testing/optimizer.h"
#include "engine/testing/strategy.h"
#include "framework/base/error.h"
#include "framework/comm/launch/locality.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/testing/service.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ps::testing::Service;
using testing::kElements;

// A rank with everything that it has built for one generation of its world.
struct LeavingRank {
  LeavingRank(const std::string& yaml, CommunicatorPtr ranks, Service& service, std::int64_t generation)
      : group(std::move(ranks)),
        parameters(std::vector<at::Tensor>{at::full({kElements}, 3.0 + group->rank())}, *group, 1 << 20) {
    ps::ServerList list{.servers = {}, .secret = ps::testing::kSecret, .generation = generation};
    for (const auto& server : service.servers()) {
      list.servers.push_back({host_key(), server->addresses()});
    }
    strategy =
        make_strategy(testing::load_strategy(yaml),
                      {.mesh = Mesh(group), .group = group, .servers = std::make_shared<ps::CurrentServers>(list)});
    auto* const updater = strategy->extensions().updates_on_servers;
    optimizer = updater ? updater->make_optimizer() : testing::make_optimizer("{name: sgd, lr: 0.1}");
    optimizer->attach(strategy->attach(parameters, optimizer->cut()));
    strategy->attach_state(optimizer->state());
  }

  const at::Tensor& values() const { return parameters.buckets().at(0).values; }

  // The ranks take their turns at the servers.
  void step(int number) {
    const auto& bucket = parameters.buckets().at(0);
    bucket.gradients.add_(testing::gradient_at(bucket.values, group->rank(), number));
    strategy->before_update(number);
    optimizer->update();
    for (int turn = 0; turn < group->size(); ++turn) {
      if (turn == group->rank()) strategy->after_update(number);
      group->barrier().wait();
    }
  }

  // Restores what a rank of an earlier generation has left.
  void go_on(const at::Tensor& replica, const LeftCentre& left) {
    values().copy_(replica);
    std::map<std::string, at::Tensor> centre;
    for (const auto& entry : left.read()) centre[entry.name] = entry.values;
    strategy->reset();
    for (auto& entry : strategy->state()) {
      if (entry.replicated) entry.values.copy_(centre.at(entry.name));
    }
    strategy->extensions().keeps_centre->succeed(left.remove);
    group->barrier().wait();
  }

  CommunicatorPtr group;
  FlatParameters parameters;
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Optimizer> optimizer;
};

std::size_t tables_there(const Service& service) {
  return nlohmann::json::parse(service.client()->status()[0]).at("tables").size();
}

struct LeavingCase {
  std::string strategy;
  int ranks;
};

// Returns the values of all ranks after 8 steps. The ranks leave the servers after the steps in `leave_after`.
at::Tensor train_and_leave(const LeavingCase& of, const std::vector<int>& leave_after) {
  Service service(2, "unix");
  at::Tensor seen;
  testing::run_ranks("inproc", of.ranks, [&](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    std::int64_t generation = 1;
    auto rank = std::make_unique<LeavingRank>(of.strategy, group, service, generation);
    const std::size_t tables = tables_there(service);
    for (int step = 0; step < 8; ++step) {
      rank->step(step);
      for (const int one : leave_after) {
        if (one != step) continue;
        const LeftCentre left = rank->strategy->extensions().keeps_centre->leave();
        EXPECT_TRUE(rank->strategy->state().empty());
        const at::Tensor replica = rank->values().clone();
        rank.reset();
        group->barrier().wait();  // all have left
        rank = std::make_unique<LeavingRank>(of.strategy, group, service, ++generation);
        rank->go_on(replica, left);
      }
    }
    const at::Tensor all = testing::gather(rank->values(), *group);
    if (group->rank() == 0) {
      seen = all;
      EXPECT_EQ(tables_there(service), tables) << "those of earlier generations are removed";
    }
    rank->strategy->finish();
  });
  return seen;
}

class LeftServers : public ::testing::TestWithParam<LeavingCase> {};

INSTANTIATE_TEST_SUITE_P(Strategies, LeftServers,
                         ::testing::Values(LeavingCase{"{name: downpour, every: 1}", 2},
                                           LeavingCase{"{name: ssp, staleness: 2}", 2},
                                           LeavingCase{"{name: downpour, every: 1, server_optimizer: adam}", 2},
                                           LeavingCase{"{name: easgd, every: 1}", 2}, LeavingCase{"dc_asgd", 1}));

TEST_P(LeftServers, ChangeNoBitOfTheResult) {
  EXPECT_TRUE(at::equal(train_and_leave(GetParam(), {2, 3, 5}), train_and_leave(GetParam(), {})));
}

// Ranks may be interrupted again before the new tables have their values.
TEST_P(LeftServers, MayBeLeftAgainBeforeTheNextStep) {
  EXPECT_TRUE(at::equal(train_and_leave(GetParam(), {2, 2}), train_and_leave(GetParam(), {})));
}

TEST(LeftServers, GetWhatARankHasNotSentYet) {
  Service service(1, "unix");
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    LeavingRank rank("{name: downpour, every: 4}", group, service, 1);
    rank.step(0);
    const LeftCentre left = rank.strategy->extensions().keeps_centre->leave();
    const at::Tensor replica = rank.values().clone();
    rank.strategy.reset();
    EXPECT_EQ(left.order, 3);
    EXPECT_TRUE(at::equal(left.read().at(0).values, replica.narrow(0, 0, kElements)));
  });
}

}  // namespace
}  // namespace phalanx
