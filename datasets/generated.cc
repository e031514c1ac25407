// SPDX-License-Identifier: Apache-2.0
#include "datasets/generated.h"

#include <c10/util/Exception.h>

#include <iterator>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"

namespace phalanx {
namespace {

void allocate(const std::vector<TensorSpec>& specs, std::int64_t rows, Tensors& tensors) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::vector<std::int64_t> shape{rows};
    shape.insert(shape.end(), specs[i].shape.begin(), specs[i].shape.end());
    ensure(tensors, i, shape, specs[i].dtype);
  }
}

}  // namespace

GeneratedDataset::GeneratedDataset(SampleSpec spec, Split split) : spec_(std::move(spec)), split_(split) {}

void GeneratedDataset::gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const {
  allocate(spec_.inputs, std::ssize(indices), batch.inputs);
  allocate(spec_.targets, std::ssize(indices), batch.targets);
  std::int64_t row = 0;
  for (const auto index : indices) {
    TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
    write(index, Row(batch, row++));
  }
}

std::uint64_t GeneratedDataset::seed_of(std::int64_t index) const {
  return mix(split_.seed, static_cast<std::uint64_t>(index));
}

}  // namespace phalanx
