// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/launch_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch/host_network.h"
#include "framework/comm/launch/node_list.h"

namespace phalanx {
namespace {

// Reads variables and converts them. Errors name the variable and, if one is missing, the other variable that requires
// it.
class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> text(const std::string& name) const { return variables_(name); }
  bool has(const std::string& name) const { return text(name).has_value(); }

  std::string text_required_by(const std::string& present, const std::string& name) const {
    if (auto value = text(name)) return *value;
    throw ConfigError("environment: " + present + " is set, but " + name + " is not");
  }

  std::optional<int> number(const std::string& name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    int number = 0;
    const char* end = value->data() + value->size();
    const auto [rest, error] = std::from_chars(value->data(), end, number);
    if (error == std::errc() && rest == end && number >= 0) return number;
    throw ConfigError("environment variable " + name + ": expected a whole number, got \"" + *value + "\"");
  }

  int number_required_by(const std::string& present, const std::string& name) const {
    text_required_by(present, name);
    return *number(name);
  }

  // Returns a rank and the number of ranks.
  std::pair<int, int> position(const std::string& rank_name, const std::string& size_name) const {
    const int rank = number_required_by(size_name, rank_name);
    const int size = number_required_by(rank_name, size_name);
    if (rank < size) return {rank, size};
    throw ConfigError("environment: " + rank_name + "=" + std::to_string(rank) + " is not below " + size_name + "=" +
                      std::to_string(size));
  }

 private:
  const Variables& variables_;
};

std::string file_name_of(std::string text) {
  constexpr std::size_t kLongest = 120;  // a file name may have 255 bytes, and others add to this one
  if (text.size() > kLongest) text = text.substr(text.size() - kLongest);
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  }
  return text;
}

std::string as_rank(const RankInfo& rank_info) {
  return "?rank=" + std::to_string(rank_info.rank) + "&world_size=" + std::to_string(rank_info.size);
}

// Returns the URL of a file that belongs to the user. `job` contains the launcher's port, which differs even if process
// ids and job ids start again from 1 (a container, a new Slurm). A file that a killed start has left under the same
// name is emptied (FileClaim).
std::string file_for(const Reader& reader, const std::string& job, const RankInfo& rank_info) {
  const std::string folder = reader.text("TMPDIR").value_or("/tmp");
  return "file://" + folder + "/phalanx-" + std::to_string(::geteuid()) + "-" + job + ".store" + as_rank(rank_info);
}

RankInfo read_torchrun_rank_info(const Reader& reader) {
  RankInfo rank_info;
  std::tie(rank_info.rank, rank_info.size) = reader.position("RANK", "WORLD_SIZE");
  if (reader.has("LOCAL_WORLD_SIZE")) {
    std::tie(rank_info.local_rank, rank_info.local_size) = reader.position("LOCAL_RANK", "LOCAL_WORLD_SIZE");
    return rank_info;
  }
  // Scripts do not set it. Only a loopback address shows that all ranks are on this host; otherwise each rank counts as
  // alone on its host until the ranks have met.
  const auto address = reader.text("MASTER_ADDR").value_or("");
  const bool here = address == "localhost" || address == "::1" || address == "[::1]" || address.starts_with("127.");
  if (!here) return rank_info;
  std::tie(rank_info.local_rank, rank_info.local_size) = reader.has("LOCAL_RANK")
                                                             ? reader.position("LOCAL_RANK", "WORLD_SIZE")
                                                             : std::pair(rank_info.rank, rank_info.size);
  return rank_info;
}

LaunchEnvironment from_local(const Reader& reader) {
  const auto url = reader.text_required_by("PHALANX_LAUNCHER", "PHALANX_RENDEZVOUS");
  return {"local", read_torchrun_rank_info(reader), url,
          file_name_of("local" + url.substr(std::min(url.find("//"), url.size())))};
}

