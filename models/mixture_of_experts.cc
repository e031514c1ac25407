// SPDX-License-Identifier: Apache-2.0
#include "models/mixture_of_experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"
#include "framework/parallel/padding_rows.h"
#include "models/keep_shard.h"

namespace phalanx {
namespace {

using Counts64 = std::vector<std::int64_t>;

Counts64 to_vector(const at::Tensor& anywhere) {
  const at::Tensor counts = anywhere.to(at::kCPU);
  const auto* data = counts.const_data_ptr<std::int64_t>();
  return {data, data + counts.numel()};
}

// Numbers all pairs of a sequence and an expert, and returns the number of the pair of each choice: [choices].
at::Tensor by_sequence_and_expert(const at::Tensor& experts, std::int64_t sequences, std::int64_t number) {
  const at::Tensor begins = at::arange(sequences, experts.options()) * number;
  return (experts.view({sequences, -1}) + begins.unsqueeze(-1)).flatten();
}

// Returns the number of choices of each expert by sequence: [sequences, number of experts].
at::Tensor counts_by_sequence(const at::Tensor& experts, std::int64_t sequences, std::int64_t number) {
  return at::bincount(by_sequence_and_expert(experts, sequences, number), {}, sequences * number)
      .view({sequences, number});
}

// Returns, for each element of `sorted`, the number of equal elements before it. `counts` has the number of each value.
at::Tensor place_among_equal(const at::Tensor& sorted, const at::Tensor& counts) {
  const at::Tensor first = counts.cumsum(0) - counts;
  return at::arange(sorted.numel(), counts.options()) - first.index_select(0, sorted);
}

at::Tensor normal(at::IntArrayRef sizes, double deviation) { return at::empty(sizes).normal_(0, deviation); }

}  // namespace

// The routing of this rank's tokens to the experts they chose, used in forward, to return the results, and by autograd.
struct MixtureOfExperts::Route {
  at::Tensor order;    // [kept choices] int64: choices (token * k + i), sorted by expert
  at::Tensor counts;   // [E] int64: number of these choices for each expert
  at::Tensor weights;  // [tokens, k]
};

MixtureOfExperts::MixtureOfExperts(const Options& options) : options_(options) {
  const auto experts = options.experts, width = options.width, hidden = options.hidden;
  const auto gate = register_module("gate", std::make_shared<torch::nn::Module>());
  gate_ = gate->register_parameter("weight", normal({experts, width}, options.deviation));
  const auto all = register_module("experts", std::make_shared<torch::nn::Module>());
  const auto fc = all->register_module("c_fc", std::make_shared<torch::nn::Module>());
  fc_weight_ = fc->register_parameter("weight", normal({experts, width, hidden}, options.deviation));
  fc_bias_ = fc->register_parameter("bias", at::zeros({experts, hidden}));
  const auto proj = all->register_module("c_proj", std::make_shared<torch::nn::Module>());
  proj_weight_ = proj->register_parameter("weight", normal({experts, hidden, width}, options.deviation_into_sum));
  proj_bias_ = proj->register_parameter("bias", at::zeros({experts, width}));
}

Placements MixtureOfExperts::partition_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) {
  batch_ = batch;
  if (experts->size() == 1) return {};
  if (options_.experts % experts->size() != 0) {
    throw ConfigError("has " + std::to_string(options_.experts) +
                      " experts, which cannot be divided among mesh.expert: " + std::to_string(experts->size()));
  }
  experts_ = experts;
  const auto mine = nearly_equal_part(options_.experts, experts->rank(), experts->size());
  Placements placements;
  for (const auto& [name, parameter] :
       {std::pair("experts.c_fc.weight", &fc_weight_), std::pair("experts.c_fc.bias", &fc_bias_),
        std::pair("experts.c_proj.weight", &proj_weight_), std::pair("experts.c_proj.bias", &proj_bias_)}) {
    Placement placement{.shape = parameter->sizes().vec(), .dim = 0, .ranges = {mine}};
    keep_shard(*parameter, placement);
    placements.emplace(name, std::move(placement));
    if (!parameter->requires_grad()) continue;  // frozen
    // Tokens of all these ranks are processed here, but gradients are averaged as if each rank had only its own tokens.
    parameter->register_hook([share = 1.0 / experts->size()](const at::Tensor& gradient) { return gradient * share; });
  }
  return placements;
}

