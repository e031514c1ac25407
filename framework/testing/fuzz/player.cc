// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fuzz/player.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/testing/reference.h"

namespace phalanx::testing {
namespace {

std::vector<std::int64_t> counts_of(const Step& step, int ranks) {
  std::vector<std::int64_t> counts(ranks);
  for (int rank = 0; rank < ranks; ++rank) counts[rank] = part_of(step, rank);
  return counts;
}

// Returns true for operations that an exception at a schedule point would leave half done and visible to other ranks,
// which no real death does. While one of them is in flight, the rank is not killed inside an operation.
bool ends_well_only(Op op) { return op == Op::kSend || op == Op::kRecv || op == Op::kBarrier || op == Op::kCustom; }

bool is_message(Op op) { return op == Op::kSend || op == Op::kRecv; }

// Returns true if a rank of the group may perform a step with a mismatch, because it needs nothing from the ranks that
// call something else. It gets the error later.
bool may_go_on(const Step& step, int rank) {
  if (step.op == Op::kReduce) return rank != step.root;
  if (step.op != Op::kBroadcast) return false;
  return rank == step.root || (step.odd_one != step.root && step.odd_one != rank);
}

// Returns true for operations in which every rank needs every other.
bool needs_all(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kAllGather || op == Op::kAllToAll ||
         op == Op::kBarrier;
}

}  // namespace

Player::Player(const Program& program, Schedule& schedule, int rank)
    : program_(program),
      schedule_(schedule),
      rank_(rank),
      dice_(mix(program.seed, 1000 + static_cast<std::uint64_t>(rank))),
      groups_(program.groups.size()) {}

void Player::play(CommunicatorPtr world) {
  groups_[0] = std::move(world);
  try {
    play_steps();
    finished_ = true;
  } catch (const Killed&) {
  } catch (const CommError& error) {
    const bool lost = schedule_.killed() >= 0 && error.kind() == CommError::Kind::kPeerLost;
    if (!lost && schedule_.killed() != rank_) fault(at_, error.what());
  } catch (const std::exception& error) {
    fault(at_, error.what());
  }
  finish();
}

void Player::play_steps() {
  for (at_ = 0; at_ < static_cast<int>(program_.steps.size()); ++at_) {
    const auto& step = program_.steps[at_];
    if (schedule_.is_to_leave()) throw Killed();
    if (groups_[step.group]) take(step, *groups_[step.group]);
    schedule_.progress(is_killable());
    wait_for_some();
  }
  while (!tasks_.empty()) {
    auto& task = tasks_[dice_.below(static_cast<int>(tasks_.size()))];
    wait_in_order(task);
    std::erase_if(tasks_, [](const Task& each) { return each.is_over; });
  }
  check_mismatches();
}

// A mismatch that was not noticed in its own step is told by a later operation of the same group, and at the latest by
// one that needs all ranks.
void Player::check_mismatches() {
  const auto same_group_before = [&](int step) {
    return [&, step](int other) { return other < step && program_.steps[other].group == program_.steps[step].group; };
  };
  for (const int step : noticed_) {
    if (std::ranges::none_of(unnoticed_, same_group_before(step))) fault(step, "a mismatch without a cause");
  }
  for (const int step : unnoticed_) {
    const auto is_later = [&](int other) { return same_group_before(other)(step); };
    bool must_notice = false;
    for (int later = step + 1; later < static_cast<int>(program_.steps.size()); ++later) {
      must_notice |= is_later(later) && needs_all(program_.steps[later].op) && program_.steps[later].odd_one < 0;
    }
    if (must_notice && std::ranges::none_of(noticed_, is_later)) fault(step, "a mismatch that was never told");
  }
}

void Player::wait_for_some() {
  if (!dice_.once_in(3) || tasks_.empty()) return;
  wait_in_order(tasks_[dice_.below(static_cast<int>(tasks_.size()))]);
  std::erase_if(tasks_, [](const Task& each) { return each.is_over; });
}

// Waiting for a message does not advance the collectives launched before it, and its sender may be in one of them.
void Player::wait_in_order(Task& task) {
  if (is_message(program_.steps[task.step].op)) {
    for (auto& earlier : tasks_) {
      if (&earlier == &task) break;
      if (!is_message(program_.steps[earlier.step].op)) wait_for(earlier);
    }
  }
  wait_for(task);
}

void Player::wait_for(Task& task) {
  if (std::exchange(task.is_over, true)) return;
  const auto& step = program_.steps[task.step];
  try {
    task.work.wait();
    if (step.odd_one >= 0) {
      if (!may_go_on(step, groups_[step.group]->rank())) fault(task.step, "no mismatch");
      unnoticed_.push_back(task.step);
    }
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kMismatch) throw;
    if (step.odd_one < 0) noticed_.push_back(task.step);  // this operation has been performed
  }
  schedule_.progress(is_killable());
  if (step.odd_one < 0) compare(task);
}

