// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/ring_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "framework/parallel/block_attention.h"
#include "framework/partition/sequence_shard.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kKeysTag = 0, kGradientsTag = 1;
constexpr std::int64_t kPositionDimension = 2;  // dimension of [n, heads, positions, head width]

// Packs two tensors for one message round the ring: [2, n, heads, positions, head width].
at::Tensor packed(const at::Tensor& of_key, const at::Tensor& of_value) { return at::stack({of_key, of_value}); }

c10::ScalarType sum_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Sends keys and values to the next rank while keys and values of the previous rank arrive.
class PassToNextRank {
 public:
  PassToNextRank(const at::Tensor& here, Communicator& group)
      : incoming_(at::empty_like(here)),
        sent_(group.send(here, (group.rank() + 1) % group.size(), kKeysTag)),
        received_(group.recv(incoming_, (group.rank() + group.size() - 1) % group.size(), kKeysTag)) {}

  at::Tensor wait() {
    received_.wait();
    sent_.wait();
    return incoming_;
  }

 private:
  at::Tensor incoming_;
  Work sent_, received_;
};

// Calls `compute(step, keys and values)` for the keys and values of each rank: step 0 is this rank, and step s is the
// rank s places before it.
template <class Compute>
void for_each_ring_step(at::Tensor here, Communicator& group, const Compute& compute) {
  for (int step = 0; step < group.size(); ++step) {
    std::optional<PassToNextRank> transfer;
    if (step + 1 < group.size()) transfer.emplace(here, group);
    compute(step, here);
    if (transfer) here = transfer->wait();
  }
}

// The queries of this rank and the keys of the rank `step` places before it that see each other. Rank r has chunks r
// and 2 P - 1 - r, so a query in a block sees all keys of the block. The exception is the block of the rank's own keys:
// there the positions are in order, and attention is causal.
struct Block {
  Block(int step, const Communicator& group, std::int64_t positions) : causal(step == 0) {
    if (causal || group.size() == 1) {
      queries = keys = {0, positions};
    } else if (step <= group.rank()) {  // a rank before this one: both chunks here see its early chunk
      queries = {0, positions};
      keys = {0, positions / 2};
    } else {  // a rank after this one: the late chunk here sees both of its chunks
      queries = {positions / 2, positions - positions / 2};
      keys = {0, positions};
    }
  }

  struct Range {
    std::int64_t begin = 0, count = 0;
    at::Tensor of(const at::Tensor& tensor) const { return tensor.narrow(kPositionDimension, begin, count); }
  };

  bool causal;
  Range queries, keys;
};

BlockAttention attend_to(const Block& block, const at::Tensor& query, const at::Tensor& pair) {
  BlockAttention part = attend(block.queries.of(query), block.keys.of(pair[0]), block.keys.of(pair[1]), block.causal);
  part.output = part.output.to(sum_type(query));
  return part;
}

// Computes all = (exp(a) all + exp(b) more) / (exp(a) + exp(b)), where a and b are the logarithms, without overflow.
void merge(const BlockAttention& all, const BlockAttention& more) {
  const at::Tensor weight = (more.log_sum - all.log_sum).sigmoid().unsqueeze(-1);
  all.output.add_((more.output - all.output).mul_(weight));
  all.log_sum.copy_(all.log_sum.logaddexp(more.log_sum));
}

struct Ring final : torch::CustomClassHolder {
  explicit Ring(CommunicatorPtr group) : group(std::move(group)) {}
  CommunicatorPtr group;
};
using RingPtr = c10::intrusive_ptr<Ring>;

// Gradients of the keys and values of other ranks. They follow their block round the ring, one rank after it, until
// they reach the block's owner.
class RingGradients {
 public:
  explicit RingGradients(Communicator& group) : group_(group) {}

  // Begins the gradients of the block that this rank computes now: zeros in the first step, else they arrive from the
  // rank before.
  void begin(int step, const at::Tensor& like) {
    current_ = step == 1 ? at::zeros_like(like) : at::empty_like(like);
    if (step > 1) received_.emplace(receive(current_));
  }

