// SPDX-License-Identifier: Apache-2.0
// Compares each strategy that uses parameter servers with its recurrence in a few lines, under a schedule in which the
// ranks act one after the other.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/strategies/servers/update_schedule.h"
#include "engine/testing/optimizer.h"
#include "engine/testing/strategy.h"
#include "framework/ps/protocol/element_ranges.h"
#include "framework/ps/rules/update_rule.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_at;
using testing::kElements;
using testing::kRate;
using testing::run_ranks;

using Tensors = std::vector<at::Tensor>;
using Gradient = std::function<at::Tensor(const at::Tensor& x, double rank, std::int64_t step)>;

// Returns the gradient of a network with a hidden layer of 8 units and 48 weights, on samples that differ by rank and
// step.
at::Tensor gradient_of_net(const at::Tensor& x, double rank, std::int64_t step) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor weights = (x.detach() - 3).requires_grad_();  // training begins at 3
  const at::Tensor samples = at::sin(at::arange(20) * (rank + 1) + static_cast<double>(step)).view({5, 4});
  const at::Tensor offsets = at::cos(at::arange(kElements)) * 0.5;  // makes the units of the layer differ
  const at::Tensor all = weights + offsets;
  const at::Tensor hidden = at::tanh(at::matmul(samples, all.narrow(0, 0, 32).view({4, 8})) + all.narrow(0, 32, 8));
  const at::Tensor missed = at::matmul(hidden, all.narrow(0, 40, 8)) - samples.sum(1);
  (missed * missed).mean().backward();
  return weights.grad();
}

constexpr const char* kPlainSgd = "{name: sgd, lr: 0.1}";  // with kRate

// Trains like testing::train(), but in every step rank 0 talks to the servers first, then rank 1, and so on.
void train_in_turn(const std::string& yaml, const CommunicatorPtr& group, int steps,
                   const std::function<void(int step, const at::Tensor& all)>& after,
                   const std::string& optimizer_yaml = kPlainSgd, const Gradient& gradient = gradient_at) {
  const at::NoGradGuard no_grad;
  const FlatParameters parameters(Tensors{at::full({kElements}, 3.0 + group->rank())}, *group, 1 << 20);
  const auto& bucket = parameters.buckets().at(0);
  const auto strategy = testing::make_strategy(yaml, group);
  auto* const servers = strategy->extensions().updates_on_servers;
  const auto optimizer = servers ? servers->make_optimizer() : testing::make_optimizer(optimizer_yaml);
  optimizer->attach(strategy->attach(parameters, optimizer->cut()));
  strategy->attach_state(optimizer->state());
  for (int step = 0; step < steps; ++step) {
    bucket.gradients.add_(gradient(bucket.values, group->rank(), step));
    strategy->before_update(step);
    optimizer->update();
    for (int turn = 0; turn < group->size(); ++turn) {
      if (turn == group->rank()) strategy->after_update(step);
      group->barrier().wait();
    }
    after(step, testing::gather(bucket.values, *group));
  }
  strategy->finish();
  const at::Tensor end = testing::gather(bucket.values, *group);
  for (int rank = 1; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(end[rank], end[0])) << "after the last step";
}

class Served : public ::testing::TestWithParam<int> {
 protected:
  // The ranks' values and the servers' values, as defined by the paper.
  struct Reference {
    explicit Reference(int ranks)
        : x(ranks, at::full({kElements}, 3.0f)), base(x), centre(at::full({kElements}, 3.0f)) {}

    void step_all(int step) {
      for (std::size_t rank = 0; rank < x.size(); ++rank) {
        x[rank] = x[rank] - kRate * gradient_at(x[rank], static_cast<double>(rank), step);
      }
    }
    Tensors x, base;
    at::Tensor centre;
  };

