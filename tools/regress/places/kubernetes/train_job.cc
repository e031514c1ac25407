// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/kubernetes/train_job.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::regress {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestName = 40;  // names of pods may have 63 characters, and others add to this one

// Runs "$@" with its output in the run folder $0.
constexpr const char* kScript = R"([ ! -e "$0/metrics.jsonl" ] || set -- "$@" --resume=auto
exec "$@" >>"$0/stdout.log" 2>>"$0/stderr.log")";

// Returns the FNV-1a hash, which is the same in every build.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return format_text("%016llx", static_cast<unsigned long long>(hash));
}

json parse_answer(const std::string& text) {
  auto answer = json::parse(text, nullptr, false);
  if (answer.is_object() && answer.contains("items") && answer["items"].is_array()) return answer;
  throw DataError("kubectl printed what is no list of objects: " + text.substr(0, 200));
}

bool was_evicted(const json& status) {
  return std::ranges::any_of(status.value("conditions", json::array()), [](const json& condition) {
    return condition.value("type", "") == "DisruptionTarget" && condition.value("status", "") == "True";
  });
}

}  // namespace

std::string owner_label(const std::string& owner) { return hash_of(owner); }

std::string kubernetes_name(const Job& job, const std::string& owner) {
  std::string name = "r-";  // a name begins with a letter
  for (const char c : job.name) {
    const auto letter = static_cast<unsigned char>(c);
    name += std::isalnum(letter) != 0 && letter < 128 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  return name.substr(0, kLongestName) + "-" + hash_of(owner + "\n" + job.name).substr(0, 8);
}

std::string train_job(const Job& job, const std::string& owner) {
  json command = {"/bin/sh", "-c", kScript, job.folder, std::filesystem::path(job.command.at(0)).filename().string()};
  for (std::size_t i = 1; i < job.command.size(); ++i) command.push_back(job.command[i]);
  if (job.hosts > 1) command.push_back("--set=launch.with=mpi");
  const int ranks_per_host = std::max(1, job.ranks / job.hosts);
  const json cpus = {{"cpu", std::to_string(ranks_per_host)}};
  json trainer = {{"command", command},
                  {"numNodes", job.hosts},
                  {"numProcPerNode", ranks_per_host},
                  {"resourcesPerNode", {{"requests", cpus}}}};
  json spec = {{"runtimeRef",
                {{"apiGroup", "trainer.kubeflow.org"},
                 {"kind", "TrainingRuntime"},
                 {"name", job.hosts > 1 ? "phalanx-mpi" : "phalanx-torch"}}},
               {"trainer", trainer}};
  if (job.time_limit > 0) spec["activeDeadlineSeconds"] = static_cast<std::int64_t>(std::ceil(job.time_limit));
  const json object = {
      {"apiVersion", "trainer.kubeflow.org/v1alpha1"},
      {"kind", "TrainJob"},
      {"metadata", {{"name", kubernetes_name(job, owner)}, {"labels", {{kOwnerLabel, owner_label(owner)}}}}},
      {"spec", spec}};
  return object.dump(2) + "\n";
}

std::optional<TrainJobState> find_state(const std::string& train_jobs, const std::string& name) {
  const json answer = parse_answer(train_jobs);
  for (const auto& item : answer["items"]) {
    if (item.at("metadata").value("name", "") != name) continue;
    TrainJobState state;
    const json status = item.value("status", json::object());
    for (const auto& condition : status.value("conditions", json::array())) {
      if (condition.value("status", "") != "True") continue;
      const std::string type = condition.value("type", "");
      if (type == "Complete") state.complete = true;
      if (type != "Failed") continue;
      state.failed = true;
      state.reason = condition.value("reason", "");
      state.message = condition.value("message", "");
    }
    return state;
  }
  return std::nullopt;
}

std::optional<int> find_exit_status(const std::string& pods) {
  const json answer = parse_answer(pods);
  for (const auto& pod : answer["items"]) {
    const json status = pod.value("status", json::object());
    if (was_evicted(status)) continue;
    for (const auto& container : status.value("containerStatuses", json::array())) {
      const json state = container.value("state", json::object());
      const int exit_status = state.value("terminated", json::object()).value("exitCode", 0);
      if (exit_status != 0) return exit_status;
    }
  }
  return std::nullopt;
}

}  // namespace phalanx::regress
