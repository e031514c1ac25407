// SPDX-License-Identifier: Apache-2.0
// Rows of numbers in Parquet and Arrow files, the formats of Hugging Face datasets. The input is [n, k] float32 from k
// columns of numbers, or [n, ...] from one column of lists; the target is a class or [n, 1] float32. A row group is
// read when one of its samples is; the most recently used groups are kept.
#include <ATen/ops/stack.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/arrow/columns.h"
#include "datasets/arrow/groups.h"
#include "datasets/arrow/table_files.h"
#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ParquetConfig : TableFiles {
  std::vector<std::string> inputs;
  std::string target;
  std::int64_t classes = 0;
  std::int64_t groups = 16;

  template <class V>
  void visit(V& v) {
    TableFiles::visit(v);
    v("inputs", inputs, "columns of numbers, or one column of lists of numbers");
    v("target", target, "column to predict");
    v("classes", classes, "number of classes, if the target is one of 0 to classes - 1; 0: the target is a number",
      config::at_least(0));
    v("groups", groups, "row groups that each split keeps in memory", config::at_least(1));
  }
};

struct Numbers {
  at::Tensor inputs;   // [rows, ...] float32
  at::Tensor targets;  // [rows] int64 or float32
};

class ParquetRows final : public Dataset {
 public:
  ParquetRows(const ParquetConfig& config, const std::vector<std::filesystem::path>& files)
      : config_(config), groups_(files), kept_(config.groups) {
    const auto sizes = numbers(0)->inputs.sizes();
    const std::vector<std::int64_t> shape(sizes.begin() + 1, sizes.end());
    spec_ = classification_samples(shape, config.classes);
    if (config.classes == 0) {
      spec_.targets = {{.name = "target", .shape = {1}}};
      spec_.task = "regression";
    }
  }

  std::int64_t size() const override { return groups_.rows(); }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const bool classes = config_.classes > 0;
    const auto rows = std::ssize(indices);
    std::vector<std::int64_t> shape{rows};
    shape.insert(shape.end(), spec_.inputs[0].shape.begin(), spec_.inputs[0].shape.end());
    auto& input = ensure(batch.inputs, 0, shape, at::kFloat);
    auto& target = classes ? ensure(batch.targets, 0, std::array{rows}, at::kLong)
                           : ensure(batch.targets, 0, std::array{rows, std::int64_t{1}}, at::kFloat);
    const auto row_bytes =
        static_cast<std::size_t>(input.nbytes()) / static_cast<std::size_t>(std::max<std::int64_t>(rows, 1));
    const std::size_t target_bytes = classes ? sizeof(std::int64_t) : sizeof(float);
    auto* to = static_cast<char*>(input.data_ptr());
    auto* target_to = static_cast<char*>(target.data_ptr());
    for (const auto index : indices) {
      const auto [group, row] = groups_.place(index);
      const auto from = numbers(group);
      std::memcpy(to,
                  static_cast<const char*>(from->inputs.const_data_ptr()) + static_cast<std::size_t>(row) * row_bytes,
                  row_bytes);
      std::memcpy(
          target_to,
          static_cast<const char*>(from->targets.const_data_ptr()) + static_cast<std::size_t>(row) * target_bytes,
          target_bytes);
      to += row_bytes;
      target_to += target_bytes;
    }
  }

  std::int64_t label(std::int64_t index) const override {
    if (config_.classes == 0) return -1;
    const auto [group, row] = groups_.place(index);
    return numbers(group)->targets.const_data_ptr<std::int64_t>()[row];
  }

 private:
  std::shared_ptr<const Numbers> numbers(std::size_t group) const {
    return kept_.get(group, [&] { return read(group); });
  }

  Numbers read(std::size_t group) const {
    const auto column = [&](const std::string& name, bool whole) {
      return numbers_of(*groups_.read(group, name), whole, groups_.name(group, name));
    };
    std::vector<at::Tensor> columns;
    for (const auto& name : config_.inputs) columns.push_back(column(name, /*whole=*/false));
    Numbers read{.inputs = columns[0], .targets = column(config_.target, config_.classes > 0)};
    const auto where = [&](const std::string& name) { return groups_.name(group, name); };
    if (columns.size() > 1 || columns[0].dim() == 1) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].dim() > 1) {
          throw DataError(where(config_.inputs[i]) + ": has lists; it must be the only column in dataset.inputs");
        }
      }
      read.inputs = at::stack(columns, 1);
    }
    check_targets(read.targets, where(config_.target));
    check_shape(read.inputs, where(config_.inputs[0]));
    return read;
  }

  void check_targets(const at::Tensor& targets, const std::string& where) const {
    if (targets.dim() != 1) throw DataError(where + ": has lists; a target is one number");
    if (config_.classes == 0) return;
    const auto least = targets.min().item<std::int64_t>(), most = targets.max().item<std::int64_t>();
    if (least >= 0 && most < config_.classes) return;
    throw DataError(where + ": classes " + std::to_string(least) + " to " + std::to_string(most) + ", expected 0 to " +
                    std::to_string(config_.classes - 1) + " (dataset.classes)");
  }

  void check_shape(const at::Tensor& inputs, const std::string& where) const {
    if (spec_.inputs.empty()) return;  // this is the first group
    const auto sizes = inputs.sizes().slice(1);
    if (std::ranges::equal(sizes, spec_.inputs[0].shape)) return;
    throw DataError(where + ": its samples have another size than those of the first group");
  }

  ParquetConfig config_;
  RowGroups groups_;
  mutable LruCache<Numbers> kept_;
  SampleSpec spec_;
};

Splits load_parquet(const ParquetConfig& config) {
  if (config.inputs.empty()) throw ConfigError("dataset.inputs: names no column; give a list such as [x, y]");
  if (config.target.empty()) throw ConfigError("dataset.target: names no column");
  return config.splits("parquet",
                       [&](const auto& files, bool) { return std::make_shared<ParquetRows>(config, files); });
}

const bool parquet_registered =
    Datasets::global().add<ParquetConfig>("parquet", "rows of numbers in Parquet or Arrow files", load_parquet);

}  // namespace
}  // namespace phalanx
