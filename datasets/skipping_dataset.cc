// SPDX-License-Identifier: Apache-2.0
#include "datasets/skipping_dataset.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/read_sample.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

// Copies the only row of `single` to row `row` of `tensors`, which have `rows` rows.
void put(const Tensors& single, std::int64_t row, std::int64_t rows, Tensors& tensors) {
  for (std::size_t i = 0; i < single.size(); ++i) {
    auto shape = single[i].sizes().vec();
    shape[0] = rows;
    at::Tensor& tensor =
        tensors.size() > i && row > 0 ? tensors[i] : ensure(tensors, i, shape, single[i].scalar_type());
    tensor.narrow(0, row, 1).copy_(single[i]);
  }
}

// Applies the changes of the samples that were actually read, including replacements.
class ReplacementChanges final : public BatchChanges {
 public:
  ReplacementChanges(std::shared_ptr<const BatchChanges> changes, std::function<std::int64_t(std::int64_t)> replacement)
      : changes_(std::move(changes)), replacement_(std::move(replacement)) {}

  void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    std::vector<std::int64_t> read;
    for (const auto index : indices) read.push_back(replacement_(index));
    changes_->apply(read, seed, batch);
  }

 private:
  std::shared_ptr<const BatchChanges> changes_;
  std::function<std::int64_t(std::int64_t)> replacement_;
};

}  // namespace

SkippingDataset::SkippingDataset(std::shared_ptr<const Dataset> dataset, std::int64_t max_skipped)
    : dataset_(std::move(dataset)), max_skipped_(max_skipped) {}

std::int64_t SkippingDataset::skipped() const {
  const std::lock_guard lock(found_->mutex);
  return std::ssize(found_->unreadable);
}

std::string SkippingDataset::first_reason() const {
  const std::lock_guard lock(found_->mutex);
  return found_->first_reason;
}

std::shared_ptr<const Dataset> SkippingDataset::unchanged() const {
  auto dataset = dataset_->unchanged();
  if (!dataset) return nullptr;
  auto same = std::make_shared<SkippingDataset>(*this);
  same->dataset_ = std::move(dataset);
  return same;
}

std::shared_ptr<const BatchChanges> SkippingDataset::changes() const {
  auto changes = dataset_->changes();
  if (!changes) return nullptr;
  return std::make_shared<ReplacementChanges>(std::move(changes),
                                              [same = *this](std::int64_t index) { return same.replacement(index); });
}

void SkippingDataset::gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  std::vector<std::int64_t> wanted(indices.begin(), indices.end());
  std::int64_t replaced = 0;
  for (auto& index : wanted) {
    TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
    const auto other = replacement(index);
    replaced += other != index;
    index = other;
  }
  try {
    read_rows(wanted, seed, batch);
    found_->replaced += replaced;
  } catch (const DataError&) {
    gather_each(indices, seed, batch);  // finds out which sample is unreadable
  }
}

void SkippingDataset::read_rows(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  read_sample("sample " + std::to_string(indices.front()), [&] { dataset_->gather(indices, seed, batch); });
}

void SkippingDataset::gather_each(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  const auto rows = std::ssize(indices);
  std::int64_t replaced = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto asked = indices[static_cast<std::size_t>(row)];
    for (;;) {
      const auto index = replacement(asked);
      Batch single;
      try {
        read_rows(std::array{index}, seed, single);
      } catch (const DataError& error) {
        note(index, error.what());
        continue;
      }
      put(single.inputs, row, rows, batch.inputs);
      put(single.targets, row, rows, batch.targets);
      replaced += index != asked;
      break;
    }
  }
  found_->replaced += replaced;
}

std::int64_t SkippingDataset::replacement(std::int64_t index) const {
  const std::lock_guard lock(found_->mutex);
  while (found_->unreadable.contains(index)) index = (index + 1) % size();
  return index;
}

void SkippingDataset::note(std::int64_t index, const char* why) const {
  const std::lock_guard lock(found_->mutex);
  if (!found_->unreadable.insert(index).second) return;  // another thread has reported it already
  const auto count = std::ssize(found_->unreadable);
  if (count > max_skipped_ || count == size()) {
    throw DataError(std::string(why) + "; " + std::to_string(count) + " of " + std::to_string(size()) +
                    " samples cannot be read, and loader.max_errors allows " + std::to_string(max_skipped_));
  }
  if (count == 1) found_->first_reason = why;
  log_warning() << "skipped a sample that cannot be read: " << why;
}

}  // namespace phalanx