std::string MixtureOfExperts::counts_over_batch() const {
  if (options_.count_over == CountOver::kSequence) return "";
  const std::string balance = options_.balance > 0 ? "balance" : "";
  if (options_.capacity_factor == 0) return balance;
  return balance + (balance.empty() ? "" : " and ") + "capacity_factor";
}

void MixtureOfExperts::enable_context_parallel(const CommunicatorPtr& group) {
  if (options_.capacity_factor > 0) {
    throw ConfigError(
        "capacity_factor drops the last tokens of a batch, whose order mesh.context changes; set it to 0");
  }
  context_ = group;
}

at::Tensor MixtureOfExperts::take_balance_loss() { return std::exchange(balance_loss_, at::Tensor()); }

at::Tensor MixtureOfExperts::forward(const at::Tensor& x) {
  const at::Tensor tokens = x.reshape({-1, options_.width});
  const Route where = route(tokens, x.size(0));
  const at::Tensor sent = tokens.index_select(0, where.order.div(options_.top_k, "floor"));
  const at::Tensor made = apply_experts(sent, where.counts);
  // Puts the result of each choice in its place; dropped choices stay zero.
  const at::Tensor choices =
      at::zeros({tokens.size(0) * options_.top_k, options_.width}, made.options()).index_copy(0, where.order, made);
  const at::Tensor parts = choices.view({tokens.size(0), options_.top_k, options_.width});
  return (parts * where.weights.unsqueeze(-1)).sum(1).view(x.sizes());
}

MixtureOfExperts::Route MixtureOfExperts::route(const at::Tensor& tokens, std::int64_t sequences) {
  const bool by_sequence = options_.count_over == CountOver::kSequence;
  const at::Tensor probabilities = at::softmax(at::linear(tokens, gate_), -1);
  const auto [largest, chosen] = at::topk(probabilities, options_.top_k, -1);
  const at::Tensor experts = chosen.flatten();
  Route where{.order = at::argsort(experts, /*stable=*/true, 0),
              .counts = at::bincount(experts, {}, options_.experts),
              .weights = largest / largest.sum(-1, true)};
  const at::Tensor counted = PaddingRows::current() ? at::zeros_like(where.counts) : where.counts;
  if (is_training() && options_.balance > 0) {
    if (by_sequence) {
      keep_balance_loss(probabilities.view({sequences, -1, options_.experts}),
                        counts_by_sequence(experts, sequences, options_.experts), context_);
    } else {
      keep_balance_loss(probabilities.unsqueeze(0), counted.unsqueeze(0), batch_);
    }
  }
  if (options_.capacity_factor == 0) return where;
  const at::Tensor sorted = experts.index_select(0, where.order);
  const at::Tensor kept = by_sequence ? within_capacity_of_sequences(experts, where.order, sequences)
                                      : within_capacity(sorted, where.counts, counted);
  where.order = where.order.masked_select(kept);
  where.counts = at::bincount(sorted.masked_select(kept), {}, options_.experts);
  if (is_training()) dropped_ += sorted.numel() - where.order.numel();
  return where;
}

std::int64_t MixtureOfExperts::capacity(std::int64_t choices) const {
  return static_cast<std::int64_t>(
      std::ceil(options_.capacity_factor * static_cast<double>(choices) / static_cast<double>(options_.experts)));
}

