#include "framework/ps/authentication.h"

namespace phalanx::ps {

std::string proof(const std::string& secret, Role role, const std::string& client_nonce,
                  const std::string& server_nonce, const std::string& identity) {
  return keyed_hash(secret, {role == Role::kClient ? "client" : "server", client_nonce, server_nonce, identity});
}

}  // namespace phalanx::ps
