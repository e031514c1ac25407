// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config fields that override the fields of EncodingConfig for one column.
struct ColumnConfig {
  std::string as = "auto";
  std::string missing{};

  template <class V>
  void visit(V& v) {
    v("as", as, "how the column is read; auto: text as categories, other columns as numbers",
      config::one_of({"auto", "number", "category"}));
    v("missing", missing, "what to do if the value is missing; empty: as dataset.missing says");
  }
};

/// The config fields that describe how columns become samples. Columns are given by their names in the header, or by
/// numbers from 0.
struct EncodingConfig {
  std::vector<std::string> inputs{};
  std::vector<std::string> drop{};
  std::string target{};
  std::vector<std::string> targets{};
  std::string task = "auto";
  std::int64_t classes = 0;
  std::string missing = "error";
  bool missing_indicator = false;
  std::string unknown = "error";
  std::int64_t max_categories = 100;
  bool standardize = false;
  std::map<std::string, ColumnConfig> columns{};
  std::string encoding{};

  template <class V>
  void visit(V& v) {
    v("inputs", inputs, "columns that samples have; empty: all but the targets and those in drop");
    v("drop", drop, "columns to ignore");
    v("target", target, "column to predict; empty: the last one");
    v("targets", targets, "several columns of numbers to predict, in place of target");
    v("task", task, "auto: classification if the target is text or true and false, or if classes is set",
      config::one_of({"auto", "classification", "regression"}));
    v("classes", classes,
      "number of classes of the target; numbers must then be 0 to classes - 1; 0: count the classes",
      config::at_least(0));
    v("missing", missing,
      "error: a missing value is an error; drop: leave the row out; mean, median: use that of the training rows, or "
      "their most frequent category; or a value to use");
    v("missing_indicator", missing_indicator,
      "add an input, 0 or 1, for each column with missing values in the training rows: whether its value is missing");
    v("unknown", unknown,
      "error: a category that no training row has is an error; zeros: the sample then has no category",
      config::one_of({"error", "zeros"}));
    v("max_categories", max_categories, "largest number of categories in a column; more are an error",
      config::at_least(1));
    v("standardize", standardize,
      "subtract the mean of the training rows from each input of numbers and divide by their standard deviation");
    v("columns", columns, "by column, settings that differ from these fields");
    v("encoding", encoding,
      "file dataset.json of a run whose categories and statistics to use; empty: those of the training rows");
  }
};

}  // namespace phalanx
