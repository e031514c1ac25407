// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "datasets/arrow/table_file.h"

namespace phalanx {

/// The row groups of several files, concatenated. Thread-safe.
class RowGroups {
 public:
  /// Throws DataError for a file that is not a table, and if there are no rows.
  explicit RowGroups(const std::vector<std::filesystem::path>& files);

  std::int64_t rows() const { return begins_.back(); }
  std::size_t size() const { return groups_.size(); }

  struct Place {
    std::size_t group;
    std::int64_t row;  // row within the group
  };
  /// Returns the place of row `index`. Throws c10::IndexError if there is no such row.
  Place place(std::int64_t index) const;

  /// Returns the columns of the file that contains a group.
  const arrow::Schema& schema(std::size_t group) const { return groups_.at(group).file->schema(); }

  /// Returns the position of a column in the schema of a group. Throws DataError, which lists the existing names.
  int column(std::size_t group, const std::string& name) const { return groups_.at(group).file->column(name); }

  /// Reads one column of a group. Throws DataError.
  std::shared_ptr<arrow::Array> read(std::size_t group, const std::string& column) const;

  /// Returns a name for error messages: "train-0.parquet, group 3, column x".
  std::string name(std::size_t group, const std::string& column) const;

 private:
  struct Group {
    std::shared_ptr<const TableFile> file;
    int number;  // number of the group in its file
  };
  std::vector<Group> groups_;
  std::vector<std::int64_t> begins_;  // the first row of each group, then the number of rows
};

/// A cache of values made from the most recently used groups. Thread-safe; other threads wait while a value is made.
template <class Made>
class LruCache {
 public:
  explicit LruCache(std::int64_t most) : most_(static_cast<std::size_t>(most)) {}

  template <class Make>
  std::shared_ptr<const Made> get(std::size_t group, const Make& make) {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->first != group) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return it->second;
    }
    entries_.emplace_front(group, std::make_shared<const Made>(make()));
    if (entries_.size() > most_) entries_.pop_back();
    return entries_.front().second;
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::list<std::pair<std::size_t, std::shared_ptr<const Made>>> entries_;  // most recently used first
};

}  // namespace phalanx
