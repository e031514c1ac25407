// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/arguments.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "framework/comm/testing/recording_communicator.h"

namespace phalanx {
namespace {

const testing::RecordingCommunicator kSecond(1, 3);

template <class Check>
std::string refusal(const Check& check) {
  try {
    check();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "taken";
}

at::Tensor zeros_of(std::int64_t elements) { return at::zeros({elements}); }
at::Tensor transposed() { return at::zeros({4, 3}).t(); }

TEST(Arguments, MakeTheCall) {
  const Call broadcast{.elements = 6, .peer = 2, .op = Op::kBroadcast, .dtype = c10::kFloat};
  EXPECT_EQ(checked_broadcast(kSecond, at::zeros({2, 3}), 2).call, broadcast);
  const Call reduce{
      .elements = 6, .peer = 0, .op = Op::kReduce, .dtype = c10::kFloat, .reduction = Reduction::kProduct};
  EXPECT_EQ(checked_reduce(kSecond, zeros_of(6), Reduction::kProduct, 0).call, reduce);
  const Call all_reduce{.elements = 0, .op = Op::kAllReduce, .dtype = c10::kBool, .reduction = Reduction::kMax};
  EXPECT_EQ(checked_all_reduce(kSecond, at::zeros({0}, at::kBool), Reduction::kMax).call, all_reduce);
  const Call send{.elements = 6, .peer = 1, .tag = kMaxTag, .op = Op::kSend, .dtype = c10::kFloat};
  EXPECT_EQ(checked_send(kSecond, zeros_of(6), 1, kMaxTag).call, send);
  const Call recv{.elements = 6, .peer = 2, .tag = kMaxAnyTag, .op = Op::kRecv, .dtype = c10::kFloat};
  EXPECT_EQ(checked_recv(kSecond, zeros_of(6), 2, kMaxAnyTag).call, recv);
}

TEST(Arguments, CountTheWholeGroupsElements) {
  EXPECT_EQ(checked_reduce_scatter(kSecond, zeros_of(2), zeros_of(6), Reduction::kSum, {}).call.elements, 6);
  EXPECT_EQ(checked_reduce_scatter(kSecond, zeros_of(2), zeros_of(7), Reduction::kSum, {1, 2, 4}).call.elements, 7);
  EXPECT_EQ(checked_all_gather(kSecond, zeros_of(6), zeros_of(2), {}).call.elements, 6);
  EXPECT_EQ(checked_all_gather(kSecond, zeros_of(7), zeros_of(2), {1, 2, 4}).call.elements, 7);
  EXPECT_EQ(checked_gather(kSecond, at::Tensor(), zeros_of(2), 0, {}).call.elements, 6);
  EXPECT_EQ(checked_gather(kSecond, zeros_of(7), zeros_of(2), 1, {1, 2, 4}).call.elements, 7);
  EXPECT_EQ(checked_scatter(kSecond, zeros_of(2), at::Tensor(), 0, {1, 2, 4}).call.elements, 7);
  EXPECT_EQ(checked_scatter(kSecond, zeros_of(2), zeros_of(6), 1, {}).call.elements, 6);
  EXPECT_EQ(checked_all_to_all(kSecond, zeros_of(6), zeros_of(6), {}, {}).call.elements, 6);
  EXPECT_EQ(checked_all_to_all(kSecond, zeros_of(6), zeros_of(3), {2, 1, 3}, {1, 1, 1}).call.elements, 0);
}

// The counts of these operations are the same on all ranks, so all of them find that they are equal.
TEST(Arguments, EqualCountsAreLikeNone) {
  const auto gather = checked_all_gather(kSecond, zeros_of(6), zeros_of(2), {2, 2, 2});
  EXPECT_TRUE(gather.input_counts.empty());
  EXPECT_EQ(gather.call, checked_all_gather(kSecond, zeros_of(6), zeros_of(2), {}).call);
  EXPECT_TRUE(
      checked_reduce_scatter(kSecond, zeros_of(2), zeros_of(6), Reduction::kSum, {2, 2, 2}).input_counts.empty());
  EXPECT_EQ(checked_all_gather(kSecond, zeros_of(6), zeros_of(2), {2, 2, 2}).call.elements, 6);
  EXPECT_EQ(checked_reduce_scatter(kSecond, zeros_of(2), zeros_of(7), Reduction::kSum, {1, 2, 4}).input_counts.size(),
            3u);
  // A rank does not know what other ranks exchange.
  EXPECT_EQ(checked_all_to_all(kSecond, zeros_of(6), zeros_of(6), {2, 2, 2}, {2, 2, 2}).input_counts.size(), 3u);
}

TEST(Arguments, RecordInTheCallWhatElseMustAgree) {
  const auto gather = [](Counts counts) {
    return checked_all_gather(kSecond, zeros_of(6), zeros_of(2), counts).call.detail;
  };
  EXPECT_NE(gather({}), gather({1, 2, 3}));
  EXPECT_NE(gather({1, 2, 3}), gather({3, 2, 1}));
  EXPECT_EQ(gather({1, 2, 3}), gather({1, 2, 3}));
  const auto reduce = [](const char* name) {
    return checked_all_reduce(kSecond, zeros_of(1), Reduction::custom<float>(name, [](auto, auto) {})).call.detail;
  };
  EXPECT_NE(reduce("mine"), reduce("yours"));
  EXPECT_EQ(reduce("mine"), reduce("mine"));
  EXPECT_NE(checked_all_to_all(kSecond, zeros_of(0), zeros_of(0), {}, {}).call,
            checked_all_to_all(kSecond, zeros_of(0), zeros_of(0), {0, 0, 0}, {0, 0, 0}).call);
  const auto allocate = [](Op op, at::IntArrayRef sizes) {
    return checked_allocation(kSecond, op, sizes, at::kFloat).call;
  };
  EXPECT_NE(allocate(Op::kAllocate, {2, 3}), allocate(Op::kAllocateShared, {2, 3}));
  EXPECT_NE(allocate(Op::kAllocate, {2, 3}), allocate(Op::kAllocate, {3, 2}));
  EXPECT_EQ(allocate(Op::kAllocate, {2, 3}), allocate(Op::kAllocate, {2, 3}));
}

// Every operation checks its tensors, and the error names the wrong one.
TEST(Arguments, RefuseTensorsThatCannotMove) {
  EXPECT_EQ(refusal([] { checked_broadcast(kSecond, at::Tensor(), 0); }), "broadcast: the tensor is undefined");
  EXPECT_EQ(refusal([] { checked_reduce(kSecond, transposed(), Reduction::kSum, 0); }),
            "reduce: the tensor is not contiguous; pass tensor.contiguous() and copy back");
  EXPECT_EQ(refusal([] { checked_all_reduce(kSecond, zeros_of(4).to_sparse(), Reduction::kSum); }),
            "all_reduce: the tensor is not dense");
  EXPECT_EQ(refusal([] { checked_all_reduce(kSecond, at::empty({4}, at::kMeta), Reduction::kSum); }),
            "all_reduce: the tensor is on meta, but recording takes tensors on cpu");
  EXPECT_EQ(
      refusal([] { checked_broadcast(kSecond, at::zeros({4}, at::kComplexFloat), 0); }),
      "broadcast: dtype ComplexFloat is not one of Byte, Char, Short, Int, Long, Half, BFloat16, Float, Double, Bool");
  EXPECT_EQ(refusal([] { checked_reduce_scatter(kSecond, zeros_of(4), at::Tensor(), Reduction::kSum, {}); }),
            "reduce_scatter: the input is undefined");
  EXPECT_EQ(refusal([] { checked_all_gather(kSecond, transposed(), zeros_of(4), {}); }),
            "all_gather: the output is not contiguous; pass tensor.contiguous() and copy back");
  EXPECT_EQ(refusal([] { checked_gather(kSecond, zeros_of(6), at::Tensor(), 0, {}); }),
            "gather: the input is undefined");
  EXPECT_EQ(refusal([] { checked_gather(kSecond, at::Tensor(), zeros_of(6), 1, {}); }),
            "gather: the output is undefined");
  EXPECT_EQ(refusal([] { checked_scatter(kSecond, at::Tensor(), zeros_of(6), 0, {}); }),
            "scatter: the output is undefined");
  EXPECT_EQ(refusal([] { checked_scatter(kSecond, zeros_of(6), at::Tensor(), 1, {}); }),
            "scatter: the input is undefined");
  EXPECT_EQ(refusal([] { checked_all_to_all(kSecond, transposed(), zeros_of(12), {}, {}); }),
            "all_to_all: the output is not contiguous; pass tensor.contiguous() and copy back");
  EXPECT_EQ(refusal([] { checked_send(kSecond, at::Tensor(), 0, 0); }), "send: the tensor is undefined");
  EXPECT_EQ(refusal([] { checked_recv(kSecond, transposed(), 0, 0); }),
            "recv: the tensor is not contiguous; pass tensor.contiguous() and copy back");
}

TEST(Arguments, RefuseTwoDtypes) {
  const auto ints = at::zeros({6}, at::kInt);
  const std::string end = ": the input is Float, the output Int";
  EXPECT_EQ(refusal([&] { checked_reduce_scatter(kSecond, ints, zeros_of(18), Reduction::kSum, {}); }),
            "reduce_scatter" + end);
  EXPECT_EQ(refusal([&] { checked_all_gather(kSecond, ints, zeros_of(2), {}); }), "all_gather" + end);
  EXPECT_EQ(refusal([&] { checked_gather(kSecond, ints, zeros_of(2), 1, {}); }), "gather" + end);
  EXPECT_EQ(refusal([&] { checked_scatter(kSecond, ints, zeros_of(18), 1, {}); }), "scatter" + end);
  EXPECT_EQ(refusal([&] { checked_all_to_all(kSecond, ints, zeros_of(6), {}, {}); }), "all_to_all" + end);
  EXPECT_EQ(refusal([&] { checked_gather(kSecond, ints, zeros_of(2), 0, {}); }), "taken") << "ignored except on root";
}

TEST(Arguments, RefuseRanksOutsideTheGroup) {
  const auto six = zeros_of(6);
  EXPECT_EQ(refusal([&] { checked_broadcast(kSecond, six, 3); }), "broadcast: root 3 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_broadcast(kSecond, six, -1); }), "broadcast: root -1 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_reduce(kSecond, six, Reduction::kSum, 3); }),
            "reduce: root 3 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_gather(kSecond, six, six, 3, {}); }), "gather: root 3 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_scatter(kSecond, six, six, -2, {}); }),
            "scatter: root -2 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_send(kSecond, six, 3, 0); }), "send: peer 3 is not a rank of a group of 3");
  EXPECT_EQ(refusal([&] { checked_recv(kSecond, six, -1, 0); }), "recv: peer -1 is not a rank of a group of 3");
}

