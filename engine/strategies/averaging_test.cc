// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/testing/strategy.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_at;
using testing::kElements;
using testing::kRate;
using testing::make_strategy;
using testing::run_ranks;
using testing::train;

constexpr const char* kLossy[] = {"int8", "int4", "one_bit", "{name: topk, fraction: 0.05}",
                                  "{name: powersgd, rank: 1}"};

class Averaging : public ::testing::TestWithParam<int> {
 protected:
  // Takes one local step of all ranks.
  static void step_all(std::vector<at::Tensor>& x, int step) {
    for (std::size_t rank = 0; rank < x.size(); ++rank) {
      x[rank] = x[rank] - kRate * gradient_at(x[rank], static_cast<int>(rank), step);
    }
  }
  static at::Tensor mean_of(const std::vector<at::Tensor>& x) { return at::stack(x).mean(0); }
  static void expect_near(const at::Tensor& all, const std::vector<at::Tensor>& x, int step) {
    EXPECT_TRUE(at::allclose(all, at::stack(x), 1e-5, 1e-6)) << "step " << step;
  }
  void expect_gossip_to_meet(const std::string& compression, std::size_t message_bytes) const {
    run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
      const at::NoGradGuard no_grad;
      const FlatParameters parameters(std::vector<at::Tensor>{at::full({16}, 0.0)}, *group, 1 << 20);
      const auto strategy = make_strategy("{name: gossip, compression: " + compression + "}", group);
      const auto slice = strategy->attach(parameters, Cut::kAnywhere).at(0);
      const at::Tensor offsets = at::arange(16) * 0.07;
      slice.values.copy_(offsets + group->rank());  // the gradients are zero
      for (int step = 0; step < 60; ++step) strategy->after_update(step);
      const at::Tensor mean = offsets + (group->size() - 1) / 2.0;
      EXPECT_TRUE(at::allclose(slice.values, mean, 0, 0.3)) << compression;
      for (const auto& [name, values, alike] : strategy->state()) {
        EXPECT_TRUE(name == "under_way" || values.nbytes() == message_bytes) << name << ", " << compression;
      }
      strategy->finish();
      EXPECT_TRUE(at::allclose(slice.values, mean, 0, 1e-5)) << compression;
    });
  }
  std::vector<at::Tensor> start() const { return std::vector<at::Tensor>(GetParam(), at::full({kElements}, 3.0f)); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Averaging, ::testing::Values(1, 2, 3, 4, 5));

TEST_P(Averaging, LocalSgdFollowsItsRecurrence) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    auto x = start();
    train("{name: local_sgd, every: 3}", group, 10, [&](int step, const at::Tensor& all, Strategy& strategy) {
      step_all(x, step);
      const bool averages = (step + 1) % 3 == 0;
      if (averages) std::ranges::fill(x, mean_of(x));
      expect_near(all, x, step);
      EXPECT_EQ(strategy.replicas_equal(), averages);
    });
  });
}

TEST_P(Averaging, DilocoTakesStepsOfAnOuterOptimizer) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    auto x = start();
    at::Tensor last = x[0].clone(), velocity = at::zeros_like(last);
    train("{name: diloco, every: 3, outer_lr: 0.7, outer_momentum: 0.9}", group, 12,
          [&](int step, const at::Tensor& all, Strategy& strategy) {
            step_all(x, step);
            const bool outer = (step + 1) % 3 == 0;
            if (outer) {
              const auto gradient = last - mean_of(x);  // with the sign of the paper
              velocity = 0.9 * velocity + gradient;
              last = last - 0.7 * (gradient + 0.9 * velocity);
              std::ranges::fill(x, last);
            }
            expect_near(all, x, step);
            EXPECT_EQ(strategy.replicas_equal(), outer);
          });
  });
}

TEST_P(Averaging, FragmentsTakeOuterStepsInTurn) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const FlatParameters parameters(testing::make_parameters(0), *group, testing::kBucketBytes);
    ASSERT_EQ(parameters.buckets().size(), 3u);
    const auto strategy = make_strategy("{name: diloco, every: 4, fragments: 3, outer_lr: 0.7}", group);
    strategy->attach(parameters, Cut::kAnywhere);
    const std::vector<std::int64_t> turns{1, 2, 0};  // number of steps done, modulo 4
    std::vector<at::Tensor> last, velocity;
    for (const auto& bucket : parameters.buckets()) {
      last.push_back(bucket.values.clone());
      velocity.push_back(at::zeros_like(bucket.values));
    }
    for (int step = 0; step < 8; ++step) {
      std::vector<at::Tensor> before;
      strategy->before_update(step);
      for (const auto& bucket : parameters.buckets()) {
        bucket.values.sub_(gradient_at(bucket.values, group->rank(), step), kRate);
        before.push_back(bucket.values.clone());
      }
      strategy->after_update(step);
      EXPECT_FALSE(strategy->replicas_equal());
      for (std::size_t i = 0; i < 3; ++i) {
        const at::Tensor values = parameters.buckets()[i].values;
        if ((step + 1) % 4 != turns[i]) {
          EXPECT_TRUE(at::equal(values, before[i])) << "bucket " << i << " after step " << step;
          continue;
        }
        const at::Tensor gradient = last[i] - testing::gather(before[i], *group).mean(0);
        velocity[i] = 0.9 * velocity[i] + gradient;
        last[i] = last[i] - 0.7 * (gradient + 0.9 * velocity[i]);
        EXPECT_TRUE(at::allclose(values, last[i], 1e-5, 1e-6)) << "bucket " << i << " after step " << step;
      }
    }
    strategy->finish();
    EXPECT_TRUE(strategy->replicas_equal());
    EXPECT_TRUE(at::allclose(parameters.buckets()[2].values, last[2], 1e-5, 1e-6)) << "its turn was the last step";
    for (const auto& bucket : parameters.buckets()) {
      const at::Tensor all = testing::gather(bucket.values, *group);
      for (int rank = 1; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(all[rank], all[0]));
    }
  });
}

