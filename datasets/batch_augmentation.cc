// SPDX-License-Identifier: Apache-2.0
#include "datasets/batch_augmentation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "datasets/random_stream.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

// Copies `values` to the device of `images` without waiting for the device.
at::Tensor on_device_of(const at::Tensor& images, const at::Tensor& values) {
  return images.is_cpu() ? values : values.pin_memory().to(images.device(), /*non_blocking=*/true);
}

// Returns [n, 3]: top, left, flip.
at::Tensor draw(const Augmentation& augmentation, std::span<const std::int64_t> indices, std::uint64_t seed) {
  at::Tensor all = at::empty({std::ssize(indices), 3}, at::kLong);
  auto* next = all.mutable_data_ptr<std::int64_t>();
  for (const auto index : indices) {
    RandomStream random(mix(seed, static_cast<std::uint64_t>(index)));
    const ImageChange change = draw_change(augmentation, random);
    *next++ = change.top;
    *next++ = change.left;
    *next++ = change.flip ? 1 : 0;
  }
  return all;
}

}  // namespace

void BatchAugmentation::apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  at::Tensor& images = batch.inputs.at(0);
  const auto n = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  const at::Tensor drawn = on_device_of(images, draw(augmentation_, indices, seed));
  const at::Tensor top = drawn.select(1, 0).view({n, 1}), left = drawn.select(1, 1).view({n, 1});
  const at::Tensor flip = drawn.select(1, 2).view({n, 1}).ne(0);
  const at::Tensor columns = at::arange(width, drawn.options());
  const at::Tensor row = at::arange(height, drawn.options()) + top;                // [n, height]
  const at::Tensor column = at::where(flip, width - 1 - columns, columns) + left;  // [n, width]
  const auto inside = [](const at::Tensor& place, std::int64_t size) {
    return place.ge(0).logical_and_(place.lt(size));
  };
  const at::Tensor pixel =
      row.clamp(0, height - 1).mul(width).unsqueeze(2) + column.clamp(0, width - 1).unsqueeze(1);  // [n, height, width]
  const at::Tensor there =
      inside(row, height).unsqueeze(2).logical_and(inside(column, width).unsqueeze(1)).unsqueeze(1);
  const at::Tensor black = on_device_of(images, at::tensor(black_)).view({1, channels, 1, 1});
  const at::Tensor moved =
      images.flatten(2).gather(2, pixel.view({n, 1, -1}).expand({n, channels, -1})).view(images.sizes());
  images = at::where(there, moved, black);
}

}  // namespace phalanx
