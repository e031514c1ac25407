#pragma once

#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `init` of a config: what training begins with.
struct InitConfig {
  std::string from;
  bool strict = true;
  std::string freeze;

  template <class V>
  void visit(V& v) {
    v("from", from,
      "file of weights to begin with: safetensors, its index, or a state dict of torch.save; empty: at random");
    v("strict", strict, "false: tensors that the file or the model lacks, or has with another shape, are left alone");
    v("freeze", freeze,
      "parameters that stay as they are: a regular expression, found anywhere in their names; empty: none");
  }
};

}  // namespace phalanx
