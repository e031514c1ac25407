// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// An implementation of one collective that uses only send and recv, so that it works on any backend. Algorithms are
/// registered by name, one per file. Users add their own in the same way:
///
///   const bool ring_registered = Algorithms::global().add({.op = Op::kAllReduce, .name = "ring", ...});
///
/// The target of that file needs `alwayslink = True`. Algorithms copy and combine in host memory, so they support CPU
/// tensors only.
struct Algorithm {
  Op op = Op::kNone;
  std::string name;
  std::string about;  // one line: steps, bytes on the wire, intended use

  /// Performs the operation and blocks until it is complete. Called from a body of Communicator::run(), with arguments
  /// that have been checked (framework/comm/operations/arguments.h). Its messages use tags above kMaxTag.
  std::function<void(Communicator& group, const Operation& operation)> run;

  /// Returns true if the algorithm supports `operation` on `group`; the result is the same on all ranks. Absent: every
  /// operation is supported.
  std::function<bool(const Communicator& group, const Operation& operation)> suits = nullptr;

  /// True if it does the same as `native` where all ranks reach the tensors, as with Communicator::allocate().
  bool only_private_memory = false;
};

/// Returns where the tensors of an operation are.
c10::DeviceType device_of(const Operation& operation);

/// Returns true if `algorithm` supports `operation` on `group`: its tensors are on the CPU, and `algorithm.suits`
/// agrees.
bool suits(const Algorithm& algorithm, const Communicator& group, const Operation& operation);

/// The `suits` of algorithms that do not combine in rank order: returns true if the reduction is commutative.
bool suits_commutative(const Communicator& group, const Operation& operation);

/// All algorithms of this program, by operation and name. They are registered before main(); after that any thread may
/// read them.
class Algorithms {
 public:
  static Algorithms& global();

  bool add(Algorithm algorithm);  // throws std::logic_error if the name is already registered; returns true

  /// Returns the algorithm of that name. Throws ConfigError, with the nearest name and a list of all names, if there is
  /// no such algorithm. The reference stays valid when others are added.
  const Algorithm& find(Op op, const std::string& name) const;
  std::vector<const Algorithm*> of(Op op) const;  // ordered by name

 private:
  std::map<std::pair<Op, std::string>, Algorithm> all_;
};

/// Launches `operation` with `algorithm`, ordered like any other operation of `group`. The arguments have been checked
/// (framework/comm/operations/arguments.h). Throws std::invalid_argument on every rank if the algorithm does not suit
/// the operation.
Work launch(const CommunicatorPtr& group, const Algorithm& algorithm, Operation operation);

}  // namespace phalanx
