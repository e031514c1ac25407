// SPDX-License-Identifier: Apache-2.0
// Arguments that no rank could accept. framework/comm/arguments_test checks all messages; these tests check that every
// backend validates its arguments.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Refusing : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Refusing, ::testing::ValuesIn(world_sizes()), ranks_of);

// Expects `launch` to throw at once and to name `operation`.
template <class Launch>
void refuses(const std::string& operation, const Launch& launch) {
  try {
    Work work = launch();
    ADD_FAILURE() << operation << " accepted it";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).rfind(operation + ": ", 0), 0u) << error.what();
  }
}

// Expects every operation that takes one tensor to refuse `bad`.
void refuse_everywhere(Communicator& world, const at::Tensor& bad) {
  const at::Tensor good = at::zeros({4}), all = at::zeros({4 * world.size()});
  const int here = world.rank();
  refuses("broadcast", [&] { return world.broadcast(bad, 0); });
  refuses("reduce", [&] { return world.reduce(bad, Reduction::kSum, 0); });
  refuses("all_reduce", [&] { return world.all_reduce(bad, Reduction::kSum); });
  refuses("reduce_scatter", [&] { return world.reduce_scatter(bad, all, Reduction::kSum); });
  refuses("reduce_scatter", [&] { return world.reduce_scatter(good, bad, Reduction::kSum); });
  refuses("all_gather", [&] { return world.all_gather(bad, good); });
  refuses("all_gather", [&] { return world.all_gather(all, bad); });
  refuses("gather", [&] { return world.gather(bad, good, here); });
  refuses("gather", [&] { return world.gather(all, bad, 0); });
  refuses("scatter", [&] { return world.scatter(bad, all, 0); });
  refuses("scatter", [&] { return world.scatter(good, bad, here); });
  refuses("all_to_all", [&] { return world.all_to_all(bad, all); });
  refuses("all_to_all", [&] { return world.all_to_all(all, bad); });
  refuses("send", [&] { return world.send(bad, 0); });
  refuses("recv", [&] { return world.recv(bad, 0); });
}

TEST_P(Refusing, TensorsThatCannotMove) {
  run([](const CommunicatorPtr& world) {
    refuse_everywhere(*world, at::Tensor());
    refuse_everywhere(*world, at::zeros({4, 2}).t());
    refuse_everywhere(*world, at::zeros({4}, at::kComplexFloat));
    refuse_everywhere(*world, at::zeros({4}, at::device(at::kMeta)));
    world->barrier().wait();  // the ranks are still in step
  });
}

TEST_P(Refusing, RanksAndTagsOutsideTheGroup) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor one = at::zeros({4}), all = at::zeros({4 * world->size()});
    for (const int rank : {-1, world->size()}) {
      refuses("broadcast", [&] { return world->broadcast(one, rank); });
      refuses("reduce", [&] { return world->reduce(one, Reduction::kSum, rank); });
      refuses("gather", [&] { return world->gather(all, one, rank); });
      refuses("scatter", [&] { return world->scatter(one, all, rank); });
      refuses("send", [&] { return world->send(one, rank); });
      refuses("recv", [&] { return world->recv(one, rank); });
    }
    refuses("send", [&] { return world->send(one, 0, -1); });
    refuses("recv", [&] { return world->recv(one, 0, kMaxAnyTag + 1); });
    world->barrier().wait();
  });
}

TEST_P(Refusing, ReductionsThatTheDtypeDoesNotSupport) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor one = at::zeros({4}, at::kHalf), all = at::zeros({4 * world->size()}, at::kHalf);
    const auto of_float = Reduction::custom<float>("mine", [](auto, auto) {});
    for (const auto& op : {Reduction(Reduction::kBitXor), of_float}) {
      refuses("reduce", [&] { return world->reduce(one, op, 0); });
      refuses("all_reduce", [&] { return world->all_reduce(one, op); });
      refuses("reduce_scatter", [&] { return world->reduce_scatter(one, all, op); });
    }
    refuses("all_reduce", [&] { return world->all_reduce(one.to(at::kBool), Reduction::kMean); });
    world->barrier().wait();
  });
}

TEST_P(Refusing, SizesAndCountsThatDoNotFit) {
  run([](const CommunicatorPtr& world) {
    const int size = world->size(), here = world->rank();
    const at::Tensor one = at::zeros({4}), all = at::zeros({4 * size}), odd = at::zeros({4 * size + 3});
    const std::vector<std::int64_t> fours(size, 4), many(size + 1, 4), fives(size, 5), negative(size, -4);
    for (const Counts counts : {Counts(many), Counts(fives), Counts(negative)}) {
      refuses("reduce_scatter", [&] { return world->reduce_scatter(one, all, Reduction::kSum, counts); });
      refuses("all_gather", [&] { return world->all_gather(all, one, counts); });
      refuses("gather", [&] { return world->gather(all, one, 0, counts); });
      refuses("scatter", [&] { return world->scatter(one, all, 0, counts); });
      refuses("all_to_all", [&] { return world->all_to_all(all, all, counts, fours); });
      refuses("all_to_all", [&] { return world->all_to_all(all, all, fours, counts); });
    }
    refuses("reduce_scatter", [&] { return world->reduce_scatter(one, odd, Reduction::kSum); });
    refuses("all_gather", [&] { return world->all_gather(odd, one); });
    refuses("gather", [&] { return world->gather(odd, one, here); });
    refuses("scatter", [&] { return world->scatter(one, odd, here); });
    refuses("all_to_all", [&] { return world->all_to_all(odd, all); });
    refuses("all_to_all", [&] { return world->all_to_all(all, all, fours); });
    std::vector<std::int64_t> fewer_to_oneself = fours;
    fewer_to_oneself[here] -= 1;
    refuses("all_to_all", [&] { return world->all_to_all(all, at::zeros({4 * size - 1}), fours, fewer_to_oneself); });
    world->barrier().wait();
  });
}

TEST_P(Refusing, TwoDtypesInOneOperation) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor one = at::zeros({4}), all = at::zeros({4 * world->size()}, at::kInt);
    const int here = world->rank();
    refuses("reduce_scatter", [&] { return world->reduce_scatter(one, all, Reduction::kSum); });
    refuses("all_gather", [&] { return world->all_gather(all, one); });
    refuses("gather", [&] { return world->gather(all, one, here); });
    refuses("scatter", [&] { return world->scatter(one, all, here); });
    refuses("all_to_all", [&] { return world->all_to_all(all, all.to(at::kFloat)); });
    world->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
