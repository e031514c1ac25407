// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The commands of tools:weights. Each prints its result, and also writes it to `json` unless that name
// is empty. All pass on the errors of reading and writing.

namespace phalanx {

/// Prints names, shapes, dtypes and bytes of the tensors of a file.
void list_weights(const std::string& file, const std::string& json);

/// Writes the tensors of a file in the format that the name `to` selects; `shard_bytes` above 0: in several files.
/// `dtype`: the type to which floating-point tensors are converted, float32, float16, bfloat16 or float64; empty: none.
void convert_weights(const std::string& from, const std::string& to, std::int64_t shard_bytes, const std::string& dtype,
                     const std::string& json);

/// Prints the tensors that only one file has, that have another shape or dtype, or other values. Returns true if the
/// files have the same tensors with the same values, regardless of dtype.
bool compare_weights(const std::string& a, const std::string& b, const std::string& json);

/// Returns true if a file fits the model of a config, as init.from with its init.rename and init.strict: true.
bool verify_weights(const std::string& file, const std::string& config, const std::vector<std::string>& overrides,
                    const std::string& json);

/// Writes the weights of a run with adapters (lora) as weights of a model without adapters: adds the adapter's
/// contribution to each weight. `config`: the config of the run.
void merge_adapters(const std::string& from, const std::string& to, const std::string& config,
                    const std::vector<std::string>& overrides, const std::string& json);

}  // namespace phalanx
