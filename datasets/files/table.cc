#include "datasets/files/table.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "datasets/batch_memory.h"

namespace phalanx {
namespace {

SampleSpec spec_of(const Table& table, std::int64_t count) {
  if (!table.classes.empty()) return classification_samples(table.shape, count);
  return {.inputs = {{.name = "input", .shape = table.shape}},
          .targets = {{.name = "number", .shape = {1}}},
          .task = "regression"};
}

class TableDataset final : public Dataset {
 public:
  TableDataset(Table table, std::int64_t count)
      : table_(std::move(table)),
        spec_(spec_of(table_, count)),
        width_(std::accumulate(table_.shape.begin(), table_.shape.end(), std::int64_t{1}, std::multiplies())),
        samples_(std::ssize(table_.values) / width_) {
    const auto targets = std::max(table_.classes.size(), table_.numbers.size());
    TORCH_CHECK(std::ssize(table_.values) == width_ * std::ssize(table_.classes) ||
                    std::ssize(table_.values) == width_ * std::ssize(table_.numbers),
                table_.values.size(), " values are not ", targets, " samples of ", width_);
  }

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t label(std::int64_t index) const override {
    return table_.classes.empty() ? -1 : table_.classes.at(static_cast<std::size_t>(index));
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    std::vector<std::int64_t> shape{rows};
    shape.insert(shape.end(), table_.shape.begin(), table_.shape.end());
    auto* input = ensure(batch.inputs, 0, shape, at::kFloat).data_ptr<float>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " of ", size());
      input = std::copy_n(table_.values.begin() + index * width_, width_, input);
    }
    if (!table_.classes.empty()) {
      auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
      for (const auto index : indices) *target++ = table_.classes[static_cast<std::size_t>(index)];
    } else {
      auto* target = ensure(batch.targets, 0, std::array{rows, std::int64_t{1}}, at::kFloat).data_ptr<float>();
      for (const auto index : indices) *target++ = table_.numbers[static_cast<std::size_t>(index)];
    }
  }

 private:
  Table table_;
  SampleSpec spec_;
  std::int64_t width_, samples_;
};

}  // namespace

std::shared_ptr<const Dataset> make_table(Table table, std::int64_t count) {
  return std::make_shared<TableDataset>(std::move(table), count);
}

}  // namespace phalanx
