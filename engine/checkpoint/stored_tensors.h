// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// The tensors in some files whose names begin with `prefix`, by the rest of their names. A name that ends in "[A:B]"
/// denotes elements A to B of a tensor, and a name followed by a placement (to_text(Placement)) for a part of it. A
/// name may have both, with [A:B] last. The parts of a tensor may be in several files. If the same elements are stored
/// several times, the first ones count.
class StoredTensors {
 public:
  /// The files must outlive this object.
  StoredTensors(const std::vector<SafetensorsFile>& files, const std::string& prefix);

  std::vector<std::string> names() const;  // sorted, without placements and "[A:B]"
  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// A range of elements: [offset, offset + count) of a tensor or, if `placement` is not null, of that part of it.
  struct Range {
    std::int64_t offset = 0;
    std::int64_t count = 0;
    const Placement* placement = nullptr;
  };

  /// Returns true if these elements are stored with the same placement.
  bool has(const std::string& name, const Range& range) const;

  /// Gets the shape of a tensor that is stored whole or with placements. Returns false, and an empty shape, for other
  /// tensors stored in parts, whose shape is not known.
  bool shape(const std::string& name, std::vector<std::int64_t>& shape) const;

  /// Fills `into` with the first whole tensor of this name and number of elements or, if `placement` is not null, with
  /// the first part that has this placement. Other tensors with the name are ignored. Returns false and changes nothing
  /// if no tensor fits.
  bool read_first(const std::string& name, const Placement* placement, const at::Tensor& into) const;

  /// Fills `into`, which has range.count elements of any dtype and strides. If the elements are stored with other
  /// placements, the whole tensor is assembled in memory, one at a time. Throws DataError if some elements are not
  /// stored.
  void read(const std::string& name, const Range& range, const at::Tensor& into) const;

 private:
  struct StoredPart {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
    std::int64_t begin, end;  // range of elements in the part
    bool in_parts;            // named with "[A:B]"
    std::optional<Placement> placement;
  };
  using StoredParts = std::vector<StoredPart>;

  const StoredParts& parts_of(const std::string& name) const;
  static std::int64_t fill(const StoredParts& parts, const Placement* placement, std::int64_t offset,
                           const at::Tensor& rows);
  const at::Tensor& put_together(const std::string& name) const;

  std::map<std::string, StoredParts> tensors_;
  mutable std::string whole_name_;  // of the last tensor that was assembled
  mutable at::Tensor whole_;
};

}  // namespace phalanx
