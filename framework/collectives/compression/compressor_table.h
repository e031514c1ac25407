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

/// The compressors of the tensors that one rank reduces. Each of them keeps the state of one tensor.
///
/// A tensor is identified by the address and number of its elements and by its storage. A new tensor at the address of
/// an old one therefore does not inherit its state, even if it has the same size. If there are more than `capacity`
/// tensors, the least recently used one loses its state. Which one that is depends only on the order of calls, so all
/// ranks agree if they pass the same tensors in the same order.
///
/// Not thread-safe.
class CompressorTable {
 public:
  CompressorTable(Compressors::Choice compression, std::size_t capacity);

  /// Returns the compressor of a float32 tensor. Creates one for a new tensor.
  std::shared_ptr<Compressor> of(const at::Tensor& tensor) { return of(tensor, {}); }

  /// Returns the compressor of a float32 tensor. If it is created, `shapes` are the shapes of the parameters in the
  /// tensor.
  std::shared_ptr<Compressor> of(const at::Tensor& tensor, std::vector<std::vector<std::int64_t>> shapes);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const void* begin;
    std::int64_t elements;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::shared_ptr<Compressor> compressor;  // null: another tensor now lies at this address
  };

  static bool is(const Entry& entry, const at::Tensor& tensor);

  Compressors::Choice compression_;
  std::size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace phalanx