// Douillard et al. 2025, algorithm 2: values that were sent after step t are merged after step t + tau.
TEST_P(Averaging, OverlappedOuterStepsAreMergedLater) {
  for (const double mix : {0.0, 0.25}) {
    run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
      auto x = start();
      at::Tensor last = x[0].clone(), velocity = at::zeros_like(last), sent;
      train("{name: diloco, every: 4, overlap: 2, outer_lr: 0.7, mix: " + std::to_string(mix) + "}", group, 15,
            [&](int step, const at::Tensor& all, Strategy& strategy) {
              step_all(x, step);
              if ((step + 1) % 4 == 0) sent = last - mean_of(x);
              const bool merges = step > 4 && (step - 1) % 4 == 0;
              if (merges) {
                velocity = 0.9 * velocity + sent;
                last = last - 0.7 * (sent + 0.9 * velocity);
                for (auto& one : x) one = mix * one + (1 - mix) * last;
              }
              expect_near(all, x, step);
              EXPECT_EQ(strategy.replicas_equal(), merges && mix == 0) << "step " << step;
            });
    });
  }
}

// The table of docs/strategies.md: a step sends one fragment as an all-reduce does, with 4 bits per value and a scale
// per block. Steps without a fragment send nothing.
TEST_P(Averaging, AStepSendsOneFragmentInFourBits) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const FlatParameters parameters(testing::make_parameters(0), *group, testing::kBucketBytes);
    const auto strategy =
        make_strategy("{name: diloco, every: 6, fragments: 3, compression: {name: int4, block: 8}}", group);
    strategy->attach(parameters, Cut::kAnywhere);
    const auto sent = [&] {
      at::Tensor all = at::zeros({1}, at::kDouble);
      for (const auto& [name, value] : strategy->metrics()) {
        if (name == "sent_bytes") all.fill_(value);
      }
      group->all_reduce(all, Reduction::kSum).wait();
      return all.item<double>();
    };
    double before = 0;
    for (int step = 0; step < 12; ++step) {
      strategy->before_update(step);
      strategy->after_update(step);
      const double now = sent();
      double expected = 0;
      if ((step + 1) % 2 == 0) {
        const auto elements = parameters.buckets()[(step + 1) / 2 % 3 == 0 ? 2 : (step + 1) / 2 % 3 - 1].values.numel();
        const auto code = (elements + 1) / 2 + 4 * ((elements + 7) / 8);
        expected = 2.0 * (group->size() - 1) * static_cast<double>(code);
      }
      EXPECT_EQ(now - before, expected) << "step " << step;
      before = now;
    }
    strategy->finish();
  });
}

TEST(Fragments, MustFitIntoTheStepsAndTheBuckets) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const FlatParameters parameters(testing::make_parameters(0), *group, testing::kBucketBytes);
    EXPECT_THROW(make_strategy("{name: diloco, every: 2, fragments: 3}", group), ConfigError);
    EXPECT_THROW(make_strategy("{name: diloco, every: 4, overlap: 4}", group), ConfigError);
    EXPECT_THROW(make_strategy("{name: diloco, fragments: 4}", group)->attach(parameters, Cut::kAnywhere), ConfigError);
  });
}

TEST_P(Averaging, PostLocalSgdIsSynchronousAtFirst) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    auto x = start();
    train("{name: local_sgd, every: 2, warmup_steps: 3}", group, 9,
          [&](int step, const at::Tensor& all, Strategy& strategy) {
            step_all(x, step);
            const bool averages = step < 3 || (step - 3) % 2 == 1;
            if (averages)
              std::ranges::fill(x, mean_of(x));  // averaging gradients or values is the same if the values are equal
            expect_near(all, x, step);
            EXPECT_EQ(strategy.replicas_equal(), averages);
          });
  });
}

