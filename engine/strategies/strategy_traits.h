// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx {

/// The value of StrategyTraits::steps_ahead for strategies that set no bound themselves.
inline constexpr std::int64_t kStepsAhead = 64;

/// The operations that a strategy launches for a step if they follow from the buckets alone: each bucket's gradients
/// are reduced once, and its values are gathered once if ranks update parts of it. Plans of a step are made of them.
enum class StepTraffic {
  kOther,                    // they follow from more than the buckets, or are not known in advance
  kNone,                     // nothing is sent
  kAllReduce,                // an all-reduce of each bucket's gradients
  kReduceScatterAllGather,   // a reduce-scatter of each bucket's gradients and an all-gather of its values
  kReduceScatterSharedCopy,  // a reduce-scatter of each bucket's gradients, and one barrier
};

/// Properties of a strategy that other code needs to know before the strategy is created. Each strategy registers its
/// traits together with its name. Code that must distinguish strategies checks these traits and never names. Traits may
/// depend on the strategy's fields.
struct StrategyTraits {
  /// In every step the optimizer gets the mean of the gradients of all ranks, or their sum with train.gradients: sum.
  bool reduces_gradients = false;

  /// It carries part of a step's gradients over to later steps, such as the residual of a compression. A non-finite
  /// value would never leave it.
  bool remembers_gradients = false;

  /// It trains only on a single rank.
  bool one_rank = false;

  /// Its ranks must share memory (Communicator::shares_memory()).
  bool shared_memory = false;

  /// The ranks of each host must share memory.
  bool shared_memory_in_hosts = false;

  /// The field that requires shared memory, such as "intra.one_copy"; empty if the strategy itself does.
  std::string shared_memory_key{};

  /// Ranks write into shared memory while others read and write it, so no other code may exchange its contents.
  bool concurrent_updates = false;

  /// It keeps parameters, or sums of gradients, on parameter servers.
  bool parameter_servers = false;

  /// Servers update the parameters, so the config's `optimizer` is not used (UpdatesOnServers).
  bool servers_update = false;

  /// Each rank trains its own replica, waits for no other rank in a step, and shares values only through parameter
  /// servers (KeepsCentre). So a rank can go on without others from its replica and from what the servers have.
  bool keeps_centre = false;

  /// It sends each bucket during backward as soon as it is complete. Small buckets leave less to send afterwards.
  bool overlaps_backward = false;

  /// A rank's slices are its own shard of the buckets. Without this trait they are all of the buckets.
  bool shards_update = false;

  /// Parameters have a grad only during backward, where it is reduced and freed (FreesGradients).
  bool frees_gradients = false;

  /// Parameters have values only while a block of the model needs them (ShardsParameters). At other times
  /// only each rank's slices exist, with no second copy of anything.
  bool shards_values = false;

  /// Strategy `levels` may use it among the ranks of a host. It reduces gradients, and after after_update() these ranks
  /// are one replica.
  bool intra_level = false;

  /// Strategy `levels` may use it between hosts, where buckets are slices without parameters. It updates all of them
  /// and does not depend on backward.
  bool inter_level = false;

  /// It only reduces gradients, without changing them, so the sums over virtual shards may replace it. These have the
  /// same bits on any number of ranks (determinism: world_size_invariant).
  bool virtual_shards = false;

  /// A graph of the device (DeviceGraph) can contain all that it does in a step: it only reduces gradients on their
  /// device, in the same way in every step, and does nothing in after_update().
  bool in_graph = false;

  /// The operations of a step, except those that frees_gradients adds during backward.
  StepTraffic traffic = StepTraffic::kOther;

  /// The number of steps that a rank may be ahead of the slowest before something other than the strategy makes it
  /// wait; more than 1 if the ranks do not all meet in every step. A run continues for as many steps after it was asked
  /// to stop.
  std::int64_t steps_ahead = 1;

  /// Returns true if all ranks have the same parameters and optimizer state after each step, and nothing else that is
  /// carried over to later steps, so that any rank can be lost without a copy.
  bool ranks_are_equal() const { return traffic == StepTraffic::kAllReduce && !remembers_gradients; }

  /// Returns true if the time that a rank spends in communication is its own and not spent waiting for other ranks.
  bool never_waits() const { return steps_ahead == kStepsAhead; }
};

}  // namespace phalanx
