// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace phalanx {

/// An operation in flight. Move-only; keeps the tensors it works on alive until it is complete.
///
/// What waiting means depends on where the tensors are.
///
///   CPU     wait() and synchronize() block the host until the operation is complete.
///   device  wait() orders the current stream after the operation: what is launched on it from now on sees the result,
///           while the host goes on at once. synchronize() blocks the host until the operation is complete.
///
/// An operation may run in wait() alone (see OperationQueue): done() tells, but polling it need not bring it about.
///
/// Both may be called from any thread and any number of times; the operation's CommError is thrown once. Destroying a
/// Work that was not waited for waits for it and logs its error: an operation is never silently abandoned, because its
/// peers count on it.
class [[nodiscard]] Work {
 public:
  /// What a backend implements: one per operation in flight.
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;                // blocks up to the communicator's deadline, then throws CommError
    virtual void synchronize() { wait(); }  // the same; of device tensors also after wait()
    virtual bool done() const = 0;          // whether the operation is complete; never blocks
  };

  Work() = default;  // already complete
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      finish();
      state_ = std::move(other.state_);
      waited_ = other.waited_;
    }
    return *this;
  }
  ~Work() { finish(); }

  void wait() {
    auto state = std::exchange(state_, nullptr);  // nothing is left to tell once it has thrown
    if (!state) return;
    state->wait();
    if (state->done()) return;
    state_ = std::move(state);  // on a device, for synchronize()
    waited_ = true;
  }
  void synchronize() {
    if (auto state = std::exchange(state_, nullptr)) state->synchronize();
  }
  bool done() const { return !state_ || state_->done(); }

 private:
  void finish() noexcept;  // waits unless somebody has, logs an error

  std::shared_ptr<State> state_;  // null: complete, or its error was thrown
  bool waited_ = false;
};

/// Waits for each in turn. All of them must have been launched before any is waited for.
void wait_all(std::vector<Work>& works);

}  // namespace phalanx
