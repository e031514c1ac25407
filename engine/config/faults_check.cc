// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/comm/backend.h"
#include "models/embedding/wanted_servers.h"

namespace phalanx {
namespace {

constexpr const char* kKey = "faults.on_lost_rank";
constexpr std::int64_t kMostShards = 10000;  // more than any run can use
constexpr const char* kOrStop = ", or set faults.on_lost_rank: stop";

// Returns true if the ranks that are left have all parameters and optimizer state together, if they have copies of what
// only one rank has.
bool can_be_copied(const StrategyTraits& traits) {
  return traits.reduces_gradients && !traits.parameter_servers && !traits.servers_update && !traits.concurrent_updates;
}

bool shrinks(const std::string& backend) { return backend == "auto" || backend_traits(backend).shrinks; }

// Returns true if the backend connects ranks of several hosts, by itself or by another backend.
bool connects_hosts(const std::string& backend) {
  const auto traits = backend_traits(backend);
  return backend == "auto" || traits.connects_hosts || traits.shared == BackendTraits::Memory::kWithinHosts;
}

// Returns true if a rule of framework.selection names the backend of all other operations, also once other hosts have
// joined. A second one could not be rebuilt.
bool is_only_backend(const std::string& of_rule, const ExperimentConfig& config) {
  if (config.faults.lets_join(config.launch.ranks)) return of_rule == kOwn || of_rule == config.backend;
  const auto world = config.launch.on_several_hosts() ? WorldKind::kHosts : WorldKind::kOneHost;
  if (config.backend == "auto") return of_rule == kOwn || backend_traits(of_rule).automatic == world;
  return of_rule == kOwn || of_rule == config.backend;
}

// Returns true if mpirun starts the ranks of the job.
bool by_mpirun(const ExperimentConfig& config) {
  const auto& launch = config.launch;
  if (launch.by_agents()) return false;
  return launch.with == "mpi" || !launch.hosts.empty() || backend_traits(config.backend).mpi;
}

// Refuses ranks that other launchers start, and those that cannot agree on who is left.
void check_places(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, kKey, config.faults.on_lost_rank + " " + message + kOrStop);
  };
  refuse(!shrinks(config.backend), "needs a backend whose ranks agree on who is left, which those of " +
                                       config.backend + " cannot; set backend: shm or gloo");
  refuse(std::ranges::any_of(config.framework.selection,
                             [&](const auto& rule) { return !is_only_backend(rule.backend, config); }),
         "cannot rebuild other backends in framework.selection; remove these rules");
  const auto& launch = config.launch;
  const bool agents = launch.by_agents(), mpi = backend_traits(config.backend).mpi;
  refuse(!mpi && by_mpirun(config) && !config.faults.replaces(),  // see check_replacement()
         "needs backend: mpi if mpirun starts the ranks; set it, or remove launch.hosts and set launch.with: local, or "
         "set launch.with: ssh for several hosts, or srun for those of a Slurm job");
  refuse(agents && launch.on_several_hosts() && !connects_hosts(config.backend),
         "needs a backend whose ranks agree on who is left across hosts; set backend: auto");
  refuse(config.device != "auto" && config.device != "cpu", "works on the CPU only; set device: cpu");
}

// Returns true if the run begins with this number of ranks. A job that is started again without a host, or resumed, may
// have fewer ranks than it began with.
bool begins(const ExperimentConfig& config) { return config.checkpoint.resume == "none"; }

// Returns true if a replica consists of several ranks. Refuses a run that begins with a single one, which any lost rank
// would break.
bool check_number_of_replicas(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  std::int64_t ranks = 1;
  std::string axes;
  for (const auto& [axis, size] : model_parallel_axes(config.mesh)) {
    ranks *= size;
    axes += (axes.empty() ? "mesh." : ", mesh.") + axis + ": " + std::to_string(size);
  }
  refuse_if(problems, ranks > 1 && config.launch.ranks < 2 * ranks && begins(config), kKey,
            config.faults.on_lost_rank + " goes on with the other replicas, but with " + axes +
                " all ranks are one replica; set launch.ranks: " + std::to_string(2 * ranks) +
                " or a higher multiple of " + std::to_string(ranks) + kOrStop);
  return ranks > 1;
}

