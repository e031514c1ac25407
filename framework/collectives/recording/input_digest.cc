// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/input_digest.h"

#include "framework/base/storage/crc32c.h"

namespace phalanx::recording {

InputDigest digest_of(const at::Tensor& tensor, const std::vector<NamedMemory::Piece>& pieces) {
  InputDigest digest;
  if (!tensor.defined()) return digest;
  digest.sum = crc32c(tensor.const_data_ptr(), tensor.nbytes());
  for (const auto& piece : pieces) digest.pieces.push_back(crc32c(piece.begin, piece.bytes));
  return digest;
}

std::vector<NamedMemory::Piece> pieces_of(const at::Tensor& tensor, const NamedMemory& memory) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  return memory.pieces(tensor.const_data_ptr(), tensor.nbytes());
}

}  // namespace phalanx::recording
