// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/config.h"
#include "engine/experiment/mesh_check.h"
#include "framework/base/config/config.h"
#include "framework/base/config/node.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_slots.h"
#include "models/embedding/wanted_servers.h"

namespace phalanx {
namespace {

// Each traced step may keep some hundred operators in memory until the window ends.
constexpr std::int64_t kMaxTracedSteps = 1000;

// Adds a problem if the component cannot be made. Each component checks the combination of its fields.
template <class Choice, class... Args>
void refuse_if_not_made(std::vector<ConfigProblem>& problems, const char* key, const Choice& choice,
                        const Args&... args) {
  try {
    choice.make(args...);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, key, error.what());
  }
}

// Adds a problem if the file cannot be read. The ranks check later, when they are connected, that it fits them.
void refuse_unreadable(std::vector<ConfigProblem>& problems, const std::string& selection_file) {
  if (selection_file.empty()) return;
  try {
    (void)load_tuned(selection_file);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.selection_file", error.what());
  }
}

// Checks that the device exists. This loads the libraries of devices before ranks are forked, so that the ranks share
// them.
void check_device(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (config.device == "cpu") return;
  if (config.device == "auto") {
    for (const auto& kind : DeviceKinds::global().names()) (void)DeviceKinds::Choice(kind).make()->missing();
    return;
  }
  const std::string missing = DeviceKinds::Choice(config.device).make()->missing();
  refuse_if(problems, !missing.empty(), "device", config.device + ": " + missing);
  refuse_if(problems, config.train.data_parallel > 1, "train.data_parallel",
            "must be 1 on a device, which the threads of a rank would have to share; start a rank for each device");
}

constexpr std::size_t kLongestName = 100;  // with the time appended, well below the limit of 255 bytes for a file name

// Checks a name that becomes part of the run folder's name: it must be valid in every file system and shell.
void check_name(std::vector<ConfigProblem>& problems, const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  const bool good = !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, allowed);
  const config::Node written{.kind = config::Node::Kind::kScalar, .text = name};
  refuse_if(problems, !good, "name",
            config::what_is(written) + " cannot be part of a folder's name; use 1 to " + std::to_string(kLongestName) +
                " letters, digits, '.', '_' and '-'");
}

void check_hosts(std::vector<ConfigProblem>& problems, const std::vector<std::string>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    try {
      (void)parse_host(hosts[i]);
    } catch (const ConfigError& error) {
      refuse_if(problems, true, ("launch.hosts[" + std::to_string(i) + "]").c_str(), error.what());
    }
  }
}

