// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "framework/collectives/compression/compressor.h"

namespace phalanx {

/// The compressors of the tensors that one rank reduces, each with the memory of its own tensor.
///
/// A tensor is known by where its elements lie, how many they are, and the storage that they are part of: so a tensor
/// that comes to lie where another one lay before, longer, shorter or the same, starts without that one's memory. Of
/// more tensors than `capacity` the one that was used longest ago loses its memory. Which ones do depends on the order
/// of calls alone, so that all ranks agree as long as they pass the same tensors in the same order.
///
/// Used by one thread at a time.
class CompressorTable {
 public:
  CompressorTable(Compressors::Choice compression, std::size_t capacity);

  /// The compressor of a float32 tensor: as it was left, or a new one.
  std::shared_ptr<Compressor> of(const at::Tensor& tensor) { return of(tensor, {}); }

  /// The same, with the shapes of the parameters that lie in the tensor, for a new one.
  std::shared_ptr<Compressor> of(const at::Tensor& tensor, std::vector<std::vector<std::int64_t>> shapes);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const void* begin;
    std::int64_t elements;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::shared_ptr<Compressor> compressor;  // null: another tensor has taken its place
  };

  static bool is(const Entry& entry, const at::Tensor& tensor);

  Compressors::Choice compression_;
  std::size_t capacity_;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace phalanx
