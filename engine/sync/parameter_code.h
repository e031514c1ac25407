// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/collectives/compression/block_code.h"

namespace phalanx {

/// How parameters are written into messages: as they are, or rounded. It remembers nothing, so that ranks that have
/// exchanged nothing before understand each other.
class ParameterCode {
 public:
  /// Names of codes: none, bf16, fp16, int8.
  static std::vector<std::string> names();

  /// Throws std::invalid_argument for another name.
  explicit ParameterCode(const std::string& name);

  /// Memory for the message of values like these, [n], all bytes 0: on their device, but of int8 on the CPU. Throws
  /// ConfigError for int8 of another dtype than float32.
  at::Tensor make_message(const at::Tensor& values) const;

  void write(const at::Tensor& values, const at::Tensor& message) const;

  /// What a message says of values like these, [n], with their dtype, on their device.
  at::Tensor read(const at::Tensor& message, const at::Tensor& like) const;

 private:
  at::ScalarType dtype_ = at::kFloat;      // of messages that are numbers; unless exact_
  bool exact_ = false;                     // messages are the values
  std::unique_ptr<const BlockCode> code_;  // of those that are bytes
};

}  // namespace phalanx