// Returns [choices] bool: true for choices within the capacity. Choices are sorted by expert; `counted` has the counts
// without padding.
at::Tensor MixtureOfExperts::within_capacity(const at::Tensor& sorted_experts, const at::Tensor& counts,
                                             const at::Tensor& counted) {
  at::Tensor before = at::zeros_like(counts);
  std::int64_t all = sorted_experts.numel();
  if (batch_ && batch_->size() > 1) {
    const at::Tensor of_ranks = at::empty({batch_->size(), counts.numel()}, counts.options());
    batch_->all_gather(of_ranks, counted).wait();
    before = of_ranks.narrow(0, 0, batch_->rank()).sum(0);
    all = of_ranks.sum().item<std::int64_t>();
  }
  return place_among_equal(sorted_experts, counts) + before.index_select(0, sorted_experts) < capacity(all);
}

// Does the same within each sequence. `order` sorts the choices by expert.
at::Tensor MixtureOfExperts::within_capacity_of_sequences(const at::Tensor& experts, const at::Tensor& order,
                                                          std::int64_t sequences) {
  const at::Tensor keys = by_sequence_and_expert(experts, sequences, options_.experts);
  const at::Tensor by_key = at::argsort(keys, /*stable=*/true, 0);
  const at::Tensor places =
      place_among_equal(keys.index_select(0, by_key), at::bincount(keys, {}, sequences * options_.experts));
  const at::Tensor kept = places < capacity(experts.numel() / sequences);
  return at::empty_like(kept).index_copy(0, by_key, kept).index_select(0, order);
}

// `probabilities` [groups, tokens, E] and `counts` [groups, E] describe this rank's tokens. The ranks of `over` have
// the other tokens of the same groups.
void MixtureOfExperts::keep_balance_loss(const at::Tensor& probabilities, const at::Tensor& counts,
                                         const CommunicatorPtr& over) {
  at::Tensor chosen = counts.to(at::kDouble);
  if (over && over->size() > 1) over->all_reduce(chosen, Reduction::kSum).wait();
  const at::Tensor shares = (chosen / chosen.sum(-1, true).clamp_min(1)).to(probabilities.scalar_type());
  balance_loss_ =
      (probabilities.mean(1) * shares).sum(-1).mean() * (options_.balance * static_cast<double>(options_.experts));
}

// Applies the experts of this rank to `rows`, which are sorted by expert, `counts` rows for each of them.
at::Tensor MixtureOfExperts::by_experts(const at::Tensor& rows, const Counts64& counts) {
  const auto fc_weights = fc_weight_.unbind(0), fc_biases = fc_bias_.unbind(0), proj_weights = proj_weight_.unbind(0),
             proj_biases = proj_bias_.unbind(0);
  std::vector<at::Tensor> made;
  const auto parts = rows.split_with_sizes(counts, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const at::Tensor hidden = at::gelu(at::addmm(fc_biases[i], parts[i], fc_weights[i]), "tanh");
    made.push_back(at::addmm(proj_biases[i], hidden, proj_weights[i]));
  }
  return at::concat(made, 0);
}

at::Tensor MixtureOfExperts::apply_experts(const at::Tensor& rows, const at::Tensor& counts) {
  if (!experts_) return by_experts(rows, to_vector(counts));
  const auto ranks = experts_->size();
  const auto here = options_.experts / ranks;
  // [rank, expert there] -> [rank, expert here]
  const at::Tensor coming = at::empty_like(counts);
  experts_->all_to_all(coming, counts).wait();
  const Counts64 to = to_vector(counts.view({ranks, here}).sum(1)), from = to_vector(coming.view({ranks, here}).sum(1));
  const at::Tensor arrived = exchange_rows(rows, to, from, experts_);
  // They come by rank and then by expert, and are wanted by expert.
  const at::Tensor expert_of = at::arange(here, counts.options()).repeat({ranks}).repeat_interleave(coming);
  const at::Tensor order = at::argsort(expert_of, /*stable=*/true, 0), back = at::argsort(order, /*stable=*/true, 0);
  const at::Tensor made =
      by_experts(arrived.index_select(0, order), to_vector(coming.view({ranks, here}).sum(0))).index_select(0, back);
  return exchange_rows(made, from, to, experts_);
}

}  // namespace phalanx
