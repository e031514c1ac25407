#include "tools/launch/mpirun_command.h"

#include <algorithm>

#include "framework/base/text.h"

namespace phalanx {
namespace {

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

void unset(std::vector<std::string>& environment, const std::string& name) {
  std::erase_if(environment, [&](const std::string& variable) { return name_of(variable) == name; });
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  unset(environment, name);
  environment.push_back(name + "=" + value);
}

}  // namespace

std::vector<std::string> mpirun_environment(const std::vector<std::string>& inherited, const std::string& rendezvous,
                                            bool terminal) {
  auto environment = inherited;
  unset(environment, "PHALANX_RENDEZVOUS");
  if (!rendezvous.empty()) set(environment, "PHALANX_RENDEZVOUS", rendezvous);
  set(environment, "PHALANX_LAUNCHER", "mpi");
  set(environment, "PHALANX_TERMINAL", terminal ? "1" : "0");
  const bool home = std::ranges::find(environment, "HOME", name_of) != environment.end();
  if (!home) set(environment, "HOME", "/tmp");  // Open MPI 5 does not start without one
  return environment;
}

std::vector<std::string> mpirun_command(const std::string& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root) {
  std::vector<std::string> command = {
      mpirun, "--oversubscribe", "--bind-to", "none", "-np", std::to_string(options.ranks)};
  const auto add = [&](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  if (root) add({"--allow-run-as-root"});
  if (!options.hosts.empty()) add({"--host", join(options.hosts, ",")});
  for (const auto& variable : environment) {
    if (variable.starts_with("PHALANX_")) add({"-x", name_of(variable)});
  }
  command.insert(command.end(), options.command.begin(), options.command.end());
  return command;
}

}  // namespace phalanx
