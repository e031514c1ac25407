// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/slurm/script.h"

#include <cmath>
#include <cstddef>
#include <string_view>

namespace phalanx::regress {
namespace {

constexpr double kSecondsPerMinute = 60;

// Returns the text as one word of bash.
std::string bash_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Slurm's limits are minutes. The place itself ends jobs after exactly their time limit.
int minutes_of(const Job& job) { return static_cast<int>(std::ceil(job.time_limit / kSecondsPerMinute)) + 1; }

std::string option(const std::string& name, const std::string& value) {
  return "#SBATCH --" + name + "=" + value + "\n";
}

bool goes_on_without_node(const Job& job) { return job.hosts > 1 && job.survives_lost_host; }

std::string options_of(const SlurmArray& array) {
  const Job& job = array.jobs.front();
  std::string text = option("job-name", "phalanx") + option("comment", "\"" + array.owner + "\"") +
                     option("output", "\"" + array.owner + "/slurm/%A_%a.log\"") + option("open-mode", "append") +
                     option("array", "0-" + std::to_string(array.jobs.size() - 1)) +
                     option("partition", array.partition) + option("nodes", std::to_string(job.hosts)) +
                     option("ntasks-per-node", std::to_string(job.ranks / job.hosts));
  if (job.time_limit > 0) text += option("time", std::to_string(minutes_of(job)));
  if (goes_on_without_node(job)) text += "#SBATCH --no-kill\n";
  return text + "#SBATCH --requeue\n";
}

std::string case_of(std::size_t index, const Job& job) {
  std::string text = std::to_string(index) + ")\n  folder=" + bash_word(job.folder) + "\n  set --";
  for (const auto& word : job.command) text += " " + bash_word(word);
  if (job.hosts > 1) text += goes_on_without_node(job) ? " --set=launch.with=srun" : " --set=launch.with=mpi";
  return text + "\n  ;;\n";
}

}  // namespace

bool need_the_same(const Job& one, const Job& other) {
  return one.ranks == other.ranks && one.hosts == other.hosts && one.time_limit == other.time_limit &&
         goes_on_without_node(one) == goes_on_without_node(other);
}

std::string sbatch_script(const SlurmArray& array) {
  std::string text = "#!/bin/bash\n" + options_of(array) + "\ncase $SLURM_ARRAY_TASK_ID in\n";
  for (std::size_t i = 0; i < array.jobs.size(); ++i) text += case_of(i, array.jobs[i]);
  text += "esac\n";
  text +=
      "[[ -w $folder ]] || { echo \"$(hostname) cannot write $folder\"; exit " + std::to_string(kCannotStart) + "; }\n";
  text += "# A task that was requeued continues from its last checkpoint.\n";
  text += "[[ ${SLURM_RESTART_COUNT:-0} == 0 ]] || set -- \"$@\" --resume=auto\n";
  text += "exec \"$@\" >>\"$folder/stdout.log\" 2>>\"$folder/stderr.log\"\n";
  return text;
}

}  // namespace phalanx::regress