  // `exchange` is what a rank does when it communicates with the servers.
  using Exchange = std::function<void(Reference& at, std::size_t rank)>;
  void compare(const std::string& strategy, const UpdateSchedule& schedule, const Exchange& exchange) const {
    run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
      Reference reference(GetParam());
      train_in_turn(strategy, group, 13, [&](int step, const at::Tensor& all) {
        reference.step_all(step);
        for (std::size_t rank = 0; schedule.exchanges(step) && rank < reference.x.size(); ++rank) {
          exchange(reference, rank);
        }
        EXPECT_TRUE(at::allclose(all, at::stack(reference.x), 1e-5, 1e-6)) << strategy << ", step " << step;
      });
    });
  }

  static void downpour(Reference& at, std::size_t rank) {
    at.centre = at.centre + (at.x[rank] - at.base[rank]);
    at.x[rank] = at.base[rank] = at.centre;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Served, ::testing::Values(1, 2, 3));

TEST_P(Served, DownpourFollowsItsRecurrence) {
  compare("{name: downpour, every: 3, delay: 2}", {.every = 3, .delay = 2}, downpour);
}

// In the first step, the staleness of an update is the number of ranks that came before. Later, all other ranks have
// pushed an update in between.
TEST_P(Served, DownpourDividesUpdatesByHowLateTheyAre) {
  const auto ranks = static_cast<std::size_t>(GetParam());
  const std::string strategy = "{name: downpour, every: 1, staleness_power: 1}";
  compare(strategy, {.every = 1}, [ranks](Reference& at, std::size_t rank) {
    const bool first = at::equal(at.base[rank], at::full({kElements}, 3.0f));
    const double late = static_cast<double>(first ? rank : ranks - 1);
    at.centre = at.centre + (at.x[rank] - at.base[rank]) / (1 + late);
    at.x[rank] = at.base[rank] = at.centre;
  });
}

TEST_P(Served, SspWithoutWaitingIsDownpour) { compare("{name: ssp, staleness: 2}", {.every = 1}, downpour); }

TEST_P(Served, EasgdFollowsItsRecurrenceAndMovesTheCentre) {
  const float alpha = 0.9f / static_cast<float>(GetParam());
  compare("{name: easgd, every: 2, beta: 0.9}", {.every = 2}, [alpha](Reference& at, std::size_t rank) {
    const auto elastic = alpha * (at.x[rank] - at.centre);
    at.x[rank] = at.x[rank] - elastic;
    at.centre = at.centre + elastic;
    EXPECT_FALSE(at::equal(at.centre, at::full({kElements}, 3.0f)));
  });
}

// EAMSGD (algorithm 2 of the paper) with its x and v. A replica is at x + delta v, where the paper computes the
// gradient. The elastic force acts on that point too.
TEST_P(Served, EasgdWithNesterovMomentumIsEamsgdAtTheLookaheadPoint) {
  const float alpha = 0.9f / static_cast<float>(GetParam()), delta = 0.8f;
  run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
    Tensors x(GetParam(), at::full({kElements}, 3.0f)), v(GetParam(), at::zeros({kElements})), ahead = x;
    at::Tensor centre = x[0];
    const auto compare = [&](int step, const at::Tensor& all) {
      for (std::size_t rank = 0; rank < x.size(); ++rank) {
        v[rank] = delta * v[rank] - kRate * gradient_at(x[rank] + delta * v[rank], static_cast<double>(rank), step);
        x[rank] = x[rank] + v[rank];
        if ((step + 1) % 2 == 0) {
          const auto elastic = alpha * (x[rank] + delta * v[rank] - centre);
          x[rank] = x[rank] - elastic;
          centre = centre + elastic;
        }
        ahead[rank] = x[rank] + delta * v[rank];
      }
      EXPECT_TRUE(at::allclose(all, at::stack(ahead), 1e-5, 1e-6)) << "step " << step;
    };
    train_in_turn("{name: easgd, every: 2, beta: 0.9}", group, 13, compare,
                  "{name: sgd, lr: 0.1, momentum: 0.8, nesterov: true}");
  });
}

