// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Adapters of linear layers that are trained in place of the model (models/low_rank.h).
struct LoraConfig {
  std::vector<std::string> layers;
  std::int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  std::string also_train;

  bool any() const { return !layers.empty(); }

  template <class V>
  void visit(V& v) {
    v("layers", layers, "names of linear layers that get an adapter, where * is any part of a name; empty: none");
    v("rank", rank, "rank of the product of matrices that is added to each weight", config::at_least(1));
    v("alpha", alpha, "the product is multiplied by alpha / rank", config::above(0));
    v("dropout", dropout, "share of an adapter's input that is dropped", config::between(0, 0.99));
    v("also_train", also_train, "regular expression; parameters with a match in their names are trained as well");
  }
};

}  // namespace phalanx
