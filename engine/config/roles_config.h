// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `roles` of a config: the ranks that are parameter servers and do not train.
struct RolesConfig {
  std::int64_t server = 0;
  std::vector<std::string> servers_at;
  std::string servers_file;
  std::string secret_file;
  std::int64_t replicas = 1;
  double failover = 5;

  template <class V>
  void visit(V& v) {
    v("server", server, "number of ranks, the last ones, that are parameter servers and do not train",
      config::at_least(0));
    v("servers_at", servers_at, "addresses of parameter servers that belong to no job (tools:ps)");
    v("servers_file", servers_file,
      "file with these addresses, one per line, in place of servers_at; when it changes, the run moves to the new "
      "servers");
    v("secret_file", secret_file, "file with the secret of these servers, which only its owner may read");
    v("replicas", replicas, "servers that hold each part; above 1, all but one of them may be lost",
      config::between(1, 2));
    v("failover", failover, "seconds after which another replica leads in place of a server that cannot be reached",
      config::above(0));
  }

  /// Returns true if there are servers that belong to no job.
  bool elsewhere() const { return !servers_at.empty() || !servers_file.empty(); }
};

}  // namespace phalanx
