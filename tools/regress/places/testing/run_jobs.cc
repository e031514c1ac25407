// SPDX-License-Identifier: Apache-2.0
// Runs jobs at a place, for tests:
//
//     run_jobs ON OWNER '[{"name", "command", "ranks", "hosts", "survives_lost_host", "folder", "time_limit"}, ...]'
//
// Writes a line of JSON for the place, and one for each job that ends: {"name", "exit_status", "infrastructure_error",
// "timed_out"}. A job is stopped or killed once OWNER/NAME.stop or OWNER/NAME.kill exists.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tools/regress/place.h"

namespace {

using namespace phalanx::regress;

void print(const nlohmann::json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

// Returns true once for each file.
bool take(const std::string& path) { return std::filesystem::remove(path); }

void follow(const std::string& owner, std::map<std::string, std::unique_ptr<RunningJob>>& running) {
  while (!running.empty()) {
    for (auto job = running.begin(); job != running.end();) {
      const auto& [name, process] = *job;
      if (take(owner + "/" + name + ".stop")) process->stop();
      if (take(owner + "/" + name + ".kill")) process->kill();
      if (const auto end = process->poll()) {
        print({{"name", name},
               {"exit_status", end->exit_status},
               {"infrastructure_error", end->infrastructure_error},
               {"timed_out", end->timed_out}});
        job = running.erase(job);
      } else {
        ++job;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void run(const std::string& on, const std::string& owner, const nlohmann::json& jobs) {
  const auto place = make_place(on, owner);
  place->end_orphans();
  print({{"slots", place->slots()}, {"most_hosts", place->most_hosts()}, {"description", place->description()}});
  std::map<std::string, std::unique_ptr<RunningJob>> running;
  for (const auto& job : jobs) {
    running[job.at("name")] = place->start({.name = job.at("name"),
                                            .command = job.at("command"),
                                            .ranks = job.value("ranks", 1),
                                            .hosts = job.value("hosts", 1),
                                            .survives_lost_host = job.value("survives_lost_host", false),
                                            .folder = job.at("folder"),
                                            .time_limit = job.value("time_limit", 0.0)});
  }
  follow(owner, running);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::invalid_argument("usage: run_jobs ON OWNER JOBS");
    run(argv[1], argv[2], nlohmann::json::parse(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