  void add(const Block& block, const at::Tensor& of_keys, const at::Tensor& of_values) {
    if (received_) received_->wait();
    received_.reset();
    block.keys.of(current_[0]).add_(of_keys);
    block.keys.of(current_[1]).add_(of_values);
    sent_.push_back(group_.send(current_, (group_.rank() + 1) % group_.size(), kGradientsTag));
  }

  // Adds the gradients of this rank's own block, which come from all other ranks.
  void add_own_to(const at::Tensor& gradients) {
    const at::Tensor home = at::empty_like(gradients);
    receive(home).wait();
    gradients.add_(home);
    for (auto& sent : sent_) sent.wait();
  }

 private:
  Work receive(const at::Tensor& tensor) const {
    return group_.recv(tensor, (group_.rank() + group_.size() - 1) % group_.size(), kGradientsTag);
  }

  Communicator& group_;
  at::Tensor current_;
  std::optional<Work> received_;
  std::vector<Work> sent_;
};

class RingAttention : public torch::autograd::Function<RingAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const RingPtr& ring) {
    Communicator& group = *ring->group;
    BlockAttention all;
    for_each_ring_step(packed(key, value), group, [&](int step, const at::Tensor& pair) {
      const Block block(step, group, query.size(kPositionDimension));
      const BlockAttention part = attend_to(block, query, pair);
      if (step == 0) {
        all = part;
      } else {
        merge({.output = block.queries.of(all.output), .log_sum = block.queries.of(all.log_sum), .random_state = {}},
              part);
      }
    });
    const at::Tensor output = all.output.to(query.scalar_type());
    context->save_for_backward({query, key, value, output, all.log_sum, all.random_state[0], all.random_state[1]});
    context->saved_data["ring"] = c10::IValue::make_capsule(ring);
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &query = saved[0], &key = saved[1], &value = saved[2], &output = saved[3], &log_sum = saved[4];
    const auto ring = c10::static_intrusive_pointer_cast<Ring>(context->saved_data["ring"].toCapsule());
    Communicator& group = *ring->group;
    const at::Tensor of_output = gradients[0].contiguous();
    at::Tensor of_query, of_own;
    RingGradients ring_gradients(group);
    for_each_ring_step(packed(key, value), group, [&](int step, const at::Tensor& pair) {
      const Block block(step, group, query.size(kPositionDimension));
      if (step > 0) ring_gradients.begin(step, of_own);
      // The logarithm of the whole sum is used instead of the block's, so that the block's weights are shares of all
      // keys.
      const auto [to_query, to_key, to_value] = attend_backward({.query = block.queries.of(query),
                                                                 .key = block.keys.of(pair[0]),
                                                                 .value = block.keys.of(pair[1]),
                                                                 .attention = {.output = block.queries.of(output),
                                                                               .log_sum = block.queries.of(log_sum),
                                                                               .random_state = {saved[5], saved[6]}},
                                                                 .of_output = block.queries.of(of_output),
                                                                 .causal = block.causal});
      if (step == 0) {
        of_query = to_query.to(sum_type(query));
        of_own = packed(to_key, to_value).to(sum_type(query));
      } else {
        block.queries.of(of_query).add_(to_query);
        ring_gradients.add(block, to_key, to_value);
      }
    });
    if (group.size() > 1) ring_gradients.add_own_to(of_own);
    const auto type = query.scalar_type();
    return {of_query.to(type), of_own[0].to(type), of_own[1].to(type), at::Tensor()};
  }
};

}  // namespace

at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const CommunicatorPtr& group) {
  const auto fits = [&](const at::Tensor& shared) {
    return shared.dim() == 4 && shared.size(1) > 0 && query.size(1) % shared.size(1) == 0 &&
           query.size(0) == shared.size(0) && query.sizes().slice(2) == shared.sizes().slice(2);
  };
  if (query.dim() != 4 || !fits(key) || key.sizes() != value.sizes()) {
    throw std::invalid_argument(
        "ring attention takes queries, keys and values [n, heads, positions, head width]; keys and values may have a "
        "number of heads that divides the number of the queries' heads");
  }
  if (group->size() > 1 && query.size(kPositionDimension) % 2 != 0) {
    throw std::invalid_argument("ring attention takes two chunks of positions of the same length on each rank");
  }
  return RingAttention::apply(query, key, value, c10::make_intrusive<Ring>(group));
}

}  // namespace phalanx
