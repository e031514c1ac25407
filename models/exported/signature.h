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

/// The inputs and outputs of a program, and the weights that come with it.
struct Signature {
  std::vector<ProgramTensor> inputs, outputs;  // of the user
  std::int64_t least_rows = 0;                 // of a batch
  NamedTensors parameters, buffers;            // each once, under its first name; only persistent buffers
  std::vector<at::Tensor> given;               // values of the graph's inputs; undefined: one of the user's
  std::set<std::string> kept;                  // names of the graph's inputs that have a value here
  std::set<std::string> counters;              // those of them that count batches for batch norm
};

/// Reads the signature of a serialized program, which is archive.program(), and its tensors. `path` is for messages.
/// Throws ConfigError for what is not supported, DataError as `archive` does, and an exception of the JSON library or a
/// std::runtime_error for what is malformed.
Signature read_signature(const std::string& path, const Archive& archive, const nlohmann::ordered_json& program);

}  // namespace phalanx::exported
