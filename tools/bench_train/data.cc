// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/data.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_file.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx::bench_train {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr double kShapeInNoise = 0.25;  // standard deviation of a class's shape, relative to the noise
constexpr double kFollows = 0.8;        // probability that the previous character determines the next one

struct Samples {
  at::Tensor inputs, targets;
};

Samples draw_pictures(const Workload& workload, at::Generator generator) {
  const auto& spec = workload.sample;
  const auto& image = spec.inputs[0].shape;
  const auto classes = spec.targets[0].classes;
  std::vector<std::int64_t> shape{classes};
  shape.insert(shape.end(), image.begin(), image.end());
  const at::Tensor shapes = at::randn(shape, generator) * kShapeInNoise;
  const at::Tensor targets = at::randint(classes, {workload.samples}, generator, at::kLong);
  shape[0] = workload.samples;
  return {at::randn(shape, generator).add_(shapes.index_select(0, targets)), targets};
}

Samples draw_text(const Workload& workload, at::Generator generator) {
  const auto classes = workload.sample.targets[0].classes, context = workload.sample.inputs[0].shape[0],
             count = workload.samples;
  const at::Tensor follows = at::randint(classes, {classes}, generator, at::kLong);
  const at::Tensor text = at::randint(classes, {count, context + 1}, generator, at::kLong);
  const at::Tensor bound = at::rand({count, context + 1}, generator).lt(kFollows);
  for (std::int64_t at = 1; at <= context; ++at) {
    const auto next = follows.index_select(0, text.select(1, at - 1));
    text.select(1, at).copy_(at::where(bound.select(1, at), next, text.select(1, at)));
  }
  return {text.narrow(1, 0, context).contiguous(), text.narrow(1, 1, context).contiguous()};
}

void write(const at::Tensor& tensor, const std::string& path) {
  write_atomically(path, std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
}

DataFiles write(const Samples& samples, const SampleSpec& spec, const std::string& folder) {
  DataFiles files{
      .inputs = folder + "/inputs", .targets = folder + "/targets", .samples = samples.inputs.size(0), .sample = spec};
  write(samples.inputs, files.inputs);
  write(samples.targets, files.targets);
  return files;
}

at::Tensor map(const std::string& path, std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  const auto elements = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  const auto bytes = static_cast<std::uintmax_t>(elements) * c10::elementSize(dtype);
  std::error_code error;
  if (std::filesystem::file_size(path, error) != bytes || error) {
    throw DataError(path + ": expected " + std::to_string(bytes) + " bytes of samples");
  }
  return at::from_file(path, /*shared=*/true, elements, dtype).view(sizes);
}

std::int64_t row_bytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()) / tensor.size(0); }

class SamplesInMemory final : public Dataset {
 public:
  SamplesInMemory(Tensors inputs, Tensors targets, SampleSpec spec)
      : inputs_(std::move(inputs)), targets_(std::move(targets)), spec_(std::move(spec)) {}

  std::int64_t size() const override { return inputs_[0].size(0); }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    gather(inputs_, indices, batch.inputs);
    gather(targets_, indices, batch.targets);
  }

 private:
  static void gather(const Tensors& from, std::span<const std::int64_t> indices, Tensors& to) {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) gather(from[i], indices, to[i]);
  }

  static void gather(const at::Tensor& from, std::span<const std::int64_t> indices, at::Tensor& to) {
    auto sizes = from.sizes().vec();
    sizes[0] = std::ssize(indices);
    ensure(to, sizes, from.scalar_type());
    const auto bytes = row_bytes(from);
    const auto* rows = static_cast<const char*>(from.const_data_ptr());
    auto* row = static_cast<char*>(to.data_ptr());
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < from.size(0), "sample ", index, " of ", from.size(0));
      std::memcpy(row, rows + index * bytes, static_cast<std::size_t>(bytes));
      row += bytes;
    }
  }

  Tensors inputs_, targets_;
  SampleSpec spec_;
};

// Draws normally distributed numbers or class numbers. Graphs get edges in both directions, and events are 0 or 1.
at::Tensor draw(const TensorSpec& spec, const std::string& task, bool target, std::int64_t samples,
                const at::Generator& generator) {
  auto sizes = spec.shape;
  sizes.insert(sizes.begin(), samples);
  if (spec.dtype == at::kLong) return at::randint(spec.classes, sizes, generator, at::kLong);
  const at::Tensor values = at::randn(sizes, generator);
  if (spec.name == "adjacency") return (values + values.transpose(1, 2)).gt(1).to(at::kFloat);
  return target && task == "binary_classification" ? values.gt(0).to(at::kFloat) : values;
}

std::shared_ptr<const Dataset> drawn_in_memory(const DataFiles& files) {
  const auto generator = at::detail::createCPUGenerator(kSeed);
  Tensors inputs, targets;
  const auto& spec = files.sample;
  for (const auto& input : spec.inputs) inputs.push_back(draw(input, spec.task, false, files.samples, generator));
  for (const auto& target : spec.targets) targets.push_back(draw(target, spec.task, true, files.samples, generator));
  return std::make_shared<SamplesInMemory>(std::move(inputs), std::move(targets), spec);
}

}  // namespace

DataFiles draw_samples(const Workload& workload, const std::string& folder) {
  if (workload.of_zoo) return {.samples = workload.samples, .sample = workload.sample};
  const auto generator = at::detail::createCPUGenerator(kSeed);
  const bool text = is_text(workload.sample);
  return write(text ? draw_text(workload, generator) : draw_pictures(workload, generator), workload.sample, folder);
}

DataFiles export_samples(const Dataset& dataset, const Workload& workload, const std::string& folder) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(dataset.size(), workload.samples)));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  Batch all;
  dataset.gather(indices, 0, all);
  return write(Samples{all.inputs[0], all.targets[0]}, dataset.spec(), folder);
}

std::shared_ptr<const Dataset> map_samples(const DataFiles& files) {
  if (files.inputs.empty()) return drawn_in_memory(files);
  const auto& input = files.sample.inputs[0];
  std::vector<std::int64_t> sizes{files.samples};
  if (is_text(files.sample)) sizes.push_back(input.shape.at(0));
  at::Tensor targets = map(files.targets, sizes, at::kLong);
  sizes.resize(1);
  sizes.insert(sizes.end(), input.shape.begin(), input.shape.end());
  return std::make_shared<SamplesInMemory>(Tensors{map(files.inputs, sizes, input.dtype)}, Tensors{std::move(targets)},
                                           files.sample);
}

}  // namespace phalanx::bench_train
