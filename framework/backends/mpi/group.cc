#include "framework/backends/mpi/group.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <sstream>
#include <utility>

#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

MPI_Datatype type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    default:
      return MPI_INT64_T;  // check_tensor() lets nothing else pass
  }
}

std::exception_ptr lost(const std::string& where) {
  return std::make_exception_ptr(
      CommError(CommError::Kind::kPeerLost, where + ": another operation of the group failed for good"));
}

}  // namespace

class Group::Operation final : public Work::State {
 public:
  Operation(std::shared_ptr<Group> group, const char* name, at::Tensor tensor, std::function<void()> finish)
      : tensor(std::move(tensor)),
        name_(name),
        sequence_(++group->sequence_),
        finish_(std::move(finish)),
        group_(std::move(group)) {}

  void wait() override {
    if (!done_.load(std::memory_order_acquire)) group_->complete(*this);
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }
  bool done() const override { return done_.load(std::memory_order_acquire) || group_->progress(*this); }
  bool completed() const { return done_.load(std::memory_order_acquire); }

  // Whether MPI is through with it. A request that is complete is gone, so each is asked until then only.
  bool test() {
    while (!requests.empty()) {
      int flag = 0;
      expect_success(MPI_Test(&requests.back(), &flag, MPI_STATUS_IGNORE));
      if (!flag) return false;
      requests.pop_back();
    }
    return true;
  }

  void succeed() {
    if (finish_) finish_();
    finish_ = nullptr;
    tensor.reset();
    done_.store(true, std::memory_order_release);
  }

  void fail(std::exception_ptr error) {
    error_ = std::move(error);
    done_.store(true, std::memory_order_release);
  }

  // "all_reduce #12 of world, rank 0 of 2"
  std::string where() const {
    return std::string(name_) + " #" + std::to_string(sequence_) + " of " + group_->options_.name + ", rank " +
           std::to_string(group_->rank_) + " of " + std::to_string(group_->size_);
  }

  void expect_success(int code) const {
    if (code != MPI_SUCCESS) check(code, where());
  }

  at::Tensor tensor;
  std::vector<MPI_Request> requests;

 private:
  const char* name_;
  std::uint64_t sequence_;
  std::function<void()> finish_;
  std::shared_ptr<Group> group_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
};

Group::Group(MPI_Comm comm, Options options)
    : comm_(comm), options_(std::move(options)), waiter_(options_.local_ranks) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Group::~Group() {
  if (healthy()) MPI_Comm_free(&comm_);
}

Work Group::launch(const char* operation, at::Tensor tensor, const Start& start, std::function<void()> finish) {
  std::lock_guard lock(mutex_);
  auto launched = std::make_shared<Operation>(shared_from_this(), operation, std::move(tensor), std::move(finish));
  in_flight_.push_back(launched);
  try {
    if (broken_) std::rethrow_exception(lost(launched->where()));
    start_parts(*launched, start);
  } catch (const CommError&) {
    fail(*launched, std::current_exception());
  }
  return Work(std::move(launched));
}

void Group::start_parts(Operation& operation, const Start& start) {
  const at::Tensor& tensor = operation.tensor;
  const auto begin = [&](const Part& part) {
    operation.requests.push_back(MPI_REQUEST_NULL);
    operation.expect_success(start(part, comm_, &operation.requests.back()));
  };
  if (!tensor.defined()) return begin({nullptr, 0, MPI_BYTE});
  auto* data = static_cast<std::byte*>(tensor.data_ptr());
  std::int64_t first = 0;
  do {  // also once for no elements: each rank's calls must match
    const auto count = std::min(tensor.numel() - first, options_.most_elements);
    begin({data + first * tensor.element_size(), static_cast<int>(count), type_of(tensor)});
    first += count;
  } while (first < tensor.numel());
}

// Completes what can be completed, from the oldest on: operations complete in their order, though MPI may be through
// with a later one first.
bool Group::progress(const Operation& operation) {
  std::lock_guard lock(mutex_);
  try {
    while (!in_flight_.empty() && in_flight_.front()->test()) {
      in_flight_.front()->succeed();
      in_flight_.pop_front();
    }
  } catch (const CommError&) {
    fail(*in_flight_.front(), std::current_exception());
  }
  return operation.completed();
}

void Group::complete(const Operation& operation) {
  direct::Waiter waiter = waiter_;
  waiter.wait([&] { return progress(operation); },
              [&](auto waited) { give_up_if_late(operation, std::chrono::duration<double>(waited).count()); });
}

void Group::give_up_if_late(const Operation& operation, double seconds) {
  if (seconds < options_.timeout.count() || progress(operation)) return;
  std::lock_guard lock(mutex_);
  if (operation.completed()) return;  // through another thread
  const Operation& oldest = *in_flight_.front();
  std::ostringstream text;
  text.precision(3);
  text << oldest.where() << ": waited " << seconds << " s for ranks that did not come";
  fail(oldest, std::make_exception_ptr(CommError(CommError::Kind::kTimeout, text.str())));
}

void Group::fail(const Operation& culprit, std::exception_ptr error) {
  static auto& abandoned = *new std::vector<at::Tensor>;
  static auto& abandoned_mutex = *new std::mutex;
  give_up();
  broken_ = true;
  for (auto& operation : in_flight_) {
    if (!operation->requests.empty()) {
      std::lock_guard lock(abandoned_mutex);
      abandoned.push_back(operation->tensor);
    }
    operation->fail(operation.get() == &culprit ? error : lost(operation->where()));
  }
  in_flight_.clear();
}

}  // namespace phalanx::mpi
