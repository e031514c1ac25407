// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/diagnosis.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/text.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/launch/launch_environment.h"
#include "tools/doctor/capture.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPatience{90};
constexpr int kCoreLinks = 16;

// Returns the lines of the launcher's frame up to the first empty one, joined: the failure without its log.
std::string framed(const std::string& text, std::size_t begin) {
  const std::string bar = "│ ";
  std::string joined;
  while (begin < text.size() && text.compare(begin, bar.size(), bar) == 0) {
    const auto end = std::min(text.find('\n', begin), text.size());
    joined += (joined.empty() ? "" : " ") + text.substr(begin + bar.size(), end - begin - bar.size());
    begin = end + 1;
  }
  return joined;
}

// Returns in one line the last output of a program that explains its end.
std::string reason(const ProgramOutput& ended) {
  if (ended.late) return "no answer within " + std::to_string(kPatience.count()) + " s";
  const std::string text = ended.errors.empty() ? "exit status " + std::to_string(ended.status) : ended.errors;
  if (const auto frame = text.find("│ "); frame != std::string::npos) return framed(text, frame);
  return text.substr(0, text.find('\n'));
}

// One JSON document, or the reason why it is missing.
struct Answer {
  json document;
  std::string problem;
};

Answer ask(std::vector<std::string> command) {
  const ProgramOutput ended = capture(command, kPatience);
  if (ended.status != 0) return {nullptr, reason(ended)};
  try {
    return {parse_json(ended.output, command.front()).raw(), ""};
  } catch (const DataError&) {
    return {nullptr, reason(ended)};
  }
}

void take_libraries(const json& document, Diagnosis& found) {
  for (const auto& library : document.at("libraries")) {
    found.libraries.push_back({library.at("name"), library.at("linked"), library.at("loaded"), library.at("path")});
  }
  found.torch_build = document.at("torch_build").get<std::vector<std::string>>();
  const auto& kernels = document.at("kernels");
  found.vectors = kernels.at("vectors");
  found.matrix_peak = kernels.at("matrix_peak");
  for (const auto& row : kernels.at("table")) {
    found.kernels.push_back({row.at("operators"), row.at("tensors"), row.at("code"), row.at("reason")});
  }
  found.cuda_aware_mpi = document.at("cuda_aware_mpi");
  found.cuda_devices = document.at("cuda_devices");
  for (const auto& [op, algorithms] : document.at("algorithms").items()) {
    for (const auto& algorithm : algorithms) {
      found.algorithms[op].push_back({algorithm.at("name"), algorithm.at("about")});
    }
  }
}

std::string rate_of(const std::string& backend, const Diagnosis& found) {
  const auto* finding = found.find(backend);
  if (finding == nullptr || finding->all_reduce_gb_s <= 0) return backend + ", which does not work here";
  return backend + format_text(" (%.2f GB/s here)", finding->all_reduce_gb_s);
}

std::string hybrid_reason(const Diagnosis& found) {
  return rate_of("shm", found) + " inside each host, so each rank sends only its part of a tensor between hosts; " +
         "between hosts " + rate_of("mpi", found) +
         " if mpirun, mpiexec or srun --mpi=pmix started the ranks, otherwise " + rate_of("gloo", found);
}

// Returns why `backend: auto` chooses a backend, with the measurements made here.
std::string reason_for(const std::string& backend, const Diagnosis& found) {
  if (backend == "hybrid") return hybrid_reason(found);
  if (backend == "inproc") return "nothing is sent";
  const auto* finding = found.find(backend);
  const std::string measured = finding != nullptr && finding->all_reduce_gb_s > 0
                                   ? format_text(": all_reduce of 16 MB at %.2f GB/s here", finding->all_reduce_gb_s)
                                   : "";
  return "the ranks share memory" + measured;
}

BackendFinding unusable(const std::string& name, const std::string& device, const std::string& why) {
  BackendFinding finding{.name = name, .device = device};
  for (const auto* operation : kOperationNames) finding.operations[operation] = why;
  return finding;
}

BackendFinding examine(const std::string& name, const std::string& device, const std::string& probe) {
  const Answer answer = ask({probe, "backend", name});
  if (!answer.problem.empty()) return unusable(name, device, answer.problem);
  BackendFinding finding = unusable(name, device, "not tried");
  for (const auto& [operation, said] : answer.document.at("operations").items()) finding.operations[operation] = said;
  if (const auto link = answer.document.find("link"); link != answer.document.end()) {
    finding.round_trip_us = link->at("round_trip_us");
    finding.message_gb_s = link->at("message_gb_s");
    finding.all_reduce_gb_s = link->at("all_reduce_gb_s");
  }
  return finding;
}

