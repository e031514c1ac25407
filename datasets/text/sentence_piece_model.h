// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Checks what SentencePiece takes for granted about a model, and reads or writes beyond its memory otherwise: the
/// structure of the file (protocol buffers), the pieces, and the tries of the rules by which characters are replaced.
/// `file` names the model in errors. Throws DataError if the model is malformed, or has parts that the trainer does not
/// write: pieces that are empty or have a NUL, more than 64 user-defined pieces of which each begins with the one
/// before, or rules that replace a character by more than 256 bytes.
void check_sentence_piece_model(const std::string& file, std::string_view model);

}  // namespace phalanx
