// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx {

/// Of strategies that set no bound themselves (StrategyTraits::steps_ahead).
inline constexpr std::int64_t kStepsAhead = 64;

/// What others need to know of a strategy before it is made. Each registers its own, beside its name: who has to tell
/// strategies apart asks for these facts, never for names. They may depend on the strategy's fields.
struct StrategyTraits {
  /// In every step the optimizer gets the mean of the gradients of all ranks: with train.gradients: sum, their sum.
  bool reduces_gradients = false;

  /// Of a step's gradients something stays for the steps after it, as in the residual of a compression: a value that is
  /// not finite would never leave.
  bool remembers_gradients = false;

  /// It trains on one rank and no more.
  bool one_rank = false;

  /// Its ranks must have memory in common (Communicator::shares_memory()).
  bool shared_memory = false;

  /// The same of the ranks of each host.
  bool shared_memory_in_hosts = false;

  /// Which of its fields asks for that, as "intra.one_copy"; empty: the strategy itself.
  std::string shared_memory_key{};

  /// Ranks write into the same memory while others read and write there: nothing else may exchange what is in it.
  bool concurrent_updates = false;

  /// It keeps parameters, or sums of gradients, on parameter servers.
  bool parameter_servers = false;

  /// Servers update the parameters there: the config's `optimizer` has nothing to do (Synchronizer::make_optimizer()).
  bool servers_update = false;

  /// It sends buckets during backward, as each is complete: small ones leave less to send afterwards.
  bool overlaps_backward = false;

  /// A rank's slices are its own share of the buckets; elsewhere they are all of the buckets.
  bool shards_update = false;

  /// Parameters have a grad during backward alone: it is reduced and freed there (Synchronizer::after_backward()).
  bool frees_gradients = false;

  /// Parameters have values only where a block of the model needs them (Synchronizer::run_blocks()); elsewhere there is
  /// nothing but each rank's slices, and no second copy of anything.
  bool shards_values = false;

  /// Strategy `levels` may take it for the ranks of a host. It reduces gradients, and after after_update() these ranks
  /// are one replica.
  bool intra_level = false;

  /// Strategy `levels` may take it between hosts, where buckets are slices without parameters: it updates all of them,
  /// and needs nothing of backward.
  bool inter_level = false;

  /// It does nothing but reduce gradients as they are, so that those of virtual shards may take its place, whose sums
  /// are the same bits on any number of ranks (determinism: world_size_invariant).
  bool virtual_shards = false;

  /// How many steps a rank may be ahead of the slowest before anything but the strategy makes it wait: more than 1
  /// where the ranks do not meet in every step. So many steps a run goes on after it was asked to stop.
  std::int64_t steps_ahead = 1;

  /// Whether time that a rank spends in communication is its own, not that of others.
  bool waits_for_nobody() const { return steps_ahead == kStepsAhead; }
};

}  // namespace phalanx
