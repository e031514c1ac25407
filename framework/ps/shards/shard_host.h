// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/ps/protocol/message.h"
#include "framework/ps/shards/shard.h"

namespace phalanx::ps {

/// The sender of a request.
struct ClientId {
  std::string job{};              // namespace of the client's tables; jobs cannot access each other's tables
  int number = 0;                 // number in the job, by which tables count clocks
  std::uint64_t incarnation = 0;  // differs each time a client with this number is started

  auto operator<=>(const ClientId&) const = default;
};

struct HostLimits {
  std::int64_t memory_bytes = std::int64_t{1} << 40;  // for the values of all shards
};

/// The text of a request that creates a table.
struct CreateRequest {
  TableSpec table{};
  std::int64_t shard = 0;  // index of the shard that this server will hold
  std::int64_t shards = 1;

  template <class V>
  void visit(V& v) {
    v("table", table, "table to create");
    v("shard", shard, "number of this server", config::at_least(0));
    v("shards", shards, "number of servers", config::at_least(1));
  }
};

/// Everything that a server must save to continue where it stopped.
struct HostState {
  std::string description{};  // JSON: tables with their versions and clocks, clients with their last requests
  NamedTensors tensors{};     // named NUMBER/NAME, with NAME from Shard::state()
};

/// All shards of one server, and the requests that act on them. Independent of connections. Not thread-safe: a single
/// thread carries out one request at a time, so nothing is locked and no client sees an update in part.
///
/// A request is applied only once, even if it arrives several times: each client numbers its requests in ascending
/// order, and the host remembers the number of the last request of each client that changed something.
class ShardHost {
 public:
  explicit ShardHost(HostLimits limits) : limits_(limits) {}

  /// Called once per request, with the reply and the values that belong to it. `values` are undefined or the shard's
  /// own contiguous values, which are valid only during the call. For a pull that has to wait, the call happens in a
  /// later handle() or leave().
  using Answer = std::function<void(Message reply, const at::Tensor& values)>;

  /// Carries out any request except kHello. An invalid request does not make it throw; the request is refused.
  void handle(const ClientId& client, const Message& request, const Answer& answer);

  /// Returns how many bytes of a request's tensor are transferred. Throws Error if the request has no tensor.
  Transfer transfer(const ClientId& client, const Header& request);

  /// Removes a client that is gone for good: others stop waiting for it, and its last request is forgotten.
  void leave(const ClientId& client);

  /// Lets other clients continue without waiting for this one, which may come back.
  void stop_waiting_for(const ClientId& client);

  /// Drops the waiting reads of a client, which will repeat them if it still needs them.
  void forget_reads(const ClientId& client);

  /// Drops the waiting reads of all clients.
  void forget_all_reads();

  /// Returns a counter that increases with every change of state().
  std::int64_t changes() const { return changes_; }

  /// Returns the state. Its tensors are the shards' own, which change with the next request.
  HostState state() const;

  /// Restores a state into an empty host. Throws Error if that fails; the host cannot be used any more then.
  void load(const HostState& state);

  /// Returns the clients mentioned in state(), which may come back.
  std::vector<ClientId> known_clients() const;

  std::string status() const;  // JSON

 private:
  struct Table {
    std::string job;
    std::int64_t shard, shards;
    std::unique_ptr<Shard> values;
    std::int64_t resumed_at = 0;                                    // version with which this server started
    std::int64_t requests = 0, bytes_received = 0, bytes_sent = 0;  // pushes and pulls since then
  };

  using Tables = std::map<std::uint32_t, Table>;

  Table& table_of(const ClientId& client, std::uint32_t number);
  std::uint32_t create(const ClientId& client, const std::string& text);
  std::unique_ptr<Shard> allocated(const CreateRequest& request) const;
  void load_unchecked(const HostState& state);
  Table& add(std::uint32_t number, Table table);
  void remove(Tables::iterator table);
  bool has_come(const ClientId& client, const Header& request) const;  // true if the request was applied before
  void free(const ClientId& client, const Header& request);
  void clear(const ClientId& client, const Header& request);
  at::Tensor state_of(const ClientId& client, const Header& request);
  void write_state(const ClientId& client, const Message& request);
  void write_rows(const ClientId& client, const Message& request);
  void push(Table& table, const ClientId& client, const Message& request);
  void pull(Table& table, const ClientId& client, const Message& request, Answer answer);
  static void count(Table& table, const Header& request);
  void execute(const ClientId& client, const Message& request, const Answer& answer);

  HostLimits limits_;
  std::int64_t bytes_ = 0;  // size of the values of all shards
  Tables tables_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;  // keyed by job and name
  std::uint32_t next_number_ = 1;
  std::map<ClientId, std::uint64_t> last_applied_;  // id of the last request that changed something
  std::int64_t changes_ = 0;
};

}  // namespace phalanx::ps