TEST(Arguments, RefuseTags) {
  EXPECT_EQ(refusal([] { checked_send(kSecond, zeros_of(1), 0, -1); }), "send: tag -1 is not between 0 and 16383");
  EXPECT_EQ(refusal([] { checked_recv(kSecond, zeros_of(1), 0, kMaxAnyTag + 1); }),
            "recv: tag 32768 is not between 0 and 16383");
}

TEST(Arguments, RefuseReductionsThatDoNotExist) {
  EXPECT_EQ(refusal([] { checked_all_reduce(kSecond, zeros_of(1), Reduction::kBitAnd); }),
            "all_reduce: there is no bit_and of Float");
  EXPECT_EQ(refusal([] { checked_reduce(kSecond, at::zeros({1}, at::kBool), Reduction::kMean, 0); }),
            "reduce: there is no mean of Bool");
  const auto mine = Reduction::custom<float>("mine", [](auto, auto) {});
  EXPECT_EQ(
      refusal([&] { checked_reduce_scatter(kSecond, at::zeros({1}, at::kInt), at::zeros({3}, at::kInt), mine, {}); }),
      "reduce_scatter: there is no mine of Int");
}

TEST(Arguments, RefuseInvalidCounts) {
  const auto six = zeros_of(6), two = zeros_of(2);
  EXPECT_EQ(refusal([&] { checked_all_gather(kSecond, six, two, {2, 4}); }), "all_gather: 2 counts for a group of 3");
  EXPECT_EQ(refusal([&] { checked_gather(kSecond, six, two, 1, {2, 2, 1, 1}); }), "gather: 4 counts for a group of 3");
  EXPECT_EQ(refusal([&] { checked_scatter(kSecond, two, six, 1, {5, 2, -1}); }), "scatter: a negative count, -1");
  EXPECT_EQ(refusal([&] { checked_reduce_scatter(kSecond, two, six, Reduction::kSum, {5, 2, -1}); }),
            "reduce_scatter: a negative count, -1");
  EXPECT_EQ(refusal([&] { checked_all_to_all(kSecond, six, six, {2, 2, 2}, {6}); }),
            "all_to_all: 1 counts for a group of 3");
  EXPECT_EQ(refusal([&] { checked_all_to_all(kSecond, six, six, {2, 2, 2}, {}); }),
            "all_to_all: give counts for both the input and the output, or for neither");
}

