#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <climits>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/backends/direct/waiter.h"
#include "framework/comm/store.h"
#include "framework/comm/work.h"

namespace phalanx::mpi {

/// One rank's view of an MPI communicator: launches nonblocking collectives and completes them in the order of launch.
///
/// Thread-safe. MPI moves data only while somebody waits or asks done(). After a CommError the group is broken: every
/// later operation ends with kPeerLost. MPI may still write to the tensors of operations that were in flight then, so
/// these are never released.
class Group : public std::enable_shared_from_this<Group> {
 public:
  struct Options {
    std::string name;
    Seconds timeout{600};
    int local_ranks = 1;                   // on this host; decides how long a wait spins
    std::int64_t most_elements = INT_MAX;  // of one MPI call; longer operations are several calls
  };

  /// Owns `comm`. Frees it when it ends healthily (runtime.h); otherwise leaves it to the end of the process.
  /// MPI_Comm_free is collective in name: in Open MPI it is local, so ranks may end at different times, in any order.
  Group(MPI_Comm comm, Options options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Options& options() const { return options_; }
  MPI_Comm comm() const { return comm_; }

  /// Elements [first, first + count) of the tensor; count fits an int.
  struct Part {
    void* data;
    int count;
    MPI_Datatype type;
  };
  using Start = std::function<int(const Part&, MPI_Comm, MPI_Request*)>;  // returns MPI's code

  /// Calls `start` for each part of the tensor (once, with nothing, for an undefined tensor), and `finish`, if any,
  /// when all parts are complete. `operation` is for messages and lives for ever (a literal).
  Work launch(const char* operation, at::Tensor tensor, const Start& start, std::function<void()> finish = nullptr);

 private:
  class Operation;

  void start_parts(Operation& operation, const Start& start);
  bool progress(const Operation& operation);
  void complete(const Operation& operation);
  void give_up_if_late(const Operation& operation, double seconds);
  void fail(const Operation& culprit, std::exception_ptr error);  // the mutex is held

  MPI_Comm comm_;
  Options options_;
  int rank_ = 0;
  int size_ = 1;
  direct::Waiter waiter_;  // copied by each wait: to make one asks the system for its cores, which takes 7 us

  std::mutex mutex_;  // guards what follows and the operations in flight
  std::deque<std::shared_ptr<Operation>> in_flight_;
  std::uint64_t sequence_ = 0;
  bool broken_ = false;
};

}  // namespace phalanx::mpi
