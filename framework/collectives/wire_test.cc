// SPDX-License-Identifier: Apache-2.0
// Tests that each registered algorithm sends the number of bytes that the comment in its file promises.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <map>

#include "framework/collectives/algorithm.h"
#include "framework/comm/decorator.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

class Counted final : public Decorator {
 public:
  using Decorator::Decorator;
  Work launch(Operation operation) override {
    if (operation.call.op == Op::kSend) bytes_ += static_cast<std::int64_t>(operation.output.nbytes());
    return Decorator::launch(std::move(operation));
  }
  std::int64_t bytes() const { return bytes_; }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<Counted>(std::move(child)); }

 private:
  std::int64_t bytes_ = 0;
};

// The promise for P ranks and n bytes, where n is a multiple of 2 P.
struct Promise {
  std::function<double(int ranks)> total;  // bytes that all ranks send together, in units of n; exact
  std::function<double(int ranks)> most;   // upper bound of the bytes that one rank sends, in units of n
};

double floor_log2(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }
double ceil_log2(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }
double ceil_log(int radix, int ranks) {
  int steps = 0;
  for (int reached = 1; reached < ranks; reached *= radix) ++steps;
  return steps;
}
double least(int ranks) { return (ranks - 1.0) / ranks; }
double more_unless_power_of_two(int ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)) ? 0 : 0.5; }
double bits_up_to(int ranks) {
  double bits = 0;
  for (int place = 1; place < ranks; ++place) bits += std::popcount(static_cast<unsigned>(place));
  return bits;
}
double all_but_one(int ranks) { return ranks - 1; }
double twice_all_but_one(int ranks) { return 2 * (ranks - 1); }
double one(int) { return 1; }
double two(int) { return 2; }

double doubled_total(int ranks) {
  const double places = std::bit_floor(static_cast<unsigned>(ranks));
  return places * floor_log2(ranks) + 2 * (ranks - places);
}

std::function<double(int)> knomial_root(int radix) {
  return [radix](int ranks) { return (radix - 1) * ceil_log(radix, ranks); };
}

const std::map<std::pair<Op, std::string>, Promise> kPromises{
    {{Op::kBroadcast, "binomial"}, {all_but_one, ceil_log2}},
    {{Op::kBroadcast, "chain"}, {all_but_one, one}},
    {{Op::kBroadcast, "direct"}, {all_but_one, all_but_one}},
    {{Op::kBroadcast, "double_tree"}, {all_but_one, one}},
    {{Op::kBroadcast, "knomial_4"}, {all_but_one, knomial_root(4)}},
    {{Op::kBroadcast, "knomial_8"}, {all_but_one, knomial_root(8)}},
    {{Op::kReduce, "binomial"}, {all_but_one, one}},
    {{Op::kReduce, "direct"}, {all_but_one, one}},
    {{Op::kReduce, "double_tree"}, {all_but_one, one}},
    {{Op::kReduce, "knomial_4"}, {all_but_one, one}},
    {{Op::kReduce, "knomial_8"}, {all_but_one, one}},
    {{Op::kAllReduce, "direct"}, {twice_all_but_one, [](int p) { return 2 * least(p); }}},
    {{Op::kAllReduce, "double_tree"}, {twice_all_but_one, two}},
    {{Op::kAllReduce, "halving_doubling"},
     {twice_all_but_one, [](int p) { return 2 * least(p) + more_unless_power_of_two(p); }}},
    {{Op::kAllReduce, "recursive_doubling"},
     {doubled_total, [](int p) { return floor_log2(p) + 2 * more_unless_power_of_two(p); }}},
    {{Op::kAllReduce, "ring"}, {twice_all_but_one, [](int p) { return 2 * least(p); }}},
    {{Op::kReduceScatter, "direct"}, {all_but_one, least}},
    {{Op::kReduceScatter, "recursive_halving"}, {all_but_one, least}},
    {{Op::kReduceScatter, "ring"}, {all_but_one, least}},
    {{Op::kAllGather, "bruck"}, {all_but_one, least}},
    {{Op::kAllGather, "direct"}, {all_but_one, least}},
    {{Op::kAllGather, "recursive_doubling"},
     {all_but_one, [](int p) { return least(p) + more_unless_power_of_two(p); }}},
    {{Op::kAllGather, "ring"}, {all_but_one, least}},
    {{Op::kGather, "binomial"}, {[](int p) { return bits_up_to(p) / p; }, [](int) { return 0.5; }}},
    {{Op::kGather, "direct"}, {least, [](int p) { return 1.0 / p; }}},
    {{Op::kScatter, "binomial"}, {[](int p) { return bits_up_to(p) / p; }, least}},
    {{Op::kScatter, "direct"}, {least, least}},
    {{Op::kAllToAll, "bruck"}, {bits_up_to, [](int p) { return bits_up_to(p) / p; }}},
    {{Op::kAllToAll, "direct"}, {all_but_one, least}},
    {{Op::kAllToAll, "pairwise"}, {all_but_one, least}},
};

