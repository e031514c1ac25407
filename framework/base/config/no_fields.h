// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// The config of a registered product that has no options.
struct NoFields {
  template <class V>
  void visit(V&) {}
};

}  // namespace phalanx
