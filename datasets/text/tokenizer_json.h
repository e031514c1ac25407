// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "datasets/text/tokenizer.h"

namespace phalanx {

/// Reads a tokenizer.json of Hugging Face's tokenizers (0.23). Post-processors, truncation and padding are not applied,
/// so no tokens are added around a text. Throws DataError for malformed files, and ConfigError for unsupported parts,
/// which would lead to tokens that differ from that library's.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file);

/// Reads GPT-2's vocab.json and merges.txt in a folder.
std::unique_ptr<Tokenizer> read_gpt2_files(const std::filesystem::path& folder);

}  // namespace phalanx
