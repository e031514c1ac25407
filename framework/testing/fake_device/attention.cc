// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <c10/core/SymInt.h>
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace phalanx::testing {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

constexpr std::int64_t kLogSumUnit = 32;  // memory-efficient attention reads so many logarithms at a time

// The kernels that LibTorch chooses among.
enum Choice : std::int64_t { kMath = 0, kFlash = 1, kEfficient = 2 };

void check(const char* name, const at::Tensor& query, const at::Tensor& key, bool causal, double dropout) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4, name, ": expects 4 dimensions");
  TORCH_CHECK(query.stride(3) == 1 && key.stride(3) == 1, name, ": the last dimension must be dense");
  TORCH_CHECK(!causal || query.size(2) == key.size(2), name, ": the fake is causal for as many keys as queries only");
  TORCH_CHECK(dropout == 0, name, ": the fake has no dropout");
}

void check_flash(const at::Tensor& query, const at::Tensor& key, bool causal, double dropout) {
  constexpr const char* kName = "_scaled_dot_product_flash_attention";
  check(kName, query, key, causal, dropout);
  TORCH_CHECK(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16, kName,
              ": only support fp16 and bf16 data type");
  TORCH_CHECK(query.size(3) % 8 == 0 && query.size(3) <= 256, kName, ": head width ", query.size(3));
}

void check_efficient(const at::Tensor& query, const at::Tensor& key, bool causal, double dropout) {
  constexpr const char* kName = "_scaled_dot_product_efficient_attention";
  check(kName, query, key, causal, dropout);
  TORCH_CHECK(query.scalar_type() != at::kDouble, kName, ": expected float, half or bfloat16");
  TORCH_CHECK(query.size(1) == key.size(1), kName, ": queries have ", query.size(1), " heads, and keys ", key.size(1));
}

// Chooses as LibTorch 2.13 does on GPUs with compute capability 8.0 or above without cuDNN (select_sdp_backend).
std::int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor&,
                    const std::optional<at::Tensor>& mask, double, bool causal, std::optional<double>, bool grouped) {
  const bool same_heads = query.size(1) == key.size(1), short_type = query.element_size() == 2;
  const bool square = query.size(2) == key.size(2);
  if (short_type && !mask && query.size(3) <= 256 && (same_heads || grouped) && (square || !causal)) return kFlash;
  return same_heads && query.scalar_type() != at::kDouble ? kEfficient : kMath;
}

at::Tensor by_query_head(const at::Tensor& shared, const at::Tensor& query) {
  return shared.repeat_interleave(query.size(1) / shared.size(1), 1);
}

double scale_of(const at::Tensor& query, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
}

at::Tensor scores_of(const at::Tensor& query, const at::Tensor& key, bool causal, std::optional<double> scale) {
  const at::Tensor scores =
      at::matmul(query.to(at::kFloat), key.to(at::kFloat).transpose(2, 3)).mul_(scale_of(query, scale));
  if (!causal) return scores;
  const at::Tensor later = at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill(later, -std::numeric_limits<double>::infinity());
}

// Returns the output and the logarithms of the sums.
std::pair<at::Tensor, at::Tensor> attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         bool causal, std::optional<double> scale) {
  const at::Tensor scores = scores_of(query, key, causal, scale), log_sum = scores.logsumexp(3);
  const at::Tensor output = at::matmul((scores - log_sum.unsqueeze(3)).exp_(), value.to(at::kFloat));
  return {output.to(query.scalar_type()), log_sum};
}