// All ranks exchange at the same time, and no rank reads values that another one has already moved.
TEST_P(Served, SynchronousEasgdMovesFromOneCentre) {
  const float alpha = 0.5f / static_cast<float>(GetParam());
  run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
    Reference reference(GetParam());
    testing::train("{name: easgd, every: 2, beta: 0.5, synchronous: true}", group, 9,
                   [&](int step, const at::Tensor& all, Strategy&) {
                     reference.step_all(step);
                     const auto centre = reference.centre;
                     for (auto& x : reference.x) {
                       if ((step + 1) % 2 != 0) break;
                       const auto elastic = alpha * (x - centre);
                       x = x - elastic;
                       reference.centre = reference.centre + elastic;
                     }
                     EXPECT_TRUE(at::allclose(all, at::stack(reference.x), 1e-5, 1e-6)) << "step " << step;
                   });
  });
}

// Ranks push the mean of their gradients since they last read the centre, one rank after the other. `step` is the
// servers' update.
using ServerStep = std::function<void(std::size_t rank, const at::Tensor& gradient, at::Tensor& centre)>;
void compare_with_servers(const std::string& strategy, int ranks, int every, const ServerStep& step,
                          const Gradient& gradient = gradient_at) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& group) {
    Tensors x(ranks, at::full({kElements}, 3.0f)), sums(ranks, at::zeros({kElements}));
    at::Tensor centre = x[0].clone();
    const ServerStep own = step;  // each rank has its own reference and therefore its own state
    train_in_turn(
        strategy, group, 12,
        [&](int number, const at::Tensor& all) {
          for (std::size_t rank = 0; rank < x.size(); ++rank) {
            sums[rank] = sums[rank] + gradient(x[rank], static_cast<double>(rank), number);
          }
          for (std::size_t rank = 0; (number + 1) % every == 0 && rank < x.size(); ++rank) {
            own(rank, sums[rank] / every, centre);
            sums[rank] = at::zeros({kElements});
            x[rank] = centre.clone();
          }
          EXPECT_TRUE(at::allclose(all, at::stack(x), 1e-5, 1e-6)) << strategy << ", step " << number;
        },
        kPlainSgd, gradient);
  });
}

TEST_P(Served, OptimizersOfServersTakeAStepWithEveryGradient) {
  for (const std::string strategy : {"downpour, every: 3", "ssp, every: 2, staleness: 1"}) {
    const int every = strategy.starts_with("ssp") ? 2 : 3;
    compare_with_servers(
        "{name: " + strategy + ", server_optimizer: {name: adagrad, lr: 0.5, eps: 0.1}}", GetParam(), every,
        [sum = at::zeros({kElements})](std::size_t, const at::Tensor& gradient, at::Tensor& c) mutable {
          sum = sum + gradient * gradient;
          c = c - 0.5 * gradient / (sum.sqrt() + 0.1);
        });
  }
}

// The staleness of each rank's gradient is the number of other ranks, except for the first gradients.
TEST_P(Served, AStalenessPowerLowersTheRateOfServers) {
  const int ranks = GetParam();
  compare_with_servers("{name: downpour, every: 1, staleness_power: 1, server_optimizer: {name: sgd, lr: 0.1}}", ranks,
                       1, [ranks, pushed = 0](std::size_t rank, const at::Tensor& gradient, at::Tensor& c) mutable {
                         const auto late = pushed++ < ranks ? static_cast<int>(rank) : ranks - 1;
                         c = c - 0.1 / (1 + late) * gradient;
                       });
}

// Compares with algorithm 2 of the paper, on a quadratic function and on a small network.
void expect_dc_asgd(int ranks, const Gradient& gradient) {
  for (const double mean_square : {0.0, 0.9}) {
    const std::string strategy =
        "{name: dc_asgd, lr: 0.2, lambda: 0.5, mean_square: " + std::to_string(mean_square) + "}";
    compare_with_servers(
        strategy, ranks, 1,
        [=, backup = Tensors(ranks, at::full({kElements}, 3.0f)), v = at::zeros({kElements})](
            std::size_t rank, const at::Tensor& g, at::Tensor& w) mutable {
          v = mean_square * v + (1 - mean_square) * g * g;
          const auto lambda = mean_square > 0 ? 0.5 / (v + 1e-7).sqrt() : at::full({kElements}, 0.5f);
          w = w - 0.2 * (g + lambda * g * g * (w - backup[rank]));
          backup[rank] = w;
        },
        gradient);
  }
}