TEST_P(Averaging, AWarmUpMayCompressItsGradients) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    auto x = start();
    const std::string yaml = "{name: local_sgd, every: 2, warmup_steps: 6, warmup_compression: bf16}";
    train(yaml, group, 8, [&](int step, const at::Tensor& all, Strategy& strategy) {
      step_all(x, step);
      if (step < 6 || step == 7) std::ranges::fill(x, mean_of(x));
      EXPECT_TRUE(at::allclose(all, at::stack(x), 1e-2, 1e-2)) << "step " << step;
      const auto metrics = strategy.metrics();
      ASSERT_EQ(metrics.at(0).first, "reductions");
      EXPECT_EQ(metrics[0].second, group->size() == 1 ? 0 : std::min(step + 1, 6)) << "step " << step;
    });
  });
}

// An average must send how far replicas have moved since the warm-up. If the movement were measured from an earlier
// point, the averages would undo the warm-up.
TEST_P(Averaging, CompressedAveragesStartFromTheValuesAfterTheWarmUp) {
  for (const char* compression : kLossy) {
    run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
      at::Tensor reached;
      const auto strategy =
          "{name: local_sgd, every: 2, warmup_steps: 20, compression: " + std::string(compression) + "}";
      train(strategy, group, 22, [&](int step, const at::Tensor& all, auto&) {
        if (step == 19) reached = all[0].clone();
        if (step < 21) return;
        // Two steps, each of at most kRate times the gradient on the rank that is farthest away.
        const double most = 2 * kRate * gradient_at(reached, group->size() + 3.0, step).norm().template item<double>();
        EXPECT_LE((all[0] - reached).norm().template item<double>(), most) << compression;
      });
    });
  }
}

TEST_P(Averaging, CompressedAveragesAreCloseToExactOnes) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    auto x = start();
    train("{name: local_sgd, every: 2, compression: bf16}", group, 12, [&](int step, const at::Tensor& all, auto&) {
      step_all(x, step);
      if (step % 2 == 1) std::ranges::fill(x, mean_of(x));
      EXPECT_TRUE(at::allclose(all, at::stack(x), 1e-2, 1e-2)) << "step " << step;
      EXPECT_TRUE(step % 2 == 0 || at::equal(all[0], all[group->size() - 1]));
    });
  });
}

TEST_P(Averaging, MomentumIsAveragedResetOrKept) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const double mean = (group->size() + 1) / 2.0, own = group->rank() + 1;
    for (const auto& [what, expected] :
         std::vector<std::pair<std::string, double>>{{"average", mean}, {"reset", 0}, {"local", own}}) {
      const FlatParameters parameters(std::vector<at::Tensor>{at::full({8}, 1.0)}, *group, 1 << 20);
      const auto strategy = make_strategy("{name: local_sgd, every: 2, momentum: " + what + "}", group);
      strategy->attach(parameters, Cut::kAnywhere);
      const at::Tensor momentum = at::full({8}, own);
      strategy->attach_state({{"momentum", 0, momentum}});
      strategy->after_update(0);
      EXPECT_EQ(momentum[7].item<double>(), own) << "not yet";
      strategy->after_update(1);
      EXPECT_FLOAT_EQ(momentum[7].item<float>(), static_cast<float>(expected)) << what;
    }
  });
}

// An exchange uses the values of the previous step. The peer of a rank is found from the point that the rank moved to.
TEST_P(Averaging, GossipMovesHalfwayToOnePeerAStepLate) {
  run_ranks("inproc", GetParam(), [this](const CommunicatorPtr& group) {
    const int size = group->size();
    auto x = start();
    std::vector<at::Tensor> exchanged;
    std::vector<std::set<int>> met(size);
    train("gossip", group, 40, [&](int step, const at::Tensor& all, Strategy&) {
      step_all(x, step);
      std::vector<int> peers;
      for (int rank = 0; rank < size && !exchanged.empty(); ++rank) {
        std::vector<int> fits;
        for (int peer = 0; peer < size; ++peer) {
          const at::Tensor moved = x[rank] + (exchanged[peer] - exchanged[rank]) / 2;
          if (at::allclose(all[rank], moved, 1e-5, 1e-5)) fits.push_back(peer);
        }
        ASSERT_EQ(fits.size(), 1u) << "rank " << rank << ", step " << step;
        peers.push_back(fits[0]);
        if (fits[0] != rank) met[rank].insert(fits[0]);
      }
      int alone = 0;
      for (int rank = 0; rank < static_cast<int>(peers.size()); ++rank) {
        EXPECT_EQ(peers[peers[rank]], rank) << "they meet each other, in step " << step;
        alone += peers[rank] == rank;
      }
      EXPECT_EQ(alone, peers.empty() ? 0 : size % 2) << "step " << step;
      exchanged.clear();
      for (int rank = 0; rank < size; ++rank) {
        x[rank] = all[rank].clone();
        exchanged.push_back(x[rank]);
      }
    });
    for (const auto& others : met) EXPECT_EQ(static_cast<int>(others.size()), size - 1) << "met all others";
  });
}

TEST_P(Averaging, GossipKeepsTheMeanAndBringsReplicasTogether) {
  expect_gossip_to_meet("none", 16 * 4);
  expect_gossip_to_meet("bf16", 16 * 2);
  expect_gossip_to_meet("fp16", 16 * 2);
  expect_gossip_to_meet("int8", 16 + sizeof(float));  // with a scale
}

}  // namespace
}  // namespace phalanx
