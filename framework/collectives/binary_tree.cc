// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/binary_tree.h"

#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

// The chunks of several flows, interleaved: chunk 0 of each flow, chunk 1 of each flow, ...
class Chunks {
 public:
  explicit Chunks(std::span<const Flow> flows) : flows_(flows) {
    for (const Flow& flow : flows) chunks_ = std::max(chunks_, chunks_of(flow.data, flow.data.numel()));
  }
  std::int64_t items() const { return chunks_ * static_cast<std::int64_t>(flows_.size()); }
  const TreeNode& node(std::int64_t item) const { return flow(item).node; }
  at::Tensor data(std::int64_t item) const {
    return part_of(flow(item).data, item / static_cast<std::int64_t>(flows_.size()), chunks_);
  }
  int tag(std::int64_t item) const { return kTag + static_cast<int>(index(item)); }

 private:
  std::size_t index(std::int64_t item) const { return static_cast<std::size_t>(item) % flows_.size(); }
  const Flow& flow(std::int64_t item) const { return flows_[index(item)]; }

  std::span<const Flow> flows_;
  std::int64_t chunks_ = 1;
};

class Upward {
 public:
  Upward(Communicator& group, std::span<const Flow> flows, const Reduction& op)
      : group_(group), chunks_(flows), op_(op) {
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < std::ssize(flows); ++i) longest = std::max(longest, chunks_.data(i).numel());
    for (auto& pair : received_) pair = {scratch(flows[0].data, longest), scratch(flows[0].data, longest)};
  }

  void run() {
    pipeline(
        chunks_.items(), 2, [&](std::int64_t item) { return start(item); }, [&](std::int64_t item) { arrived(item); });
    sent_.wait_all();
  }

 private:
  struct Pair {
    at::Tensor lower, upper;
  };
  // There are three pairs of buffers: the combined result of one item is sent from one of them while two others
  // receive.
  Pair received(std::int64_t item) const {
    const Pair& pair = received_[item % 3];
    const std::int64_t elements = chunks_.data(item).numel();
    return {run_of(pair.lower, 0, elements), run_of(pair.upper, 0, elements)};
  }

  std::vector<Work> start(std::int64_t item) {
    const auto [lower, upper] = received(item);
    const TreeNode& node = chunks_.node(item);
    std::vector<Work> works;
    if (node.lower >= 0) works.push_back(start_recv(group_, lower, node.lower, chunks_.tag(item)));
    if (node.upper >= 0) works.push_back(start_recv(group_, upper, node.upper, chunks_.tag(item)));
    return works;
  }

  void arrived(std::int64_t item) {
    const TreeNode& node = chunks_.node(item);
    const at::Tensor own = chunks_.data(item);
    const at::Tensor result = combined(item, own);
    if (node.parent >= 0) {
      sent_.add(start_send(group_, result, node.parent, chunks_.tag(item)));
    } else {
      copy(own, result);
      finish(op_, own, group_.size());
      sent_.add(Work());  // the window counts items, so this one needs an entry, too
    }
  }

  at::Tensor combined(std::int64_t item, const at::Tensor& own) const {
    const TreeNode& node = chunks_.node(item);
    if (node.lower < 0 && node.upper < 0) return own;
    const auto [lower, upper] = received(item);
    if (node.lower >= 0) {
      combine(op_, lower, own);
    } else {
      copy(lower, own);
    }
    if (node.upper >= 0) combine(op_, lower, upper);
    return lower;
  }

  Communicator& group_;
  Chunks chunks_;
  const Reduction& op_;
  Pair received_[3];
  Window sent_{1};
};

}  // namespace

void flow_down(Communicator& group, std::span<const Flow> flows) {
  const Chunks chunks(flows);
  Window sent(8);
  const auto start = [&](std::int64_t item) {
    std::vector<Work> works;
    if (const int parent = chunks.node(item).parent; parent >= 0) {
      works.push_back(start_recv(group, chunks.data(item), parent, chunks.tag(item)));
    }
    return works;
  };
  const auto arrived = [&](std::int64_t item) {
    for (const int child : {chunks.node(item).lower, chunks.node(item).upper}) {
      if (child >= 0) sent.add(start_send(group, chunks.data(item), child, chunks.tag(item)));
    }
  };
  pipeline(chunks.items(), 4, start, arrived);
  sent.wait_all();
}

void flow_up(Communicator& group, std::span<const Flow> flows, const Reduction& op) { Upward(group, flows, op).run(); }

}  // namespace phalanx::collectives
