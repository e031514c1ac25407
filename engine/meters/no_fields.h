#pragma once

namespace phalanx {

/// The config of a meter without choices.
struct NoFields {
  template <class V>
  void visit(V&) {}
};

}  // namespace phalanx
