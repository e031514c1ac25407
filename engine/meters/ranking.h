// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/meters/mean.h"

namespace phalanx {

/// The items of a query, best first. Each row of a batch is a query, and each column an item. If scores are equal, the
/// lower column comes first.
struct Ranking {
  std::span<const double> relevance;  // of each item, by column
  std::vector<std::int64_t> items;    // columns in the order of their scores
};

/// Returns a meter that is a mean over queries. `value` returns the value of a query, or nothing if the query does not
/// count.
std::unique_ptr<Meter> make_ranking_meter(std::string name, std::function<std::optional<double>(const Ranking&)> value);

}  // namespace phalanx
