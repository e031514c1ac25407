// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/base/storage/stored_zip.h"
#include "framework/base/storage/torch_pickle.h"

namespace phalanx {

/// A state dict in the format of torch.save() of torch 1.6 or later (.pt, .pth, .bin): a zip archive of a pickle and
/// the elements of each storage. Only weights are read: unpickle_state_dict() executes nothing. Opening a file reads no
/// elements. Throws DataError for a file that is damaged, cut off, written by an older torch, or a TorchScript program.
class TorchFile {
 public:
  explicit TorchFile(const std::string& path);

  const std::vector<PickledTensor>& tensors() const { return tensors_; }  // in the order of the file
  at::Tensor read(const PickledTensor& tensor) const;                     // contiguous; does not share memory

 private:
  StoredZip zip_;
  std::string root_;  // first folder of the archive's names
  std::vector<PickledTensor> tensors_;
};

/// Writes a state dict that torch.load(weights_only=True) and TorchFile can read. Supports floating-point numbers of
/// 16, 32 and 64 bits, bfloat16, integers of 8 to 64 bits, uint8 and bool, on the CPU; 4 GB at most. The file appears
/// whole or not at all. Throws DataError.
void save_torch(const std::string& path, const NamedTensors& tensors);

}  // namespace phalanx
