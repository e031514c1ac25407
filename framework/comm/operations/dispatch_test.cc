// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/dispatch.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

// Records the name of the function that was called.
struct NamedCollectives {
  std::string& called;

  void broadcast() const { called = "broadcast"; }
  void reduce() const { called = "reduce"; }
  void all_reduce() const { called = "all_reduce"; }
  void reduce_scatter() const { called = "reduce_scatter"; }
  void all_gather() const { called = "all_gather"; }
  void gather() const { called = "gather"; }
  void scatter() const { called = "scatter"; }
  void all_to_all() const { called = "all_to_all"; }
  void barrier() const { called = "barrier"; }
};

struct NoCollectives {};
static_assert(!HasAllCollectives<NoCollectives>);

TEST(Dispatch, CallsTheFunctionThatIsNamedLikeTheOperation) {
  for (const Op op : {Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kGather,
                      Op::kScatter, Op::kAllToAll, Op::kBarrier}) {
    std::string called;
    dispatch_collective(op, NamedCollectives{called});
    EXPECT_EQ(called, to_string(op));
  }
}

TEST(Dispatch, RefusesOperationsThatAreNotCollectives) {
  for (const Op op : {Op::kNone, Op::kSend, Op::kRecv, Op::kSplit, Op::kAllocate, Op::kCustom}) {
    std::string called;
    EXPECT_THROW(dispatch_collective(op, NamedCollectives{called}), std::logic_error);
    EXPECT_EQ(called, "");
  }
}

}  // namespace
}  // namespace phalanx
