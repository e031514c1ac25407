// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Maps names in a file of weights to names of the model.
struct RenameConfig {
  std::string match;
  std::string with;

  template <class V>
  void visit(V& v) {
    v("match", match, "regular expression to find in each name, such as ^module\\.");
    v("with", with, "replacement of each match; $1 is the first group");
  }
};

/// The initial values of a model, and the parameters that are not trained.
struct InitConfig {
  std::string from;
  bool strict = true;
  std::vector<RenameConfig> rename;
  std::string truncate;
  std::string freeze;

  template <class V>
  void visit(V& v) {
    v("from", from, "file or folder of weights (.safetensors, .pt, .index.json); empty: random values from the seed");
    v("strict", strict, "the model and the file must have the same tensors; false: load the tensors that fit");
    v("rename", rename, "replacements that turn names of the file into names of the model, made one after the other");
    v("truncate", truncate,
      "regular expression; parameters with a match in their names take the first rows of a longer one in the file, "
      "such as positions of a longer context");
    v("freeze", freeze, "regular expression; parameters with a match in their names are not trained");
  }
};

}  // namespace phalanx
