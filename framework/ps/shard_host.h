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
#include "framework/ps/message.h"
#include "framework/ps/shard.h"

namespace phalanx::ps {

/// Who sends a request.
struct ClientId {
  std::string job{};              // namespace of its tables: jobs do not see each other's
  int number = 0;                 // in the job; tables count clocks by it
  std::uint64_t incarnation = 0;  // another one each time that a client of this number starts anew

  auto operator<=>(const ClientId&) const = default;
};

struct HostLimits {
  std::int64_t memory_bytes = std::int64_t{1} << 40;  // of the values of all shards
};

/// What a creation of a table says.
struct CreateRequest {
  TableSpec table{};
  std::int64_t shard = 0;  // which of them this server is to hold
  std::int64_t shards = 1;

  template <class V>
  void visit(V& v) {
    v("table", table, "what is created");
    v("shard", shard, "number of this server", config::at_least(0));
    v("shards", shards, "number of servers", config::at_least(1));
  }
};

/// What a server has to keep to go on as if nothing had happened.
struct HostState {
  std::string description{};  // JSON: tables, their versions and clocks, clients and their last requests
  NamedTensors tensors{};     // NUMBER/NAME, of Shard::state()
};

/// All shards of one server, and what requests do to them. Knows nothing of connections. Not thread-safe: one thread
/// carries out one request after the other, so nothing is locked and nobody sees half an update.
///
/// A request is applied once, however often it comes: a client numbers its requests in rising order, and of those that
/// change something the host remembers the last number of each client.
class ShardHost {
 public:
  explicit ShardHost(HostLimits limits) : limits_(limits) {}

  /// Called once for each request, with what it is answered and the values that go with it: undefined, or the shard's
  /// own, dense in memory, which are only the right ones during the call. For a pull that has to wait, that is in a
  /// later handle() or leave().
  using Answer = std::function<void(Message reply, const at::Tensor& values)>;

  /// Carries out any request but kHello. Never throws because of what the request says: it is refused.
  void handle(const ClientId& client, const Message& request, const Answer& answer);

  /// How many bytes of a request's tensor travel. Throws Error where the request is about no tensor.
  Transfer transfer(const ClientId& client, const Header& request);

  /// The client is gone for good: others do not wait for it any more, and its last request is forgotten.
  void leave(const ClientId& client);

  /// Others do not wait for the client any more, but it may come back.
  void stop_waiting_for(const ClientId& client);

  /// The client does not take what it still waits for: it will ask again, or never.
  void forget_reads(const ClientId& client);

  /// Nor does any other: all will ask again.
  void forget_all_reads();

  /// Grows with whatever changes what state() says.
  std::int64_t changes() const { return changes_; }

  /// The tensors are those of the shards, which change with the next request.
  HostState state() const;

  /// Becomes what had this state; for a host that holds nothing. Throws Error, and is of no more use, where it cannot.
  void load(const HostState& state);

  /// Those of which state() says something that may come back.
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
  Table& add(std::uint32_t number, Table table);
  void remove(Tables::iterator table);
  bool has_come(const ClientId& client, const Header& request) const;  // before, and was applied
  void free(const ClientId& client, const Header& request);
  void clear(const ClientId& client, const Header& request);
  at::Tensor state_of(const ClientId& client, const Header& request);
  void write_state(const ClientId& client, const Message& request);
  void write_rows(const ClientId& client, const Message& request);
  void push(Table& table, const ClientId& client, const Message& request);
  void pull(Table& table, const ClientId& client, const Message& request, Answer answer);
  static void count(Table& table, const Header& request);
  void carry_out(const ClientId& client, const Message& request, const Answer& answer);

  HostLimits limits_;
  std::int64_t bytes_ = 0;  // of all values
  Tables tables_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;  // by job and name
  std::uint32_t next_number_ = 1;
  std::map<ClientId, std::uint64_t> last_applied_;  // id of the last request that changed something
  std::int64_t changes_ = 0;
};

}  // namespace phalanx::ps
