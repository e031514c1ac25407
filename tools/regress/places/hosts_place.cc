// SPDX-License-Identifier: Apache-2.0
// The place "hosts:a,b": hosts on which mpirun starts ranks through ssh. Its slots are the hosts; a host has one run at
// a time.
#include <algorithm>
#include <memory>

#include "framework/base/config/no_fields.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/mpirun/mpirun.h"
#include "tools/regress/place.h"
#include "tools/regress/places/host_list.h"
#include "tools/regress/places/local_job.h"

namespace phalanx::regress {
namespace {

constexpr double kAnswerSeconds = 20;  // seconds in which a host must answer

// Returns the command that runs `command` on a host: Open MPI's agent if the environment names one, else ssh.
std::vector<std::string> remotely(const std::string& host, const std::string& command) {
  for (const char* variable : {"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_agent"}) {
    if (const auto agent = environment(variable); agent && !agent->empty()) return {*agent, host, command};
  }
  return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, command};
}

bool is_here(const std::string& host) { return host == "localhost" || host == host_name(); }

void require_answer(const std::string& host) {
  if (is_here(host)) return;
  const auto answer = capture(remotely(host, "true"), "", kAnswerSeconds);
  if (answer.status == 0) return;
  throw ConfigError("--on hosts: " + host + " does not answer: " +
                    (answer.errors.empty() ? "status " + std::to_string(answer.status) : answer.errors) +
                    "; it must be possible to log in without a password");
}

// A job that gives its hosts back when it is destroyed.
class HostsJob final : public RunningJob {
 public:
  HostsJob(std::unique_ptr<RunningJob> job, std::vector<bool>& taken, std::vector<std::size_t> hosts)
      : job_(std::move(job)), taken_(taken), hosts_(std::move(hosts)) {
    for (const auto host : hosts_) taken_[host] = true;
  }
  ~HostsJob() override {
    job_.reset();
    for (const auto host : hosts_) taken_[host] = false;
  }

  std::optional<JobEnd> poll() override { return job_->poll(); }
  void stop() override { job_->stop(); }
  void kill() override { job_->kill(); }

 private:
  std::unique_ptr<RunningJob> job_;
  std::vector<bool>& taken_;
  std::vector<std::size_t> hosts_;
};

class HostsPlace final : public Place {
 public:
  explicit HostsPlace(PlaceOptions options) : options_(std::move(options)) {
    for (const auto& host : parse_hosts(options_.argument)) names_.push_back(host.name);
    require_remote_shell(names_);
    for (const auto& name : names_) require_answer(name);
    taken_.resize(names_.size());
  }

  int slots() const override { return static_cast<int>(names_.size()); }
  int slots_of(const Job& job) const override { return std::clamp(job.hosts, 1, slots()); }
  int most_hosts() const override { return slots(); }
  std::string description() const override { return join(names_, ","); }

  // The daemons of mpirun on other hosts end with mpirun, and ranks with their daemon.
  void end_orphans() override { kill_owned(options_.owner); }

  std::unique_ptr<RunningJob> start(const Job& job) override {
    const auto chosen = choose_hosts(taken_, slots_of(job));
    if (chosen.empty()) throw Error("no host is free for " + job.name);
    std::vector<std::string> names;
    for (const auto host : chosen) names.push_back(names_[host]);
    Job spread = job;
    spread.command.push_back("--set=" + hosts_override(names, job.ranks));
    return std::make_unique<HostsJob>(std::make_unique<LocalJob>(spread, options_), taken_, chosen);
  }

 private:
  PlaceOptions options_;
  std::vector<std::string> names_;
  std::vector<bool> taken_;
};

std::unique_ptr<Place> make_hosts(const NoFields&, const PlaceOptions& options) {
  return std::make_unique<HostsPlace>(options);
}

const bool hosts_registered = Places::global().add<NoFields>("hosts", "hosts reached by ssh: hosts:a,b", make_hosts);

}  // namespace
}  // namespace phalanx::regress
