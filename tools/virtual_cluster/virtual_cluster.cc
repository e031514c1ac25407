// SPDX-License-Identifier: Apache-2.0
// Makes hosts out of namespaces of this machine: cluster.py.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "framework/base/error.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/virtual_cluster/script.h"

namespace phalanx::virtual_cluster {
namespace {

constexpr const char* kNotes =
    "up starts hosts called node1, node2 and so on, which remain until down removes them and all of their\n"
    "processes. run runs a command on one of them, or, with --hosts, on hosts that exist only as long as the\n"
    "command. On a host, ssh reaches the others, so mpirun and launch.hosts work as on real ones. Requires root.";

struct Options {
  std::string name = "default";
  std::int32_t hosts = 0;
  std::string link{};
  std::string host = "node1";
  std::vector<std::string> private_folders{};
  bool sshd = false;
};

// Removes the words from "--" on from the command line, and returns those after it.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  const auto separator = std::ranges::find(words, "--");
  if (separator == words.end()) return {};
  std::vector<std::string> command(std::next(separator), words.end());
  words.erase(separator, words.end());
  return command;
}

void check(const std::string& action, const Options& options, const std::vector<std::string>& command) {
  if (action != "up" && action != "down" && action != "run") {
    throw ConfigError("name one action: up, down or run (see --help)");
  }
  if (action == "up" && options.hosts < 1) throw ConfigError("up: give the number of hosts, for example --hosts 4");
  if (options.hosts < 0) throw ConfigError("--hosts must not be negative");
  if (action == "run" && command.empty()) throw ConfigError("run: the command follows two dashes: run -- hostname");
  if (action != "run" && !command.empty()) throw ConfigError(action + " runs no command; use run");
}

// Becomes the script.
int execute(const nlohmann::json& job) {
  const std::string text = job.dump();
  ::execlp("python3", "python3", "-c", kScript, text.c_str(), nullptr);
  throw Error("cannot start python3: " + std::generic_category().message(errno));
}

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments,
              {"up --hosts 4 --link 1gbit", "run -- mpirun --host node1:1,node2:1 -np 2 hostname", "down",
               "run --hosts 2 --link 100mbit -- hostname"},
              kNotes);
  flags.add("name", &options.name, "name of the cluster; clusters of different names do not reach each other");
  flags.add("hosts", &options.hosts, "number of hosts");
  flags.add("link", &options.link, "rate at which each host is connected, in the notation of tc; empty: no limit");
  flags.add("host", &options.host, "host on which run runs the command");
  flags.add("private", &options.private_folders,
            "folder that is empty at first and different on each host, as /dev/shm always is; may be repeated");
  flags.add("sshd", &options.sshd, "run a real sshd on each host; without it, a program stands in for ssh");
  auto words = arguments.words;
  const auto command = take_command(words);
  auto actions = flags.parse(words);
  if (actions.size() > 1) throw ConfigError("unexpected argument \"" + actions[1] + "\": a command follows two dashes");
  const std::string action = actions.empty() ? "" : actions[0];
  check(action, options, command);
  return execute({{"do", action},
                  {"name", options.name},
                  {"hosts", options.hosts},
                  {"link", options.link},
                  {"host", options.host},
                  {"private", options.private_folders},
                  {"sshd", options.sshd},
                  {"command", command}});
}

const bool virtual_cluster_registered =
    register_command({"virtual_cluster", "makes hosts out of namespaces of this machine", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::virtual_cluster
