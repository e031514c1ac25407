#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/direct/control_block.h"
#include "framework/backends/direct/fabric.h"
#include "framework/backends/direct/waiter.h"
#include "framework/base/error.h"
#include "framework/comm/store.h"

namespace phalanx::direct {

/// One rank's view of a group that shares memory: meets its peers and notices when they are gone or disagree.
///
/// Used by one thread at a time (the one that runs the rank's OperationQueue). After a CommError other than kMismatch
/// the group is broken: this rank has left it, and every later call throws that error again.
class Group {
 public:
  struct Options {
    std::string name;
    int rank = 0;
    int size = 1;
    Seconds timeout{600};  // of an operation, from where it begins to wait
    int ranks_here = 0;    // that share this machine's cores; 0: as many as the group has
  };

  /// `control` is a ControlBlock of `size` members.
  Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric);
  ~Group();  // leaves
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  Fabric& fabric() { return *fabric_; }

  /// Whether an error has broken the group.
  bool broken() const { return failure_.has_value(); }

  /// Throws the error that broke the group, if one has.
  void throw_if_broken() const;

  /// First meeting of an operation: posts `call` and waits until all ranks have posted theirs. Throws kMismatch, on all
  /// ranks alike, unless the calls agree in everything but where their memory lies.
  void meet(const Call& call);

  /// A rank's call of the current operation; after meet().
  const Call& call_of(int rank) const { return members_[rank].posts[parity()].call; }

  /// A further meeting of the current operation.
  void meet_again();

  /// A rank's scratch half for the current operation; to be filled by its owner before meet(). Until it has called
  /// meet(), a rank is at the operation that comes next.
  std::byte* scratch(int rank) { return members_[rank].scratch[parity()]; }
  std::byte* next_scratch() { return members_[options_.rank].scratch[(sequence_ + 1) % 2]; }

  /// Both halves, for operations that move more than one half holds and meet again in between.
  std::byte* scratch(int rank, int half) { return members_[rank].scratch[half]; }

  /// Takes no part any more: peers that wait for this rank get kPeerLost.
  void leave();

  /// Leaves; every later call throws the first error that was given here, since it is the cause.
  void fail(const CommError& error);

 private:
  int parity() const { return static_cast<int>(sequence_ % 2); }
  Member& self() { return members_[options_.rank]; }
  void compare_calls() const;

  template <class Arrived>
  void await_all(const Arrived& arrived);
  void give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited);
  [[noreturn]] void throw_for_good(const CommError& error);
  [[noreturn]] void give_up(int rank, const char* what_it_did, double seconds);
  std::string where() const;  // "all_reduce #12 of world, rank 0 of 2"

  Options options_;
  std::shared_ptr<void> control_;
  std::unique_ptr<Fabric> fabric_;
  Member* members_;
  Waiter waiter_;
  std::uint64_t sequence_ = 0;
  std::uint64_t stage_ = 0;
  Operation operation_ = Operation::kNone;
  std::optional<Waiter::Clock::time_point> waiting_since_;  // in the current operation
  std::optional<CommError> failure_;
};

}  // namespace phalanx::direct
