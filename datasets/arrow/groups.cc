// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/groups.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

#include "framework/base/error.h"

namespace phalanx {

RowGroups::RowGroups(const std::vector<std::filesystem::path>& files) : begins_{0} {
  for (const auto& path : files) {
    const auto file = TableFile::open(path);
    int number = 0;
    for (const auto rows : file->rows_of_groups()) {
      if (rows > 0) {
        if (rows > std::numeric_limits<std::int64_t>::max() - begins_.back()) {
          throw DataError(path.string() + ": declares more rows than can be counted");
        }
        groups_.push_back({file, number});
        begins_.push_back(begins_.back() + rows);
      }
      ++number;
    }
  }
  if (groups_.empty()) throw DataError(files.front().string() + ": has no rows");
}

RowGroups::Place RowGroups::place(std::int64_t index) const {
  TORCH_CHECK_INDEX(index >= 0 && index < rows(), "sample ", index, " is out of range; the size is ", rows());
  const auto next = std::ranges::upper_bound(begins_, index);
  return {static_cast<std::size_t>(next - begins_.begin()) - 1, index - *(next - 1)};
}

std::shared_ptr<arrow::Array> RowGroups::read(std::size_t group, const std::string& column) const {
  const auto& [file, number] = groups_.at(group);
  return file->read(number, {file->column(column)}).at(0);
}

std::string RowGroups::name(std::size_t group, const std::string& column) const {
  const auto& [file, number] = groups_.at(group);
  return file->path() + ", group " + std::to_string(number) + ", column " + column;
}

}  // namespace phalanx
