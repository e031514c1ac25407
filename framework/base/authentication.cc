// SPDX-License-Identifier: Apache-2.0
#include "framework/base/authentication.h"

#include "framework/base/keyed_hash.h"

namespace phalanx {

std::string proof(const std::string& secret, Role role, const std::string& client_nonce,
                  const std::string& server_nonce, const std::string& identity) {
  return keyed_hash(secret, {role == Role::kClient ? "client" : "server", client_nonce, server_nonce, identity});
}

}  // namespace phalanx