// Checks the roles of the ranks and how they are started.
void check_ranks(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& launch = config.launch;
  check_hosts(problems, launch.hosts);
  const auto servers = config.roles.server, ranks = training_ranks(config);
  const std::string less_servers = servers > 0 ? " minus roles.server: " + std::to_string(servers) : "";
  refuse_if(problems, ranks < 1, "roles.server",
            std::to_string(servers) + " of launch.ranks: " + std::to_string(launch.ranks) +
                " leaves no rank to train; start more ranks");
  const bool served = config.strategy.traits().parameter_servers || wants_servers(config.model);
  const std::string no_use =
      config.strategy.selected() + " uses no parameter servers, and neither does the model; those that do are " +
      strategies_where(&StrategyTraits::parameter_servers) + ", and models with embeddings: servers";
  refuse_if(problems, servers > 0 && !served, "roles.server", no_use);
  const bool elsewhere = config.roles.elsewhere();
  const char* const there_by = config.roles.servers_file.empty() ? "roles.servers_at" : "roles.servers_file";
  refuse_if(problems, !config.roles.servers_at.empty() && !config.roles.servers_file.empty(), "roles.servers_file",
            "the servers are listed either in this file or in roles.servers_at; remove one of the two");
  refuse_if(problems, elsewhere && servers > 0, there_by,
            "servers that belong to no job leave nothing to do for roles.server: " + std::to_string(servers) +
                "; use one of the two");
  refuse_if(problems, elsewhere && !served, there_by, no_use);
  refuse_if(
      problems, elsewhere == config.roles.secret_file.empty(), "roles.secret_file",
      elsewhere
          ? std::string(there_by) + " needs it: set it to the secret file that the servers were started with"
          : "is the secret of the servers in roles.servers_at or roles.servers_file, but neither is set; remove it");
  const auto replicas = config.roles.replicas;
  const auto there = static_cast<std::int64_t>(config.roles.servers_at.size());
  refuse_if(problems, replicas > 1 && !config.roles.servers_file.empty(), "roles.replicas",
            "parts that have replicas cannot move to other servers; list the servers in roles.servers_at instead");
  refuse_if(
      problems, replicas > 1 && !elsewhere, "roles.replicas",
      "replicas need servers that belong to no job, since a job ends when one of its own servers dies; start them with "
      "tools:ps and list them in roles.servers_at");
  refuse_if(problems, replicas > 1 && !config.roles.servers_at.empty() && replicas > there, "roles.replicas",
            std::to_string(replicas) +
                " replicas of each part need at least as many servers, but the number in roles.servers_at is " +
                std::to_string(there));
  // Ranks with the same samples count as one.
  std::string sharing;
  for (const auto& [axis, size] : model_parallel_axes(config.mesh)) {
    if (axis != "expert") sharing += ", divided by mesh." + axis + ": " + std::to_string(size);
  }
  const auto shares = std::max<std::int64_t>(1, ranks / (config.mesh.pipe * config.mesh.tensor * config.mesh.context));
  refuse_if(problems, config.train.global_batch_size < shares, "train.global_batch_size",
            std::to_string(config.train.global_batch_size) + " samples cannot be divided among launch.ranks: " +
                std::to_string(launch.ranks) + less_servers + sharing);
  const auto most = (config.train.global_batch_size - 1) / shares + 1;
  refuse_if(problems, config.train.data_parallel > std::max<std::int64_t>(1, most), "train.data_parallel",
            std::to_string(config.train.data_parallel) + " replicas are more than the " + std::to_string(most) +
                " samples of a batch that a rank has; use " + std::to_string(most) + " at most");
  refuse_if(problems, config.strategy.traits().one_rank && ranks > config.mesh.pipe * config.mesh.tensor, "strategy",
            config.strategy.selected() + " trains on one rank, but launch.ranks is " + std::to_string(launch.ranks) +
                less_servers);
  refuse_if(problems, launch.with == "local" && !launch.hosts.empty(), "launch.with",
            "local starts ranks on this host only, but launch.hosts names others; use mpi");
  const bool threads = backend_traits(config.backend).threads;
  refuse_if(problems, threads && launch.with == "mpi", "launch.with",
            "mpi starts processes, but the ranks of backend " + config.backend + " are threads");
  refuse_if(problems, threads && !launch.hosts.empty(), "backend",
            "the ranks of " + config.backend + " are threads of one process, but launch.hosts names hosts");
}

// Returns the names of the backends whose ranks share memory: all of them, or at least those of each host.
std::string backends_that_share(bool all) {
  const auto share = [&](const BackendTraits& traits) {
    return traits.shared == BackendTraits::Memory::kAll ||
           (!all && traits.shared == BackendTraits::Memory::kWithinHosts);
  };
  return join(Backends::global().names_where(share), " or ");
}

// Refuses strategies that need shared memory with backends that move all data between ranks as messages. Ranks that a
// launcher has started check this themselves.
void check_shared_memory(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto traits = config.strategy.traits();
  const auto& launch = config.launch;
  const std::string key = "strategy" + (traits.shared_memory_key.empty() ? "" : "." + traits.shared_memory_key);
  const std::string who = traits.shared_memory_key.empty() ? config.strategy.selected() + " " : "";
  const bool by_messages =
      config.backend != "auto" && backend_traits(config.backend).shared == BackendTraits::Memory::kNone;
  const bool wanted = traits.shared_memory || traits.shared_memory_in_hosts;
  refuse_if(problems, wanted && by_messages && launch.ranks > 1, key.c_str(),
            who + "needs ranks that share memory, but the ranks of backend " + config.backend +
                " do not; use backend: " + backends_that_share(traits.shared_memory));
  refuse_if(problems, traits.shared_memory && launch.hosts.size() > 1, key.c_str(),
            who + "needs ranks that share memory, but launch.hosts names " + std::to_string(launch.hosts.size()) +
                " hosts; use one of them, or another strategy");
}

