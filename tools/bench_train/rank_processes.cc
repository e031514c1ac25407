// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/rank_processes.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/run_folder.h"
#include "framework/base/config/config.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/mpirun/mpirun.h"
#include "launch/program.h"
#include "tools/bench_train/busy_time.h"
#include "tools/bench_train/rank.h"
#include "tools/bench_train/scripts.h"
#include "tools/bench_train/system.h"

namespace phalanx::bench_train {
namespace {

using Words = std::vector<std::string>;

constexpr Seconds kStart{300};  // importing PyTorch on a busy machine takes a while
constexpr Seconds kAnswer{900};

// Returns the path of cpp_peer, a separate program that is built with this one, `self`.
std::string find_cpp_peer(const std::string& self) {
  const auto path = std::filesystem::path(self).parent_path().parent_path() / "bench_train/cpp/cpp_peer";
  if (std::filesystem::is_regular_file(path)) return path.string();
  throw ConfigError(path.string() + " is not built; build it with ./bazelw build //tools/bench_train/cpp:cpp_peer");
}

// Prepares what the ranks of one system need, and returns the command that starts each of them.
class RankCommands {
 public:
  RankCommands(const System& system, const Setting& setting)
      : system_(system), setting_(setting), folder_(setting.folder + "/" + system.name) {
    std::filesystem::create_directories(folder_);
  }

  // Returns the number of processes that answer: mpirun answers for all of its ranks.
  int processes() const { return system_.one_process || system_.by_mpirun ? 1 : setting_.ranks; }

  Words command(int rank) const {
    const int host = rank / ranks_per_host();
    return setting_.hosts.command(host, variables(rank),
                                  system_.framework == Framework::kPhalanx ? phalanx(rank) : peer(rank));
  }

 private:
  int threads() const { return system_.one_process ? setting_.ranks : 1; }
  int ranks_per_host() const { return setting_.ranks / setting_.hosts.count(); }

  Words variables(int rank) const {
    Words words{"OMP_NUM_THREADS=" + std::to_string(threads())};
    const bool one = system_.alone || system_.one_process;
    const int size = one ? 1 : setting_.ranks;
    const int here = one ? 1 : ranks_per_host();
    const int place = system_.alone ? 0 : rank;
    const std::string store = folder_ + "/store" + (system_.alone ? std::to_string(rank) : "");
    for (const auto& [name, value] :
         {std::pair{"RANK", place}, {"WORLD_SIZE", size}, {"LOCAL_RANK", place % here}, {"LOCAL_WORLD_SIZE", here}}) {
      words.push_back(name + std::string("=") + std::to_string(value));
    }
    words.emplace_back("PHALANX_LAUNCHER=local");
    words.push_back("PHALANX_RENDEZVOUS=file://" + store);
    if (system_.by_mpirun && !environment("HOME")) words.emplace_back("HOME=/tmp");  // Open MPI 5 needs one
    if (system_.tuned_malloc) {
      words.push_back("MALLOC_MMAP_MAX_=" + std::to_string(kMallocMmapMax));
      words.push_back("MALLOC_TRIM_THRESHOLD_=" + std::to_string(kMallocTrimThreshold));
      words.push_back("MALLOC_TOP_PAD_=" + std::to_string(kMallocTopPad));
    }
    return words;
  }

  Words phalanx(int rank) const {
    const std::string mine = folder_ + "/rank" + std::to_string(rank);
    // Ranks that train alone would overwrite each other's files.
    const auto run = RunFolder::create(system_.alone ? mine : folder_ + "/run", /*goes_on=*/true);
    RankJob job{.config = mine + ".yaml",
                .workload = setting_.workload.name,
                .data = setting_.data,
                .run_dir = run.path(),
                .plain_malloc = system_.plain_malloc,
                .has_barrier = system_.has_barrier};
    auto config = make_config(setting_.workload, system_, setting_.ranks);
    write_atomically(job.config, config::dump(config));
    write_atomically(mine + ".json", to_json(job));
    Words words = setting_.program;
    words.push_back("--run_as_rank=" + mine + ".json");
    return words;
  }

