// Strategies that meet on parameter servers, each against its recurrence in a few lines, under a schedule in which the
// ranks come one after the other.
#include <ATen/ops/allclose.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/optim/testing_optimizer.h"
#include "engine/sync/testing_strategy.h"
#include "engine/sync/update_schedule.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_at;
using testing::kElements;
using testing::kRate;
using testing::run_ranks;

using Tensors = std::vector<at::Tensor>;

constexpr const char* kPlainSgd = "{name: sgd, lr: 0.1}";  // kRate

// Trains as testing::train(), but in every step rank 0 talks to the servers first, then rank 1, ...
void train_in_turn(const std::string& strategy, const CommunicatorPtr& group, int steps,
                   const std::function<void(int step, const at::Tensor& all)>& after,
                   const std::string& optimizer_yaml = kPlainSgd) {
  const at::NoGradGuard no_grad;
  const FlatParameters parameters(Tensors{at::full({kElements}, 3.0 + group->rank())}, *group, 1 << 20);
  const auto& bucket = parameters.buckets().at(0);
  const auto synchronizer = testing::make_strategy(strategy, group);
  const auto optimizer = testing::make_optimizer(optimizer_yaml);
  optimizer->attach(synchronizer->attach(parameters, optimizer->cut()));
  synchronizer->attach_state(optimizer->state());
  for (int step = 0; step < steps; ++step) {
    bucket.gradients.add_(gradient_at(bucket.values, group->rank(), step));
    synchronizer->before_update(step);
    optimizer->update();
    for (int turn = 0; turn < group->size(); ++turn) {
      if (turn == group->rank()) synchronizer->after_update(step);
      group->barrier().wait();
    }
    after(step, testing::gather(bucket.values, *group));
  }
  synchronizer->finish();
  const at::Tensor end = testing::gather(bucket.values, *group);
  for (int rank = 1; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(end[rank], end[0])) << "after the last step";
}

class Served : public ::testing::TestWithParam<int> {
 protected:
  // The ranks' values and what the servers hold, as the paper has it.
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

  // `exchange`: what rank `rank` does when it meets the servers.
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

TEST_P(Served, SspThatNobodyHasToWaitForIsDownpour) { compare("{name: ssp, staleness: 2}", {.every = 1}, downpour); }

TEST_P(Served, EasgdFollowsItsRecurrenceAndMovesTheCentre) {
  const float alpha = 0.9f / static_cast<float>(GetParam());
  compare("{name: easgd, every: 2, beta: 0.9}", {.every = 2}, [alpha](Reference& at, std::size_t rank) {
    const auto elastic = alpha * (at.x[rank] - at.centre);
    at.x[rank] = at.x[rank] - elastic;
    at.centre = at.centre + elastic;
    EXPECT_FALSE(at::equal(at.centre, at::full({kElements}, 3.0f)));
  });
}

// EAMSGD (algorithm 2 of the paper) with its x and v. A replica is at x + delta v, where the paper takes the gradient:
// there the centre pulls at it, too.
TEST_P(Served, EasgdWithNesterovMomentumIsEamsgdWhoseCentrePullsAtThePointAhead) {
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

// All ranks exchange at once, and none reads what another has moved already.
TEST_P(Served, SynchronousEasgdMovesFromOneCentre) {
  const float alpha = 0.5f / static_cast<float>(GetParam());
  run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
    Reference reference(GetParam());
    testing::train("{name: easgd, every: 2, beta: 0.5, synchronous: true}", group, 9,
                   [&](int step, const at::Tensor& all, Synchronizer&) {
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

// What was asked for `prefetch` steps before the exchange is what the servers had then.
TEST(ServedAhead, PrefetchedValuesAreThoseOfTheStepInWhichTheyWereAskedFor) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    at::Tensor x = at::full({kElements}, 3.0f);
    train_in_turn("{name: downpour, every: 4, prefetch: 2}", group, 13, [&](int step, const at::Tensor& all) {
      x = x - kRate * gradient_at(x, 0, step);
      // Alone, a rank gets back what it has sent itself: reading early must not undo what it did since.
      EXPECT_TRUE(at::allclose(all[0], x, 1e-5, 1e-6)) << "step " << step;
    });
  });
}

TEST(UpdateSchedule, ExchangesAndAsksAheadInTheStepsThatItSays) {
  const UpdateSchedule schedule{.every = 4, .delay = 3, .prefetch = 1};
  std::vector<int> exchanges, asks;
  for (int step = 0; step < 16; ++step) {
    if (schedule.exchanges(step)) exchanges.push_back(step);
    if (schedule.asks_ahead(step)) asks.push_back(step);
  }
  EXPECT_EQ(exchanges, std::vector<int>({6, 10, 14}));
  EXPECT_EQ(asks, std::vector<int>({5, 9, 13})) << "before the exchange, not after it";
  EXPECT_THROW(check(UpdateSchedule{.every = 2, .delay = 0, .prefetch = 2}), ConfigError);
}

}  // namespace
}  // namespace phalanx
