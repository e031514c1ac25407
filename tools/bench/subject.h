// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"
#include "tools/bench/operation.h"
#include "tools/bench/peer_library.h"
#include "tools/bench/timed.h"

namespace phalanx::bench {

/// A case with its buffers allocated, ready to be measured. The same on all ranks.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Synchronizes all ranks, then runs the operation `repeats` times in sequence. Returns the microseconds of one
  /// operation on this rank. Collective.
  virtual double run(std::int64_t repeats) = 0;
};

/// A subject of the measurement that runs collectives: a backend of Phalanx, or a peer. There is one per rank.
/// Reductions sum, and the root is rank 0.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;  // the name that rows show
  virtual int size() const = 0;

  /// Returns the algorithms for `op` that must be measured; "native" is the subject's own.
  virtual std::vector<std::string> algorithms(const std::string& op) const = 0;

  /// Returns why the subject cannot run this case, or an empty string if it can. The same on all ranks.
  virtual std::string absent(const Case& what) const = 0;

  /// Allocates the buffers of a case for which absent() is empty. Collective.
  virtual std::unique_ptr<Trial> prepare(const Case& what) = 0;
};
using Subjects = std::vector<std::unique_ptr<Subject>>;

/// Returns a subject that measures a backend by its Communicator, with tensors on `device`; `algorithms` as in Options.
std::unique_ptr<Subject> make_backend_subject(const std::string& name, CommunicatorPtr world,
                                              std::vector<std::string> algorithms, c10::Device device = c10::kCPU);

/// Returns a subject that calls Open MPI directly, with blocking calls except for launch. MPI must be running.
/// Registered memory comes from MPI_Alloc_mem.
std::unique_ptr<Subject> make_openmpi_subject();

/// Returns a subject that calls the Gloo library directly over TCP. It has no registered memory: all memory is private.
std::unique_ptr<Subject> make_gloo_subject(const RankInfo& rank_info, StorePtr store, Seconds timeout);

/// Returns a subject that measures PyTorch's torch.distributed with gloo. `python` runs one process per rank, which
/// measures when the rank tells it to and sleeps while others are measured. It has no registered memory. All ranks must
/// be on one host.
std::unique_ptr<Subject> make_torch_subject(const std::string& python, const RankInfo& rank_info, StorePtr store,
                                            Seconds timeout);

/// Returns a subject that measures a library of peer_library.h, which must be installed. Rank 0 starts its launcher,
/// which starts one process for each rank; these measure as PyTorch's processes do, on the same cores as their ranks.
/// All ranks must be on one host. Collective.
std::unique_ptr<Subject> make_launched_subject(const PeerLibrary& library, const RankInfo& rank_info, StorePtr store,
                                               Seconds timeout);

/// Returns a subject whose barrier is a bare exchange of flags: each rank sets its own in shared memory and waits for
/// all others. No other operation is measured. All ranks must be on one host. Collective.
std::unique_ptr<Subject> make_flags_subject(const RankInfo& rank_info, StorePtr store);

/// Returns a subject that measures parameter servers, one on each rank: an all-reduce is a push to all of them and a
/// pull of the sum, as in strategy sync_ps. It has no registered memory. `world` synchronizes the ranks. Collective.
std::unique_ptr<Subject> make_servers_subject(CommunicatorPtr world);

/// Returns a trial that runs in this process: `synchronize` synchronizes the ranks, and `measure` runs the operation
/// the given number of times and returns the total microseconds. Both must own the objects that they use.
std::unique_ptr<Trial> make_trial(std::function<void()> synchronize, Measure measure);

}  // namespace phalanx::bench
