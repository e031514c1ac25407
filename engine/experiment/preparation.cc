// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/preparation.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace phalanx {
namespace {

class CompletingLoader final : public Loader {
 public:
  CompletingLoader(std::unique_ptr<Loader> inner, std::function<void(Batch&)> complete)
      : inner_(std::move(inner)), complete_(std::move(complete)) {}

  std::int64_t batches() const override { return inner_->batches(); }
  void start_epoch(std::int64_t epoch, std::int64_t cursor) override { inner_->start_epoch(epoch, cursor); }
  bool next(Batch& batch) override {
    if (!inner_->next(batch)) return false;
    complete_(batch);
    return true;
  }

 private:
  std::unique_ptr<Loader> inner_;
  std::function<void(Batch&)> complete_;
};

// Keeps the next batch on its way to the device.
class DeviceLoader final : public Loader {
 public:
  DeviceLoader(std::unique_ptr<Loader> inner, std::function<void(Batch&)> complete, c10::Device device)
      : inner_(std::move(inner)),
        complete_(std::move(complete)),
        device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device)) {}

  std::int64_t batches() const override { return inner_->batches(); }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    coming_.reset();
    left_ = inner_->batches() - cursor;
    inner_->start_epoch(epoch, cursor);
  }

  bool next(Batch& batch) override {
    if (!left_) start_epoch(0, 0);
    if (*left_ == 0) return false;
    if (!coming_) fetch();
    batch = *std::exchange(coming_, std::nullopt);
    const c10::Stream current = guard_.getStream(device_);
    arrived_.block(current);
    for (const auto* tensors : {&batch.inputs, &batch.targets}) {
      for (const auto& tensor : *tensors) tensor.record_stream(current);
    }
    if (--*left_ > 0) fetch();
    return true;
  }

 private:
  // Fetches the next batch. The loader reuses the memory of its batch, so host_ keeps it even if `complete_` replaces
  // the tensors.
  void fetch() {
    if (!inner_->next(host_)) return;
    Batch batch = host_;
    complete_(batch);
    const c10::StreamGuard copies(stream_);
    for (auto* tensors : {&batch.inputs, &batch.targets}) {
      for (auto& tensor : *tensors) tensor = tensor.pin_memory().to(device_, /*non_blocking=*/true);
    }
    arrived_.record(stream_);
    coming_ = std::move(batch);
  }

  std::unique_ptr<Loader> inner_;
  std::function<void(Batch&)> complete_;
  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;                  // for the copies
  c10::Event arrived_{device_.type()};  // the copy of coming_ is complete
  Batch host_;
  std::optional<Batch> coming_;
  // Number of batches of this epoch that next() has not returned yet. Absent if no epoch has begun.
  std::optional<std::int64_t> left_;
};

}  // namespace

std::unique_ptr<Loader> Preparation::of(std::unique_ptr<Loader> loader) const {
  if (device.is_cpu()) return std::make_unique<CompletingLoader>(std::move(loader), complete);
  return std::make_unique<DeviceLoader>(std::move(loader), complete, device);
}

std::function<void(Batch&)> complete_batches(const Task& task, const SequenceShare& sequence) {
  return [&task, sequence, checked = std::make_shared<std::atomic<bool>>(false)](Batch& batch) {
    task.prepare(batch);
    if (!checked->exchange(true)) task.check_values(batch);
    sequence.cut(batch);
  };
}

}  // namespace phalanx
