// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/collectives/algorithm.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/comm/backend.h"

namespace phalanx {

/// Names in a rule that are neither an algorithm nor a backend: the backend's own implementation, and the group's own
/// backend.
inline constexpr const char* kNative = "native";
inline constexpr const char* kOwn = "own";

/// The value of `scope` and `device` in a rule that holds for all groups or tensors.
inline constexpr const char* kAny = "any";

/// The place of the ranks of a group: all on one host, or on several.
enum class Scope { kHost, kHosts };

/// Returns "host" or "hosts".
const char* to_string(Scope scope);

/// Returns "native" and the names of all algorithms of this program, of all operations.
std::vector<std::string> known_algorithms();

/// Returns "own" and the names of all backends of this program.
std::vector<std::string> known_alternatives();

/// Returns "any", "cpu" and the names of all kinds of devices of this program.
std::vector<std::string> known_tensor_devices();

/// A rule that sets the algorithm and the backend of an operation, if it is the first rule that matches. In a config:
///
///     - {op: all_reduce, up_to: 64KB, algorithm: recursive_doubling}
///
/// The size of an operation is one that all its ranks know: the bytes of a rank's whole input (all_reduce, reduce,
/// broadcast), or of the parts of all ranks together (other operations). An uneven all_to_all has no size, and matches
/// only rules without `up_to`.
struct SelectionRule {
  std::string op{};                 // required
  std::string up_to{};              // bytes, inclusive; empty: any size
  std::int64_t ranks = 0;           // size of the group; 0: any size
  std::string scope = kAny;         // host, hosts or any
  std::string device = kAny;        // where the tensors are
  std::string backend = kOwn;       // a connected backend
  std::string algorithm = kNative;  // an algorithm of `op`

  template <class V>
  void visit(V& v) {
    v("op", op, "operation (required)", config::one_of(selectable_op_names()));
    v("up_to", up_to, "maximum size of the operation, such as 64KB; empty: any");
    v("ranks", ranks, "size of the group; 0: any", config::at_least(0));
    v("scope", scope, "ranks of the group; host: all on one host, hosts: on several",
      config::one_of({kAny, to_string(Scope::kHost), to_string(Scope::kHosts)}));
    v("device", device, "where the tensors are", config::one_of(known_tensor_devices()));
    v("backend", backend, "backend to run it on", config::one_of(known_alternatives()));
    v("algorithm", algorithm, "algorithm; native: the backend's own", config::one_of(known_algorithms()));
  }
};

inline constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

/// A rule that has been parsed.
struct ParsedRule {
  Op op = Op::kNone;
  std::int64_t up_to = kAnySize;
  std::int64_t ranks = 0;
  std::optional<Scope> scope{};             // empty: any
  std::optional<c10::DeviceType> device{};  // empty: any
  std::string backend{};                    // empty: the group's own
  const Algorithm* algorithm = nullptr;     // null: native

  bool matches_group(int size, Scope place) const {
    return (ranks == 0 || ranks == size) && scope.value_or(place) == place;
  }

  /// Returns true if `later` is unreachable after this rule: this rule matches every operation that `later` matches,
  /// and either its algorithm always suits, or both rules have the same algorithm and backend.
  bool hides(const ParsedRule& later) const;
};

/// Parses a rule. Throws ConfigError with all its problems.
ParsedRule parse(const SelectionRule& rule);

/// Returns all problems of a list of rules: unknown operations and algorithms (with the nearest name), invalid sizes,
/// and unreachable rules. `origin` and `key` give the place of the list: "config" and "framework.selection".
std::vector<ConfigProblem> problems_of(const std::vector<SelectionRule>& rules, const std::string& origin,
                                       const std::string& key);

/// Returns a description such as "all_reduce up to 64 KB on 4 ranks of one host -> ring on shm".
std::string describe(const SelectionRule& rule);

}  // namespace phalanx
