// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/block_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace phalanx {
namespace {

at::Tensor make_codes(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

}  // namespace

BlockExchange::BlockExchange(const BucketLayout& layout, std::unique_ptr<const BlockCode> code,
                             std::int64_t start_after)
    : Compressor(layout, start_after), code_(std::move(code)) {}

void BlockExchange::exchange(Wire& wire, at::Tensor tensor) {
  if (begins_.empty()) divide(wire.rank(), wire.size());
  const int ranks = wire.size();
  const auto own_bytes = code_bytes_[wire.rank()];

  const at::Tensor sent = encode_own(tensor);
  const at::Tensor received = make_codes(ranks * own_bytes);
  const std::vector<std::int64_t> received_bytes(ranks, own_bytes);
  wire.all_to_all(received, sent, received_bytes, code_bytes_);

  add_mean(wire, received);
  const at::Tensor own = make_codes(own_bytes);
  code_->encode(part_residual_, own.mutable_data_ptr<std::uint8_t>());
  wire.all_gather(sent, own, code_bytes_);
  decode(sent, tensor);
}

StateDict BlockExchange::state(const Communicator& group) {
  if (begins_.empty()) divide(group.rank(), group.size());
  const auto view = [](std::vector<float>& values) {
    return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
  };
  StateDict all{{"residual", view(residual_)}, {"part_residual", view(part_residual_)}};
  if (start_after() > 0) all.push_back({"steps", steps(), true});
  return all;
}

void BlockExchange::divide(int rank, int ranks) {
  const auto elements = layout().elements;
  const auto blocks = (elements + code_->block() - 1) / code_->block();
  for (int part = 0; part <= ranks; ++part) {
    begins_.push_back(std::min(part * blocks / ranks * code_->block(), elements));
    if (part > 0) code_bytes_.push_back(code_->bytes(begins_[part] - begins_[part - 1]));
  }
  residual_.resize(elements);
  part_residual_.resize(begins_[rank + 1] - begins_[rank]);
}

// Codes in place, as in steps 1 and 3: encode() leaves the coding error in the residual.
at::Tensor BlockExchange::encode_own(const at::Tensor& tensor) {
  const float* values = tensor.const_data_ptr<float>();
  for (std::size_t i = 0; i < residual_.size(); ++i) residual_[i] += values[i];
  const at::Tensor codes = make_codes(std::reduce(code_bytes_.begin(), code_bytes_.end()));
  auto* code = codes.mutable_data_ptr<std::uint8_t>();
  for (int rank = 0; rank < static_cast<int>(code_bytes_.size()); ++rank) {
    code_->encode(part(residual_.data(), rank), code);
    code += code_bytes_[rank];
  }
  return codes;
}

void BlockExchange::add_mean(const Wire& wire, const at::Tensor& codes) {
  const auto* code = codes.const_data_ptr<std::uint8_t>();
  for (int rank = 0; rank < wire.size(); ++rank) {
    code_->add(code, 1.0F / static_cast<float>(wire.size()), part_residual_);
    code += code_bytes_[wire.rank()];
  }
}

void BlockExchange::decode(const at::Tensor& codes, const at::Tensor& tensor) const {
  const auto* code = codes.const_data_ptr<std::uint8_t>();
  tensor.zero_();
  for (int rank = 0; rank < static_cast<int>(code_bytes_.size()); ++rank) {
    code_->add(code, 1.0F, part(tensor.mutable_data_ptr<float>(), rank));
    code += code_bytes_[rank];
  }
}

std::span<float> BlockExchange::part(float* values, int rank) const {
  return {values + begins_[rank], static_cast<std::size_t>(begins_[rank + 1] - begins_[rank])};
}

}  // namespace phalanx