// Refuses jobs with parameter servers that could not go on without a rank of either kind.
void check_lost_servers(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, kKey, config.faults.on_lost_rank + " " + message + kOrStop);
  };
  const auto& roles = config.roles;
  refuse(wants_servers(config.model),
         "cannot keep rows of embeddings that are on parameter servers; set the model's embeddings: local");
  refuse(roles.elsewhere(),
         "needs parameter servers that are ranks of the job, so that they notice a loss; set roles.server instead of " +
             std::string(roles.servers_file.empty() ? "roles.servers_at" : "roles.servers_file"));
  const auto traits = config.strategy.traits();
  if (!traits.parameter_servers) return;
  const std::string strategy = config.strategy.selected();
  refuse(!traits.keeps_centre, "needs a strategy whose ranks do not wait for all others, which those of " + strategy +
                                   " with these settings do; set strategy: downpour, ssp, dc_asgd or easgd, or "
                                   "all_reduce without roles.server");
  refuse(traits.keeps_centre && roles.server == 0 && !roles.elsewhere(),
         "loses a part of the parameters with each rank if all ranks serve, as with strategy " + strategy +
             " and without roles.server; set roles.server");
  if (roles.server == 0) return;
  const auto backend = backend_traits(config.backend);
  const bool local = config.backend == "auto" ||
                     (!backend.threads && !backend.mpi && backend.shared != BackendTraits::Memory::kWithinHosts);
  refuse(!local, "with parameter servers needs ranks that are processes of one host; set backend: shm or gloo");
  refuse(config.launch.on_several_hosts() || config.launch.by_agents(),
         "with parameter servers works on one host only; remove launch.hosts and set launch.with: local");
  refuse(!model_parallel_axes(config.mesh).empty(),
         "with parameter servers needs a whole replica on each rank; remove section mesh");
  refuse(config.faults.replaces(), "cannot replace ranks of a job with parameter servers; set shrink");
  refuse(config.faults.keeps_batch_per_rank(),
         "with parameter servers keeps the global batch; set faults.batch: global");
}

// Refuses ranks that have something that no other rank has, and that cannot be copied.
void check_replicas(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, kKey, config.faults.on_lost_rank + " " + message + kOrStop);
  };
  const bool divided = check_number_of_replicas(problems, config);
  const auto traits = config.strategy.traits();
  const bool chosen = config.strategy.selected() != "auto", copied = can_be_copied(traits);
  refuse(chosen && !copied && !traits.parameter_servers,
         "needs a strategy by which all ranks have the same values after each step, which " +
             config.strategy.selected() + " does not give; set strategy: all_reduce, overlapped or sharded");
  const bool copies = config.faults.copies_every > 0;
  refuse_if(problems, divided && !copies, "faults.copies_every",
            "0, but with this mesh each rank has a part of a replica, and all replicas go back to a copy when one is "
            "lost; set 10" +
                std::string(kOrStop));
  refuse_if(problems, !divided && chosen && copied && !traits.ranks_are_equal() && !copies, "faults.copies_every",
            "0, but with these settings of strategy " + config.strategy.selected() +
                " each rank has state that no other rank has, and that is lost with it; set 10, or set "
                "faults.on_lost_rank: stop");
}

// Refuses what depends on the number of ranks with which the run began.
void check_fixed_numbers(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, kKey, config.faults.on_lost_rank + " " + message + kOrStop);
  };
  const auto& framework = config.framework;
  refuse(!framework.record.empty(),
         "changes the number of ranks, which a recording cannot follow; remove framework.record");
  refuse(framework.tune == "auto", "cannot tune again for fewer ranks; set framework.tune: \"off\"");
  refuse(!framework.selection_file.empty(),
         "cannot use rules that were measured for one number of ranks; remove framework.selection_file");
  refuse(!framework.topology.levels.empty(),
         "cannot divide fewer ranks by these levels; remove framework.topology.levels");
  refuse(config.loader.shares != "equal", "divides batches equally; set loader.shares: equal");
  refuse(config.train.digests > 0, "begins steps again, which digests cannot follow; set train.digests: 0");
  refuse(config.expect.traffic.tolerance.has_value(),
         "changes the number of ranks, and with it their traffic; remove expect.traffic");
}

// With determinism: world_size_invariant, each number of ranks must divide the virtual shards. Several ranks may be
// lost at once, and a run with fewer ranks than faults.min_ranks is saved after one more step.
void check_shards_of_fewer_ranks(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto shards = config.train.virtual_shards;
  const std::int64_t most = std::max(config.launch.ranks, config.faults.max_ranks);
  std::int64_t multiple = 1;
  for (std::int64_t ranks = 1; ranks <= most && multiple <= kMostShards; ++ranks) {
    multiple = std::lcm(multiple, ranks);
  }
  const std::string remedy = multiple > kMostShards ? "use fewer ranks, or set determinism: run"
                                                    : "set it to a multiple of " + std::to_string(multiple);
  refuse_if(problems, shards % multiple != 0, "train.virtual_shards",
            std::to_string(shards) + " cannot be divided among each number of ranks from 1 to " + std::to_string(most) +
                ", which may be left with faults.on_lost_rank: " + config.faults.on_lost_rank + "; " + remedy);
}