// Checks that the strategy suits the other settings.
void check_strategy(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& train = config.train;
  const auto traits = config.strategy.traits();
  const std::string& strategy = config.strategy.selected();
  refuse_if(problems, train.gradients == "sum" && !traits.reduces_gradients, "train.gradients",
            "sum needs gradients that are reduced in every step, which " + strategy + " does not do; use one of " +
                strategies_where(&StrategyTraits::reduces_gradients));
  const auto text = [](const auto& optimizer) { return config::dump_as("optimizer", optimizer); };
  refuse_if(problems, traits.servers_update && text(config.optimizer) != text(ExperimentConfig{}.optimizer),
            "optimizer",
            "remove it: with this strategy the servers update the parameters, as the strategy section specifies");
  refuse_if(problems, traits.servers_update && !config.parameter_groups.empty(), "parameter_groups",
            "servers that update the parameters do not know their names; remove it, or let the ranks update them");
  refuse_if(problems, train.precision == "fp16" && traits.remembers_gradients, "train.precision",
            "fp16 cannot be combined with compressed gradients, whose residual would keep an overflow forever; use "
            "bf16, or no compression");
  refuse_if(
      problems, train.ema_decay > 0 && traits.concurrent_updates, "train.ema_decay",
      "cannot be combined with strategy " + strategy + ", whose ranks would write averages into the shared parameters");
}

void check_training(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& train = config.train;
  refuse_if(problems, train.ema_decay == 1, "train.ema_decay", "must be below 1: at 1 the average never changes");
  refuse_if(problems, train.checkpoint_activations > 0 && train.data_parallel > 1, "train.checkpoint_activations",
            "cannot be combined with train.data_parallel: threads share one random number generator");
  refuse_if(problems, train.sync_batch_norm && train.data_parallel > 1, "train.data_parallel",
            "has replicas with separate batch norm statistics; remove train.sync_batch_norm, or use ranks instead");
  refuse_if(problems, config.loader.threads > 0 && config.loader.prefetch == 0, "loader.threads",
            "need batches to read ahead, but loader.prefetch is 0; set it to the number of batches");
  const double backoff = train.loss_scale.backoff;
  refuse_if(problems, backoff == 0 || backoff == 1, "train.loss_scale.backoff", "must be above 0 and below 1");
  const bool tested = config.evaluate.every_epochs > 0 || config.evaluate.every_steps > 0;
  refuse_if(problems, !train.early_stop.metric.empty() && !tested, "train.early_stop",
            "needs tests during training: set evaluate.every_epochs or evaluate.every_steps");
}

// Refuses operations that the replay of a recorded step omits: messages, and decisions of the host.
void check_cuda_graph(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (!config.train.cuda_graph) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with train.cuda_graph");
  };
  refuse(config.device == "cpu", "device", "must be one that records graphs, such as cuda,");
  refuse(!model_parallel_axes(config.mesh).empty(), "mesh",
         "has an axis whose ranks communicate within the step: only data can be used");
  refuse(config.train.sync_batch_norm, "train.sync_batch_norm", "must be false");
  refuse(config.train.data_parallel > 1, "train.data_parallel", "must be 1");
  refuse(config.train.checkpoint_activations > 0, "train.checkpoint_activations", "must be 0");
  refuse(config.train.accumulate > 1, "train.accumulate",
         "must be 1, since the parts of a batch differ from each other,");
  refuse(config.determinism == "world_size_invariant", "determinism", "must be run");
  refuse(!config.turns.empty(), "turns", "change what a step computes and cannot be combined");
}