TEST_P(Served, DcAsgdFollowsItsRecurrenceOnAQuadratic) { expect_dc_asgd(GetParam(), gradient_at); }
TEST_P(Served, DcAsgdFollowsItsRecurrenceOnANetwork) { expect_dc_asgd(GetParam(), gradient_of_net); }

// A step does not change elements that none of its gradients uses. In gradients that do not use an element, it counts
// as 0.
TEST(ServerOptimizers, LeaveUnusedElementsAsTheyAre) {
  for (const std::string optimizer :
       {"{name: sgd, momentum: 0.9, weight_decay: 0.1}", "{name: adam, weight_decay: 0.1}",
        "{name: rmsprop, momentum: 0.9, weight_decay: 0.1}"}) {
    for (const int clients : {1, 2}) {
      const auto text = "{name: optimizer, clients: " + std::to_string(clients) + ", optimizer: " + optimizer + "}";
      const auto make = [&](const at::Tensor& values) {
        auto rule = config::load_as<ps::UpdateRules::Choice>("rules", text, "test").make();
        rule->attach(values);
        return rule;
      };
      const at::Tensor values = at::full({kElements}, 1.0f), all_values = values.clone();
      const auto rule = make(values), all = make(all_values);
      const auto push = [&](const ps::ElementRanges& unused) {
        at::Tensor gradient = at::full({kElements}, 2.0f);
        for (const auto& [begin, end] : unused) gradient.narrow(0, begin, end - begin).zero_();
        rule->apply(gradient, {.scale = 0.1, .unused = unused});
        all->apply(gradient, {.scale = 0.1});
      };
      const auto kept = [&](ps::UpdateRule& of, const at::Tensor& its_values) {
        Tensors elements{its_values.narrow(0, 5, 10)};
        for (const auto& one : of.state()) {
          if (one.values.numel() == kElements) elements.push_back(one.values.narrow(0, 5, 10).to(at::kFloat));
        }
        return at::stack(elements);
      };
      for (int i = 0; i < clients; ++i) push({});
      const at::Tensor before = kept(*rule, values);
      for (int i = 0; i < clients; ++i) push({{5, 15}});
      EXPECT_TRUE(at::equal(kept(*rule, values), before)) << text;
      EXPECT_FALSE(at::equal(kept(*all, all_values), before)) << text;
      EXPECT_TRUE(at::equal(values.narrow(0, 15, 20), all_values.narrow(0, 15, 20))) << text;
      if (clients == 1) continue;
      push({{0, 15}});
      push({{10, kElements}});
      EXPECT_FALSE(at::equal(values.narrow(0, 5, 5), before[0].narrow(0, 0, 5))) << "the second is of these";
      EXPECT_TRUE(at::equal(values.narrow(0, 10, 5), before[0].narrow(0, 5, 5))) << "neither is";
    }
  }
}

