// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/keyed_hash.h"
#include "framework/ps/client/client.h"
#include "framework/ps/protocol/table_spec.h"
#include "framework/ps/server/server.h"

// Helpers shared by the tests of servers and clients.
namespace phalanx::ps::testing {

inline const std::string kSecret = "a secret of the tests";

/// Indices of the rules in the tests' dense and sparse tables.
enum Rule : std::size_t { kCopy, kAdd, kZero };
enum SparseRule : std::size_t { kAddRows, kSgdRows, kAdagradRows };

/// A table of 5,000 integers, and a function that returns values for all of them.
inline const TableSpec kIntegers{.name = "t", .elements = 5000, .dtype = "int64", .rules = {"copy", "add"}};
inline at::Tensor filled(std::int64_t value) { return at::full({kIntegers.elements}, value, at::kLong); }

/// Returns a unique Unix socket address.
inline std::string unix_address() { return "unix:@phalanx-test-" + random_text().substr(0, 16); }

/// Servers in this process, each with its own address. `transport` is unix, tcp or tcp6.
class Service {
 public:
  Service(int servers, const std::string& transport) {
    for (int i = 0; i < servers; ++i) {
      const std::string address = transport == "unix" ? unix_address() : transport == "tcp" ? "127.0.0.1:0" : "[::1]:0";
      servers_.push_back(std::make_unique<Server>(ServerOptions{.listen = {address}, .secret = kSecret}));
    }
  }

  /// Returns the address of a server.
  const std::string& address(std::size_t server = 0) const { return servers_[server]->addresses()[0]; }

  std::unique_ptr<Client> client(int number = 0, Seconds timeout = Seconds(30)) const {
    ClientOptions options{.number = number, .secret = kSecret, .timeout = timeout};
    for (const auto& server : servers_) options.servers.push_back(server->addresses());
    return std::make_unique<Client>(options);
  }

  std::vector<std::unique_ptr<Server>>& servers() { return servers_; }

 private:
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace phalanx::ps::testing
