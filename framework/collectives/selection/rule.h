// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/collectives/algorithm.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/comm/backend.h"

namespace phalanx {

/// What stands for an algorithm and means the backend's own way, and for a backend and means the group's own.
inline constexpr const char* kNative = "native";
inline constexpr const char* kOwn = "own";

/// "native", and the algorithms of all operations that this program has.
std::vector<std::string> known_algorithms();

/// "own", and the backends that this program has.
std::vector<std::string> known_alternatives();

/// Which algorithm an operation takes, and on which backend, when the rule is the first that matches. As in a config:
///
///     - {op: all_reduce, up_to: 64KB, algorithm: recursive_doubling}
///
/// The size of an operation is the one that all its ranks know: the bytes of a rank's whole input (all_reduce, reduce,
/// broadcast), or of all ranks' parts together (the others). An uneven all_to_all has none, and matches only rules
/// without `up_to`.
struct SelectionRule {
  std::string op{};                 // required
  std::string up_to{};              // bytes, this many included; empty: any number
  std::int64_t ranks = 0;           // of the group; 0: any number
  std::string backend = kOwn;       // a connected backend
  std::string algorithm = kNative;  // an algorithm of `op`

  template <class V>
  void visit(V& v) {
    v("op", op, "operation (required)", config::one_of(selectable_op_names()));
    v("up_to", up_to, "maximum size of the operation, such as 64KB; empty: any");
    v("ranks", ranks, "size of the group; 0: any", config::at_least(0));
    v("backend", backend, "backend to run it on", config::one_of(known_alternatives()));
    v("algorithm", algorithm, "algorithm; native: the backend's own", config::one_of(known_algorithms()));
  }
};

inline constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

/// A rule that was understood.
struct ParsedRule {
  Op op = Op::kNone;
  std::int64_t up_to = kAnySize;
  std::int64_t ranks = 0;
  std::string backend{};                 // empty: the group's own
  const Algorithm* algorithm = nullptr;  // null: native

  bool matches_group(int size) const { return ranks == 0 || ranks == size; }

  /// Whether `later` never gets its turn behind this rule, which matches all that `later` matches, and either suits
  /// always or does not suit where `later` would not either.
  bool hides(const ParsedRule& later) const;
};

/// Throws ConfigError with what is wrong with it.
ParsedRule parse(const SelectionRule& rule);

/// All that is wrong with a list of rules: operations and algorithms that are not there (with the nearest), sizes that
/// are none, rules that can never be reached. `origin` and `key` say where the list stands: "config" and
/// "framework.selection".
std::vector<ConfigProblem> problems_of(const std::vector<SelectionRule>& rules, const std::string& origin,
                                       const std::string& key);

/// "all_reduce up to 64 KB on 4 ranks -> ring on shm".
std::string describe(const SelectionRule& rule);

}  // namespace phalanx