// Refuses settings that cannot be combined with sharded gradients or values, which are communicated block by block and
// in each backward.
void check_shards(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (!config.strategy.traits().frees_gradients) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with strategy.stage above 1");
  };
  refuse(config.train.data_parallel > 1, "train.data_parallel",
         "must be 1, since its threads add up gradients after backward, when these are already freed,");
  refuse(!config.turns.empty(), "turns", "skip the gradients of some parameters and cannot be combined");
}

void check_loader(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& loader = config.loader;
  refuse_if(problems, loader.resident && loader.prefetch > 0, "loader.prefetch",
            "gathers batches on the CPU, and must be 0 with loader.resident");
  refuse_if(problems, loader.resident && config.device == "cpu", "loader.resident",
            "keeps samples in the memory of a device, but device is cpu");
  refuse_if(problems, !loader.shuffle && loader.sampler.selected() != "auto", "loader.shuffle",
            "is only for sampler: auto; remove it, since loader.sampler is " + loader.sampler.selected());
  try {
    refuse_if(problems, parse_bytes(loader.prefetch_bytes) < 0, "loader.prefetch_bytes", "must be at least 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "loader.prefetch_bytes", error.what());
  }
}

// Checks the parts of loader.shares that do not depend on the ranks.
void check_shares(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& shares = config.loader.shares;
  if (shares == "equal") return;
  refuse_if(problems, shares.find_first_not_of("0123456789:") != std::string::npos && shares != "measured",
            "loader.shares", "must be equal, measured or a share for each rank, such as 2:1; got " + shares);
  refuse_if(problems, config.determinism == "world_size_invariant", "loader.shares",
            "must be equal with determinism: world_size_invariant, whose virtual shards are equal");
  refuse_if(problems, shares == "measured" && config.train.sync_batch_norm, "loader.shares",
            "measured cannot be combined with train.sync_batch_norm, whose ranks wait for each other in forward and "
            "backward, so that all look equally slow; give each rank a share, such as 2:1");
}

// Refuses settings by which bits would depend on the number of ranks, and settings that need another reduction than the
// one with `world_size_invariant`.
void check_determinism(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (config.determinism != "world_size_invariant") return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with determinism: world_size_invariant");
  };
  const auto shards = config.train.virtual_shards;
  refuse(!config.strategy.traits().virtual_shards, "strategy",
         "must be " + join(Strategies::global().names_where(&StrategyTraits::virtual_shards), " or ") +
             ", without options,");
  refuse(config.launch.threads == 0, "launch.threads",
         "must be set, since results depend on how many threads share an operation,");
  refuse(shards % config.launch.ranks != 0, "train.virtual_shards",
         std::to_string(shards) + " cannot be divided among launch.ranks: " + std::to_string(config.launch.ranks));
  refuse(backend_traits(config.backend).threads && config.launch.ranks > 1, "backend",
         config.backend + " has ranks that share one random number generator, which cannot be combined");
  refuse(config.train.accumulate > 1, "train.accumulate", "must be 1: the virtual shards take its place");
  refuse(config.train.data_parallel > 1, "train.data_parallel", "must be 1");
  refuse(config.train.gradients == "sum", "train.gradients", "must be mean, since sums grow with the number of ranks,");
  refuse(config.train.sync_batch_norm, "train.sync_batch_norm", "must be false");
  const auto moving = [](const MeterConfig& meter) { return meter.meter.selected() == "moving_average"; };
  refuse(std::ranges::any_of(config.watch.meters, moving), "watch.meters",
         "moving_average, which rounds each rank's loss, cannot be combined");
}

void check_profile(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& profile = config.watch.profile;
  refuse_if(problems, profile.to < profile.from || (profile.from == 0 && profile.to > 0), "watch.profile",
            "a window from step " + std::to_string(profile.from) + " to " + std::to_string(profile.to) +
                " is empty; steps are numbered from 1");
  refuse_if(problems, profile.operators && profile.to - profile.from >= kMaxTracedSteps, "watch.profile",
            "a window of " + std::to_string(profile.to - profile.from + 1) +
                " steps with all operators would fill the memory; use " + std::to_string(kMaxTracedSteps) +
                " at most, or set operators: false");
}

