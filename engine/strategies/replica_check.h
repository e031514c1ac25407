// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/strategies/data_parallel_groups.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// A tensor that should have the same bits on all ranks of a group.
struct ReplicatedTensor {
  enum class Kind : std::uint8_t { kParameter, kOptimizerState, kBuffer };

  std::string name;  // of the parameter or buffer; for optimizer state "exp_avg of fc1.weight"
  at::Tensor values;
  Kind kind = Kind::kParameter;

  /// True for a buffer that may be a statistic of each rank's own samples. It is no longer compared once it differs
  /// because more than half of the ranks have changed it.
  bool may_be_own = false;
};

/// The tensors of which the ranks of a group have copies.
struct ReplicatedTensors {
  CommunicatorPtr group, control;                          // two groups of the same ranks (see Mesh)
  std::function<std::vector<ReplicatedTensor>()> tensors;  // the same names, in the same order, on all ranks
};

/// Returns the parameters of the groups.
std::vector<ReplicatedTensors> replicated_parameters(const std::vector<DataParallelGroup>& groups);

/// Checks that replicas that should be equal are, bit for bit: parameters, optimizer state and buffers. It computes a
/// digest of every tensor in one pass over memory, and compares one digest of all of them for each kind between the
/// ranks that have the same tensors. On the wire: one all_gather of 24 bytes per rank and group. Only if these differ
/// do the ranks exchange the digests of all tensors, 16 bytes each.
///
/// The ranks that differ from the majority are wrong. If there is no majority, as with two ranks, a rank is wrong if
/// its digests change when they are computed again. If no rank's digests change, the error names all ranks.
class ReplicaCheck {
 public:
  struct Options {
    bool repair = false;              // tensors that differ get the values of a good rank, and a warning is logged
    std::int64_t every_steps = 0;     // for after_step(); 0: never
    int world_rank = 0;               // number of this rank in messages
    bool ends_on_repetition = false;  // with `repair`: a rank that is wrong for the second time ends the run
    bool wrong_before = false;        // this rank has been wrong before the run was started again

    /// Called on a rank that is wrong, with the text of the error or of the warning, after its tensors were repaired.
    std::function<void(const std::string& text)> on_wrong{};
  };

  ReplicaCheck(std::vector<ReplicatedTensors> sets, const Options& options);

  /// Must be called before the first step, when all tensors have the values with which training begins. Remembers
  /// digests of the buffers, to tell later which ranks have changed them. Does not communicate.
  void start();

  /// Checks after every `every_steps` steps. If replicas are not expected to be equal then, the check is done after the
  /// next step at which they are.
  void after_step(std::int64_t step, bool to_be_equal);

  /// Does the pending check, if any, after training, when all replicas are equal.
  void at_end(std::int64_t step);

  /// Returns true if a check is pending. Stored in checkpoints.
  bool due() const { return due_; }
  void set_due(bool due) { due_ = due; }

  /// Throws on all ranks if replicas differ, unless the check repairs: an Error on the ranks that are wrong, and a
  /// CommError that is secondary on the others, so that a launcher blames the host of a wrong rank. It names the step,
  /// the first tensor that differs, its kind, and the ranks. If no rank can be blamed, all ranks get the secondary
  /// error. Collective.
  void check(std::int64_t step);

  /// Returns the number of tensors that have been repaired.
  std::int64_t repaired() const { return repaired_; }

 private:
  struct Set {
    ReplicatedTensors of;
    std::set<std::string> own{};                          // buffers that each rank has for itself
    std::map<std::string, std::uint64_t> last_buffers{};  // digests of the buffers at start() or the last check

    std::vector<ReplicatedTensor> compared() const;
    void remember(const std::vector<ReplicatedTensor>& tensors, const std::vector<std::uint64_t>& digests);
  };

  struct Divergence {
    ReplicatedTensor tensor;
    std::vector<int> ranks;  // of the world, ascending: the ranks that are wrong, or all ranks of the group
    bool ambiguous;          // true if any of these ranks may be right
    bool repeated;           // true if one of these ranks has been wrong before
    int source;              // a good rank, in the group
    int source_in_world;
    Communicator* group;
  };

  class Comparison;

  static std::vector<std::uint64_t> digests_of(const std::vector<ReplicatedTensor>& tensors);
  void find(Set& set, std::vector<Divergence>& found) const;
  bool ends(const std::vector<Divergence>& found) const;
  bool is_wrong(const std::vector<Divergence>& found) const;
  [[noreturn]] void fail(const std::string& text, const std::vector<Divergence>& found) const;
  void repair(const std::vector<Divergence>& found);

  std::vector<Set> sets_;
  Options options_;
  bool due_ = false;
  std::int64_t repaired_ = 0;
  bool wrong_before_;  // this rank has been wrong before
};

}  // namespace phalanx
