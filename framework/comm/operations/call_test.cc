// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/call.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace phalanx {
namespace {

TEST(Call, IsDescribedInTheWordsOfAUser) {
  Call call{.elements = 1000, .op = Op::kAllReduce, .dtype = c10::kFloat};
  EXPECT_EQ(describe(call), "all_reduce(sum) of 1000 Float");
  call.op = Op::kReduceScatter;
  call.reduction = Reduction::kBitXor;
  EXPECT_EQ(describe(call), "reduce_scatter(bit_xor) of 1000 Float");
  EXPECT_EQ(describe({.elements = 7, .peer = 2, .op = Op::kReduce, .dtype = c10::kLong, .reduction = Reduction::kMax}),
            "reduce(max, root 2) of 7 Long");
  EXPECT_EQ(describe({.elements = 12, .peer = 1, .op = Op::kBroadcast, .dtype = c10::kBool}),
            "broadcast(root 1) of 12 Bool");
  EXPECT_EQ(describe({.elements = 12, .peer = 1, .op = Op::kGather, .dtype = c10::kHalf}), "gather(root 1) of 12 Half");
  EXPECT_EQ(describe({.elements = 12, .peer = 0, .op = Op::kScatter, .dtype = c10::kByte}),
            "scatter(root 0) of 12 Byte");
  EXPECT_EQ(describe({.elements = 5, .op = Op::kAllGather, .dtype = c10::kBFloat16}), "all_gather of 5 BFloat16");
  EXPECT_EQ(describe({.elements = 5, .op = Op::kAllToAll, .dtype = c10::kInt}), "all_to_all of 5 Int");
}

TEST(Call, ForMemoryNamesElements) {
  EXPECT_EQ(describe({.elements = 4096, .op = Op::kAllocate, .dtype = c10::kFloat}), "allocate of 4096 Float");
  EXPECT_EQ(describe({.elements = 5, .op = Op::kAllocateShared, .dtype = c10::kInt}), "allocate_shared of 5 Int");
}

TEST(Call, OfAMessageNamesPeerAndTag) {
  EXPECT_EQ(describe({.elements = 7, .peer = 2, .tag = 3, .op = Op::kSend, .dtype = c10::kDouble}),
            "send(to 2, tag 3) of 7 Double");
  EXPECT_EQ(describe({.elements = 7, .peer = 0, .op = Op::kRecv, .dtype = c10::kDouble}),
            "recv(from 0, tag 0) of 7 Double");
}

TEST(Call, WithoutElementsDoesNotNameAny) {
  EXPECT_EQ(describe({.op = Op::kBarrier}), "barrier");
  EXPECT_EQ(describe({.op = Op::kSplit}), "split");
}

TEST(Call, HasANameForEveryOperation) {
  std::set<std::string_view> names;
  constexpr int kOperations = static_cast<int>(Op::kCustom) + 1;
  for (int op = 0; op < kOperations; ++op) names.insert(to_string(static_cast<Op>(op)));
  EXPECT_EQ(names.size(), std::size_t{kOperations});
  EXPECT_FALSE(names.contains(to_string(static_cast<Op>(kOperations)))) << "an operation was added after kCustom";
}

TEST(Call, AgreesInEveryField) {
  const Call call{.elements = 1, .detail = 2, .peer = 3, .tag = 4, .op = Op::kSend, .dtype = c10::kFloat};
  const auto with = [&](auto change) {
    Call other = call;
    change(other);
    return other;
  };
  EXPECT_EQ(call, with([](Call&) {}));
  EXPECT_NE(call, with([](Call& other) { other.elements = 0; }));
  EXPECT_NE(call, with([](Call& other) { other.detail = 0; }));
  EXPECT_NE(call, with([](Call& other) { other.peer = 0; }));
  EXPECT_NE(call, with([](Call& other) { other.tag = 0; }));
  EXPECT_NE(call, with([](Call& other) { other.op = Op::kRecv; }));
  EXPECT_NE(call, with([](Call& other) { other.dtype = c10::kInt; }));
  EXPECT_NE(call, with([](Call& other) { other.reduction = Reduction::kMax; }));
}

}  // namespace
}  // namespace phalanx
