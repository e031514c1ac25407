// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "engine/sync/parameter_service.h"
#include "engine/sync/replicated_synchronizer.h"

namespace phalanx {

/// A strategy whose ranks train replicas of their own, which meet in the values that parameter servers hold: the
/// centre. After the last step all replicas are the centre.
///
/// For checkpoints, the ranks meet: what is saved is the centre after all updates of all ranks, parameter by parameter,
/// and after resuming the servers have it again before anybody reads. So it is when the run moves to other servers.
class ServedSynchronizer : public ReplicatedSynchronizer {
 public:
  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) final;
  void attach_state(const std::vector<StateTensor>& state) final { state_ = state; }
  void begin_anew() final;
  void before_update(std::int64_t step) final;
  std::vector<CommunicatorPtr> gradient_groups() const final { return {nullptr}; }
  bool replicas_equal() const override { return group_->size() == 1; }
  StateDict state() final;
  void finish() final;
  Figures figures() const final { return tables_.figures(); }

 protected:
  ServedSynchronizer(const SyncContext& context, BucketTables::Contract contract)
      : group_(context.group), service_(context), tables_(service_, std::move(contract)) {
    service_.on_change_of_servers([this] { follow_servers(); });
  }

  /// The replicas are equal to `centre`, or were written anew.
  virtual void begin(const std::vector<at::Tensor>& values) = 0;

  /// What the strategy remembers beside the centre, each as many tensors at any time.
  virtual StateDict own_state() = 0;

  /// Nothing is in flight, and a checkpoint that has own_state() leaves out nothing that this rank has still to send.
  virtual void settle() = 0;

  /// After the last step: everything that this rank has still to send is applied.
  virtual void send_rest() { settle(); }

  /// The servers have just got the centre, from which all ranks go on. Collective.
  virtual void servers_were_set() {}

  /// For it: every rank reads the centre, so that updates are late by what came after that, not by what was written for
  /// all to begin with.
  void read_what_was_set();

  CommunicatorPtr group_;
  ParameterService service_;
  BucketTables tables_;
  std::vector<at::Tensor> values_;              // of this rank's replica, by bucket
  std::vector<std::vector<Segment>> segments_;  // of these

 private:
  void follow_servers();
  void read_centre();  // for the checkpoint; collective
  void make_room_for_rules();

  std::vector<at::Tensor> centre_;  // for checkpoints
  StateDict rules_;                 // the same of what the servers' rules remember, once it is needed
  std::vector<StateTensor> state_;  // of the optimizer
  bool anew_ = false;               // the servers have to get the centre before anybody reads
};

}  // namespace phalanx