void Player::compare(const Task& task) {
  if (task.want.defined() && !at::equal(task.output, task.want)) fault(task.step, "wrong result");
}

// Waits for everything in flight and leaves the groups. Operations that complete must still give correct results.
void Player::finish() {
  schedule_.progress(/*killable=*/false);
  for (auto& task : tasks_) {
    try {
      wait_for(task);
    } catch (const std::exception&) {
      // This rank or another one was killed.
    }
  }
  schedule_.progress(/*killable=*/false);
  tasks_.clear();
  groups_.clear();
}

bool Player::is_killable() const {
  return std::ranges::none_of(
      tasks_, [&](const Task& task) { return !task.is_over && ends_well_only(program_.steps[task.step].op); });
}

void Player::fault(int step, const std::string& what) {
  faults_.push_back("rank " + std::to_string(rank_) + " in step " + std::to_string(step) + ", " +
                    describe(program_.steps[step]) + ": " + what);
}

at::Tensor Player::keep(at::Tensor tensor) { return kept_.emplace_back(std::move(tensor)); }

void Player::add(Task task) {
  tasks_.push_back(std::move(task));
  schedule_.progress(is_killable());
}

void Player::take(const Step& step, Communicator& group) {
  switch (step.op) {
    case Op::kSend:
      return launch_message(step, group);
    case Op::kSplit:
      return split(step, group);
    case Op::kAllocate:
    case Op::kAllocateShared:
      return allocate(step, group);
    case Op::kCustom:
      return add(launch_body(step, groups_[step.group]));
    default:
      return add(launch(step, group));
  }
}

Player::Task Player::launch(const Step& step, Communicator& group) {
  switch (step.op) {
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kAllReduce:
    case Op::kReduceScatter:
      return launch_reduction(step, group);
    case Op::kAllToAll:
      return launch_all_to_all(step, group);
    case Op::kBarrier:
      return {.work = group.barrier(), .output = {}, .want = {}, .step = at_};
    default:
      return launch_gathering(step, group);
  }
}

Player::Task Player::launch_reduction(const Step& step, Communicator& group) {
  const int here = group.rank(), ranks = group.size();
  if (step.op == Op::kReduceScatter) {
    const auto counts = counts_of(step, ranks);
    const PartLayout parts(counts, ranks, 0);
    const auto input = keep(input_of(here, parts.total(), step.dtype, step.reduction));
    const auto output = keep(at::empty({counts[here]}, step.dtype));
    const auto all = reduced(ranks, parts.total(), step.dtype, step.reduction);
    return {.work = group.reduce_scatter(output, input, step.reduction, step.uneven ? Counts(counts) : Counts()),
            .output = output,
            .want = parts.of(all, here),
            .step = at_};
  }
  const auto elements = step.elements + (here == step.odd_one);
  const auto input = input_of(here, elements, step.dtype, step.reduction);
  const auto tensor = keep(input.clone());
  if (step.op == Op::kBroadcast) {
    const auto want = input_of(step.root, elements, step.dtype, step.reduction);
    return {.work = group.broadcast(tensor, step.root), .output = tensor, .want = want, .step = at_};
  }
  const auto all = reduced(ranks, elements, step.dtype, step.reduction);
  if (step.op == Op::kAllReduce) {
    return {.work = group.all_reduce(tensor, step.reduction), .output = tensor, .want = all, .step = at_};
  }
  return {.work = group.reduce(tensor, step.reduction, step.root),
          .output = tensor,
          .want = here == step.root ? all : input,
          .step = at_};
}

