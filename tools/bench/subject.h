// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"
#include "tools/bench/operation.h"

namespace phalanx::bench {

/// A case that is ready to be measured: its buffers are there. The same on all ranks.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Meets all ranks, then does the operation `repeats` times, one after the other. Microseconds of one on this rank.
  /// Collective.
  virtual double run(std::int64_t repeats) = 0;
};

/// Something that runs collectives: a backend of Phalanx, or a peer. One per rank. All sum, from or to rank 0.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;  // as rows have it
  virtual int size() const = 0;

  /// Ways of doing `op` that are to be measured; "native" is the subject's own.
  virtual std::vector<std::string> algorithms(const std::string& op) const = 0;

  /// Why it cannot do this; empty: it can. The same on all ranks.
  virtual std::string absent(const Case& what) const = 0;

  /// Collective. Only for what is not absent.
  virtual std::unique_ptr<Trial> prepare(const Case& what) = 0;
};
using Subjects = std::vector<std::unique_ptr<Subject>>;

/// A backend, by its Communicator, with tensors on `device`; `algorithms` as in Options.
std::unique_ptr<Subject> make_backend_subject(const std::string& name, CommunicatorPtr world,
                                              std::vector<std::string> algorithms, c10::Device device = c10::kCPU);

/// Open MPI by its own calls, blocking ones but for launch, with no Phalanx between. MPI must be running. Registered
/// memory is that of MPI_Alloc_mem.
std::unique_ptr<Subject> make_openmpi_subject();

/// The Gloo library by its own calls over TCP, with no Phalanx between. It has no registered memory: all is private.
std::unique_ptr<Subject> make_gloo_subject(const RankInfo& rank_info, StorePtr store, Seconds timeout);

/// PyTorch's torch.distributed with gloo: `python` runs a process beside each rank, which measures itself when the rank
/// says so, and sleeps while others are measured. It has no registered memory. One host.
std::unique_ptr<Subject> make_torch_subject(const std::string& python, const RankInfo& rank_info, StorePtr store,
                                            Seconds timeout);

/// Parameter servers, one on each rank: an all-reduce is a push to all of them and a pull of the sum, as strategy
/// sync_ps does it. They have no registered memory. `world` brings the ranks together. Collective.
std::unique_ptr<Subject> make_servers_subject(CommunicatorPtr world);

/// A trial in this process: `meet` brings the ranks together, `measure` does the operation as often as it is told and
/// returns the microseconds of all. What they use lives as long as they do.
std::unique_ptr<Trial> make_trial(std::function<void()> meet, std::function<double(std::int64_t)> measure);

/// Times a run of operations, from the first to the last.
std::function<double(std::int64_t)> timed(std::function<void()> operation);

/// Times each launch; the wait for it, which follows, is not timed.
std::function<double(std::int64_t)> timed_launches(std::function<void()> launch, std::function<void()> wait);

/// Times round trips, each of which counts as two operations.
std::function<double(std::int64_t)> timed_round_trips(std::function<void()> round_trip);

}  // namespace phalanx::bench
