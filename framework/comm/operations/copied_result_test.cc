// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/copied_result.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Writes 0, 1, ... when it is waited for; fails if it has no tensor to write to.
class Counted final : public Work::State {
 public:
  explicit Counted(at::Tensor to) : to_(std::move(to)) {}
  void wait() override {
    if (!to_.defined()) throw CommError(CommError::Kind::kPeerLost, "lost");
    to_.copy_(at::arange(to_.numel()));
    done_ = true;
  }
  bool done() const override { return done_; }

 private:
  at::Tensor to_;
  bool done_ = false;
};

TEST(CopiedResult, HasTheOtherShapeAfterWait) {
  const at::Tensor from = at::zeros({6}), to = at::zeros({2, 3}).requires_grad_();
  Work work = with_result_copied(Work(std::make_shared<Counted>(from)), from, to);
  EXPECT_FALSE(work.done());
  work.wait();
  EXPECT_TRUE(work.done());
  EXPECT_TRUE(at::equal(to, at::arange(6).view({2, 3})));
}

TEST(CopiedResult, IsNotCopiedIfTheWorkFails) {
  const at::Tensor to = at::zeros({6});
  Work work = with_result_copied(Work(std::make_shared<Counted>(at::Tensor())), at::zeros({6}).fill_(1), to);
  EXPECT_THROW(work.wait(), CommError);
  EXPECT_TRUE(at::equal(to, at::zeros({6})));
}

}  // namespace
}  // namespace phalanx