Three attend_backward(const std::array<at::Tensor, 5>& of, const at::Tensor& log_sum, bool causal,
                      std::optional<double> scale) {
  const auto& [query, key, value, output, of_output] = of;
  TORCH_CHECK(output.scalar_type() == query.scalar_type() && of_output.scalar_type() == query.scalar_type(),
              "attention: expected query, output and its gradient to have the same dtype");
  const at::Tensor upstream = of_output.to(at::kFloat);
  const at::Tensor shares = (scores_of(query, key, causal, scale) - log_sum.unsqueeze(3)).exp_();
  const at::Tensor of_shares = at::matmul(upstream, value.to(at::kFloat).transpose(2, 3));
  const at::Tensor mean = (upstream * output.to(at::kFloat)).sum(3, true);
  const at::Tensor of_scores = shares * (of_shares - mean) * scale_of(query, scale);
  const auto type = query.scalar_type();
  return {at::matmul(of_scores, key.to(at::kFloat)).to(type),
          at::matmul(of_scores.transpose(2, 3), query.to(at::kFloat)).to(type),
          at::matmul(shares.transpose(2, 3), upstream).to(type)};
}

at::Tensor random_state(const at::Tensor& query) { return at::empty({2}, query.options().dtype(at::kLong)); }

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout, bool causal, bool,
      std::optional<double> scale) {
  check_flash(query, key, causal, dropout);
  const auto [output, log_sum] = attend(query, by_query_head(key, query), by_query_head(value, query), causal, scale);
  return {output,        log_sum,     at::Tensor(),        at::Tensor(),
          query.size(2), key.size(2), random_state(query), random_state(query),
          at::Tensor()};
}

Three flash_backward(const at::Tensor& of_output, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor&,
                     const at::Tensor&, c10::SymInt, c10::SymInt, double dropout, bool causal, const at::Tensor& seed,
                     const at::Tensor& offset, std::optional<double> scale) {
  check_flash(query, key, causal, dropout);
  TORCH_CHECK(log_sum.is_contiguous() && log_sum.scalar_type() == at::kFloat, "flash attention: logarithms of sums");
  TORCH_CHECK(seed.defined() && offset.defined(), "flash attention: no state of the random numbers");
  const auto [of_query, of_key, of_value] = attend_backward(
      {query, by_query_head(key, query), by_query_head(value, query), output, of_output}, log_sum, causal, scale);
  const auto shared = [&](const at::Tensor& of_heads) { return of_heads.unflatten(1, {key.size(1), -1}).sum(2); };
  return {of_query, shared(of_key), shared(of_value)};
}

Four efficient(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& bias, bool with_log_sum, double dropout, bool causal,
               std::optional<double> scale) {
  check_efficient(query, key, causal, dropout);
  TORCH_CHECK(!bias || !bias->defined(), "the fake has no biases of attention");
  const auto [output, log_sum] = attend(query, key, value, causal, scale);
  const std::int64_t queries = query.size(2), rounded = (queries + kLogSumUnit - 1) / kLogSumUnit * kLogSumUnit;
  const at::Tensor padded = at::full({query.size(0), query.size(1), with_log_sum ? rounded : 0},
                                     std::numeric_limits<float>::infinity(), log_sum.options());
  if (with_log_sum) padded.narrow(2, 0, queries).copy_(log_sum);
  return {output, padded, random_state(query), random_state(query)};
}

Four efficient_backward(const at::Tensor& of_output, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value, const at::Tensor&, const at::Tensor& output, const at::Tensor& log_sum,
                        const at::Tensor& seed, const at::Tensor& offset, double dropout, std::array<bool, 4>,
                        bool causal, std::optional<double> scale) {
  check_efficient(query, key, causal, dropout);
  TORCH_CHECK(log_sum.size(2) % kLogSumUnit == 0 && log_sum.stride(2) == 1, "efficient attention: logarithms of sums");
  TORCH_CHECK(seed.defined() && offset.defined(), "efficient attention: no state of the random numbers");
  const at::Tensor own = log_sum.narrow(2, 0, query.size(2));
  auto [of_query, of_key, of_value] = attend_backward({query, key, value, output, of_output}, own, causal, scale);
  return {of_query, of_key, of_value, at::Tensor()};
}

}  // namespace

void register_attention(torch::Library& library) {
  library.impl("_fused_sdp_choice", TORCH_FN(choose));
  library.impl("_scaled_dot_product_flash_attention", TORCH_FN(flash));
  library.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_backward));
  library.impl("_scaled_dot_product_efficient_attention", TORCH_FN(efficient));
  library.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_backward));
}

}  // namespace phalanx::testing
