// SPDX-License-Identifier: Apache-2.0
// One strategy inside each host and another between hosts, or by another level of the topology (Lin et al. 2020, Don't
// Use Large Mini-Batches, Use Local SGD, section 4.3, use local SGD between nodes). The ranks of a host form one
// replica. Each step consists of
//
//   intra.before_update   the host's mean gradients
//   inter.before_update   for this rank's part only, with the ranks that have the same part in other hosts
//   the optimizer         updates this rank's part
//   inter.after_update    for this rank's part only
//   all-gather            of the parts, inside the host
//
// Data therefore crosses between hosts only once, over as many links at a time as a host has ranks, and the optimizer
// state is sharded as in `sharded`. If a host has more ranks than the smallest one, some of its ranks have no part.
// With `leaders: 1`, only the first rank of a host communicates with others, for the whole host. In means over hosts,
// of gradients or parameters, the weight of a host is the number of its ranks.
// Wire, per rank: inside the host the bytes of `intra`, and an all-gather of the parameters; between hosts the bytes of
// `inter` for 1 / L of the parameters, with L ranks in a host.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/sharded/shards.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/scalar.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx {
namespace {

// Returns the names of the strategies that work at this level with their default options.
std::string known(bool StrategyTraits::* level) { return join(Strategies::global().names_where(level), ", "); }

struct LevelsConfig {
  static constexpr const char* kImplyingKey = "intra";

  Strategies::Choice intra{"sharded"};
  Strategies::Choice inter{"all_reduce"};
  std::string level = kHostLevel;
  std::int64_t ranks_per_group = 0;
  std::int64_t leaders = 0;

  template <class V>
  void visit(V& v) {
    v("intra", intra, ("strategy inside each host: " + known(&StrategyTraits::intra_level)).c_str());
    v("inter", inter, ("strategy between hosts: " + known(&StrategyTraits::inter_level)).c_str());
    v("level", level, "level whose groups count as hosts: host, or one of framework.topology.levels");
    v("ranks_per_group", ranks_per_group, "consecutive ranks to treat as a host; 0: actual hosts", config::at_least(0));
    v("leaders", leaders,
      "ranks of a host that have a part, and communicate with other hosts; 0: as many as the smallest host has",
      config::at_least(0));
  }
};

void check_level(const char* name, const Strategies::Choice& chosen, bool StrategyTraits::* level) {
  if (chosen.traits().*level) return;
  const std::string where = std::string("strategy.") + name + ": " + chosen.selected();
  const auto names = Strategies::global().names_where(level);
  if (std::ranges::find(names, chosen.selected()) != names.end()) {
    throw ConfigError(where + " does not work at this level with these options, but with its default ones");
  }
  throw ConfigError(where + " does not work at this level; known: " + join(names, ", "));
}

// Returns the combined traits. The combination is exact only if the strategies at both levels are.
StrategyTraits levels_traits(const LevelsConfig& config) {
  const auto intra = config.intra.traits(), inter = config.inter.traits();
  return {.reduces_gradients = intra.reduces_gradients && inter.reduces_gradients,
          .remembers_gradients = intra.remembers_gradients || inter.remembers_gradients,
          .shared_memory = inter.shared_memory,
          .shared_memory_in_hosts = intra.shared_memory && config.ranks_per_group != 1,
          .shared_memory_key = intra.shared_memory_key.empty() ? "intra" : "intra." + intra.shared_memory_key,
          .concurrent_updates = intra.concurrent_updates || inter.concurrent_updates,
          .parameter_servers = intra.parameter_servers || inter.parameter_servers,
          .servers_update = intra.servers_update || inter.servers_update,
          .shards_update = true};
}

// Returns the key of a group of a level. It begins with the keys of the coarser levels, since NUMA nodes 0 of two hosts
// are two groups.
std::string key_of_level(const std::string& level, const StrategyContext& context) {
  if (level == kHostLevel) return host_key();
  std::vector<std::string> names;
  std::string key;
  for (const auto& [name, value] : context.topology ? context.topology() : std::vector<Key>()) {
    key += std::to_string(value.size()) + ":" + value;
    if (name == level) return key;
    names.push_back(name);
  }
  throw ConfigError("strategy.level: \"" + level + "\" is not one of framework.topology.levels: " +
                    (names.empty() ? "there are none" : join(names, ", ")));
}

std::string key_of(const LevelsConfig& config, const StrategyContext& context) {
  if (config.ranks_per_group == 0) return key_of_level(config.level, context);
  if (config.level == kHostLevel) return std::to_string(context.group->rank() / config.ranks_per_group);
  throw ConfigError("strategy.ranks_per_group: cannot be combined with strategy.level: " + config.level +
                    "; use one of the two");
}

std::string sizes_of(const Groups& groups) {
  std::vector<std::string> sizes;
  for (const auto& group : groups) sizes.push_back(std::to_string(group.size()));
  return join(sizes, ", ");
}

// Returns the weight of this rank's host in means over hosts: its share of the ranks, times the number of hosts.
double weight_of(const Level& level, const Communicator& group) {
  return static_cast<double>(level.intra->size()) * static_cast<double>(level.groups.size()) /
         static_cast<double>(group.size());
}

// Returns slices as buckets without parameters, since autograd completes no gradient in a single one of them.
FlatParameters flat(const std::vector<Slice>& slices) {
  std::vector<Bucket> buckets;
  for (const auto& slice : slices) buckets.push_back({slice.values, slice.gradients, {}, slice.segments});
  return FlatParameters(std::move(buckets));
}

class Levels final : public Strategy {
 public:
  Levels(const LevelsConfig& config, const StrategyContext& context)
      : leaders_(config.leaders),
        group_(context.group),
        level_(split_by_key(config.level, group_, key_of(config, context))),
        links_(group_->split(level_.intra->rank(), group_->rank())),
        intra_(make_strategy(config.intra, context.at_level("intra").over(level_.intra, context.backwards))),
        inter_(make_strategy(config.inter, context.at_level("inter").over(links_, 1, weight_of(level_, *group_)))),
        shards_buckets_(!config.intra.traits().shards_update) {
    if (!shards_buckets_ && !level_.cartesian()) {
      throw ConfigError("strategy.intra: " + config.intra.selected() +
                        " needs hosts with equal numbers of ranks, but they have " + sizes_of(level_.groups) +
                        "; use all_reduce");
    }
    if (!shards_buckets_ && leaders_ > 0) {
      throw ConfigError(
          "strategy.leaders: " + config.intra.selected() +
          " gives every rank of a host a part of its own; use all_reduce or overlapped as strategy.intra");
    }
  }

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override {
    const auto buckets = broadcast_all(parameters, *group_);
    own_ = intra_->attach(parameters, cut);
    shared_.clear();
    if (shards_buckets_) own_ = shard_buckets(buckets, cut);
    inter_->attach(flat(own_), cut);
    // A rank without a counterpart in any other host is alone in its group, so its `inter` says that replicas are
    // equal. All ranks must give the same answer.
    begins_equal_ = all_reduce(*group_, std::int64_t{inter_->replicas_equal()}, Reduction::kMin) != 0;
    return own_;
  }

