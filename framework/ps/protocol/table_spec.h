// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::ps {

inline constexpr std::int64_t kAsynchronous = -1;

/// Size of histograms of staleness. The last entry also counts all larger values.
inline constexpr std::size_t kStalenessBins = 64;

/// Options of sparse tables, whose rows are found by a key (embeddings).
struct SparseSpec {
  std::string partition = "hash";
  std::int64_t keys = 0;
  std::int64_t capacity = 1 << 20;
  std::string initial = "zeros";
  double scale = 0.01;
  std::int64_t seed = 0;

  template <class V>
  void visit(V& v) {
    v("partition", partition,
      "how keys are assigned to servers; hash: by their hash; range: `keys` keys in order, like elements of dense "
      "tables",
      config::one_of({"hash", "range"}));
    v("keys", keys, "keys are smaller than this; 0: any key that is not negative", config::at_least(0));
    v("capacity", capacity, "rows that all shards together hold; beyond it, those not used lately are forgotten",
      config::at_least(1));
    v("initial", initial, "values of a new row", config::one_of({"zeros", "normal", "uniform"}));
    v("scale", scale, "standard deviation (normal), or largest magnitude (uniform), of new values",
      config::at_least(0));
    v("seed", seed, "seed of new values, which depend only on it, the key and the column");
  }
};

/// A tensor that servers hold for clients, with one shard per server. With n elements on S servers, server i has
/// floor(n / S), plus one if i < n mod S, in order.
///
/// If `dim` is positive, the table is sparse: it has rows of `dim` elements, each with a key, and a row exists only
/// once it has been used (SparseSpec). Its rules are RowRules (sparse_rule.h).
///
/// `staleness` is the contract between the clients of the table: it determines when a client may read. A client's clock
/// is the number of its pushes that carried a tick.
///
///   kAsynchronous  always: a read returns whatever has been applied by then
///   s > 0          bounded staleness: a client at clock c sees at least all updates of clocks before c - s, of every
///                  client (SSP: Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel
///                  Parameter Server, section 3)
///   0              bulk synchronous: a client at clock c sees all updates of clocks before c
struct TableSpec {
  std::string name{};
  std::int64_t elements = 0;
  std::string dtype = "float32";
  std::vector<std::string> rules{"{name: copy}", "{name: add}"};  // YAML; a push names one by its index
  std::int64_t clients =
      1;  // clients 0 to clients - 1, whose clocks count; others can push and pull, but no client waits for them
  std::int64_t staleness = kAsynchronous;
  std::int64_t dim = 0;
  SparseSpec sparse{};

  template <class V>
  void visit(V& v) {
    v("name", name, "name of the table, unique in its namespace");
    v("elements", elements, "number of elements of all shards together", config::at_least(0));
    v("dtype", dtype, "type of the elements",
      config::one_of({"float32", "float64", "float16", "bfloat16", "int32", "int64"}));
    v("rules", rules, "update rules that pushes may choose from");
    v("clients", clients, "number of clients that take part", config::at_least(1));
    v("staleness", staleness, "clocks that a client may be ahead of the slowest; -1: any number",
      config::at_least(kAsynchronous));
    v("dim", dim, "elements of a row of a sparse table; 0: the table is dense", config::at_least(0));
    v("sparse", sparse, "options of a sparse table");
  }
};

/// Converts a name to a dtype, e.g. "float32" to at::kFloat. Throws ConfigError for a name that TableSpec::dtype does
/// not accept.
c10::ScalarType dtype_of(const std::string& name);
std::string name_of(c10::ScalarType dtype);

/// Returns the first element of the shard of server `shard` of `shards`. For shard == shards, returns the end.
std::int64_t begin_of_shard(const TableSpec& spec, int shard, int shards);
inline std::int64_t elements_of_shard(const TableSpec& spec, int shard, int shards) {
  return begin_of_shard(spec, shard + 1, shards) - begin_of_shard(spec, shard, shards);
}

}  // namespace phalanx::ps
