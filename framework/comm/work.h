#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace phalanx {

/// A collective in flight. Move-only; keeps the tensors it works on alive until it is complete.
///
/// An operation may run in wait() alone (see OperationQueue): done() tells, but polling it need not bring it about.
///
/// wait() may be called from any thread and any number of times; it throws the operation's CommError the first time.
/// Destroying a Work that was not waited for waits for it and logs its error: an operation is never silently abandoned,
/// because its peers count on it.
class [[nodiscard]] Work {
 public:
  /// What a backend implements: one per operation in flight.
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;        // blocks up to the communicator's deadline, then throws CommError
    virtual bool done() const = 0;  // never blocks
  };

  Work() = default;  // already complete
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      finish();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Work() { finish(); }

  void wait() {
    if (auto state = std::exchange(state_, nullptr)) state->wait();
  }
  bool done() const { return !state_ || state_->done(); }

 private:
  void finish() noexcept;  // waits, logs an error

  std::shared_ptr<State> state_;
};

/// Waits for each in turn. All of them must have been launched before any is waited for.
void wait_all(std::vector<Work>& works);

}  // namespace phalanx
