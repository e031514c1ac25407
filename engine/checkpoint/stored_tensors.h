#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"

namespace phalanx {

/// The tensors of some files whose names begin with `prefix`, by the rest of their names. A name that ends in "[A:B]"
/// is of elements A to B of a tensor, the parts of which may lie in several files.
class StoredTensors {
 public:
  /// The files must outlive this.
  StoredTensors(const std::vector<SafetensorsFile>& files, const std::string& prefix);

  std::vector<std::string> names() const;  // sorted, without "[A:B]"
  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// Whether elements [offset, offset + count) of it are stored.
  bool has(const std::string& name, std::int64_t offset, std::int64_t count) const;

  /// Shape of one that is stored whole; that of one in parts is not known: empty, and false.
  bool shape(const std::string& name, std::vector<std::int64_t>& shape) const;

  /// Fills `into`, n elements of any dtype and strides, with elements [offset, offset + n). Throws DataError where not
  /// all of them are stored.
  void read(const std::string& name, std::int64_t offset, const at::Tensor& into) const;

  /// All that are stored whole.
  NamedTensors read_whole() const;

 private:
  struct Run {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
    std::int64_t begin, end;  // elements
    bool whole;
  };

  std::map<std::string, std::vector<Run>> tensors_;
};

}  // namespace phalanx
