// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/compressed_communicator.h"

#include <ATen/core/grad_mode.h>

#include <functional>
#include <stdexcept>
#include <utility>

#include "framework/base/random.h"

namespace phalanx {
namespace {

bool is_compressible(const Communicator& group, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  const auto kind = operation.reduction.kind();
  if (operation.call.op != Op::kAllReduce || (kind != Reduction::kSum && kind != Reduction::kMean)) return false;
  return tensor.scalar_type() == at::kFloat && tensor.numel() > 0 && group.size() > 1;
}

// Codes are computed on the CPU: a tensor on another device is copied to the CPU and back.
std::int64_t reduce_compressed(Compressor& compressor, Communicator& group, const at::Tensor& tensor, bool sum) {
  const at::NoGradGuard no_grad;
  const at::Tensor host = tensor.to(at::kCPU);  // the tensor itself if it is on the CPU
  const auto sent = compressor.all_reduce_mean(group, host);
  if (sum) host.mul_(group.size());
  if (!tensor.is_cpu()) tensor.copy_(host);
  return sent;
}

}  // namespace

CompressedCommunicator::CompressedCommunicator(CommunicatorPtr inner, Compressors::Choice compression,
                                               std::size_t max_tensors)
    : Decorator(std::move(inner)),
      compression_(std::move(compression)),
      max_tensors_(max_tensors),
      table_(compression_, max_tensors) {}

Work CompressedCommunicator::launch(Operation operation) {
  if (!is_compressible(*inner(), operation)) return Decorator::launch(std::move(operation));
  Call call = operation.call;
  // Makes ranks with different compressions mismatch.
  call.detail = mix(call.detail, std::hash<std::string>()(compression_.selected()));
  // Operations must be launched in the same order in which the table is used, so the lock covers both.
  const std::lock_guard lock(mutex_);
  auto compressor = table_.of(operation.output);
  auto body = [group = inner(), tensor = operation.output.detach(), sum = operation.reduction.kind() == Reduction::kSum,
               compressor = std::move(compressor), meter = meter_] {
    const auto sent = reduce_compressed(*compressor, *group, tensor, sum);
    const std::lock_guard counting(meter->mutex);
    ++meter->traffic.reductions;
    meter->traffic.sent_bytes += sent;
    meter->traffic.uncompressed_bytes += all_reduce_bytes(static_cast<std::int64_t>(tensor.nbytes()), group->size());
  };
  return inner()->run(call, std::move(body));
}

void CompressedCommunicator::set_shapes(const at::Tensor& tensor, std::vector<std::vector<std::int64_t>> shapes) {
  if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous()) {
    throw std::invalid_argument("compression: expected contiguous elements of Float, got " +
                                std::string(c10::toString(tensor.scalar_type())));
  }
  const std::lock_guard lock(mutex_);
  table_.of(tensor, std::move(shapes));
}

StateDict CompressedCommunicator::state(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  return table_.of(tensor)->state(*inner());
}

Traffic CompressedCommunicator::traffic() const {
  const std::lock_guard lock(meter_->mutex);
  return meter_->traffic;
}

CommunicatorPtr CompressedCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<CompressedCommunicator>(std::move(child), compression_, max_tensors_);
}

}  // namespace phalanx
