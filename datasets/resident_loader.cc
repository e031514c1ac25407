// SPDX-License-Identifier: Apache-2.0
#include "datasets/resident_loader.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "datasets/sampled_loader.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::int64_t kSamplesAtATime = 4096;

// Writes `rows` to `all` from row `begin` on. Allocates `all` with `count` rows on the first call.
void put(at::Tensor& all, const at::Tensor& rows, std::int64_t begin, std::int64_t count, const c10::Device& device) {
  if (!rows.defined()) return;
  if (!all.defined()) {
    auto sizes = rows.sizes().vec();
    sizes[0] = count;
    all = at::empty(sizes, rows.options().device(device));
  }
  all.narrow(0, begin, rows.size(0)).copy_(rows);
}

class ResidentLoader final : public SampledLoader {
 public:
  ResidentLoader(std::shared_ptr<const Dataset> dataset, const BatchSampler::Options& options, c10::Device device,
                 std::function<void(Batch&)> complete)
      : SampledLoader(options), changes_(dataset->changes()), device_(device), complete_(std::move(complete)) {
    if (!dataset->varies()) {
      samples_ = std::move(dataset);
      return;
    }
    samples_ = dataset->unchanged();
    if (samples_ && !samples_->varies() && changes_) return;
    throw ConfigError(
        "loader.resident: the dataset changes its samples at random in a way that only the CPU supports; leave out "
        "this key "
        "or these changes");
  }

 private:
  void read(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) override {
    if (all_.inputs.empty()) read_all();
    batch = {};
    take(indices, batch);
    if (changes_) changes_->apply(indices, seed, batch);
  }

  void read_all() {
    const auto count = samples_->size();
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
    for (std::int64_t begin = 0; begin < count; begin += kSamplesAtATime) {
      const auto rows = std::min(kSamplesAtATime, count - begin);
      Batch batch;
      samples_->gather(std::span(indices).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows)), 0,
                       batch);
      batch.valid = batch.global_rows = rows;
      finish(batch);
      for (auto [all, read] : {std::pair(&all_.inputs, &batch.inputs), std::pair(&all_.targets, &batch.targets)}) {
        all->resize(read->size());
        for (std::size_t i = 0; i < read->size(); ++i) put((*all)[i], (*read)[i], begin, count, device_);
      }
      put(all_.row_weights, batch.row_weights, begin, count, at::kCPU);
    }
  }

  void finish(Batch& batch) const {
    const Tensors inputs = batch.inputs, targets = batch.targets;
    complete_(batch);
    const auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
    if (!changes_ || (std::ranges::equal(batch.inputs, inputs, same) &&
                      std::ranges::equal(batch.targets, targets, same) && !batch.row_weights.defined())) {
      return;
    }
    throw ConfigError(
        "loader.resident: the task makes targets of samples that the dataset changes at random; remove this key or "
        "these changes");
  }

  // Fills `batch` with the samples. Copies the indices without waiting for the device.
  void take(std::span<const std::int64_t> indices, Batch& batch) const {
    const at::Tensor rows = at::from_blob(const_cast<std::int64_t*>(indices.data()), {std::ssize(indices)}, at::kLong);
    const at::Tensor there = device_.is_cpu() ? rows : rows.pin_memory().to(device_, /*non_blocking=*/true);
    for (const auto& tensor : all_.inputs) batch.inputs.push_back(at::index_select(tensor, 0, there));
    for (const auto& tensor : all_.targets) batch.targets.push_back(at::index_select(tensor, 0, there));
    if (all_.row_weights.defined()) batch.row_weights = at::index_select(all_.row_weights, 0, rows);
  }

  std::shared_ptr<const Dataset> samples_;  // without changes
  std::shared_ptr<const BatchChanges> changes_;
  c10::Device device_;
  std::function<void(Batch&)> complete_;
  Batch all_;  // all samples
};

}  // namespace

std::unique_ptr<Loader> make_resident_loader(std::shared_ptr<const Dataset> dataset, BatchSampler::Options options,
                                             c10::Device device, std::function<void(Batch&)> complete) {
  if (options.samples == 0) options.samples = dataset->size();
  return std::make_unique<ResidentLoader>(std::move(dataset), options, device, std::move(complete));
}

}  // namespace phalanx
