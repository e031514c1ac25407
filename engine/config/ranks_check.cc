// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_slots.h"
#include "models/embedding/wanted_servers.h"

namespace phalanx {
namespace {

void check_hosts(std::vector<ConfigProblem>& problems, const std::vector<std::string>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    try {
      (void)parse_host(hosts[i]);
    } catch (const ConfigError& error) {
      refuse_if(problems, true, ("launch.hosts[" + std::to_string(i) + "]").c_str(), error.what());
    }
  }
}

// Checks where the parameter servers are, and that something uses them.
void check_servers(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto servers = config.roles.server;
  refuse_if(problems, training_ranks(config) < 1, "roles.server",
            std::to_string(servers) + " of launch.ranks: " + std::to_string(config.launch.ranks) +
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
}

// Checks section roles: how many servers keep a copy of each shard.
void check_server_replicas(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& roles = config.roles;
  const auto replicas = roles.replicas;
  if (replicas == 1) return;
  const bool own = !roles.elsewhere();
  const auto there = own ? roles.server : static_cast<std::int64_t>(roles.servers_at.size());
  refuse_if(problems, !roles.servers_file.empty(), "roles.replicas",
            "parts that have replicas cannot move to other servers; list the servers in roles.servers_at instead");
  refuse_if(
      problems, own && !config.faults.shrinks(), "roles.replicas",
      "replicas need servers that belong to no job, since a job ends when one of its own servers dies; start "
      "them with tools:ps and list them in roles.servers_at, or set faults.on_lost_rank: shrink and roles.server");
  refuse_if(problems, (own ? config.faults.shrinks() : !roles.servers_at.empty()) && replicas > there, "roles.replicas",
            std::to_string(replicas) + " replicas of each part need at least as many servers, but the number in " +
                (own ? "roles.server" : "roles.servers_at") + " is " + std::to_string(there));
}

// Checks that the ranks that train can divide a batch. Ranks with the same samples count as one.
void check_division(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto servers = config.roles.server, ranks = training_ranks(config);
  const std::string less_servers = servers > 0 ? " minus roles.server: " + std::to_string(servers) : "";
  std::string sharing;
  for (const auto& [axis, size] : model_parallel_axes(config.mesh)) {
    if (axis != "expert") sharing += ", divided by mesh." + axis + ": " + std::to_string(size);
  }
  const auto shares = std::max<std::int64_t>(1, ranks / (config.mesh.pipe * config.mesh.tensor * config.mesh.context));
  refuse_if(problems, config.train.global_batch_size < shares, "train.global_batch_size",
            std::to_string(config.train.global_batch_size) + " samples cannot be divided among launch.ranks: " +
                std::to_string(config.launch.ranks) + less_servers + sharing);
  const auto most = (config.train.global_batch_size - 1) / shares + 1;
  refuse_if(problems, config.train.data_parallel > std::max<std::int64_t>(1, most), "train.data_parallel",
            std::to_string(config.train.data_parallel) + " replicas are more than the " + std::to_string(most) +
                " samples of a batch that a rank has; use " + std::to_string(most) + " at most");
  refuse_if(problems, config.strategy.traits().one_rank && ranks > config.mesh.pipe * config.mesh.tensor, "strategy",
            config.strategy.selected() + " trains on one rank, but launch.ranks is " +
                std::to_string(config.launch.ranks) + less_servers);
}

// Returns the key that sets what an option of mpirun (of Open MPI or Hydra) would set, or an empty string.
std::string key_instead_of(const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  constexpr std::array kNumbers = {"-np", "--np", "-n", "--n", "-c"};
  constexpr std::array kHosts = {
      "-host", "--host", "-H", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "--default-hostfile",
      "-f",    "-hosts"};
  constexpr std::array kVariables = {"-x", "-genvlist", "-envlist"};
  if (std::ranges::find(kNumbers, option) != kNumbers.end()) return "launch.ranks";
  if (std::ranges::find(kHosts, option) != kHosts.end()) return "launch.hosts";
  const bool variables = std::ranges::find(kVariables, option) != kVariables.end();
  return variables ? "launch.pass_variables" : "";
}

bool is_variable_name(std::string_view name) {
  if (name.ends_with('*')) name.remove_suffix(1);
  return !name.empty() && (name.front() < '0' || name.front() > '9') && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void check_mpirun(std::vector<ConfigProblem>& problems, const LaunchConfig& launch) {
  const auto& options = launch.mpirun_options;
  refuse_if(problems, (launch.with == "local" || launch.by_agents()) && !options.empty(), "launch.mpirun_options",
            "launch.with: " + launch.with + " starts ranks without mpirun; use mpi");
  refuse_if(
      problems, !options.empty() && !options.front().starts_with('-'), "launch.mpirun_options[0]",
      "\"" + (options.empty() ? "" : options.front()) + "\" is not an option: mpirun would start it as the program");
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string place = "launch.mpirun_options[" + std::to_string(i) + "]";
    const std::string key = key_instead_of(options[i]);
    refuse_if(problems, !key.empty(), place.c_str(), options[i] + " is set by " + key);
    refuse_if(problems, launch.bind_to != "none" && options[i].find("-bind-to") < 2, place.c_str(),
              "launch.bind_to: " + launch.bind_to + " binds the ranks; use one of the two");
  }
  for (std::size_t i = 0; i < launch.pass_variables.size(); ++i) {
    refuse_if(problems, !is_variable_name(launch.pass_variables[i]),
              ("launch.pass_variables[" + std::to_string(i) + "]").c_str(),
              "\"" + launch.pass_variables[i] + "\" is not the name of a variable, nor the beginning of names and *");
  }
}

// Checks that the ranks can be started in this way.
void check_start(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& launch = config.launch;
  refuse_if(problems, launch.with == "local" && !launch.hosts.empty(), "launch.with",
            "local starts ranks on this host only, but launch.hosts names others; use mpi or ssh");
  const bool agents = launch.by_agents();
  refuse_if(problems, launch.with == "ssh" && launch.hosts.empty(), "launch.with",
            "ssh starts ranks on the hosts in launch.hosts, which names none; name some, or use local");
  refuse_if(
      problems, agents && backend_traits(config.backend).mpi, "launch.with",
      launch.with + " starts ranks without MPI, which backend " + config.backend + " needs; use mpi, or backend: gloo");
  for (const auto& rule : config.framework.selection) {
    refuse_if(problems, agents && backend_traits(rule.backend).mpi, "launch.with",
              launch.with + " starts ranks without MPI, which backend " + rule.backend +
                  " of framework.selection needs; use mpi, or remove this rule");
  }
  const bool threads = backend_traits(config.backend).threads;
  refuse_if(problems, threads && (launch.with == "mpi" || launch.with == "srun"), "launch.with",
            launch.with + " starts processes, but the ranks of backend " + config.backend + " are threads");
  refuse_if(problems, threads && !launch.hosts.empty(), "backend",
            "the ranks of " + config.backend + " are threads of one process, but launch.hosts names hosts");
}

void check_restarts(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& checkpoint = config.checkpoint;
  const bool saves = checkpoint.every_steps > 0 || checkpoint.every_epochs > 0 || checkpoint.keep_best > 0;
  refuse_if(problems, config.launch.restarts > 0 && !saves, "launch.restarts",
            "a job that is started again goes on from a checkpoint, but this one writes none; set "
            "checkpoint.every_steps or checkpoint.every_epochs");
}

}  // namespace

void check_ranks(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  check_hosts(problems, config.launch.hosts);
  check_servers(problems, config);
  check_server_replicas(problems, config);
  check_division(problems, config);
  check_start(problems, config);
  check_restarts(problems, config);
  check_mpirun(problems, config.launch);
}

}  // namespace phalanx
