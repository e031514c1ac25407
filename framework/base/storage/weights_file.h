#pragma once

#include <string>

#include "framework/base/named_tensors.h"

namespace phalanx {

/// The tensors of a file of weights, on the CPU, in the order of the file:
///
///   *.safetensors                 load_safetensors()
///   *.safetensors.index.json      parts beside it, as Hugging Face divides large models: {"weight_map": {name: part}}
///   *.pt, *.pth, *.bin            a state dict that torch.save() has written (a zip archive, from PyTorch 1.6 on), or
///   a
///                                 dictionary with one as its "state_dict" or "model". Read as data: a file that asks
///                                 for anything to be called but the making of tensors is refused
///
/// Throws DataError, which begins with the file's name, for what is missing, malformed or of another kind.
NamedTensors load_weights_file(const std::string& path);

/// Writes *.safetensors, or a state dict that torch.load() reads. The file appears whole or not at all. Throws
/// DataError.
void save_weights_file(const std::string& path, const NamedTensors& tensors);

}  // namespace phalanx
