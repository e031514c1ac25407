#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

/// Samples of one row of numbers each, held in memory. Exactly one of `classes` and `numbers` is not empty.
struct Table {
  std::vector<std::int64_t> shape{};    // of a sample
  std::vector<float> values{};          // [n, shape...]
  std::vector<std::int64_t> classes{};  // [n]
  std::vector<float> numbers{};         // [n]: what is to be told is a number
};

/// A dataset of it: of classification with `count` classes, otherwise of regression, [n, 1] float32.
std::shared_ptr<const Dataset> make_table(Table table, std::int64_t count);

}  // namespace phalanx
