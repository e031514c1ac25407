// SPDX-License-Identifier: Apache-2.0
#include "launch/job/world.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/config/topology_config.h"
#include "framework/base/cache_folder.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/collectives/checked/checked_communicator.h"
#include "framework/collectives/checked/checksummed_communicator.h"
#include "framework/collectives/hierarchical/hierarchical_communicator.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/collectives/tuning/tuner.h"
#include "framework/comm/backend.h"
#include "launch/rank/connect.h"

namespace phalanx {
namespace {

std::optional<bool> progress_thread(const ExperimentConfig& config) {
  if (config.framework.progress_thread == "auto") return std::nullopt;
  return config.framework.progress_thread == "on";
}

std::vector<std::string> others_than(const std::string& own, const ExperimentConfig& config) {
  std::vector<std::string> names;
  for (const auto& rule : config.framework.selection) {
    const auto& backend = rule.backend;
    if (backend != kOwn && backend != own && std::ranges::find(names, backend) == names.end()) names.push_back(backend);
  }
  return names;
}

// Returns the rules of the config. They may name the world's own backend, which is replaced by kOwn.
SelectionTable own_table(const std::string& backend, const ExperimentConfig& config) {
  auto rules = config.framework.selection;
  for (auto& rule : rules) {
    if (rule.backend == backend) rule.backend = kOwn;
  }
  return SelectionTable(std::move(rules));
}

// Ranks on several hosts may have different files with the same name, and would then wait for each other's messages.
void check_same_table(Communicator& world, const SelectionTable& table, const std::string& path) {
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>()(table.to_text()));
  at::Tensor least = at::zeros({1}, at::kLong).fill_(hash), greatest = least.clone();
  world.all_reduce(least, Reduction::kMin).wait();
  world.all_reduce(greatest, Reduction::kMax).wait();
  if (least.item<std::int64_t>() == greatest.item<std::int64_t>()) return;
  throw ConfigError("framework.selection_file: ranks have different files " + path + "; copy one to all hosts");
}

// Returns the topology of the world, with the levels by which its collectives work.
Topology topology_of(Communicator& world, const std::string& backend, const ExperimentConfig& config) {
  Topology topology = world_topology(world, backend);
  topology.levels = join(config.framework.topology.levels, ", ");
  return topology;
}

SelectionTable measured_table(Communicator& world, const std::string& backend, const ExperimentConfig& config) {
  const auto& path = config.framework.selection_file;
  const TunedFile tuned = load_tuned(path);
  check_fits(tuned, topology_of(world, backend, config), path);
  check_same_table(world, tuned.table, path);
  return tuned.table;
}

std::shared_ptr<Tuner> make_tuner(Communicator& world, const std::string& backend, const ExperimentConfig& config,
                                  std::shared_ptr<LiveSelection> selection, const std::string& tuned_file) {
  const std::string cache = user_cache_folder();
  Tuner::Options options{.topology = topology_of(world, backend, config),
                         .first = selection->table(),
                         .run_file = tuned_file,
                         .cache = cache.empty() ? "" : cache + "/phalanx/selection"};
  return std::make_shared<Tuner>(std::move(selection), std::move(options));
}

// Returns the levels with this rank's values. A single rank needs none, and may have none.
std::vector<Key> levels_of(const ExperimentConfig& config, const RankInfo& rank_info) {
  return rank_info.size == 1 ? std::vector<Key>() : level_keys(config.framework.topology, rank_info.rank);
}

// Returns a world whose collectives work by the levels of the config. A backend that uses levels has divided its ranks
// when it connected them.
CommunicatorPtr with_levels(CommunicatorPtr world, const std::string& backend, const ExperimentConfig& config) {
  if (backend_traits(backend).uses_levels) return world;
  const auto keys = levels_of(config, {.rank = world->rank(), .size = world->size()});
  return divide(std::move(world), keys);
}

}  // namespace

std::vector<std::string> selected_backends(const ExperimentConfig& config) {
  return others_than(config.backend, config);
}

Connections connect_backends(const ExperimentConfig& config, const LaunchEnvironment& launched,
                             std::optional<Rendezvous> met, std::vector<int> numbers, std::function<void()> check) {
  std::vector<std::string> names{choose_backend(config.backend, launched)};
  std::ranges::copy(others_than(names.front(), config), std::back_inserter(names));
  ExperimentConfig dumped = config;  // dump() visits it as load() does, which may write
  auto worlds = connect_all(names, launched,
                            {.timeout = Seconds(config.framework.timeout),
                             .progress_thread = progress_thread(config),
                             .interface = config.framework.interface,
                             .levels = levels_of(config, launched.rank_info),
                             .numbers = std::move(numbers),
                             .config = config::dump(dumped),
                             .check = std::move(check),
                             .met = std::move(met)});
  Connections connections;
  for (std::size_t i = 0; i < names.size(); ++i) connections.push_back({names[i], std::move(worlds[i])});
  return connections;
}

Connections connect_thread(const ExperimentConfig& config, const RankInfo& rank_info, const StorePtr& store) {
  const bool threads = backend_traits(config.backend).threads;
  std::vector<std::string> names{threads ? config.backend : automatic_backend(WorldKind::kOneRank)};
  std::ranges::copy(others_than(names.front(), config), std::back_inserter(names));
  Connections connections;
  for (const auto& name : names) {
    const ConnectOptions options{.rank_info = rank_info,
                                 .store = make_prefix_store(name, store),
                                 .timeout = Seconds(config.framework.timeout),
                                 .progress_thread = progress_thread(config),
                                 .levels = levels_of(config, rank_info)};
    connections.push_back({name, Backends::Choice(name).make(options)});
  }
  return connections;
}

DecoratedWorld decorate(Connections connections, const ExperimentConfig& config, const std::string& tuned_file) {
  if (config.framework.checksums) {
    for (auto& [_, group] : connections) group = std::make_shared<ChecksummedCommunicator>(std::move(group));
  }
  auto [backend, world] = std::move(connections.front());
  connections.erase(connections.begin());
  world = with_levels(std::move(world), backend, config);
  SelectionTable table = own_table(backend, config);
  const auto& path = config.framework.selection_file;
  if (!path.empty()) table = table.followed_by(measured_table(*world, backend, config));
  std::shared_ptr<Tuner> tuner;
  if (config.framework.tune == "auto" && world->size() > 1) {
    auto selection = std::make_shared<LiveSelection>(table, LiveSelection::Tuning::kOn);
    tuner = make_tuner(*world, backend, config, selection, tuned_file);
    world = std::make_shared<SelectingCommunicator>(std::move(world), std::move(selection), std::move(connections));
  } else if (!table.empty()) {
    log_info() << "algorithms by operation:\n" << table.to_text();
    world = std::make_shared<SelectingCommunicator>(std::move(world), std::move(table), std::move(connections));
  }
  if (config.framework.check_collectives) world = std::make_shared<CheckedCommunicator>(std::move(world));
  return {std::move(world), std::move(tuner)};
}

}  // namespace phalanx
