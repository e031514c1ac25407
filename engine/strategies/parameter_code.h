// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/collectives/compression/block_code.h"

namespace phalanx {

/// Encodes parameters for messages, exactly or rounded. It has no state, so ranks that have not exchanged anything
/// before can decode each other's messages.
class ParameterCode {
 public:
  /// Returns the names of the codes: none, bf16, fp16, int8.
  static std::vector<std::string> names();

  /// Throws std::invalid_argument for any other name.
  explicit ParameterCode(const std::string& name);

  /// Returns zeroed memory for the message of values like these, [n]. It is on their device, except for int8, which is
  /// on the CPU. Throws ConfigError for int8 if the dtype is not float32.
  at::Tensor make_message(const at::Tensor& values) const;

  void write(const at::Tensor& values, const at::Tensor& message) const;

  /// Decodes a message into values like these, [n], with their dtype and on their device.
  at::Tensor read(const at::Tensor& message, const at::Tensor& like) const;

 private:
  at::ScalarType dtype_ = at::kFloat;      // of messages that are tensors, unless exact_
  bool exact_ = false;                     // messages are copies of the values
  std::unique_ptr<const BlockCode> code_;  // for messages that are bytes
};

}  // namespace phalanx