// Refuses jobs in which no process can be started for a lost rank, or could not take its place.
void check_replacement(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, kKey, "replace " + message + ", or set faults.on_lost_rank: shrink");
  };
  refuse(config.backend != "auto" && backend_traits(config.backend).threads,
         "needs ranks that are processes, but those of " + config.backend + " are threads; set backend: shm or gloo");
  const bool mpi = backend_traits(config.backend).mpi;
  refuse_if(problems, by_mpirun(config), kKey,
            "replace needs a launcher that can start one more rank, which mpirun cannot; set launch.with: local, or "
            "ssh for several hosts, or srun for those of a Slurm job" +
                std::string(mpi ? ", and backend: auto, or set faults.on_lost_rank: shrink" : kOrStop));
  std::int64_t ranks = 1;
  for (const auto& [axis, size] : model_parallel_axes(config.mesh)) ranks *= size;
  refuse_if(problems, config.faults.replacements < ranks, "faults.replacements",
            std::to_string(config.faults.replacements) + ", but a replica has " + std::to_string(ranks) +
                " ranks, which are lost together, so no replica could be replaced; set it to " + std::to_string(ranks) +
                " at least, or set faults.on_lost_rank: shrink");
}

// Returns the number of ranks that have the same samples.
std::int64_t ranks_per_share(const MeshConfig& mesh) { return mesh.pipe * mesh.tensor * mesh.context; }

// Refuses jobs that hosts cannot join.
void check_joining(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto most = config.faults.max_ranks, ranks = config.launch.ranks;
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, "faults.max_ranks", std::to_string(most) + message);
  };
  refuse(!config.faults.replaces(), ": ranks can join only with faults.on_lost_rank: replace; set it, or set 0");
  refuse(most < ranks,
         " ranks are fewer than the " + std::to_string(ranks) + " of launch.ranks; set a higher number, or 0");
  const auto batch = config.train.global_batch_size, sharing = ranks_per_share(config.mesh);
  refuse(!config.faults.keeps_batch_per_rank() && batch < most / sharing,
         " ranks cannot divide a batch of " + std::to_string(batch) + " samples (train.global_batch_size); set " +
             std::to_string(batch * sharing) + " at most");
  refuse(
      config.strategy.traits().one_rank && config.faults.lets_join(ranks),
      ": no rank can join a run by strategy: " + config.strategy.selected() + ", which trains on one rank; set auto");
  const bool one_host = config.backend != "auto" && !connects_hosts(config.backend);
  refuse(config.faults.lets_join(ranks) && one_host,
         ": ranks of other hosts cannot join by backend: " + config.backend + "; set backend: auto, gloo or hybrid");
}

// Refuses what cannot follow a global batch that changes with the number of ranks.
void check_batch_per_rank(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto batch = config.train.global_batch_size;
  const auto shares = std::max<std::int64_t>(config.launch.ranks / ranks_per_share(config.mesh), 1);
  const char* const sharing = shares == config.launch.ranks ? " ranks" : " groups of ranks with the same samples";
  const auto refuse = [&](bool wrong, const std::string& message) {
    refuse_if(problems, wrong, "faults.batch", "per_rank " + message + ", or set faults.batch: global");
  };
  refuse(config.determinism == "world_size_invariant",
         "changes the global batch, and with it the results, when a rank is lost; set determinism: run");
  refuse(config.train.max_steps > 0,
         "takes more steps for the same samples when a rank is lost, so train.max_steps would end the run after fewer "
         "samples, before its schedule ends; set train.epochs instead");
  refuse(begins(config) && batch % shares != 0,
         "needs the same batch on each rank, but " + std::to_string(shares) + sharing +
             " cannot divide train.global_batch_size: " + std::to_string(batch) + " equally; set it to " +
             std::to_string((batch / shares + 1) * shares));
}

}  // namespace

void check_faults(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& faults = config.faults;
  refuse_if(problems, faults.min_ranks > config.launch.ranks, "faults.min_ranks",
            std::to_string(faults.min_ranks) + " ranks are more than the " + std::to_string(config.launch.ranks) +
                " of launch.ranks; set it to " + std::to_string(config.launch.ranks) + " at most");
  if (faults.max_ranks > 0) check_joining(problems, config);
  if (!faults.shrinks()) return;
  check_places(problems, config);
  check_lost_servers(problems, config);
  check_replicas(problems, config);
  check_fixed_numbers(problems, config);
  if (faults.keeps_batch_per_rank()) check_batch_per_rank(problems, config);
  if (faults.replaces()) check_replacement(problems, config);
  if (config.determinism == "world_size_invariant") check_shards_of_fewer_ranks(problems, config);
}

}  // namespace phalanx
