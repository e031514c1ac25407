// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/ps/shard.h"
#include "framework/ps/sparse_index.h"
#include "framework/ps/sparse_initial.h"
#include "framework/ps/sparse_keys.h"
#include "framework/ps/sparse_rows.h"
#include "framework/ps/sparse_rule.h"

namespace phalanx::ps {

/// The rows of a sparse table whose keys belong to one server. A row is created when it is first pulled or pushed; at
/// the capacity, one that was not used lately is evicted for it with all that rules remember of it, and begins anew
/// when it is used again.
///
/// The payload of a request are its keys and, of a push, an update for each. Keys may repeat: their updates are applied
/// one after the other.
class SparseShard final : public Shard {
 public:
  /// Throws ConfigError for what does not suit a sparse table.
  SparseShard(const TableSpec& spec, int shard, int shards);

  Transfer transfer(const Header& request) const override;

  /// Of a row of such a table: its values, and what rules remember.
  static std::int64_t numbers(const TableSpec& spec);

  Rows read_rows(std::int64_t first, std::int64_t most) override;
  void write_rows(const at::Tensor& records, std::int64_t count) override;

  /// At the capacity.
  std::int64_t bytes() const override { return most_bytes_; }
  static std::int64_t most_bytes(const TableSpec& spec, int shard, int shards);

  /// `keys` [r], `rows` [r, dim], and for each rule that remembers something `ruleI/state` [r, numbers]: copies.
  StateDict state() override;

  /// Replaces all rows by those of a state() of this table that belong here, of whichever shard and however many there
  /// were. Throws DataError, and has changed nothing, where it does not fit.
  void load_state(const NamedTensors& state) override;

  std::map<std::string, std::int64_t> counts() const override;

 private:
  struct Rule {
    std::unique_ptr<RowRule> rule;
    std::size_t begin, size;  // of its state, in a row
  };
  static std::vector<Rule> rules_of(const TableSpec& spec);
  static std::size_t numbers_of(const TableSpec& spec, const std::vector<Rule>& rules);

  void apply(const Push& push, std::int64_t staleness, const at::Tensor& payload) override;
  void check(const Pull& pull) const override;
  at::Tensor read(const Pull& pull) override;

  void check_keys(const at::Tensor& payload, std::int64_t rows, std::uint64_t bytes) const;
  template <class Visit>
  void for_rows(const std::int64_t* keys, std::int64_t count, bool create, const Visit& visit);
  SparseIndex::Slot find_or_create(std::int64_t key);

  int shard_;
  SparseKeys keys_;
  SparseInitial initial_;
  std::vector<Rule> rules_;
  std::size_t numbers_;  // of a row: its values, and the state of each rule
  std::int64_t capacity_, most_bytes_;
  SparseIndex index_;
  SparseRows rows_;
  std::int64_t created_ = 0, evicted_ = 0;
  at::Tensor reply_;  // of the last read
};

}  // namespace phalanx::ps
