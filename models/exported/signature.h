// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "models/exported/archive.h"
#include "models/exported/program_tensor.h"

namespace phalanx::exported {

/// The inputs and outputs of a program, and its weights.
struct Signature {
  std::vector<ProgramTensor> inputs, outputs;  // of the user
  std::int64_t min_rows = 0;                   // minimum number of rows of a batch
  NamedTensors parameters, buffers;            // each once, under its first name; only persistent buffers
  std::vector<at::Tensor> given;               // values of the graph's inputs; undefined for inputs of the user
  std::set<std::string> kept;                  // names of the graph's inputs that have a value in `given`
  std::set<std::string> counters;              // the names in `kept` that count batches for batch norm
};

/// Reads the signature of a serialized program, which is archive.program(), and its tensors. `path` is for error
/// messages. Throws ConfigError for unsupported parts, the DataErrors of `archive`, and an exception of the JSON
/// library or a std::runtime_error for a malformed signature.
Signature read_signature(const std::string& path, const Archive& archive, const nlohmann::ordered_json& program);

}  // namespace phalanx::exported
