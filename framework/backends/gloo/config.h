// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/environment.h"

namespace phalanx::gloo {

/// The keys of backend gloo in a config, whether or not this program has Gloo.
struct Config {
  std::string interface = environment("GLOO_SOCKET_IFNAME").value_or("");

  template <class V>
  void visit(V& v) {
    v("interface", interface,
      "network interface through which ranks reach each other; empty: the one that the host name resolves to");
  }
};

}  // namespace phalanx::gloo