// Restores the state in the middle of a clock, as from a server's checkpoint.
TEST(ServerOptimizers, ContinueFromTheStateOfTheirRule) {
  const auto gradient = [](int update) { return at::sin(at::arange(kElements) * (update + 1.0)); };
  for (const std::string optimizer : {"{name: sgd, momentum: 0.9}", "adam", "adagrad", "rmsprop", "ftrl"}) {
    const auto make = [&](const at::Tensor& values) {
      auto rule = config::load_as<ps::UpdateRules::Choice>(
                      "rules", "{name: optimizer, clients: 2, optimizer: " + optimizer + "}", "test")
                      .make();
      rule->attach(values);
      return rule;
    };
    const at::Tensor values = at::full({kElements}, 1.0f);
    const auto rule = make(values);
    for (int update = 0; update < 5; ++update) rule->apply(gradient(update), {.scale = 0.1});
    const at::Tensor copy = values.clone();
    const auto other = make(copy);
    const auto state = rule->state(), same = other->state();
    ASSERT_EQ(state.size(), same.size());
    for (std::size_t i = 0; i < state.size(); ++i) same[i].values.copy_(state[i].values);
    for (int update = 5; update < 9; ++update) {
      rule->apply(gradient(update), {.scale = 0.1});
      other->apply(gradient(update), {.scale = 0.1});
    }
    EXPECT_TRUE(at::equal(copy, values)) << optimizer;
    EXPECT_FALSE(at::equal(values, at::full({kElements}, 1.0f))) << optimizer;
  }
}

// A checkpoint stores tensors by name.
TEST(ServerOptimizers, TensorsOfTheirRulesHaveDistinctNames) {
  for (const auto& optimizer : Optimizers::global().names()) {
    const std::string text = "{name: optimizer, clients: 2, optimizer: " + optimizer + "}";
    std::unique_ptr<ps::UpdateRule> rule;
    try {
      rule = config::load_as<ps::UpdateRules::Choice>("rules", text, "test").make();
    } catch (const ConfigError&) {
      continue;  // needs whole parameters
    }
    rule->attach(at::zeros({kElements}));
    std::set<std::string> names;
    for (const auto& one : rule->state()) EXPECT_TRUE(names.insert(one.name).second) << optimizer << ": " << one.name;
    EXPECT_GE(names.size(), 3u) << optimizer;
  }
}

TEST(ServerOptimizers, RefuseOptimizersThatNeedWholeParameters) {
  for (const std::string name : {"lars", "lamb", "muon", "adafactor"}) {
    EXPECT_THROW(testing::load_strategy("{name: downpour, server_optimizer: " + name + "}"), ConfigError) << name;
    const auto rule =
        config::load_as<ps::UpdateRules::Choice>("rules", "{name: optimizer, optimizer: " + name + "}", "");
    EXPECT_THROW(rule.make(), ConfigError) << name;
  }
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    EXPECT_THROW(testing::make_strategy("{name: downpour, delay: 3, server_optimizer: adam}", group), ConfigError);
    EXPECT_THROW(testing::make_strategy("{name: downpour, prefetch: 1, server_optimizer: adam}", group), ConfigError);
  });
}

// Values requested `prefetch` steps before the exchange must be the ones that the servers had then.
TEST(ServedAhead, PrefetchedValuesAreFromTheStepThatRequestedThem) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    at::Tensor x = at::full({kElements}, 3.0f);
    train_in_turn("{name: downpour, every: 4, prefetch: 2}", group, 13, [&](int step, const at::Tensor& all) {
      x = x - kRate * gradient_at(x, 0, step);
      // A single rank gets back its own updates: reading early must not undo the changes it has made since.
      EXPECT_TRUE(at::allclose(all[0], x, 1e-5, 1e-6)) << "step " << step;
    });
  });
}

TEST(UpdateSchedule, ExchangesAndPrefetchesInItsSteps) {
  const UpdateSchedule schedule{.every = 4, .delay = 3, .prefetch = 1};
  std::vector<int> exchanges, asks;
  for (int step = 0; step < 16; ++step) {
    if (schedule.exchanges(step)) exchanges.push_back(step);
    if (schedule.prefetches(step)) asks.push_back(step);
  }
  EXPECT_EQ(exchanges, std::vector<int>({6, 10, 14}));
  EXPECT_EQ(asks, std::vector<int>({5, 9, 13})) << "before the exchange, not after it";
  EXPECT_THROW(check(UpdateSchedule{.every = 2, .delay = 0, .prefetch = 2}), ConfigError);
}

}  // namespace
}  // namespace phalanx
