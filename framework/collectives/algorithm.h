// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// One way to do a collective, over send and recv alone, so on any backend. Algorithms are registered by name, a file
/// each, and users add theirs in the same way:
///
///   const bool ring_registered = Algorithms::global().add({.op = Op::kAllReduce, .name = "ring", ...});
///
/// The file's target needs `alwayslink = True`.
/// Algorithms copy and combine in the host's memory: they are for tensors on the CPU.
struct Algorithm {
  Op op = Op::kNone;
  std::string name;
  std::string about;  // one line: steps, bytes on the wire, what it is good for

  /// Does it, blocking: called in a body of Communicator::run(), with arguments that were checked
  /// (framework/comm/arguments.h). Messages use tags above kMaxTag.
  std::function<void(Communicator& group, const Operation& operation)> run;

  /// Whether it can; absent: always. The same on all ranks.
  std::function<bool(const Communicator& group, const Operation& operation)> suits = nullptr;
};

/// Whether `algorithm` can do this.
bool suits(const Algorithm& algorithm, const Communicator& group, const Operation& operation);

/// For algorithms that combine ranks in another order than theirs: what they have as `suits`.
bool suits_commutative(const Communicator& group, const Operation& operation);

/// All algorithms of this program, by operation and name. Registered before main(); afterwards only read, from any
/// thread.
class Algorithms {
 public:
  static Algorithms& global();

  bool add(Algorithm algorithm);  // throws std::logic_error when the name is taken; returns true

  /// Throws ConfigError, with the nearest name and all there are, when there is no such algorithm. The reference stays
  /// valid when others are added.
  const Algorithm& find(Op op, const std::string& name) const;
  std::vector<const Algorithm*> of(Op op) const;  // in order of name

 private:
  std::map<std::pair<Op, std::string>, Algorithm> all_;
};

/// Does `operation`, whose arguments were checked (framework/comm/arguments.h), by `algorithm`, as an operation of
/// `group` like any other. Throws std::invalid_argument when the algorithm does not suit it, on all ranks alike.
Work launch(const CommunicatorPtr& group, const Algorithm& algorithm, Operation operation);

}  // namespace phalanx