// Returns true if a metric is always between 0 and 1.
bool is_share(const std::string& metric) {
  constexpr std::array kShares{"accuracy", "auc", "mean_average_precision"};
  return std::ranges::count(kShares, metric) > 0;
}

// Returns true if all `match` fields are valid regular expressions.
bool check_groups(std::vector<ConfigProblem>& problems, const ParameterGroups& groups) {
  const auto before = problems.size();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    try {
      (void)std::regex(groups[i].match, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      refuse_if(problems, true, ("parameter_groups[" + std::to_string(i) + "].match").c_str(),
                "\"" + groups[i].match + "\" is not a regular expression: " + error.what());
    }
  }
  return problems.size() == before;
}

void check_components(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  refuse_if_not_made(problems, "loss", config.loss);
  refuse_if(problems, config.evaluate.validation == 1, "evaluate.validation",
            "must be below 1, so that samples are left to train on");
  const ParameterGroups groups =
      check_groups(problems, config.parameter_groups) ? config.parameter_groups : ParameterGroups();
  refuse_if_not_made(problems, "optimizer", config.optimizer, groups);
  for (const auto& [name, turn] : config.turns) {
    refuse_if_not_made(problems, ("turns." + name + ".optimizer").c_str(), turn.optimizer, groups);
  }
  refuse_if_not_made(problems, "schedule", config.schedule);
  for (const auto& [split, expected] :
       {std::pair("train", &config.expect.train), std::pair("validation", &config.expect.validation),
        std::pair("test", &config.expect.test)}) {
    for (const auto& [metric, bounds] : *expected) {
      const std::string key = std::string("expect.") + split + "." + metric;
      refuse_if(problems, !bounds.min && !bounds.max, key.c_str(), "needs a min, a max or both");
      refuse_if(problems, bounds.min && bounds.max && *bounds.min > *bounds.max, key.c_str(),
                "its min is above its max, so no value is within both");
      const bool beyond = (bounds.min && *bounds.min > 1) || (bounds.max && *bounds.max < 0);
      refuse_if(problems, beyond && is_share(metric), key.c_str(), "cannot be met: it is always between 0 and 1");
    }
  }
}

void check_framework(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  for (auto& problem : problems_of(config.framework.selection, "config", "framework.selection")) {
    problems.push_back(std::move(problem));
  }
  refuse_unreadable(problems, config.framework.selection_file);
  const auto& bucket_bytes = config.framework.bucket_bytes;
  if (bucket_bytes == "auto") {
    refuse_if(problems, config.determinism == "world_size_invariant", "framework.bucket_bytes",
              "auto depends on measurements, so a different number of ranks may round differently; set a size");
    return;
  }
  if (bucket_bytes == "default") return;
  try {
    refuse_if(problems, parse_bytes(bucket_bytes) <= 0, "framework.bucket_bytes", "must be above 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.bucket_bytes", error.what());
    problems.back().suggestion = nearest(bucket_bytes, {"default", "auto"});
  }
}

}  // namespace

void check(const ExperimentConfig& config) {
  std::vector<ConfigProblem> problems;
  refuse_if(problems, config.model.selected().empty(), "model", "is missing: name a model (--help_config lists them)");
  check_name(problems, config.name);
  check_device(problems, config);
  check_ranks(problems, config);
  check_mesh(problems, config);
  check_shared_memory(problems, config);
  check_strategy(problems, config);
  check_training(problems, config);
  check_shards(problems, config);
  check_cuda_graph(problems, config);
  check_loader(problems, config);
  check_shares(problems, config);
  check_determinism(problems, config);
  check_profile(problems, config);
  check_components(problems, config);
  check_framework(problems, config);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace phalanx
