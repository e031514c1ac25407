// SPDX-License-Identifier: Apache-2.0
// The place "slurm": jobs of a suite are tasks of Slurm's job arrays.
#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/doctor/capture.h"
#include "tools/regress/place.h"
#include "tools/regress/places/slurm/output.h"
#include "tools/regress/places/slurm/queue.h"

namespace phalanx::regress {
namespace {

using namespace std::chrono_literals;

class SlurmJob final : public RunningJob {
 public:
  SlurmJob(std::shared_ptr<SlurmQueue> queue, std::size_t number) : queue_(std::move(queue)), number_(number) {}

  ~SlurmJob() override {
    if (poll()) return;
    stop();
    while (!poll()) std::this_thread::sleep_for(200ms);
  }

  std::optional<JobEnd> poll() override { return queue_->end_of(number_); }
  void stop() override { queue_->cancel(number_, SIGTERM); }
  void kill() override { queue_->cancel(number_, SIGKILL); }

 private:
  const std::shared_ptr<SlurmQueue> queue_;
  const std::size_t number_;
};

class SlurmPlace final : public Place {
 public:
  SlurmPlace(const SlurmPartition& partition, const std::string& owner)
      : partition_(partition), queue_(std::make_shared<SlurmQueue>(partition.name, owner)) {}

  int slots() const override { return partition_.cpus; }
  int slots_of(const Job& job) const override { return std::clamp(job.ranks, 1, partition_.cpus); }
  int most_hosts() const override { return partition_.nodes; }
  std::string description() const override { return "slurm partition " + partition_.name; }
  void end_orphans() override { queue_->cancel_all(); }

  std::unique_ptr<RunningJob> start(const Job& job) override {
    return std::make_unique<SlurmJob>(queue_, queue_->add(job));
  }

 private:
  const SlurmPartition partition_;
  const std::shared_ptr<SlurmQueue> queue_;
};

// Throws ConfigError unless the command can be run.
void require_command(const std::string& command) {
  if (doctor::capture({command, "--version"}, 60s).status == 0) return;
  throw ConfigError("--on slurm: cannot run " + command +
                    "; start regress on a host that has Slurm's commands on PATH");
}

std::map<std::string, SlurmPartition> ask_partitions() {
  const auto answer = doctor::capture({"sinfo", "--noheader", "--format", kSinfoFormat}, 60s);
  if (answer.status == 0) return parse_partitions(answer.output);
  throw ConfigError("--on slurm: sinfo failed: " + answer.errors);
}

std::unique_ptr<Place> make_slurm_place(const NoFields&, const PlaceOptions& options) {
  for (const char* command : {"sinfo", "sbatch", "squeue", "scancel"}) require_command(command);
  auto partitions = ask_partitions();
  const auto found = partitions.find(options.argument);
  if (found == partitions.end()) {
    partitions.erase("");
    std::vector<std::string> names;
    for (const auto& [name, partition] : partitions) names.push_back(name);
    throw ConfigError("--on slurm" + (options.argument.empty() ? "" : ":" + options.argument) +
                      (options.argument.empty() ? ": Slurm has no default partition" : ": there is no such partition") +
                      "; there are " + join(names, ", "));
  }
  const SlurmPartition& partition = found->second;
  if (partition.cpus < 1) {
    throw ConfigError("--on slurm: all nodes of partition " + partition.name + " are down or drained, see sinfo");
  }
  return std::make_unique<SlurmPlace>(partition, options.owner);
}

const bool slurm_registered = Places::global().add<NoFields>(
    "slurm", "job arrays of Slurm; slurm:PARTITION names the partition", make_slurm_place);

}  // namespace
}  // namespace phalanx::regress
