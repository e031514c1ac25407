// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "datasets/dataset.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config of a dataset that reads no files itself. It accepts the key `root`, which all other datasets have, so
/// that a script can set it whatever dataset a config names. The dataset ignores it.
template <class Config>
struct WithUnusedRoot : Config {
  std::string root;

  template <class V>
  void visit(V& v) {
    Config::visit(v);
    v("root", root, "unused, since the dataset has no files of its own");
  }
};

/// Registers a dataset that reads no files itself, as Datasets::global().add() registers others.
template <class Config>
bool add_dataset_without_files(const std::string& name, const std::string& help,
                               std::type_identity_t<std::function<Splits(const Config&)>> make) {
  return Datasets::global().add<WithUnusedRoot<Config>>(name, help, std::move(make));
}

}  // namespace phalanx
