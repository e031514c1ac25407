// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {

/// A dataset in the config of another one: {name: mnist, root: ...}. Its fields follow its name, as in the config
/// section `dataset`. It is not a field of type Datasets::Choice, because the description of such a field would have to
/// contain itself.
class NestedDataset {
 public:
  template <class V>
  void visit(V& v) {
    const auto names = Datasets::global().names();
    v("name", name_, "name of a dataset; its fields follow", config::one_of(names));
    if (name_ != dataset_.selected() && std::ranges::find(names, name_) != names.end()) dataset_.select(name_);
    dataset_.visit_selected(v);
  }

  /// Throws ConfigError, which names `key`, if the config has no dataset there.
  Splits make(const std::string& key) const {
    if (dataset_.selected().empty()) throw ConfigError("dataset." + key + ": a dataset is missing: {name: ...}");
    return dataset_.make();
  }

 private:
  std::string name_;
  Datasets::Choice dataset_;
};

}  // namespace phalanx