void examine_backends(const Answer& libraries, const std::string& probe, Diagnosis& found) {
  if (!libraries.problem.empty()) {  // the program that would name its backends does not start
    for (const char* name : {"inproc", "shm", "mpi", "gloo"}) {
      found.backends.push_back(unusable(name, "cpu", libraries.problem));
    }
    found.backends.push_back(unusable("nccl", "cuda", libraries.problem));
    return;
  }
  for (const auto& backend : libraries.document.at("backends")) {
    found.backends.push_back(examine(backend.at("name"), backend.at("device"), probe));
  }
}

void explain_automatic(const json& document, Diagnosis& found) {
  for (const auto& [ranks, backend] : document.at("automatic").items()) {
    found.automatic.push_back({ranks, backend, reason_for(backend, found)});
  }
}

// Says where the ranks of this launcher meet, in the order of LaunchEnvironment::rendezvous.
std::string meeting_of(const LaunchEnvironment& launched) {
  if (!launched.rendezvous.empty()) return "meet at " + launched.rendezvous.substr(0, launched.rendezvous.find('?'));
  return launched.mpi ? "meet through MPI" : "have no place to meet: set MASTER_ADDR and MASTER_PORT";
}

std::string host_in(const std::string& url) {
  if (!url.starts_with("tcp://")) return environment("MASTER_ADDR").value_or("");
  const std::string address = url.substr(6, url.find('?') - 6);
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

// Returns the address at which other hosts reach this one, given the place where the ranks meet, if there is one.
std::string describe_address(const std::string& rendezvous) {
  try {
    return address_for_peers({.interface = wanted_interface(""), .peer = host_in(rendezvous)}).describe();
  } catch (const ConfigError& error) {
    return std::string("none: ") + error.what();
  }
}

void look_for_launcher(Diagnosis& found) {
  found.nodes = "one, as far as this process knows";
  found.launched = "not as a rank; train starts its ranks itself";
  found.rank_address = describe_address("");
  try {
    const auto launched = detect_launch_environment();
    if (!launched) return;
    found.rank_address = describe_address(launched->rendezvous);
    const auto& rank_info = launched->rank_info;
    found.launched = "by " + launched->launcher + " as rank " + std::to_string(rank_info.rank) + " of " +
                     std::to_string(rank_info.size) + ", local rank " + std::to_string(rank_info.local_rank) + " of " +
                     std::to_string(rank_info.local_size);
    found.nodes = rank_info.one_host() ? "one" : "several";
    found.launched += "; the ranks " + meeting_of(*launched);
    found.automatic_here = rank_info.size == 1    ? "one rank"
                           : rank_info.one_host() ? "ranks of one host"
                                                  : "ranks of several hosts";
  } catch (const std::exception& error) {
    found.launched = std::string("unclear: ") + error.what();
  }
}

// Clears the variables of a launcher. The ranks that probe starts are its own, even if a launcher started this process
// as a rank.
void clear_launch_environment() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    for (const char* begin : {"OMPI_", "PMIX_", "PRTE_", "PMI_", "MPI_LOCAL", "SLURM_", "TORCHELASTIC_", "PHALANX_",
                              "MASTER_", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE="}) {
      if (text.starts_with(begin)) names.push_back(text.substr(0, text.find('=')));
    }
  }
  for (const auto& name : names) ::unsetenv(name.c_str());
}

}  // namespace

const BackendFinding* Diagnosis::find(const std::string& backend) const {
  const auto found = std::ranges::find(backends, backend, &BackendFinding::name);
  return found == backends.end() ? nullptr : &*found;
}

bool Diagnosis::works(const std::string& backend) const {
  const auto* finding = find(backend);
  return finding && std::ranges::all_of(finding->operations, [](const auto& one) { return one.second == "ok"; });
}

Diagnosis diagnose(const std::string& probe) {
  Diagnosis found{.machine = read_machine(), .launched = {}, .nodes = {}};
  found.operations.assign(std::begin(kOperationNames), std::end(kOperationNames));
  look_for_launcher(found);
  clear_launch_environment();
  const Answer libraries = ask({probe, "libraries"});
  if (libraries.problem.empty()) take_libraries(libraries.document, found);
  examine_backends(libraries, probe, found);
  if (libraries.problem.empty()) explain_automatic(libraries.document, found);
  found.cores = measure_cores(kCoreLinks);
  found.copy_gb_s = measure_copy_gb_s();
  found.notes = notes_on(found);
  if (!libraries.problem.empty()) {
    found.notes.insert(found.notes.begin(), "Phalanx's programs do not start here: " + libraries.problem);
  }
  return found;
}

}  // namespace phalanx::doctor