  void attach_state(const std::vector<StateTensor>& state) override { inter_->attach_state(state); }

  void reset() override {
    intra_->reset();
    inter_->reset();
  }

  void before_update(std::int64_t step) override {
    intra_->before_update(step);
    inter_->before_update(step);
    for (const auto& bucket : shared_) bucket.zero_other_gradients();
  }

  // All ranks get the same answer from `inter`, including ranks that are alone in its group.
  std::vector<CommunicatorPtr> gradient_groups() const override {
    return {inter_->gradient_groups().at(0) ? group_ : level_.intra};
  }

  void after_update(std::int64_t step) override {
    inter_->after_update(step);
    intra_->after_update(step);
    gather();
  }

  bool replicas_equal() const override { return begins_equal_ && inter_->replicas_equal(); }

  void gather_slices() override {
    intra_->gather_slices();
    gather();
  }

  StateDict state() override {
    StateDict all;
    append(all, "intra/", intra_->state());
    append(all, "inter/", inter_->state());
    for (auto& one : all) one.replicated = false;  // differs between hosts and between parts
    return all;
  }

  void sum_over_slices(at::Tensor& sums) override {
    if (!shards_buckets_) return intra_->sum_over_slices(sums);
    level_.intra->all_reduce(sums, Reduction::kSum).wait();
  }

  void finish() override {
    inter_->finish();
    gather_slices();
    intra_->finish();
  }

  StrategyExtensions extensions() override { return {.updates_on_servers = inter_->extensions().updates_on_servers}; }

  Metrics metrics() const override {
    Metrics all;
    for (const auto& [name, value] : intra_->metrics()) all.emplace_back("intra_" + name, value);
    for (const auto& [name, value] : inter_->metrics()) all.emplace_back("inter_" + name, value);
    return all;
  }

 private:
  // Divides the buckets among the first ranks of the host, if `intra` leaves all buckets with every rank.
  std::vector<Slice> shard_buckets(const std::vector<Slice>& buckets, Cut cut) {
    std::vector<Slice> own;
    for (const auto& bucket : buckets) {
      shared_.emplace_back(bucket, *level_.intra, cut, owners());
      if (shared_.back().own().values.numel() > 0) own.push_back(shared_.back().own());
    }
    return own;
  }

  // Returns the number of ranks of each host that have a part: `leaders_`, or without leaders the size of the smallest
  // host.
  int owners() const {
    const auto most = static_cast<std::int64_t>(std::ranges::min(level_.groups, {}, &std::vector<int>::size).size());
    return static_cast<int>(leaders_ == 0 ? most : std::min(leaders_, most));
  }

  void gather() {
    std::vector<Work> works;
    for (const auto& bucket : shared_) works.push_back(bucket.gather_values(*level_.intra));
    wait_all(works);
  }

  std::int64_t leaders_;  // per host; 0 means as many as possible
  CommunicatorPtr group_;
  Level level_;
  CommunicatorPtr links_;  // the ranks of all hosts that have this rank's place in theirs
  std::unique_ptr<Strategy> intra_, inter_;
  std::vector<Slice> own_;
  bool shards_buckets_;       // otherwise `intra` divides the buckets
  bool begins_equal_ = true;  // false for strategies whose replicas differ from the first step on
  std::vector<ShardedBucket> shared_;
};

const bool levels_registered = Strategies::global().add<LevelsConfig>(
    "levels", "one strategy inside each host, another between hosts", levels_traits,
    [](const LevelsConfig& config, const StrategyContext& context) {
      check_level("intra", config.intra, &StrategyTraits::intra_level);
      check_level("inter", config.inter, &StrategyTraits::inter_level);
      return std::make_unique<Levels>(config, context);
    });

}  // namespace
}  // namespace phalanx
