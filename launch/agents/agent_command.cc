// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent_command.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/failure/failure.h"
#include "launch/mpirun/mpirun.h"

namespace phalanx {
namespace {

// Returns a word that a shell reads as this text.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// The variables that would act as options of srun, and that no other option takes back. Labels before beats, and a
// pseudo-terminal instead of pipes (--unbuffered), would hide these from the launcher. The rest would give the agent,
// which is one task, the share of one rank of the cores and devices that the job has on its node.
constexpr const char* kNotForSrun[] = {
    "SLURM_LABELIO",       "SLURM_UNBUFFEREDIO",     "SLURM_EXACT", "SRUN_CPUS_PER_TASK",  "SLURM_CPUS_PER_TASK",
    "SLURM_TRES_PER_TASK", "SLURM_THREADS_PER_CORE", "SLURM_GPUS",  "SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU"};

std::vector<std::string> srun_on(const std::string& host, const std::string& script) {
  std::vector<std::string> words{"env"};
  for (const char* variable : kNotForSrun) words.insert(words.end(), {"-u", variable});
  words.insert(words.end(),
               {"srun", "--nodelist=" + host, "--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--overlap",
                "--cpu-bind=none", "--export=ALL", "--mpi=none", "--kill-on-bad-exit=0", "--no-kill", "--wait=0",
                "--input=all", "--output=all", "--error=all", "--quiet", "/bin/sh", "-c", script});
  return words;
}

}  // namespace

std::vector<std::string> command_on(const std::string& host, const std::string& script, Reach reach) {
  if (is_this_host(host)) return {"/bin/sh", "-c", script};
  if (reach == Reach::kSrun) return srun_on(host, script);
  return {"ssh",
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=10",
          "-o",
          "ServerAliveInterval=5",
          "-o",
          "ServerAliveCountMax=3",
          host,
          "exec sh -c " + quoted(script)};
}

std::string agent_script(const std::string& folder, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const auto& word : command) words.push_back(quoted(word));
  return "while IFS= read -r variable || exit 1; [ -n \"$variable\" ]; do export \"$variable\"; done; cd " +
         quoted(folder) + " && exec " + join(words, " ");
}

std::string variables_for(const AgentOrder& order, const std::vector<std::string>& patterns) {
  std::string text = std::string(kAgentOrder) + "=" + to_text(order) + "\n";
  text += std::string("PHALANX_TERMINAL=") + (::isatty(STDOUT_FILENO) == 1 ? "1" : "0") + "\n";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry, name = variable.substr(0, variable.find('='));
    const bool own = name == kAgentOrder || name == "PHALANX_TERMINAL" || name == kSpareFailureFolder;
    if (own || !(is_matched(name, "PHALANX_*") ||
                 std::ranges::any_of(patterns, [&](const auto& pattern) { return is_matched(name, pattern); }))) {
      continue;
    }
    if (variable.find('\n') != variable.npos) {
      throw ConfigError("environment variable " + name +
                        ": has several lines, which cannot be passed on to the agents of other hosts; unset it");
    }
    text += variable + "\n";
  }
  return text;
}

std::string without_secret(const std::string& variables) {
  std::string text;
  std::istringstream lines(variables);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("PHALANX_JOB_SECRET")) text += line + "\n";
  }
  return text;
}

}  // namespace phalanx