// Returns an operation on a tensor of `elements` elements, with root 0.
Operation operation_of(Op op, std::int64_t elements, int ranks) {
  const Call call{.peer = 0, .op = op};
  const auto whole = [&] { return at::zeros({elements}, c10::kFloat); };
  const auto part = [&] { return at::zeros({elements / ranks}, c10::kFloat); };
  switch (op) {
    case Op::kReduceScatter:
    case Op::kScatter:
      return {.call = call, .output = part(), .input = whole()};
    case Op::kAllGather:
    case Op::kGather:
      return {.call = call, .output = whole(), .input = part()};
    case Op::kAllToAll:
      return {.call = call, .output = whole(), .input = whole()};
    default:
      return {.call = call, .output = whole()};
  }
}

// Returns the bytes that each rank sends.
std::vector<std::int64_t> sent(const Algorithm& algorithm, int ranks, const std::function<Operation()>& operation) {
  std::vector<std::int64_t> bytes(ranks);
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const auto counted = std::make_shared<Counted>(world);
    launch(counted, algorithm, operation()).wait();
    bytes[world->rank()] = counted->bytes();
  });
  return bytes;
}

class Wire : public ::testing::TestWithParam<const Algorithm*> {};

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Op op : {Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kGather,
                      Op::kScatter, Op::kAllToAll}) {
    for (const auto* algorithm : Algorithms::global().of(op)) {
      if (!algorithm->only_private_memory) all.push_back(algorithm);  // those send nothing
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, Wire, ::testing::ValuesIn(all_algorithms()), [](const auto& info) {
  return std::string(to_string(info.param->op)) + '_' + info.param->name;
});

TEST_P(Wire, CarriesWhatTheHeaderPromises) {
  const auto found = kPromises.find({GetParam()->op, GetParam()->name});
  ASSERT_NE(found, kPromises.end()) << "promise something for this algorithm";
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
    for (const int elements_per_rank : {2, ranks > 5 ? 100 : 100'000}) {  // one chunk, and several chunks
      const std::int64_t elements = std::int64_t{ranks} * elements_per_rank;
      const auto bytes = sent(*GetParam(), ranks, [&] { return operation_of(GetParam()->op, elements, ranks); });
      const double n = static_cast<double>(elements) * 4;
      double total = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        total += static_cast<double>(bytes[rank]);
        EXPECT_LE(static_cast<double>(bytes[rank]), found->second.most(ranks) * n + 1e-6)
            << "rank " << rank << " of " << ranks << ", " << n << " bytes";
      }
      EXPECT_NEAR(total, found->second.total(ranks) * n, 1e-6 * n) << ranks << " ranks, " << n << " bytes";
    }
  }
}

TEST(WireOfBarrier, IsOneBytePerStep) {
  for (const int ranks : {1, 2, 5, 8, 9}) {
    const auto bytes = sent(Algorithms::global().find(Op::kBarrier, "direct"), ranks,
                            [] { return Operation{.call = {.op = Op::kBarrier}}; });
    EXPECT_EQ(bytes, std::vector<std::int64_t>(ranks, static_cast<std::int64_t>(ceil_log2(ranks))));
  }
}

TEST(WireOfReduce, ToAnotherRootInRankOrderCostsOneMoreMessage) {
  const auto first = Reduction::custom<float>("first", [](auto, auto) {});
  const auto bytes = sent(Algorithms::global().find(Op::kReduce, "binomial"), 5, [&] {
    return Operation{
        .call = {.peer = 3, .op = Op::kReduce}, .output = at::zeros({10}, c10::kFloat), .reduction = first};
  });
  EXPECT_EQ(bytes, std::vector<std::int64_t>(5, 40));
}

}  // namespace
}  // namespace phalanx::testing
