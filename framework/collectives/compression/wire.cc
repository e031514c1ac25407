// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/wire.h"

namespace phalanx {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

}  // namespace

std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks) { return (2 * (ranks - 1) * bytes + ranks - 1) / ranks; }

void Wire::all_reduce(const at::Tensor& tensor, const Reduction& op) {
  group_.all_reduce(tensor, op).wait();
  bytes_ += all_reduce_bytes(bytes_of(tensor), size());
}

void Wire::all_gather(const at::Tensor& output, const at::Tensor& input, Counts counts) {
  group_.all_gather(output, input, counts).wait();
  bytes_ += (size() - 1) * bytes_of(input);
}

void Wire::all_to_all(const at::Tensor& output, const at::Tensor& input, Counts output_counts, Counts input_counts) {
  group_.all_to_all(output, input, output_counts, input_counts).wait();
  bytes_ += bytes_of(input) - input_counts[rank()] * static_cast<std::int64_t>(input.element_size());
}

}  // namespace phalanx