  Words peer(int rank) const {
    const auto& [workload, data, ranks, hosts, program, python, jax_python, folder] = setting_;
    const nlohmann::json job = {{"rank", rank},
                                {"size", processes()},
                                {"threads", threads()},
                                {"store", folder_ + "/store"},
                                {"model", workload.name},
                                {"options", system_.options},
                                {"inputs", data.inputs},
                                {"targets", data.targets},
                                {"samples", data.samples},
                                {"input", data.sample.inputs[0].shape},
                                {"classes", data.sample.targets[0].classes},
                                {"text", is_text(data.sample)},
                                {"batch", workload.batch * threads()},
                                {"learning_rate", workload.learning_rate}};
    switch (system_.framework) {
      case Framework::kLibrary:
        return library(job.dump());
      case Framework::kCpp:
        return cpp_peer(job.dump());
      case Framework::kJax:
        return {jax_python, "-c", kJaxPeer, job.dump()};
      default:
        return {python, "-c", kDdpPeer, job.dump()};
    }
  }

  Words library(const std::string& job) const {
    Words words = setting_.program;
    words.push_back("--run_loop=" + job);
    return words;
  }

  Words cpp_peer(const std::string& job) const {
    const Words words{find_cpp_peer(setting_.program.front()), job};
    if (!system_.by_mpirun) return words;
    return mpirun_command({.path = find_mpirun()}, {.ranks = setting_.ranks, .command = words}, {}, ::geteuid() == 0);
  }

  const System& system_;
  const Setting& setting_;
  std::string folder_;
};

std::string process_name(const System& system, const Setting& setting) {
  if (system.framework == Framework::kTorch) return setting.python;
  return system.framework == Framework::kJax ? setting.jax_python : "its process";
}

constexpr std::string_view kReady = "ready ";

// The time in which processes have to end: mpirun ends after all of its ranks.
Seconds patience(const System& system) { return Seconds(system.by_mpirun ? 20 : 2); }

Error with_name(const System& system, std::size_t rank, const Error& error) {
  return Error(system.name + ", rank " + std::to_string(rank) + ": " + error.what());
}

}  // namespace

RankProcesses::RankProcesses(const System& system, const Setting& setting) : system_(system) {
  const RankCommands starter(system, setting);
  const std::string name = process_name(system, setting);
  for (int rank = 0; rank < starter.processes(); ++rank) {
    ranks_.push_back(std::make_unique<bench::Child>(starter.command(rank), name, patience(system)));
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    try {
      const std::string answer = ranks_[rank]->receive(kStart);
      if (answer.starts_with(kReady)) kernels_ = answer.substr(kReady.size());
    } catch (const Error& error) {
      throw with_name(system, rank, error);
    }
  }
}

// Open MPI's mpirun does not tell its ranks that standard input has ended.
RankProcesses::~RankProcesses() {
  if (!system_.by_mpirun) return;
  for (auto& child : ranks_) {
    try {
      child->send("end");
    } catch (const Error&) {  // it has ended already
    }
  }
}

Turn RankProcesses::run(std::int64_t steps) {
  Turn turn{.steps = steps, .losses = std::vector<double>(static_cast<std::size_t>(steps))};
  std::size_t rank = 0, with_losses = 0;
  const double busy_before = busy_seconds();
  try {
    for (auto& child : ranks_) child->send("run " + std::to_string(steps));
    for (; rank < ranks_.size(); ++rank) {
      const auto answer = nlohmann::json::parse(ranks_[rank]->receive(kAnswer));
      const double seconds = answer.at("seconds");
      turn.seconds = std::max(turn.seconds, seconds);
      if (const auto& backward = answer.at("backward"); !backward.is_null()) {
        const double mean_part = backward.get<double>() / static_cast<double>(ranks_.size());
        turn.backward_seconds = turn.backward_seconds.value_or(0) + mean_part;
      }
      const std::vector<double> losses = answer.at("losses");
      if (losses.empty()) continue;
      if (losses.size() != turn.losses.size()) throw Error("expected as many losses as steps");
      for (std::size_t i = 0; i < losses.size(); ++i) turn.losses[i] += losses[i];
      ++with_losses;
    }
    for (auto& loss : turn.losses) loss /= static_cast<double>(with_losses);
  } catch (const Error& error) {
    throw with_name(system_, rank, error);
  } catch (const nlohmann::json::exception& error) {
    throw Error(system_.name + ", rank " + std::to_string(rank) + ": malformed answer: " + error.what());
  }
  turn.busy_seconds = busy_seconds() - busy_before;
  return turn;
}

}  // namespace phalanx::bench_train
