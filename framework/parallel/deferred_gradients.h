#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace phalanx {

/// Gradients of weights that a backward has left for later: only those of inputs are what other ranks wait for (Qi et
/// al. 2023, arXiv:2401.10241, section 2.1). Each keeps the tensors that it needs.
using DeferredGradients = std::vector<std::function<void()>>;

/// While one lives, layers that can do so put off the gradients of their weights in backwards that this thread runs.
/// What is put off has to be called, in order, before anybody looks at the gradients.
class DeferGradients {
 public:
  explicit DeferGradients(DeferredGradients& to) : outer_(std::exchange(current_, &to)) {}
  ~DeferGradients() { current_ = outer_; }
  DeferGradients(const DeferGradients&) = delete;
  DeferGradients& operator=(const DeferGradients&) = delete;

  /// Does `compute` now, or puts it off.
  static void now_or_later(std::function<void()> compute) {
    if (current_ == nullptr) return compute();
    current_->push_back(std::move(compute));
  }

 private:
  inline static thread_local DeferredGradients* current_ = nullptr;

  DeferredGradients* outer_;
};

}  // namespace phalanx