TEST(Arguments, RefuseTensorsThatDoNotFitTheCounts) {
  EXPECT_EQ(refusal([] { checked_all_gather(kSecond, zeros_of(7), zeros_of(2), {}); }),
            "all_gather: the output has 7 elements, not 6: 3 parts of 2");
  EXPECT_EQ(refusal([] { checked_all_gather(kSecond, zeros_of(8), zeros_of(2), {1, 2, 4}); }),
            "all_gather: the output has 8 elements, not 7, the sum of the counts");
  EXPECT_EQ(refusal([] { checked_all_gather(kSecond, zeros_of(7), zeros_of(4), {1, 2, 4}); }),
            "all_gather: the input has 4 elements, but the count of rank 1 is 2");
  EXPECT_EQ(refusal([] { checked_reduce_scatter(kSecond, zeros_of(2), zeros_of(7), Reduction::kSum, {}); }),
            "reduce_scatter: the input has 7 elements, not 6: 3 parts of 2");
  EXPECT_EQ(refusal([] { checked_reduce_scatter(kSecond, zeros_of(4), zeros_of(7), Reduction::kSum, {1, 2, 4}); }),
            "reduce_scatter: the output has 4 elements, but the count of rank 1 is 2");
  EXPECT_EQ(refusal([] { checked_gather(kSecond, zeros_of(5), zeros_of(2), 1, {}); }),
            "gather: the output has 5 elements, not 6: 3 parts of 2");
  EXPECT_EQ(refusal([] { checked_gather(kSecond, at::Tensor(), zeros_of(5), 0, {1, 2, 4}); }),
            "gather: the input has 5 elements, but the count of rank 1 is 2");
  EXPECT_EQ(refusal([] { checked_scatter(kSecond, zeros_of(2), zeros_of(5), 1, {}); }),
            "scatter: the input has 5 elements, not 6: 3 parts of 2");
  EXPECT_EQ(refusal([] { checked_scatter(kSecond, zeros_of(5), at::Tensor(), 0, {1, 2, 4}); }),
            "scatter: the output has 5 elements, but the count of rank 1 is 2");
  EXPECT_EQ(refusal([] { checked_all_to_all(kSecond, zeros_of(7), zeros_of(7), {}, {}); }),
            "all_to_all: 7 elements are not 3 equal parts");
  EXPECT_EQ(refusal([] { checked_all_to_all(kSecond, zeros_of(9), zeros_of(6), {}, {}); }),
            "all_to_all: the output has 9 elements, not 6: 3 parts of 2");
  EXPECT_EQ(refusal([] { checked_all_to_all(kSecond, zeros_of(9), zeros_of(6), {1, 2, 3}, {1, 2, 3}); }),
            "all_to_all: the output has 9 elements, not 6, the sum of the counts");
  EXPECT_EQ(refusal([] { checked_all_to_all(kSecond, zeros_of(6), zeros_of(6), {1, 2, 3}, {2, 1, 3}); }),
            "all_to_all: 1 elements to oneself, but 2 from oneself");
}

TEST(Arguments, RefuseImpossibleSizesOfMemory) {
  const auto allocate = [](at::IntArrayRef sizes, at::TensorOptions options) {
    return refusal([&] { checked_allocation(kSecond, Op::kAllocateShared, sizes, options); });
  };
  EXPECT_EQ(allocate({3, -1}, at::kFloat), "allocate_shared: a negative size, -1");
  const std::string too_much = "allocate_shared: more bytes than an address can count";
  EXPECT_EQ(allocate({std::int64_t{1} << 40, std::int64_t{1} << 40}, at::kByte), too_much);
  EXPECT_EQ(allocate({std::int64_t{1} << 62}, at::kByte), too_much) << "for three ranks";
  EXPECT_EQ(allocate({1}, at::device(at::kMeta)),
            "allocate_shared: the memory is on meta, but recording takes tensors on cpu");
  EXPECT_EQ(allocate({std::int64_t{1} << 60}, at::kByte), "taken");
}

}  // namespace
}  // namespace phalanx
