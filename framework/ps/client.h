// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/store.h"
#include "framework/comm/work.h"
#include "framework/ps/element_ranges.h"
#include "framework/ps/message.h"
#include "framework/ps/table.h"

namespace phalanx::ps {

class Link;

struct ClientOptions {
  std::vector<std::vector<std::string>> servers{};  // of each, the addresses to try, best first
  std::string job = "default";                      // namespace of the tables
  int number = 0;                                   // of this client, by which tables count clocks
  std::string secret{};
  Seconds timeout{60};  // of every request, and of connecting
  Seconds retry{0};     // for which a connection that broke is made again; 0: not at all
  int replicas = 1;     // servers that hold each part of the tables; above 1, see Client
  Seconds failover{5};  // above 1: after which another one takes the place of a server that cannot be reached
};

/// A table as one client uses it: what create() returned. Not thread-safe.
class Table {
 public:
  const TableSpec& spec() const { return spec_; }

  /// This client's pushes with a tick so far.
  std::int64_t clock() const { return clock_; }

  /// How many pulls there were, by how many clocks the slowest client was behind this one; of the slowest shard.
  const std::vector<std::int64_t>& staleness_seen() const;

 private:
  friend class Client;
  friend class SparseTable;
  struct Shared;

  TableSpec spec_{};
  std::int64_t clock_ = 0;
  std::vector<std::uint32_t> numbers_;  // on each server
  std::shared_ptr<Shared> shared_;      // with the requests in flight
};

/// Reads and changes tables that servers hold. Every server has one shard of every table.
///
/// Requests are asynchronous: each returns a Work that is complete when all shards have answered, for a push when they
/// have applied it. Requests of one client to one shard are carried out in the order in which they were made; those to
/// different shards are not ordered. A tensor belongs to its request until the Work is complete.
///
/// Within a host a server copies from and to the tensors directly, where the system permits that, and only the request
/// itself travels. Otherwise the values travel through the connection, moved on by whoever waits for a request, and by
/// a thread of the client's own.
///
/// Errors: a request that a server refuses is an Error of Work::wait() with the server's reason; a server that has
/// ended or does not answer within the timeout is a CommError (kPeerLost, kTimeout) with its address. The client is of
/// no more use then. With ClientOptions::retry, requests to a server that is gone wait for it to come back; what it had
/// applied is not applied again. It may have resumed from a checkpoint: see lost_updates().
///
/// With ClientOptions::replicas = k, part i of the tables is on servers i to i + k - 1, modulo their number, which
/// apply the same requests in the same order (replica.h). A request is answered when all of them that live have applied
/// it. When one is lost, another goes on with its part: no acknowledged update is lost, none is applied twice, and
/// bounds of staleness hold. A server that is started again in its place is given the values. All clients of a job have
/// the same servers in the same order, with the same addresses, which servers too reach each other by; retry is at
/// least timeout.
///
/// Thread-safe, but for Table.
class Client {
 public:
  /// Connects to all servers. Throws CommError where one cannot be reached, and Error where it refuses this client.
  explicit Client(ClientOptions options);
  ~Client();

  std::size_t servers() const { return links_.size(); }

  /// A new table of zeros, or the one of this name if it is the same. Blocks.
  Table create(const TableSpec& spec);

  struct PushOptions {
    std::size_t rule = 0;  // of TableSpec::rules
    double scale = 1;
    bool tick = false;       // the last push of this clock
    ElementRanges unused{};  // of a dense table: UpdateInfo::unused
  };

  /// `update`: [elements] of the table's dtype, dense. Of a device's tensor a copy travels, which is made before this
  /// returns; what is read is copied to a device by whoever waits.
  Work push(Table& table, at::Tensor update, const PushOptions& options);

  /// `values`: as `update`; filled. Completes once the table's contract lets a client of this clock read.
  Work pull(Table& table, at::Tensor values);

  /// A push and then a pull into the same tensor, with no other update between the two on any shard. One round trip.
  Work exchange(Table& table, at::Tensor update_and_values, const PushOptions& options);

  /// Reads and writes what the servers keep of a dense table beside its values, tensor `number` of Shard::state(), from
  /// 1: rule after rule in their order, what each remembers. `values` are divided among the servers like a table of so
  /// many elements: as many as the table has for what a rule remembers of each, as many as there are servers for a
  /// number of each shard. Waits for no clock, and is no update.
  Work read_state(Table& table, std::size_t number, at::Tensor values);
  Work write_state(Table& table, std::size_t number, at::Tensor values);

  /// Forgets the table, for all clients. Blocks.
  void free(Table& table);

  /// Forgets all tables of the job, before others of it connect: what an earlier start of it may have left. Blocks.
  /// Throws Error where others are connected.
  void clear();

  /// Updates of a shard that had been acknowledged, as far as this client was told of them, and are gone since a server
  /// came back with an older checkpoint.
  std::int64_t lost_updates() const;

  /// The namespace of its tables.
  const std::string& job() const { return options_.job; }

  /// What each server says of itself, as JSON. Blocks.
  std::vector<std::string> status();

 private:
  friend class SparseTable;

  // Without its table.
  static Header request_of(Verb verb, const PushOptions& options, std::int64_t clock);

  // What one server is asked.
  struct Part {
    std::size_t server;
    at::Tensor tensor;
    Transfer transfer;
    std::uint32_t rows = 0;
    std::function<void(const Header& reply)> done{};  // of requests other than pulls
    std::string text{};
  };
  Work launch(Table& table, at::Tensor tensor, const Header& request, const ElementRanges& unused = {});
  Work launch_divided(Table& table, const TableSpec& divided_as, const at::Tensor& tensor, const Header& request,
                      const ElementRanges& unused = {});
  Work launch_state(Table& table, std::size_t number, const at::Tensor& values, Verb verb);
  Work launch(Table& table, std::vector<Part> parts, const Header& request);

  ClientOptions options_;
  std::vector<std::shared_ptr<Link>> links_;
};

}  // namespace phalanx::ps
