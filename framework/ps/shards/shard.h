// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/base/state_dict.h"
#include "framework/ps/protocol/message.h"
#include "framework/ps/protocol/table_spec.h"
#include "framework/ps/shards/clocks.h"

namespace phalanx::ps {

/// One server's part of a table. This class decides when clients may read; subclasses hold the values. Not thread-safe,
/// and independent of connections. It is meant for a single thread that carries out one request at a time, so every
/// read returns a single version.
class Shard {
 public:
  explicit Shard(const TableSpec& spec) : spec_(spec), clocks_(spec.clients), staleness_seen_(kStalenessBins) {}
  virtual ~Shard() = default;

  const TableSpec& spec() const { return spec_; }
  std::int64_t version() const { return version_; }  // number of updates applied

  /// Returns how many bytes of a request's tensor are transferred. Throws Error if the shard cannot handle the request.
  virtual Transfer transfer(const Header& request) const = 0;

  /// Returns the size of the values.
  virtual std::int64_t bytes() const = 0;

  struct Push {
    int client = 0;
    std::size_t rule = 0;
    std::int64_t based_on = 0;  // version of the values that the client had read
    double scale = 1;
    bool ticks = false;
    std::int64_t clock = 0;
    std::int64_t rows = 0;  // number of keys, for sparse tables
    std::string unused{};   // UpdateInfo::unused as encoded by the client, for dense tables
  };

  struct Pull {
    int client = 0;
    std::int64_t clock = 0;
    bool read_only = false;  // do not create rows
    std::int64_t rows = 0;   // number of keys, for sparse tables
    at::Tensor payload{};    // the bytes that the client sent with the request
  };

  /// Applies an update, then answers the waiting reads that are now permitted. `payload` is the part of the tensor that
  /// was transferred according to transfer(). Throws Error for an invalid update, without changing anything.
  void push(const Push& push, const at::Tensor& payload);

  /// Calls `read` with the values as soon as the contract of the table lets a client of this clock read: at once, or in
  /// a later push() or leave(). `values` are valid only during the call. `behind` is the number of clocks that the
  /// slowest client is behind this one, at least 0. Throws Error for an invalid request.
  using Read = std::function<void(std::int64_t behind, const at::Tensor& values)>;
  void pull(const Pull& pull, Read read);

  /// Drops the waiting reads of the client.
  void forget_reads(int client);
  void forget_all_reads() { waiting_.clear(); }

  /// Drops the waiting reads of the client, and lets other clients read without waiting for it.
  void leave(int client);

  /// Returns the number of reads by `behind`. The last entry also counts all larger values.
  const std::vector<std::int64_t>& staleness_seen() const { return staleness_seen_; }
  std::size_t waiting() const { return waiting_.size(); }

  /// Returns all state that has to be kept, except for the version and the clocks. The tensors are not copies.
  virtual StateDict state() = 0;

  /// Returns entry `number` of state(). Throws Error if there is no such entry.
  at::Tensor state_tensor(std::size_t number);

  /// Restores the values of the state() of a shard with the same spec. Throws DataError if they do not match.
  virtual void load_state(const NamedTensors& values);

  struct Rows {
    at::Tensor records;      // in the format of record_transfer(), with room for as many rows as were requested
    std::int64_t count = 0;  // number of rows filled in
    std::int64_t next = 0;   // place to continue from; -1: there are no more rows
    std::int64_t total = 0;  // number of existing rows
  };

  /// Reads up to `most` rows of a sparse table, starting at place `first`. Waits for no client, creates no rows and
  /// does not protect any from eviction. Places stay valid until a row is created. Throws Error for a dense table. The
  /// records are valid only until the next call of any function.
  virtual Rows read_rows(std::int64_t first, std::int64_t most);

  /// Sets some rows and leaves the others unchanged. Throws Error for invalid records, without changing anything.
  virtual void write_rows(const at::Tensor& records, std::int64_t count);

  const std::vector<std::int64_t>& clocks() const { return clocks_.all(); }
  void resume(std::int64_t version, const std::vector<std::int64_t>& clocks);

  /// Returns further figures for the status, by name.
  virtual std::map<std::string, std::int64_t> counts() const { return {}; }

 private:
  struct Waiting {
    Pull pull;
    Read read;
  };

  /// `staleness` is the number of updates of other clients since the values from which this one was computed were read.
  virtual void apply(const Push& push, std::int64_t staleness, const at::Tensor& payload) = 0;

  /// Throws Error if read() could not be carried out.
  virtual void check(const Pull& /*pull*/) const {}
  virtual at::Tensor read(const Pull& pull) = 0;

  bool may_read(std::int64_t clock) const;
  void release_read(const Waiting& waiting);
  void release_reads();

  TableSpec spec_;
  Clocks clocks_;
  std::list<Waiting> waiting_;
  std::vector<std::int64_t> staleness_seen_;
  std::int64_t version_ = 0;
};

/// Creates the shard of server `shard` of `shards`, before any update. Throws ConfigError if a rule is unknown or does
/// not suit the table.
std::unique_ptr<Shard> make_shard(const TableSpec& spec, int shard, int shards);

/// Returns the maximum size of the values of a shard, without creating it, or the largest integer if the size is too
/// large to represent. Throws like make_shard().
std::int64_t max_bytes_of_shard(const TableSpec& spec, int shard, int shards);

}  // namespace phalanx::ps
