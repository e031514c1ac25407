// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/meters/mean.h"

namespace phalanx {

/// A query's items, best first: each row of a batch is a query, each column an item. Of equal scores the lower column
/// comes first.
struct Ranking {
  std::span<const double> relevance;  // of each item, by column
  std::vector<std::int64_t> items;    // columns in the order of their scores
};

/// A meter that is a mean over queries. `value` gives a query's, or nothing where it does not count.
std::unique_ptr<Meter> make_ranking_meter(std::string name, std::function<std::optional<double>(const Ranking&)> value);

}  // namespace phalanx
