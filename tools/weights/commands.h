// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The commands of tools:weights, each of which prints what it has done or found, and writes the same to `json` where
// that is no empty name. All throw the errors of what they read and write.

namespace phalanx {

/// Names, shapes, dtypes and bytes of the tensors of a file.
void list_weights(const std::string& file, const std::string& json);

/// Writes the tensors of a file in the format that the name `to` asks for; `shard_bytes` above 0: in several files.
/// `dtype`: empty, or what floating-point numbers become: float32, float16, bfloat16 or float64.
void convert_weights(const std::string& from, const std::string& to, std::int64_t shard_bytes, const std::string& dtype,
                     const std::string& json);

/// What is in one file alone, has another shape or dtype, or other values. Whether the files have the same tensors
/// with the same values, whatever their dtypes.
bool compare_weights(const std::string& a, const std::string& b, const std::string& json);

/// Whether a file fits the model of a config: as init.from with its init.rename and init.strict: true.
bool verify_weights(const std::string& file, const std::string& config, const std::vector<std::string>& overrides,
                    const std::string& json);

/// Writes the weights of a run with adapters (lora) as those of a model without: each weight with what its adapter adds
/// to it. `config`: that of the run.
void merge_adapters(const std::string& from, const std::string& to, const std::string& config,
                    const std::vector<std::string>& overrides, const std::string& json);

}  // namespace phalanx
