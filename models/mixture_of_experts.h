// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/expert_parallel_layer.h"

namespace phalanx {

/// A feed-forward layer in which each token uses a few experts (Shazeer et al. 2017, arXiv:1701.06538; Lepikhin et al.
/// 2020, GShard, arXiv:2006.16668; Fedus et al. 2021, Switch Transformers, arXiv:2101.03961):
///
///   p = softmax(x gate)                         [tokens, experts]
///   y = sum over the k largest p_e, divided by their sum, of p_e (gelu(x W1_e + b1_e) W2_e + b2_e)
///
/// Balance loss (Switch, equation 4): coefficient * E * sum over e of f_e P_e, where E is the number of experts, f_e
/// the fraction of choices of expert e in the global batch, and P_e the mean of p_e.
///
/// With a capacity factor c, an expert processes at most ceil(c k T / E) of the T tokens of the global batch, the first
/// ones in the order of ranks and tokens; for other tokens, its term of y is omitted. Without a capacity factor, no
/// token is dropped. In evaluation, T is the number of tokens of one forward. So a layer with a capacity gives
/// different results for a sequence whose tokens are computed one after another, as in generation with a KeyValueCache.
///
/// Both need the counts of the whole batch before any part of it can continue. With CountOver::kSequence, f, P and T
/// are computed for each sequence, and the loss is the mean over sequences (DeepSeek-AI 2024, DeepSeek-V3,
/// arXiv:2412.19437, section 2.1.2). The results then do not depend on which parts of a batch are computed together.
///
/// On R ranks, tokens are sent to the rank that has their expert and back. With n bytes of tokens per rank, each rank
/// sends 2 k n (R - 1) / R bytes forward and the same backward, and before that 8 bytes for each expert and rank.
///
/// Parameters: gate.weight [E, width]; experts.{c_fc,c_proj}.{weight,bias} [E, in, out] and [E, out].
class MixtureOfExperts final : public torch::nn::Module, public ExpertParallelLayer {
 public:
  enum class CountOver { kBatch, kSequence };

  struct Options {
    std::int64_t width = 0;
    std::int64_t hidden = 0;
    std::int64_t experts = 8;
    std::int64_t top_k = 2;
    double capacity_factor = 0;  // 0: no limit
    double balance = 0.01;
    CountOver count_over = CountOver::kBatch;
    double deviation = 0.02;           // standard deviation of initial values
    double deviation_into_sum = 0.02;  // the same for c_proj
  };

  explicit MixtureOfExperts(const Options& options);

  /// Maps [..., width] to the same shape. A layer that counts over sequences takes [sequences, positions, width].
  at::Tensor forward(const at::Tensor& x);

  Placements partition_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) override;

  std::string counts_over_batch() const override;

  /// Tells the layer that each rank of `group` has some of the positions of each sequence from now on. Throws
  /// ConfigError if the layer has a capacity, for which the order of positions matters.
  void enable_context_parallel(const CommunicatorPtr& group);

  /// Returns the balance loss of the last forward in training, with its gradient, or an undefined tensor if it computed
  /// none. Its mean over ranks, weighted by their numbers of sequences, is the balance loss of the global batch.
  at::Tensor take_balance_loss();

  /// Returns the number of this rank's choices so far in training that exceeded the capacity of an expert.
  std::int64_t dropped() const { return dropped_; }

 private:
  struct Route;

  Route route(const at::Tensor& tokens, std::int64_t sequences);
  std::int64_t capacity(std::int64_t choices) const;
  at::Tensor within_capacity(const at::Tensor& sorted_experts, const at::Tensor& counts, const at::Tensor& counted);
  at::Tensor within_capacity_of_sequences(const at::Tensor& experts, const at::Tensor& order, std::int64_t sequences);
  at::Tensor by_experts(const at::Tensor& rows, const std::vector<std::int64_t>& counts);
  at::Tensor apply_experts(const at::Tensor& rows, const at::Tensor& counts);
  void keep_balance_loss(const at::Tensor& probabilities, const at::Tensor& counts, const CommunicatorPtr& over);

  Options options_;
  CommunicatorPtr experts_, batch_;  // null: this rank has all experts, and its batch is the global batch
  CommunicatorPtr context_;          // null: sequences are not sharded
  at::Tensor gate_, fc_weight_, fc_bias_, proj_weight_, proj_bias_;
  at::Tensor balance_loss_;
  std::int64_t dropped_ = 0;
};

}  // namespace phalanx
