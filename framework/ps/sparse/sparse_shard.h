// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/ps/rules/sparse_rule.h"
#include "framework/ps/shards/shard.h"
#include "framework/ps/sparse/sparse_index.h"
#include "framework/ps/sparse/sparse_initial.h"
#include "framework/ps/sparse/sparse_keys.h"
#include "framework/ps/sparse/sparse_rows.h"

namespace phalanx::ps {

/// The rows of a sparse table whose keys belong to one server. A row is created when it is first pulled or pushed. At
/// the capacity, a row that has not been used recently is evicted to make room, together with the state of its rules;
/// it starts from its initial values when it is used again.
///
/// The payload of a request consists of its keys and, for a push, one update per key. Keys may repeat: their updates
/// are applied one after the other.
class SparseShard final : public Shard {
 public:
  /// Throws ConfigError if the spec is not valid for a sparse table.
  SparseShard(const TableSpec& spec, int shard, int shards);

  Transfer transfer(const Header& request) const override;

  /// Returns the number of floats per row of such a table: the values and the state of the rules.
  static std::int64_t numbers(const TableSpec& spec);

  Rows read_rows(std::int64_t first, std::int64_t most) override;
  void write_rows(const at::Tensor& records, std::int64_t count) override;

  /// Returns the size at full capacity.
  std::int64_t bytes() const override { return max_bytes_; }
  static std::int64_t max_bytes(const TableSpec& spec, int shard, int shards);

  /// Returns copies: `keys` [r], `rows` [r, dim], and `ruleI/state` [r, numbers] for each rule that has state.
  StateDict state() override;

  /// Replaces all rows with the rows of a state() of this table that belong to this server. The state may come from any
  /// shard and any number of shards. Throws DataError if it does not match, without changing anything.
  void load_state(const NamedTensors& state) override;

  std::map<std::string, std::int64_t> counts() const override;

 private:
  struct Rule {
    std::unique_ptr<RowRule> rule;
    std::size_t begin, size;  // position of the rule's state in a row
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
  std::size_t numbers_;  // floats per row: the values, and the state of each rule
  std::int64_t capacity_, max_bytes_;
  SparseIndex index_;
  SparseRows rows_;
  std::int64_t created_ = 0, evicted_ = 0;
  at::Tensor reply_;  // buffer of the last read
};

}  // namespace phalanx::ps
