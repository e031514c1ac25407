// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/block_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <limits>
#include <tuple>

namespace phalanx {
namespace {

enum class Kernel { kCpu, kFlash, kEfficient, kProducts };

Kernel kernel_for(const at::Tensor& query) {
  constexpr std::int64_t kMostWidth = 256, kWidthUnit = 8;  // limits of flash attention
  if (query.is_cpu()) return Kernel::kCpu;
  if (query.scalar_type() == at::kDouble) return Kernel::kProducts;
  const bool flash =
      query.scalar_type() == at::kBFloat16 && query.size(3) % kWidthUnit == 0 && query.size(3) <= kMostWidth;
  return flash ? Kernel::kFlash : Kernel::kEfficient;
}

double scale_of(const at::Tensor& query) { return 1 / std::sqrt(static_cast<double>(query.size(3))); }

at::Tensor scores_of(const at::Tensor& query, const at::Tensor& key, bool causal) {
  const at::Tensor scores = at::matmul(query, key.transpose(2, 3)).mul_(scale_of(query));
  if (!causal) return scores;
  const at::Tensor later = at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill(later, -std::numeric_limits<double>::infinity());
}

BlockAttention multiply(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal) {
  const at::Tensor scores = scores_of(query, key, causal), log_sum = scores.logsumexp(3);
  return {.output = at::matmul((scores - log_sum.unsqueeze(3)).exp_(), value), .log_sum = log_sum, .random_state = {}};
}

std::array<at::Tensor, 3> multiply_backward(const BlockAttentionGradient& of) {
  const at::Tensor shares = (scores_of(of.query, of.key, of.causal) - of.attention.log_sum.unsqueeze(3)).exp_();
  const at::Tensor of_shares = at::matmul(of.of_output, of.value.transpose(2, 3));
  const at::Tensor mean = (of.of_output * of.attention.output).sum(3, /*keepdim=*/true);
  const at::Tensor of_scores = shares * (of_shares - mean) * scale_of(of.query);
  return {at::matmul(of_scores, of.key), at::matmul(of_scores.transpose(2, 3), of.query),
          at::matmul(shares.transpose(2, 3), of.of_output)};
}

// Memory-efficient attention reads 32 logarithms at a time. Infinity makes the weights of those that are not there 0.
at::Tensor padded(const at::Tensor& log_sum) {
  constexpr std::int64_t kUnit = 32;
  const std::int64_t queries = log_sum.size(2), rounded = (queries + kUnit - 1) / kUnit * kUnit;
  const at::Tensor all =
      at::full({log_sum.size(0), log_sum.size(1), rounded}, std::numeric_limits<float>::infinity(), log_sum.options());
  all.narrow(2, 0, queries).copy_(log_sum);
  return all;
}

at::Tensor for_each_query_head(const at::Tensor& shared, const at::Tensor& query) {
  const auto times = query.size(1) / shared.size(1);
  return times == 1 ? shared : shared.repeat_interleave(times, 1);
}

// Adds up the gradients of the copies of for_each_query_head().
at::Tensor of_shared_head(const at::Tensor& of_copies, const at::Tensor& shared) {
  if (of_copies.size(1) == shared.size(1)) return of_copies;
  return of_copies.unflatten(1, {shared.size(1), -1}).sum(2);
}

BlockAttention attend_by_head(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal) {
  switch (kernel_for(query)) {
    case Kernel::kCpu: {
      auto [output, log_sum] =
          at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout_p=*/0, causal);
      return {.output = output, .log_sum = log_sum, .random_state = {}};
    }
    case Kernel::kFlash: {
      const auto all = at::_scaled_dot_product_flash_attention(query, key, value, /*dropout_p=*/0, causal,
                                                               /*return_debug_mask=*/false);
      return {.output = std::get<0>(all),
              .log_sum = std::get<1>(all),
              .random_state = {std::get<6>(all), std::get<7>(all)}};
    }
    case Kernel::kEfficient: {
      const auto [output, log_sum, seed, offset] = at::_scaled_dot_product_efficient_attention(
          query, key, value, /*attn_bias=*/{}, /*compute_log_sumexp=*/true, /*dropout_p=*/0, causal);
      return {.output = output, .log_sum = log_sum.narrow(2, 0, query.size(2)), .random_state = {seed, offset}};
    }
    case Kernel::kProducts:
      break;
  }
  return multiply(query, key, value, causal);
}

std::array<at::Tensor, 3> attend_by_head_backward(const BlockAttentionGradient& of) {
  const auto& [output, log_sum, random_state] = of.attention;
  switch (kernel_for(of.query)) {
    case Kernel::kCpu: {
      const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          of.of_output, of.query, of.key, of.value, output, log_sum, /*dropout_p=*/0, of.causal);
      return {query, key, value};
    }
    case Kernel::kFlash: {
      const at::Tensor dense;  // no list of lengths: all sequences are of the same length
      const auto [query, key, value] = at::_scaled_dot_product_flash_attention_backward(
          of.of_output, of.query, of.key, of.value, output, log_sum.contiguous(), dense, dense, of.query.size(2),
          of.key.size(2), /*dropout_p=*/0, of.causal, random_state[0], random_state[1]);
      return {query, key, value};
    }
    case Kernel::kEfficient: {
      const auto all = at::_scaled_dot_product_efficient_attention_backward(
          of.of_output, of.query, of.key, of.value, /*attn_bias=*/{}, output, padded(log_sum), random_state[0],
          random_state[1], /*dropout_p=*/0, {true, true, true, false}, of.causal);
      return {std::get<0>(all), std::get<1>(all), std::get<2>(all)};
    }
    case Kernel::kProducts:
      break;
  }
  return multiply_backward(of);
}

}  // namespace

BlockAttention attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal) {
  if (kernel_for(query) == Kernel::kFlash) return attend_by_head(query, key, value, causal);
  return attend_by_head(query, for_each_query_head(key, query), for_each_query_head(value, query), causal);
}

std::array<at::Tensor, 3> attend_backward(const BlockAttentionGradient& of) {
  if (kernel_for(of.query) == Kernel::kFlash) return attend_by_head_backward(of);
  BlockAttentionGradient by_head = of;
  by_head.key = for_each_query_head(of.key, of.query);
  by_head.value = for_each_query_head(of.value, of.query);
  const auto [of_query, of_key, of_value] = attend_by_head_backward(by_head);
  return {of_query, of_shared_head(of_key, of.key), of_shared_head(of_value, of.value)};
}

}  // namespace phalanx
