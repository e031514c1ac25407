// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace phalanx {

/// An operation in flight. Move-only; keeps the tensors it works on alive until it is complete.
///
/// The meaning of waiting depends on the device of the tensors:
///
///   CPU     wait() and synchronize() block the host until the operation is complete.
///   device  wait() orders the current stream after the operation: work that is launched on the stream later sees the
///           result, and the host continues at once. synchronize() blocks the host until the operation is complete.
///
/// An operation may run only in wait() (see OperationQueue), so polling done() need not bring it to completion.
///
/// wait() and synchronize() may be called any number of times; the operation's CommError is thrown once. Destroying a
/// Work that was not waited for waits for it and logs its error: an operation is never silently abandoned, because its
/// peers rely on it.
///
/// If an exception destroys the Work of a message, or of an operation that has not begun on this rank, it is not waited
/// for: its peers may wait for this rank elsewhere, for something that it does not do any more. This rank leaves the
/// group instead, so that its peers, and later calls of its own, get CommError::kPeerLost (abandonable.h). This does
/// not hold within an operation (Communicator::run), nor for operations that a device runs (nccl).
///
/// Threads: a Work may be passed to any thread, also to one other than the launching thread, but it is not thread-safe:
/// calls for one Work must not overlap. Different Works may be waited for in different threads at the same time.
class [[nodiscard]] Work {
 public:
  /// The interface that a backend implements, with one object per operation in flight. A Work calls it from one thread
  /// at a time.
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;                // blocks up to the communicator's deadline, then throws CommError
    virtual void synchronize() { wait(); }  // the same; for device tensors also called after wait()
    virtual bool done() const = 0;          // true if the operation is complete; never blocks
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
    auto state = std::exchange(state_, nullptr);  // an error is thrown only once
    if (!state) return;
    state->wait();
    if (state->done()) return;
    state_ = std::move(state);  // device tensors: kept for synchronize()
    waited_ = true;
  }
  void synchronize() {
    if (auto state = std::exchange(state_, nullptr)) state->synchronize();
  }
  bool done() const { return !state_ || state_->done(); }

 private:
  void finish() noexcept;  // waits unless that has been done; logs an error

  std::shared_ptr<State> state_;  // null: complete, or its error has been thrown
  bool waited_ = false;
};

/// Waits for each in turn. All of them must have been launched before this call.
void wait_all(std::vector<Work>& works);

}  // namespace phalanx
