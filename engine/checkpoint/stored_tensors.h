// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// The tensors of some files whose names begin with `prefix`, by the rest of their names. A name that ends in "[A:B]"
/// is of elements A to B of a tensor, and one with a placement behind it (to_text(Placement)) of a part of it; both may
/// be there, [A:B] last. The parts of a tensor may lie in several files. Of what is there several times, the first
/// counts.
class StoredTensors {
 public:
  /// The files must outlive this.
  StoredTensors(const std::vector<SafetensorsFile>& files, const std::string& prefix);

  std::vector<std::string> names() const;  // sorted, without placements and "[A:B]"
  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// Which elements: [offset, offset + count) of a tensor or, where `placement` is not null, of that part of it.
  struct Range {
    std::int64_t offset = 0;
    std::int64_t count = 0;
    const Placement* placement = nullptr;
  };

  /// Whether these elements of it are stored with the same placement.
  bool has(const std::string& name, const Range& range) const;

  /// Shape of a whole one, or of one that has placements. That of another one in parts is not known: empty, and false.
  bool shape(const std::string& name, std::vector<std::int64_t>& shape) const;

  /// Fills `into` with the first whole tensor, or the first part with this placement, of this name and of as many
  /// elements, whatever else is under the name. False, and nothing is changed, where there is none.
  bool read_first(const std::string& name, const Placement* placement, const at::Tensor& into) const;

  /// Fills `into`, range.count elements of any dtype and strides. What is stored with other placements is put together
  /// in memory, one tensor at a time. Throws DataError where not all of them are stored.
  void read(const std::string& name, const Range& range, const at::Tensor& into) const;

 private:
  struct Run {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
    std::int64_t begin, end;  // elements, of the part
    bool in_parts;            // by "[A:B]"
    std::optional<Placement> placement;
  };
  using Runs = std::vector<Run>;

  const Runs& runs_of(const std::string& name) const;
  static std::int64_t fill(const Runs& runs, const Placement* placement, std::int64_t offset, const at::Tensor& rows);
  const at::Tensor& put_together(const std::string& name) const;

  std::map<std::string, Runs> tensors_;
  mutable std::string whole_name_;  // of the last tensor that was put together
  mutable at::Tensor whole_;
};

}  // namespace phalanx
