// SPDX-License-Identifier: Apache-2.0
// Replaces the backend if Gloo was not installed when Phalanx was built.
#include <string>

#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

struct AbsentGlooConfig {
  std::string interface;

  template <class V>
  void visit(V& v) {
    v("interface", interface,
      "network interface through which ranks reach each other; empty: the one that the host name resolves to");
  }
};

CommunicatorPtr refuse(const AbsentGlooConfig&, const ConnectOptions&) {
  throw ConfigError(
      "backend gloo is not in this program, since Gloo was not installed when it was built: install libgloo-dev and "
      "build again, or use backend mpi");
}

const bool absent_registered =
    Backends::global().add<AbsentGlooConfig>("gloo", "not in this program: install libgloo-dev and build again",
                                             BackendTraits{.automatic = World::kHosts}, &refuse);

}  // namespace
}  // namespace phalanx
