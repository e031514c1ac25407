// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/registry.h"

// The places where the runs of a suite take place: this machine, hosts reached by ssh, a batch system, a cluster.
namespace phalanx::regress {

/// One run of train.
struct Job {
  std::string name{};                  // unique among the jobs of a session, usable as a file name
  std::vector<std::string> command{};  // absolute path of a program and its arguments; the config has `ranks` ranks
  int ranks = 1;
  int hosts = 1;                    // hosts over which the place must spread the ranks evenly
  bool survives_lost_host = false;  // its config goes on without one (faults.on_lost_rank), which the place must permit
  std::string folder{};             // run folder, which exists; the place writes stdout.log and stderr.log into it
  double time_limit = 0;  // seconds that the job may run, without the time that it waits for resources; 0: no limit
};

/// The end of a job.
struct JobEnd {
  /// The exit status of train, or 128 plus the number of the signal that killed it, or kFailed if it has none.
  int exit_status = 0;
  std::string infrastructure_error{};  // why the place could not run the job to its end; if set, the job may be retried
  bool timed_out = false;              // the place ended the job because of its time limit
};

/// A job that a place has accepted. Destroying it ends the job, and blocks until no process of it is left.
class RunningJob {
 public:
  virtual ~RunningJob() = default;

  /// Returns the end of the job once it has ended, and nullopt before. Does not block for longer than about 100 ms.
  virtual std::optional<JobEnd> poll() = 0;

  /// Asks the job to end, and kills it a few seconds later. Returns at once; poll() returns the end when it has ended.
  virtual void stop() = 0;

  /// Kills the job at once, as a host that loses power would. Used to test that runs can be resumed.
  virtual void kill() { stop(); }
};

/// A place that runs jobs. Methods are called from one thread, and throw Error if the place itself fails.
class Place {
 public:
  virtual ~Place() = default;

  /// Returns the number of slots, which are cores or hosts, that all jobs can have together; at least 1.
  virtual int slots() const = 0;

  /// Returns the number of slots that a job takes while it runs, from 1 to slots().
  virtual int slots_of(const Job& job) const = 0;

  /// Returns the largest number of hosts that a job can have.
  virtual int most_hosts() const = 0;

  /// Describes the hosts for the record of a run's environment: "this host", "a, b", "slurm partition debug".
  virtual std::string description() const = 0;

  /// Ends what an earlier process with the same `PlaceOptions::owner` left running when it was killed. Called once,
  /// before the first start().
  virtual void end_orphans() = 0;

  /// Starts a job or queues it. A failure that a retry may cure is not thrown, but becomes the job's end.
  virtual std::unique_ptr<RunningJob> start(const Job& job) = 0;
};

/// The arguments with which a place is made.
struct PlaceOptions {
  std::string argument{};  // text after the colon of --on NAME:ARGUMENT; empty: none
  std::string owner{};     // absolute path of the output folder: identifies the jobs of this regress and its successors
};

/// Places by name. A factory checks whether the place can be used, and throws ConfigError if not: a host that does not
/// answer, a missing program, a malformed argument.
using Places = Registry<std::unique_ptr<Place>(const PlaceOptions&)>;

/// Makes the place that `--on` names: "local", "hosts:a,b". Throws ConfigError for an unknown name, with the nearest.
std::unique_ptr<Place> make_place(const std::string& on, const std::string& owner);

}  // namespace phalanx::regress
