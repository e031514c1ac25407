// SPDX-License-Identifier: Apache-2.0
// Compares the values and gradients of differentiable collectives with one process that has everything.
#include "framework/parallel/autograd_collectives.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;
using Body = std::function<at::Tensor(const at::Tensor& input, const CommunicatorPtr& world)>;

// Returns a tensor that differs on every rank.
at::Tensor input_of(int rank, at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return (at::arange(count, at::kDouble) * 0.7 + rank).cos().view(sizes);
}

// Returns a weighted sum of squares of the outputs of all ranks, which no single rank has.
double joint_loss(const at::Tensor& output, Communicator& world) {
  const at::Tensor loss = (output * output * (world.rank() + 1)).sum().view({1}).clone();
  world.all_reduce(loss, Reduction::kSum).wait();
  return loss.item<double>();
}

// Returns the derivative of the joint loss by element `index` of rank `at`'s input, by central differences.
double difference(const Body& body, const at::Tensor& input, std::int64_t index, int at, const CommunicatorPtr& world) {
  constexpr double kStep = 1e-5;
  const auto loss_at = [&](double step) {
    const at::Tensor moved = input.clone();
    if (world->rank() == at) moved.view(-1)[index] += step;
    return joint_loss(body(moved, world), *world);
  };
  return (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
}

// Checks the gradient that ranks get if each begins backward with the gradient of its output.
void check_gradients(int ranks, const Body& body, at::IntArrayRef sizes) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const at::Tensor input = input_of(world->rank(), sizes).requires_grad_();
    const at::Tensor output = body(input, world);
    const at::Tensor upstream = output.detach() * 2 * (world->rank() + 1);
    const at::Tensor gradient = torch::autograd::grad({output}, {input}, {upstream})[0];
    for (int at = 0; at < ranks; ++at) {
      for (std::int64_t index = 0; index < input.numel(); index += 5) {
        const double expected = difference(body, input.detach(), index, at, world);
        if (world->rank() != at) continue;
        EXPECT_NEAR(gradient.reshape(-1)[index].item<double>(), expected, 1e-6) << index;
      }
    }
  });
}

// The gradients are derivatives of the loss that all ranks compute together. The gradients of copy_to_ranks and
// gather_parts are not: their outputs count once, although every rank has them.
TEST(AutogradCollectives, GradientsAreThoseOfTheJointComputationOfAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    check_gradients(ranks, [](const auto& x, const auto& world) { return gather_summed(x, 1, world); }, {4, 3});
    check_gradients(ranks, [](const auto& x, const auto& world) { return sum_and_scatter(x, 1, world); }, {4, 6});
    check_gradients(ranks, [](const auto& x, const auto& world) { return exchange_parts(x, 0, 1, world); }, {6, 4});
    check_gradients(ranks, [](const auto& x, const auto& world) { return exchange_parts(x, -1, 0, world); }, {2, 3, 6});
  }
}

// Rank r sends 1, 2, ... rows to the ranks and gets r + 1 rows from each.
TEST(AutogradCollectives, RanksMayHaveDifferentNumbersOfRows) {
  for (const int ranks : {1, 2, 3}) {
    check_gradients(ranks,
                    [](const at::Tensor& x, const CommunicatorPtr& world) {
                      std::vector<std::int64_t> to, from;
                      for (int rank = 0; rank < world->size(); ++rank) {
                        to.push_back(rank + 1);
                        from.push_back(world->rank() + 1);
                      }
                      return exchange_rows(x, to, from, world);
                    },
                    {ranks * (ranks + 1) / 2, 3});
  }
}

std::vector<std::int64_t> uneven(int ranks) {
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < ranks; ++rank) sizes.push_back(rank + 1);
  return sizes;
}

TEST(AutogradCollectives, PartsMayDifferInSize) {
  check_gradients(3,
                  [](const at::Tensor& x, const CommunicatorPtr& world) {
                    return gather_summed(x.narrow(1, 0, world->rank() + 1), 1, world, uneven(3));
                  },
                  {4, 3});
  check_gradients(3, [](const auto& x, const auto& world) { return sum_and_scatter(x, 1, world, uneven(3)); }, {4, 6});
}

// A network of two layers: the first gives each rank some columns, the second takes rows and adds up. Every rank has
// the whole input and the whole output.
TEST(AutogradCollectives, AShardedNetworkHasTheGradientsOfTheWholeOne) {
  for (const int ranks : {2, 4}) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      const at::Tensor x = input_of(0, {3, 5}).requires_grad_(), again = x.detach().clone().requires_grad_();
      const at::Tensor first = input_of(1, {5, 8}).requires_grad_(), second = input_of(2, {8, 5}).requires_grad_();
      const at::Tensor whole = x.matmul(first).tanh().matmul(second);
      whole.backward(whole.detach());

      const auto share = 8 / ranks, begin = share * world->rank();
      const at::Tensor own_first = first.detach().narrow(1, begin, share).clone().requires_grad_();
      const at::Tensor own_second = second.detach().narrow(0, begin, share).clone().requires_grad_();
      const at::Tensor hidden = copy_to_ranks(again, world).matmul(own_first).tanh();
      const at::Tensor sharded = sum_over_ranks(hidden.matmul(own_second), world);
      EXPECT_TRUE(at::allclose(sharded, whole));
      sharded.backward(whole.detach());
      EXPECT_TRUE(at::allclose(again.grad(), x.grad()));
      EXPECT_TRUE(at::allclose(own_first.grad(), first.grad().narrow(1, begin, share)));
      EXPECT_TRUE(at::allclose(own_second.grad(), second.grad().narrow(0, begin, share)));
    });
  }
}

TEST(AutogradCollectives, GatheringAndSplittingAgainReturnsTheSameParts) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    const at::Tensor part = input_of(world->rank(), {4, world->rank() + 1}).requires_grad_();
    const at::Tensor whole = gather_parts(part, 1, world, uneven(3));
    const at::Tensor expected = at::concat({input_of(0, {4, 1}), input_of(1, {4, 2}), input_of(2, {4, 3})}, 1);
    EXPECT_TRUE(at::equal(whole, expected));
    const at::Tensor again = take_part(whole, 1, world, uneven(3));
    EXPECT_TRUE(at::equal(again, part));
    again.backward(again.detach());
    EXPECT_TRUE(at::allclose(part.grad(), part.detach()));
  });
}

TEST(AutogradCollectives, CanBeDifferentiatedTwice) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const at::Tensor x = input_of(0, {4}).requires_grad_();
    // Each rank has one half of the sum of cubes.
    const at::Tensor mine = copy_to_ranks(x, world).narrow(0, 2 * world->rank(), 2).pow(3).sum();
    const at::Tensor loss = sum_over_ranks(mine, world);
    const at::Tensor gradient = torch::autograd::grad({loss}, {x}, {}, {}, /*create_graph=*/true)[0];
    EXPECT_TRUE(at::allclose(gradient, 3 * x.detach().pow(2)));
    const at::Tensor second = torch::autograd::grad({gradient.sum()}, {x})[0];
    EXPECT_TRUE(at::allclose(second, 6 * x.detach()));
  });
}

TEST(AutogradCollectives, RefuseSizesThatCannotBeSplitEqually) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    EXPECT_THROW(take_part(at::zeros({3}), 0, world), std::invalid_argument);
    EXPECT_THROW(exchange_parts(at::zeros({3, 2}), 0, 1, world), std::invalid_argument);
    EXPECT_THROW(sum_and_scatter(at::zeros({2, 3}), 1, world), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
