// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/operations/work.h"
#include "framework/comm/store/store.h"
#include "framework/ps/protocol/element_ranges.h"
#include "framework/ps/protocol/message.h"
#include "framework/ps/protocol/table_spec.h"

namespace phalanx::ps {

class Link;
class Links;

struct ClientOptions {
  std::vector<std::vector<std::string>> servers{};  // addresses of each server, best first
  std::string job = "default";                      // namespace of the tables
  int number = 0;                                   // number of this client, by which tables count clocks
  std::string secret{};
  Seconds timeout{60};    // limit for each request, and for connecting
  Seconds retry{0};       // time limit for re-establishing a broken connection; 0: do not try
  bool come_back = true;  // a server that has ended may be started again; false: do not wait for that
  int replicas = 1;       // servers that hold each part of the tables; see Client
  Seconds failover{5};    // with replicas: time until another server takes the place of one that cannot be reached
  std::shared_ptr<Links> links{};  // makes the connections; null: over sockets
  bool checksums = false;          // check that values arrive as they were sent, with CRC-32C
  bool leaves = true;              // call leave() in the destructor; false: its end counts as lost without that call
};

/// A table from the point of view of one client, as returned by Client::create(). Not thread-safe.
class Table {
 public:
  const TableSpec& spec() const { return spec_; }

  /// Returns how many pushes with a tick this client has made.
  std::int64_t clock() const { return clock_; }

  /// Returns the number of pulls by staleness: element i counts the pulls during which the slowest client was i clocks
  /// behind this one, as the first shard of each request reports it. The last element also counts the larger numbers.
  const std::vector<std::int64_t>& staleness_seen() const;

 private:
  friend class Client;
  friend class SparseTable;
  struct Shared;

  TableSpec spec_{};
  std::int64_t clock_ = 0;
  std::vector<std::uint32_t> numbers_;  // number of the table on each server
  std::shared_ptr<Shared> shared_;      // shared with the requests in flight
};

/// Reads and changes tables that are held by servers. Every server has one shard of every table.
///
/// Requests are asynchronous. Each returns a Work that completes when all shards have answered; a shard answers a push
/// after applying it. A shard carries out the requests of one client in the order in which they were made. There is no
/// order between requests to different shards. A tensor belongs to its request until the Work is complete.
///
/// Within a host, a server copies from and to the tensors directly if the system permits that, and only the request
/// itself is transmitted. Otherwise the values travel through the connection. They are moved by any thread that waits
/// for a request, and by a thread of the client.
///
/// Errors: if a server refuses a request, Work::wait() throws an Error with the server's reason. If a server has ended
/// or does not answer within the timeout, it throws a CommError (kPeerLost or kTimeout) with the server's address, and
/// the client cannot be used any more. With ClientOptions::retry, requests to a server that is gone wait for it to come
/// back; requests that it had applied are not applied again. A server may come back from a checkpoint: see
/// lost_updates(). With ClientOptions::checksums, a request whose values are damaged on their way to the server is
/// refused, and values that are damaged on their way back are a CommError (kSystem).
///
/// With ClientOptions::replicas = k, part i of the tables is on servers i to i + k - 1, modulo the number of servers,
/// which apply the same requests in the same order (replica.h). A request is answered when all of these that are alive
/// have applied it. When one of them is lost, another one takes over its part: no acknowledged update is lost, no
/// update is applied twice, and the bounds of staleness hold. A server that is restarted in its place is sent the
/// values. All clients of a job must list the same servers in the same order and with the same addresses, through which
/// the servers also reach each other. `retry` is raised to at least `timeout`; but if servers do not come back
/// (ClientOptions::come_back), requests fail as soon as all servers that had a part have ended.
///
/// Thread-safe, except for Table.
class Client {
 public:
  /// Connects to all servers. Throws CommError if a server cannot be reached, and Error if a server refuses this
  /// client.
  explicit Client(ClientOptions options);
  ~Client();

  std::size_t servers() const { return links_.size(); }

  /// Creates a table of zeros, or returns the existing table of this name if its spec is the same. Blocks.
  Table create(const TableSpec& spec);

  struct PushOptions {
    std::size_t rule = 0;  // index into TableSpec::rules
    double scale = 1;
    bool tick = false;       // this is the last push of the current clock
    ElementRanges unused{};  // for dense tables: UpdateInfo::unused
  };

  /// Sends an update. `update` has the table's elements and dtype and is contiguous. If it is on a device, it is copied
  /// to the host before this function returns, and the copy is sent. The functions below copy values that they read to
  /// a device in the thread that waits.
  Work push(Table& table, at::Tensor update, const PushOptions& options);

  /// Reads the table into `values`, which is like `update` above. Completes once the table's contract lets a client of
  /// this clock read.
  Work pull(Table& table, at::Tensor values);

  /// Pushes and then pulls into the same tensor, with no other update between the two on any shard. Takes one round
  /// trip.
  Work exchange(Table& table, at::Tensor update_and_values, const PushOptions& options);

  /// Read and write the state that the servers keep of a dense table in addition to its values: tensor `number` of
  /// Shard::state(), counted from 1, rule by rule. `values` [n] is divided among the servers like a table of n
  /// elements. For a state with one number per element, n is the table's number of elements; for a state with one
  /// number per shard, it is the number of servers. Does not wait for any clock and does not count as an update.
  Work read_state(Table& table, std::size_t number, at::Tensor values);
  Work write_state(Table& table, std::size_t number, at::Tensor values);

  /// Removes the table for all clients. Blocks.
  void free(Table& table);

  /// Removes all tables of the job, which may be left from an earlier start of it. Must be called before other clients
  /// of the job connect; throws Error if others are connected. Blocks.
  void clear();

  /// Returns how many acknowledged updates that this client knows of were lost because a server resumed from an older
  /// checkpoint.
  std::int64_t lost_updates() const;

  /// Returns true if the connection to a server has ended and is not made again (ClientOptions::retry). Never blocks.
  bool has_lost_server() const;

  /// Tells all servers that the client leaves, and waits for their answers for up to a second each. No other function
  /// may be called afterwards.
  void leave();

  /// Returns the namespace of the client's tables.
  const std::string& job() const { return options_.job; }

  /// Returns the status of each server as JSON. Blocks.
  std::vector<std::string> status();

 private:
  friend class SparseTable;

  // Returns the header of a request without the number of its table.
  static Header request_of(Verb verb, const PushOptions& options, std::int64_t clock);

  // The part of a request that goes to one server.
  struct Part {
    std::size_t server;
    at::Tensor tensor;
    Transfer transfer;
    std::uint32_t rows = 0;
    std::function<void(const Header& reply)> done{};  // set only by requests other than pulls
    std::string text{};
  };
  Work launch(Table& table, at::Tensor tensor, const Header& request, const ElementRanges& unused = {});
  Work launch_sharded(Table& table, const TableSpec& sharded_as, const at::Tensor& tensor, const Header& request,
                      const ElementRanges& unused = {});
  Work launch_state(Table& table, std::size_t number, const at::Tensor& values, Verb verb);
  Work launch(Table& table, std::vector<Part> parts, const Header& request);

  ClientOptions options_;
  std::vector<std::shared_ptr<Link>> links_;
};

}  // namespace phalanx::ps
