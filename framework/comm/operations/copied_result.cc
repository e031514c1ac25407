// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/copied_result.h"

#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>

#include "framework/comm/operations/abandonable.h"

namespace phalanx {
namespace {

// Destroying the Work before the copy waits for it, or abandons it.
class CopiedResult final : public Work::State, public Abandonable {
 public:
  CopiedResult(Work work, at::Tensor from, at::Tensor to)
      : work_(std::move(work)), from_(std::move(from)), to_(std::move(to)) {}

  void wait() override {
    if (done_) return;
    work_.wait();
    const at::NoGradGuard no_grad;
    to_.copy_(from_.view(to_.sizes()));
    done_ = true;
  }
  bool done() const override { return done_; }
  void abandon() override {}

 private:
  Work work_;
  at::Tensor from_, to_;
  bool done_ = false;
};

}  // namespace

Work with_result_copied(Work work, at::Tensor from, at::Tensor to) {
  return Work(std::make_shared<CopiedResult>(std::move(work), std::move(from), std::move(to)));
}

}  // namespace phalanx
