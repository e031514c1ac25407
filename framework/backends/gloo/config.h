// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::gloo {

/// The keys of backend gloo in a config, whether or not this program has Gloo.
struct Config {
  std::string interface;

  template <class V>
  void visit(V& v) {
    v("interface", interface,
      "network interface through which ranks reach each other; empty: PHALANX_INTERFACE, GLOO_SOCKET_IFNAME, or the "
      "one of the route to rank 0");
  }
};

}  // namespace phalanx::gloo
