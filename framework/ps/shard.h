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
#include "framework/ps/clocks.h"
#include "framework/ps/message.h"
#include "framework/ps/table.h"

namespace phalanx::ps {

/// One server's part of a table: when clients may read it, whatever it holds. Not thread-safe, and knows nothing of
/// connections: for one thread, which carries out one request after the other, so that every read is of one version.
class Shard {
 public:
  explicit Shard(const TableSpec& spec) : spec_(spec), clocks_(spec.clients), staleness_seen_(kStalenessPlaces) {}
  virtual ~Shard() = default;

  const TableSpec& spec() const { return spec_; }
  std::int64_t version() const { return version_; }  // updates applied

  /// How many bytes of a request's tensor travel. Throws Error where such a request makes no sense.
  virtual Transfer transfer(const Header& request) const = 0;

  /// Of the values.
  virtual std::int64_t bytes() const = 0;

  struct Push {
    int client = 0;
    std::size_t rule = 0;
    std::int64_t based_on = 0;  // version that the client had read
    double scale = 1;
    bool ticks = false;
    std::int64_t clock = 0;
    std::int64_t rows = 0;  // of a sparse table
    std::string unused{};   // of a dense one, as the client sent it: UpdateInfo::unused
  };

  struct Pull {
    int client = 0;
    std::int64_t clock = 0;
    bool read_only = false;  // creates no rows
    std::int64_t rows = 0;   // of a sparse table
    at::Tensor payload{};    // what travelled of the request
  };

  /// Applies an update, and lets go on who may read now. Throws Error for what does not fit, and has changed nothing
  /// then. `payload`: what travelled of the request, as transfer() says.
  void push(const Push& push, const at::Tensor& payload);

  /// Calls `read` with values as soon as the contract of the table lets a client of this clock read: at once, or in a
  /// later push() or leave(). `values` are only the right ones during the call. `behind`: clocks that the slowest
  /// client is behind this one, at least 0. Throws Error for what does not fit.
  using Read = std::function<void(std::int64_t behind, const at::Tensor& values)>;
  void pull(const Pull& pull, Read read);

  /// What the client still waits for is forgotten.
  void forget_reads(int client);
  void forget_all_reads() { waiting_.clear(); }

  /// Nobody waits for the client any more, and what it still waits for is forgotten.
  void leave(int client);

  /// How many reads there were, by `behind`; the last place counts all beyond.
  const std::vector<std::int64_t>& staleness_seen() const { return staleness_seen_; }
  std::size_t waiting() const { return waiting_.size(); }

  /// All that is to be kept, but for the version and the clocks: the tensors themselves.
  virtual StateDict state() = 0;

  /// One of state(), by its place in it. Throws Error where there are not so many.
  at::Tensor state_tensor(std::size_t number);

  /// Becomes what a shard of the same spec was whose state() had these values. Throws DataError for others.
  virtual void load_state(const NamedTensors& values);

  struct Rows {
    at::Tensor records;      // as record_transfer() has them: room for as many as were asked for
    std::int64_t count = 0;  // of which so many are filled
    std::int64_t next = 0;   // where to go on; -1: these were the last
    std::int64_t total = 0;  // rows that there are
  };

  /// Up to `most` rows of a sparse table, from place `first` on, as they are: nobody waits, and nothing is created or
  /// spared from eviction. Places hold as long as no row is created. Throws Error for a dense table. The records are
  /// only the right ones until the next call of anything.
  virtual Rows read_rows(std::int64_t first, std::int64_t most);

  /// Rows become these; others stay. Throws Error for what does not fit, and has changed nothing then.
  virtual void write_rows(const at::Tensor& records, std::int64_t count);

  const std::vector<std::int64_t>& clocks() const { return clocks_.all(); }
  void resume(std::int64_t version, const std::vector<std::int64_t>& clocks);

  /// Further figures for the status, by name.
  virtual std::map<std::string, std::int64_t> counts() const { return {}; }

 private:
  struct Waiting {
    Pull pull;
    Read read;
  };

  /// `staleness`: updates of others since the values from which it was computed were read.
  virtual void apply(const Push& push, std::int64_t staleness, const at::Tensor& payload) = 0;

  /// Throws Error where read() could not be carried out.
  virtual void check(const Pull& /*pull*/) const {}
  virtual at::Tensor read(const Pull& pull) = 0;

  bool may_read(std::int64_t clock) const;
  void let_read(const Waiting& waiting);
  void let_all_read_that_may();

  TableSpec spec_;
  Clocks clocks_;
  std::list<Waiting> waiting_;
  std::vector<std::int64_t> staleness_seen_;
  std::int64_t version_ = 0;
};

/// That of server `shard` of `shards`, before any update. Throws ConfigError for rules that are unknown or do not suit
/// the table.
std::unique_ptr<Shard> make_shard(const TableSpec& spec, int shard, int shards);

/// What its values take at most, before anything of it is made; the largest integer where that is no number. Throws as
/// make_shard().
std::int64_t most_bytes_of_shard(const TableSpec& spec, int shard, int shards);

}  // namespace phalanx::ps
