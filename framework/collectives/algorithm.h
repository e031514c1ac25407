#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The arguments of a collective, whichever it is. What an operation does not have stays empty.
struct Arguments {
  at::Tensor output{};  // also what is both: the tensor of broadcast, reduce and all_reduce
  at::Tensor input{};
  Reduction op{};
  int root = -1;
  std::vector<std::int64_t> output_counts{};  // of all_to_all
  std::vector<std::int64_t> input_counts{};   // of all_to_all; the counts of all others
};

/// One way to do a collective, over send and recv alone, so on any backend. Algorithms are registered by name, a file
/// each, and users add theirs in the same way:
///
///   const bool registered = Algorithms::global().add({.op = Op::kAllReduce, .name = "ring", ...});
///
/// The file's target needs `alwayslink = True`. Those of Phalanx are linked by //framework/collectives:algorithms.
struct Algorithm {
  Op op = Op::kNone;
  std::string name;
  std::string about;  // one line: steps, bytes on the wire, what it is good for

  /// Does it, blocking: called in a body of Communicator::run(), with arguments that were checked
  /// (framework/comm/arguments.h). Messages use tags above kMaxTag.
  std::function<void(Communicator& group, const Arguments& arguments)> run;

  /// Whether it can; absent: always. The same on all ranks.
  std::function<bool(const Communicator& group, const Arguments& arguments)> suits = nullptr;
};

/// Whether `algorithm` can do this.
bool suits(const Algorithm& algorithm, const Communicator& group, const Arguments& arguments);

/// For algorithms that combine ranks in another order than theirs: what they have as `suits`.
bool suits_commutative(const Communicator& group, const Arguments& arguments);

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

/// Launches `algorithm` on `group`, as an operation like any other; `call` is what a function of
/// framework/comm/arguments.h made of the same arguments. Throws std::invalid_argument when the algorithm does not suit
/// them, on all ranks alike.
Work launch(const CommunicatorPtr& group, const Algorithm& algorithm, const Call& call, Arguments arguments);

}  // namespace phalanx
