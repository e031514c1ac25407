// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// The config of what is registered without anything to choose about it.
struct NoFields {
  template <class V>
  void visit(V&) {}
};

}  // namespace phalanx