Player::Task Player::launch_gathering(const Step& step, Communicator& group) {
  const int here = group.rank(), ranks = group.size();
  const auto counts = counts_of(step, ranks);
  const Counts given = step.uneven ? Counts(counts) : Counts();
  std::vector<at::Tensor> each;
  for (int rank = 0; rank < ranks; ++rank) each.push_back(input_of(rank, counts[rank], step.dtype));
  const auto whole = at::concat(each);
  const auto all = keep(step.op == Op::kScatter ? whole.clone() : at::empty_like(whole));
  const auto mine = keep(step.op == Op::kScatter ? at::empty_like(each[here]) : each[here].clone());
  switch (step.op) {
    case Op::kAllGather:
      return {.work = group.all_gather(all, mine, given), .output = all, .want = whole, .step = at_};
    case Op::kGather:
      return {.work = group.gather(all, mine, step.root, given),
              .output = all,
              .want = here == step.root ? whole : at::Tensor(),
              .step = at_};
    default:
      return {.work = group.scatter(mine, all, step.root, given), .output = mine, .want = each[here], .step = at_};
  }
}

Player::Task Player::launch_all_to_all(const Step& step, Communicator& group) {
  std::vector<at::Tensor> sent, want;
  std::vector<std::int64_t> incoming, outgoing;
  for (int peer = 0; peer < group.size(); ++peer) {
    outgoing.push_back(part_of(step, peer));
    incoming.push_back(part_of(step, group.rank()));
    sent.push_back(input_of(group.rank() * 8 + peer, outgoing.back(), step.dtype));
    want.push_back(input_of(peer * 8 + group.rank(), incoming.back(), step.dtype));
  }
  const auto input = keep(at::concat(sent)), wanted = at::concat(want), output = keep(at::empty_like(wanted));
  return {.work = step.uneven ? group.all_to_all(output, input, incoming, outgoing) : group.all_to_all(output, input),
          .output = output,
          .want = wanted,
          .step = at_};
}

// A body that sends in a ring and calls a collective, as algorithms do.
Player::Task Player::launch_body(const Step& step, const CommunicatorPtr& group) {
  const int ranks = group->size(), right = (group->rank() + 1) % ranks, left = (group->rank() + ranks - 1) % ranks;
  const auto sent = keep(input_of(group->rank(), step.elements, at::kInt));
  const auto output = keep(at::empty({step.elements}, at::kInt));
  const auto body = [group, sent, output, left, right] {
    Work recv = group->recv(output, left, kMaxTag + 1), send = group->send(sent, right, kMaxTag + 1);
    recv.wait();
    send.wait();
    group->all_reduce(output, Reduction::kSum).wait();
  };
  return {.work = group->run({.elements = step.elements, .op = Op::kCustom, .dtype = at::kInt}, body),
          .output = output,
          .want = reduced(ranks, step.elements, at::kInt, Reduction::kSum),
          .step = at_};
}

void Player::launch_message(const Step& step, Communicator& group) {
  schedule_.progress(/*killable=*/false);
  if (group.rank() == step.root) {
    const auto tensor = keep(input_of(at_, step.elements, step.dtype));
    add({.work = group.send(tensor, step.receiver, step.tag), .output = {}, .want = {}, .step = at_});
  }
  if (group.rank() == step.receiver) {
    const auto tensor = keep(at::empty({step.elements}, step.dtype));
    add({.work = group.recv(tensor, step.root, step.tag),
         .output = tensor,
         .want = input_of(at_, step.elements, step.dtype),
         .step = at_});
  }
}

void Player::split(const Step& step, Communicator& group) {
  const int color = step.colors[group.rank()];
  auto child = group.split(color, 0);
  if ((color < 0) != (child == nullptr)) fault(at_, "a group is missing or was not expected");
  if (color >= 0) groups_[step.first_child + color] = std::move(child);
}

void Player::allocate(const Step& step, Communicator& group) {
  const auto tensor =
      keep(step.op == Op::kAllocate ? group.allocate({step.elements}, step.dtype)
                                    : group.allocate_shared({group.size(), step.elements}, step.dtype)[group.rank()]);
  if (tensor.count_nonzero().item<std::int64_t>() != 0) fault(at_, "memory is not zeroed");
  tensor.copy_(input_of(group.rank(), step.elements, step.dtype, step.reduction));
  add({.work = group.all_reduce(tensor, step.reduction),
       .output = tensor,
       .want = reduced(group.size(), step.elements, step.dtype, step.reduction),
       .step = at_});
}

}  // namespace phalanx::testing
