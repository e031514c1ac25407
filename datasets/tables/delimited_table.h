// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasets/tables/table_source.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config fields that describe the format of a text file.
struct DelimitedFormat {
  std::string separator = "auto";
  std::string header = "auto";
  std::string quote = "\"";
  std::string decimal = ".";
  std::string thousands{};
  std::string comment{};
  std::int64_t skip_lines = 0;
  std::vector<std::string> missing_values{"", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None"};

  template <class V>
  void visit(V& v) {
    v("separator", separator, "character between two fields, tab, whitespace, or auto: the one that fits the file");
    v("header", header,
      "whether the first row has the names of columns; auto: yes, unless it has numbers wherever the rows below have "
      "numbers",
      config::one_of({"auto", "true", "false"}));
    v("quote", quote, "character around fields that contain separators; empty: none");
    v("decimal", decimal, "character before the decimals of a number", config::one_of({".", ","}));
    v("thousands", thousands, "character between groups of three digits of a number; empty: none",
      config::one_of({"", ",", ".", " ", "'", "_"}));
    v("comment", comment, "lines that begin with this are ignored; empty: none are");
    v("skip_lines", skip_lines, "lines at the beginning of a file that are not part of the table", config::at_least(0));
    v("missing_values", missing_values, "fields that mean that a value is missing");
  }
};

/// Reads a table of delimited text, compressed or not. `like` is the training table or null: a table without a header
/// takes its names if it has the same number of columns. Throws DataError, with the line, for a file that is not such a
/// table.
std::shared_ptr<const TableSource> read_delimited_table(const std::string& path, const DelimitedFormat& format,
                                                        const TableSource* like = nullptr);

}  // namespace phalanx
