// SPDX-License-Identifier: Apache-2.0
// Replaces the backend if Gloo was not installed when Phalanx was built.
#include "framework/backends/gloo/config.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

CommunicatorPtr refuse(const gloo::Config&, const ConnectOptions&) {
  throw ConfigError(
      "backend gloo is not in this program, since Gloo was not installed when it was built: install libgloo-dev and "
      "build again, or use backend mpi");
}

const bool absent_registered =
    Backends::global().add<gloo::Config>("gloo", "not in this program: install libgloo-dev and build again",
                                         BackendTraits{.connects_hosts = true, .shrinks = true}, &refuse);

}  // namespace
}  // namespace phalanx
