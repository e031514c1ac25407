// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/flipped_bits.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/argmax.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/checkpoint/checkpointer.h"
#include "framework/base/error.h"
#include "framework/collectives/checked/checksummed_communicator.h"

namespace phalanx {
namespace {

using Kind = ReplicatedTensor::Kind;

const std::map<std::string, Kind>& flipped_kinds() {
  static const std::map<std::string, Kind> all{
      {"flip_parameter", Kind::kParameter}, {"flip_optimizer", Kind::kOptimizerState}, {"flip_buffer", Kind::kBuffer}};
  return all;
}

// Changes an element by a few percent, which no other check would notice, but which rounding does not undo.
void flip_in(const std::vector<ReplicatedTensors>& compared, Kind kind) {
  for (const auto& set : compared) {
    for (const auto& tensor : set.tensors()) {
      if (tensor.kind != kind || tensor.values.numel() == 0 || !tensor.values.is_cpu()) continue;
      const at::Tensor element = tensor.values.detach().flatten().narrow(0, tensor.values.numel() / 2, 1);
      const auto size = element.element_size();
      static_cast<std::uint8_t*>(element.mutable_data_ptr())[size < 2 ? 0 : size - 2] ^= 4;
      return;
    }
  }
  throw Error(
      "planned fault: the run compares no such tensor; choose a model and an optimizer that have one, and strategy: "
      "all_reduce, "
      "in which each rank has copies of it");
}

// Returns the gradient with another exponent of its largest element, by which this becomes 2^128 times as large.
at::Tensor with_flipped_exponent(const at::Tensor& gradient) {
  if (gradient.scalar_type() != at::kFloat || !gradient.is_cpu()) {
    throw Error("planned fault: flip_gradient needs gradients of Float on the CPU");
  }
  const at::Tensor copy = gradient.clone().contiguous();
  const auto largest = at::argmax(at::abs(copy.flatten())).item<std::int64_t>();
  constexpr std::size_t kHighest = sizeof(float) - 1;  // byte with the sign and the highest bits of the exponent
  static_cast<std::uint8_t*>(copy.mutable_data_ptr())[static_cast<std::size_t>(largest) * sizeof(float) + kHighest] ^=
      0x40;
  return copy;
}

// Flips a bit of the next gradient of a parameter, before anything else sees it. The parameter is the first one that
// requires a gradient, which backward completes early.
void flip_next_gradient(const FlatParameters& parameters) {
  for (const auto& bucket : parameters.buckets()) {
    for (const auto& parameter : bucket.parameters) {
      if (!parameter.requires_grad()) continue;
      parameter.register_hook([pending = std::make_shared<bool>(true)](const at::Tensor& gradient) {
        const at::NoGradGuard no_grad;
        return std::exchange(*pending, false) ? with_flipped_exponent(gradient) : gradient;
      });
      return;
    }
  }
}

}  // namespace

void attach_flip(const PlannedFault& fault, const Replica& replica, const std::vector<ReplicatedTensors>& compared,
                 const CommunicatorPtr& world, Engine& engine) {
  if (!flips_bit(fault) || fault.rank != world->rank()) return;
  const bool of_gradient = fault.kind == "flip_gradient";
  const Event event = of_gradient ? Event::kSample : fault.event;  // before backward
  engine.on(event, [fault, event, &replica, &compared, world](State& state) {
    const std::int64_t repetition = number_of_step(state, event) - fault.step;
    if (repetition < 0 || repetition >= fault.times || !note_planned_fault(fault, repetition)) return;
    const at::NoGradGuard no_grad;
    const auto tensor = flipped_kinds().find(fault.kind);
    if (tensor != flipped_kinds().end()) return flip_in(compared, tensor->second);
    if (fault.kind == "flip_gradient") return flip_next_gradient(replica.flat->parameters);
    if (fault.kind == "flip_message") return damage_next_message(world->recorder());
    damage_next_snapshot(world->recorder());
  });
}

}  // namespace phalanx
