// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/servers/bucket_tables.h"

namespace phalanx {

/// A strategy whose ranks train their own replicas and exchange updates through values that parameter servers hold, the
/// centre. After the last step all replicas are equal to the centre.
///
/// A checkpoint contains the centre after all updates of all ranks, by parameter. When the run resumes, the servers get
/// it back before any rank reads. The same happens when the run moves to other servers, or goes on without lost ranks.
class ServerStrategy : public ReplicatedStrategy, protected KeepsCentre {
 public:
  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) final;
  void attach_state(const std::vector<StateTensor>& state) final { state_ = state; }
  void reset() final;
  void before_update(std::int64_t step) final;
  std::vector<CommunicatorPtr> gradient_groups() const final { return {nullptr}; }
  bool replicas_equal() const override { return group_->size() == 1; }
  StateDict state() final;
  void finish() final;
  Metrics metrics() const final { return tables_.metrics(); }

 protected:
  ServerStrategy(const StrategyContext& context, BucketTables::Contract contract)
      : group_(context.group), service_(context), tables_(service_, std::move(contract)) {
    service_.on_change_of_servers([this] { follow_servers(); });
  }

  /// Called when the replicas are equal to the centre, or after their values were replaced.
  virtual void begin(const std::vector<at::Tensor>& values) = 0;

  /// Returns the state of the strategy other than the centre, always the same number of tensors.
  virtual StateDict own_state() = 0;

  /// Waits for all requests in flight. Afterwards a checkpoint with own_state() contains everything that this rank has
  /// not sent yet.
  virtual void settle() = 0;

  /// Called after the last step: applies everything that this rank has not sent yet.
  virtual void send_rest() { settle(); }

  /// Called when the servers have just been given the centre from which all ranks continue. Collective.
  virtual void servers_were_set() {}

  /// An implementation of it in which every rank reads the centre. The staleness of updates then counts from this
  /// point, not from the write that set the initial values.
  void read_what_was_set();

  LeftCentre leave() final;
  void succeed(std::function<void()> remove) final { remove_former_ = std::move(remove); }

  CommunicatorPtr group_;
  ParameterService service_;
  BucketTables tables_;
  std::vector<at::Tensor> values_;              // of this rank's replica, by bucket
  std::vector<std::vector<Segment>> segments_;  // of these buckets

 private:
  void fill_servers();
  void follow_servers();
  void read_centre();  // for a checkpoint; collective
  void make_room_for_rules();

  std::vector<at::Tensor> centre_;  // for checkpoints
  StateDict rules_;                 // state of the servers' rules, for the same purpose; empty until it is needed
  std::vector<StateTensor> state_;  // of the optimizer
  bool servers_outdated_ = false;   // the servers must get the centre before any rank reads
  bool finished_ = false;           // all updates of this rank have been sent
  bool left_ = false;
  std::function<void()> remove_former_{};  // KeepsCentre::succeed()
};

}  // namespace phalanx
