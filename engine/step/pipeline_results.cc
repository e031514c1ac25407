// SPDX-License-Identifier: Apache-2.0
#include "engine/step/pipeline_results.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "engine/step/merged_results.h"

namespace phalanx {

// Returns the outputs of a micro-batch, or memory for them if another rank has computed them.
Tensors PipelineResults::outputs_or_room(int micro_batch) const {
  Tensors outputs;
  if (here(micro_batch)) {
    for (const auto& output : own_[static_cast<std::size_t>(micro_batch)].outputs) {
      outputs.push_back(output.contiguous());
    }
    return outputs;
  }
  const auto& part = parts_[static_cast<std::size_t>(micro_batch)];
  for (const auto& row : setup_.predictions) {
    outputs.push_back(at::empty(row.sizes(part.rows()), part.inputs.at(0).options().dtype(row.dtype)));
  }
  return outputs;
}

// Returns the losses that this rank has computed, [micro-batches] double, with 0 for all others.
at::Tensor PipelineResults::own_losses() const {
  at::Tensor losses = at::zeros({count()}, at::kDouble);
  for (int i = 0; i < count(); ++i) {
    if (here(i)) losses[i].fill_(own_[static_cast<std::size_t>(i)].loss.item<double>());
  }
  return losses;
}

Step::Result PipelineResults::collect() const {
  const int to = collector(setup_);
  const bool collects = setup_.pipe->rank() == to;
  at::Tensor losses = own_losses();
  std::vector<Tensors> outputs(parts_.size());
  std::vector<Work> works;
  for (int i = 0; i < count(); ++i) {
    if (empty(i) || (!collects && !here(i))) continue;
    auto& of = outputs[static_cast<std::size_t>(i)] = outputs_or_room(i);
    if (collects && here(i)) continue;
    Tensors messages = of;
    messages.push_back(losses.narrow(0, i, 1));
    for (auto& message : messages) {
      works.push_back(collects ? setup_.pipe->recv(message, from(i), kResultsTag)
                               : setup_.pipe->send(message, to, kResultsTag));
    }
  }
  wait_all(works);
  return collects ? merged(std::move(outputs), losses) : Step::Result();
}

// Sums the losses over the ranks, of which all but one have 0.
Step::Result PipelineResults::share() const {
  std::vector<Tensors> outputs(parts_.size());
  std::vector<Work> works;
  for (int i = 0; i < count(); ++i) {
    if (empty(i)) continue;
    auto& of = outputs[static_cast<std::size_t>(i)] = outputs_or_room(i);
    for (const auto& output : of) works.push_back(setup_.pipe->broadcast(output, from(i)));
  }
  wait_all(works);
  at::Tensor losses = own_losses();
  setup_.control->all_reduce(losses, Reduction::kSum).wait();
  return merged(std::move(outputs), losses);
}

Step::Result PipelineResults::merged(std::vector<Tensors> outputs, const at::Tensor& losses) const {
  MergedResults whole;
  for (int i = 0; i < count(); ++i) {
    if (empty(i)) continue;
    whole.add({.outputs = std::move(outputs[static_cast<std::size_t>(i)]),
               .loss = at::scalar_tensor(losses[i].item<double>(), setup_.loss),
               .weight = parts_[static_cast<std::size_t>(i)].weight()});
  }
  return whole.whole();
}

}  // namespace phalanx