LaunchEnvironment from_torchrun(const Reader& reader) {
  const auto rank_info = read_torchrun_rank_info(reader);
  const auto address = reader.text_required_by("RANK", "MASTER_ADDR");
  const auto port = reader.number_required_by("RANK", "MASTER_PORT");
  const auto job = "torchrun-" + reader.text("TORCHELASTIC_RUN_ID").value_or("none") + "-" + address + "-" +
                   std::to_string(port) + "-" + reader.text("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return {"torchrun", rank_info, "env://", file_name_of(job), reader.has("LOCAL_WORLD_SIZE")};
}

// An mpirun script may also export torchrun's variables with mpirun's values. Other values are a mistake in the script.
void check_same(const Reader& reader, const std::string& name, const std::string& mpi_name) {
  const auto value = reader.number(name);
  const auto mpi_value = reader.number(mpi_name);
  if (!value || value == mpi_value) return;
  throw ConfigError("environment: " + name + "=" + std::to_string(*value) + " contradicts " + mpi_name + "=" +
                    std::to_string(*mpi_value) + "; unset " + name);
}

// Returns the URL of the file in which ranks of one host meet. Our own launcher removes it, however the ranks end.
std::string file_of_mpi_job(const Reader& reader, const LaunchEnvironment& found) {
  const auto own = reader.has("PHALANX_LAUNCHER") ? reader.text("PHALANX_RENDEZVOUS") : std::nullopt;
  return own ? *own + as_rank(found.rank_info) : file_for(reader, found.job, found.rank_info);
}

LaunchEnvironment from_mpirun(const Reader& reader) {
  LaunchEnvironment found{.launcher = "mpirun", .rank_info = {}, .mpi = true};
  auto& rank_info = found.rank_info;
  std::tie(rank_info.rank, rank_info.size) = reader.position("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  std::tie(rank_info.local_rank, rank_info.local_size) =
      reader.position("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  check_same(reader, "RANK", "OMPI_COMM_WORLD_RANK");
  check_same(reader, "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE");

  std::string job = "mpirun-" + reader.text_required_by("OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE");
  for (const char* name : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2"}) {
    const auto address = reader.text(name);  // ...;tcp4://127.0.0.1:59553
    if (!address) continue;
    // Each host has its own server.
    if (rank_info.one_host()) job += "-" + address->substr(address->rfind(':') + 1);
    break;
  }
  found.job = file_name_of(job);
  if (rank_info.one_host()) found.rendezvous = file_of_mpi_job(reader, found);
  return found;
}

bool is_hydra(const Reader& reader) {
  return reader.has("PMI_RANK") && reader.has("PMI_SIZE") && reader.has("MPI_LOCALRANKID") &&
         reader.has("MPI_LOCALNRANKS");
}

// Without the proxy, whose id distinguishes the jobs of a host, the ranks meet through MPI on one host, too.
LaunchEnvironment from_hydra(const Reader& reader, const FindProxy& find_proxy) {
  LaunchEnvironment found{.launcher = "mpiexec", .rank_info = {}, .mpi = true};
  auto& rank_info = found.rank_info;
  std::tie(rank_info.rank, rank_info.size) = reader.position("PMI_RANK", "PMI_SIZE");
  std::tie(rank_info.local_rank, rank_info.local_size) = reader.position("MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  const auto proxy = find_proxy();
  found.job = file_name_of("mpiexec-" + (proxy ? proxy->id : "unknown"));
  if (rank_info.one_host() && (proxy || reader.has("PHALANX_LAUNCHER"))) {
    found.rendezvous = file_of_mpi_job(reader, found);
  }
  return found;
}

// Slurm sets SLURM_PROCID=0 and SLURM_NTASKS in batch scripts and shells too. A process is a rank only if srun started
// it, in a step with a number. The last numbers are reserved for the batch script, the interactive shell and so on.
bool in_slurm_step(const Reader& reader) {
  constexpr std::uint32_t kFirstReserved = 0xfffffff0;
  const auto step = reader.text("SLURM_STEP_ID");
  if (!step || !reader.has("SLURM_PROCID")) return false;
  std::uint32_t number = 0;
  const char* end = step->data() + step->size();
  const auto [rest, error] = std::from_chars(step->data(), end, number);
  return error == std::errc() && rest == end && number < kFirstReserved;
}

// Returns the number of tasks on node `node` of a list such as "2(x3),1".
int tasks_on_node(const std::string& list, int node) {
  const auto tasks = parse_task_counts(list);
  if (tasks && static_cast<std::size_t>(node) < tasks->size()) return (*tasks)[static_cast<std::size_t>(node)];
  throw ConfigError("environment variable SLURM_STEP_TASKS_PER_NODE: cannot read \"" + list + "\"");
}

// Returns a port for a step of Slurm, below those that the system gives to outgoing connections. Different steps have
// different ports, even if they follow each other at once on the same node. srun --resv-ports reserves some.
int port_of_step(const Reader& reader) {
  constexpr std::uint32_t kFirst = 16'384, kPorts = 16'384;
  if (const auto reserved = reader.text("SLURM_STEP_RESV_PORTS")) {
    int port = 0;
    const auto [rest, error] = std::from_chars(reserved->data(), reserved->data() + reserved->size(), port);
    if (error == std::errc() && port > 0 && port < 65'536) return port;
  }
  const auto number = [&](const std::string& name) {
    return static_cast<std::uint32_t>(reader.number(name).value_or(0));
  };
  const auto job = number("SLURM_JOB_ID") * 37 + number("SLURM_STEP_ID") * 5 + number("SLURM_RESTART_COUNT");
  return static_cast<int>(kFirst + job % kPorts);
}

// Returns the URL of a store on the node of task 0, which is the first of the step's nodes. Returns an empty text if
// Slurm does not name them.
std::string first_node_for(const Reader& reader, const RankInfo& rank_info) {
  std::string host = reader.text("MASTER_ADDR").value_or("");
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (!host.empty()) break;
    const auto list = reader.text(name).value_or("");
    if (!list.empty()) host = expand_node_list(list).front();
  }
  if (host.empty()) return "";
  const int port = reader.number("MASTER_PORT").value_or(port_of_step(reader));
  return "tcp://" + with_port(host, port) + as_rank(rank_info);
}

std::optional<LaunchEnvironment> from_slurm(const Reader& reader) {
  const std::string tasks = reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  LaunchEnvironment found{.launcher = "srun", .rank_info = {}, .mpi = reader.has("PMIX_RANK")};
  auto& rank_info = found.rank_info;
  std::tie(rank_info.rank, rank_info.size) = reader.position("SLURM_PROCID", tasks);
  if (rank_info.size < 2) return std::nullopt;
  rank_info.local_rank = reader.number_required_by("SLURM_PROCID", "SLURM_LOCALID");
  const auto nodes = reader.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  if (reader.number_required_by("SLURM_PROCID", nodes) == 1) {
    rank_info.local_size = rank_info.size;
  } else {
    rank_info.local_size = tasks_on_node(reader.text_required_by("SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE"),
                                         reader.number_required_by("SLURM_PROCID", "SLURM_NODEID"));
  }
  found.job = file_name_of("slurm-" + reader.text_required_by("SLURM_PROCID", "SLURM_JOB_ID") + "." +
                           *reader.text("SLURM_STEP_ID") + "." + reader.text("SLURM_RESTART_COUNT").value_or("0") +
                           "-" + reader.text("SLURM_STEP_LAUNCHER_PORT").value_or("0"));
  if (rank_info.one_host()) {
    found.rendezvous = file_for(reader, found.job, rank_info);
  } else if (!found.mpi) {
    found.rendezvous = first_node_for(reader, rank_info);
  }
  return found;
}

// A launcher that gives a process its rank, but not the place where the ranks can meet.
struct OtherLauncher {
  const char* name;
  const char* rank;
  const char* size = nullptr;  // null: the launcher has no such variable
  const char* local_rank = nullptr;
  const char* local_size = nullptr;
};

constexpr OtherLauncher kOtherLaunchers[] = {
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},  // with MASTER_ADDR, or not of Hydra
    {"mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"PALS", "PALS_RANKID"},
    {"aprun", "ALPS_APP_PE"},
    {"a launcher with PMIx", "PMIX_RANK"},
    {"a launcher with PMI", "PMI_ID"},
};

[[noreturn]] void refuse_other(const Reader& reader, const OtherLauncher& launcher) {
  const std::string rank = launcher.rank;
  std::string variables = rank + "=" + *reader.text(rank);
  if (launcher.size) variables += ", " + std::string(launcher.size) + "=" + *reader.text(launcher.size);
  const std::string remedy = launcher.size ? "set MASTER_ADDR (rank 0's host) and MASTER_PORT (a free port there)"
                                           : "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";
  throw ConfigError("environment: " + std::string(launcher.name) + " started this process as one of several ranks (" +
                    variables + "), but nothing says where they can meet; " + remedy +
                    " for all of them, or start them by Open MPI's mpirun, torchrun, srun, or launch.ranks and " +
                    "launch.hosts. To run this process alone, unset " + rank);
}

LaunchEnvironment from_other(const Reader& reader, const OtherLauncher& launcher, const RankInfo& rank_info) {
  const auto address = reader.text("MASTER_ADDR");
  if (!address) refuse_other(reader, launcher);
  const int port = reader.number_required_by("MASTER_ADDR", "MASTER_PORT");
  LaunchEnvironment found{.launcher = launcher.name,
                          .rank_info = rank_info,
                          .rendezvous = "tcp://" + with_port(*address, port) + as_rank(rank_info),
                          .job = file_name_of(std::string(launcher.name) + "-" + with_port(*address, port))};
  found.knows_local_rank = launcher.local_size && reader.has(launcher.local_size);
  if (!found.knows_local_rank) return found;
  std::tie(found.rank_info.local_rank, found.rank_info.local_size) =
      reader.position(launcher.local_rank, launcher.local_size);
  return found;
}

// Returns the environment of the first such launcher that started this process as one of several ranks.
std::optional<LaunchEnvironment> from_others(const Reader& reader) {
  for (const auto& launcher : kOtherLaunchers) {
    if (!reader.has(launcher.rank)) continue;
    if (launcher.size) {
      RankInfo rank_info;
      std::tie(rank_info.rank, rank_info.size) = reader.position(launcher.rank, launcher.size);
      return rank_info.size > 1 ? std::optional(from_other(reader, launcher, rank_info)) : std::nullopt;
    }
    if (!in_slurm_step(reader)) refuse_other(reader, launcher);  // a Slurm step of one task sets it too
  }
  return std::nullopt;
}

// Returns true if mpiexec started the ranks from within the tasks of a Slurm step, one on each host.
bool is_mpiexecs(const Reader& reader, const RankInfo& task) {
  return reader.has("PMI_RANK") && reader.has("PMI_SIZE") &&
         (reader.number("PMI_RANK") != task.rank || reader.number("PMI_SIZE") != task.size);
}

}  // namespace

std::optional<LaunchEnvironment> detect_launch_environment(const Variables& variables, const FindProxy& find_proxy) {
  // The innermost launcher comes first: torchrun and our own launcher run inside the tasks of srun and mpirun, and
  // mpirun inside the tasks of srun.
  const Reader reader(variables);
  const auto own = reader.text("PHALANX_LAUNCHER");
  if (own && *own != "local" && *own != "mpi") {
    throw ConfigError("environment variable PHALANX_LAUNCHER: expected local or mpi, got \"" + *own + "\"");
  }
  if (own == "local") return from_local(reader);
  if (reader.has("TORCHELASTIC_RUN_ID")) return from_torchrun(reader);
  if (reader.has("OMPI_COMM_WORLD_RANK")) return from_mpirun(reader);
  if (own == "mpi" && is_hydra(reader)) return from_hydra(reader, find_proxy);
  if (own == "mpi") {
    throw ConfigError("environment: PHALANX_LAUNCHER=mpi, but neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set");
  }
  if (reader.has("RANK") || reader.has("WORLD_SIZE")) return from_torchrun(reader);
  if (in_slurm_step(reader)) {
    if (const auto found = from_slurm(reader); found && !is_mpiexecs(reader, found->rank_info)) return found;
  }
  const bool several = reader.number("PMI_SIZE").value_or(1) > 1;
  if (several && is_hydra(reader) && !reader.has("MASTER_ADDR")) return from_hydra(reader, find_proxy);
  return from_others(reader);
}

std::optional<LaunchEnvironment> detect_launch_environment() { return detect_launch_environment(&environment); }

}  // namespace phalanx
