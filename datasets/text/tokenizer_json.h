// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "datasets/text/tokenizer.h"

namespace phalanx {

/// Reads a tokenizer.json of Hugging Face's tokenizers (0.23). Post-processors, truncation and padding are not applied:
/// no tokens are put around a text. Throws DataError for what is malformed, and ConfigError for what is not supported
/// and would give other tokens than there.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file);

/// Reads vocab.json and merges.txt of GPT-2 in a folder.
std::unique_ptr<Tokenizer> read_gpt2_files(const std::filesystem::path& folder);

}  // namespace phalanx
