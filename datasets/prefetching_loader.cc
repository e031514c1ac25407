// SPDX-License-Identifier: Apache-2.0
#include "datasets/prefetching_loader.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

class PrefetchingLoader final : public Loader {
 public:
  PrefetchingLoader(std::unique_ptr<Loader> loader, std::int64_t ahead, int threads, std::int64_t max_bytes)
      : loader_(std::move(loader)),
        ahead_(static_cast<std::size_t>(ahead)),
        max_bytes_(max_bytes > 0 ? max_bytes : std::numeric_limits<std::int64_t>::max()),
        batches_(loader_->batches()) {
    thread_ = std::thread([this, threads = threads > 0 ? threads : at::get_num_threads()] {
      at::set_num_threads(threads);  // OpenMP has a separate setting for each thread
      run();
    });
  }

  ~PrefetchingLoader() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::int64_t batches() const override { return batches_; }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    {
      const std::lock_guard lock(mutex_);
      start_ = {epoch, cursor};
      ++starts_;
      for (auto& batch : ready_) free_.push_back(std::move(batch));
      ready_.clear();
      ready_bytes_ = 0;
      ended_ = false;
      error_ = nullptr;
      wanted_ = true;
    }
    changed_.notify_all();
  }

  bool next(Batch& batch) override {
    std::unique_lock lock(mutex_);
    wanted_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !ready_.empty() || ended_ || error_; });
    if (!ready_.empty()) {
      ready_bytes_ -= bytes_of(ready_.front());
      std::swap(batch, ready_.front());
      free_.push_back(std::move(ready_.front()));
      ready_.pop_front();
      changed_.notify_all();
      return true;
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return false;
  }

 private:
  static std::int64_t bytes_of(const Batch& batch) {
    std::size_t bytes = 0;
    for (const auto* tensors : {&batch.inputs, &batch.targets}) {
      for (const auto& tensor : *tensors) bytes += tensor.nbytes();
    }
    return static_cast<std::int64_t>(bytes);
  }

  // Assumes that the next batch is as large as the largest one so far.
  bool has_to_gather() const {
    const bool fits = ready_.empty() || (ready_.size() < ahead_ && ready_bytes_ <= max_bytes_ - largest_bytes_);
    return wanted_ && !ended_ && !error_ && fits;
  }

  // Runs on the prefetching thread, which makes all calls of the inner loader except batches().
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopped_ || start_ || has_to_gather(); });
      if (stopped_) return;
      const auto start = std::exchange(start_, std::nullopt);
      Batch batch;
      if (!start && !free_.empty()) {
        batch = std::move(free_.back());
        free_.pop_back();
      }
      const auto starts = starts_;
      lock.unlock();
      std::exception_ptr error;
      const bool more = start ? begin(*start, error) : gather(batch, error);
      lock.lock();
      if (!start || error) keep(std::move(batch), more, std::move(error), starts);
    }
  }

  bool begin(const std::pair<std::int64_t, std::int64_t>& start, std::exception_ptr& error) {
    try {
      loader_->start_epoch(start.first, start.second);
    } catch (...) {
      error = std::current_exception();
    }
    return true;
  }

  bool gather(Batch& batch, std::exception_ptr& error) {
    try {
      return loader_->next(batch);
    } catch (...) {
      error = std::current_exception();
      return true;
    }
  }

  // Stores the batch that was gathered. A batch of an epoch that has been abandoned is discarded.
  void keep(Batch batch, bool more, std::exception_ptr error, std::uint64_t starts) {
    const bool current = starts == starts_;
    if (current && error) error_ = std::move(error);
    if (current && !more) ended_ = true;
    const bool is_batch = current && more && !error_;
    if (is_batch) {
      ready_bytes_ += bytes_of(batch);
      largest_bytes_ = std::max(largest_bytes_, bytes_of(batch));
    }
    (is_batch ? ready_.emplace_back() : free_.emplace_back()) = std::move(batch);
    changed_.notify_all();
  }

  std::unique_ptr<Loader> loader_;
  const std::size_t ahead_;
  const std::int64_t max_bytes_;
  const std::int64_t batches_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::optional<std::pair<std::int64_t, std::int64_t>> start_;  // epoch and cursor to go to
  std::uint64_t starts_ = 0;
  std::deque<Batch> ready_;
  std::vector<Batch> free_;  // batches whose tensors can be overwritten
  std::int64_t ready_bytes_ = 0, largest_bytes_ = 0;
  bool wanted_ = false;  // the caller has called start_epoch() or next()
  bool ended_ = false;   // the epoch has no more batches
  bool stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Loader> make_prefetching(std::unique_ptr<Loader> loader, std::int64_t ahead, int threads,
                                         std::int64_t max_bytes) {
  if (ahead <= 0) throw std::invalid_argument("make_prefetching: `ahead` must be above 0");
  return std::make_unique<PrefetchingLoader>(std::move(loader), ahead, threads, max_bytes);
}

}  // namespace phalanx
