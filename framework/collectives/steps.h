// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

/// Building blocks of the algorithms in this folder. All tensors are contiguous runs of elements.
namespace phalanx::collectives {

/// The tag of all messages; algorithms with two independent flows also use the tags after it. A rank may be an
/// operation ahead of its peers, because messages with the same sender, receiver and tag arrive in order.
inline constexpr int kTag = kMaxTag + 1;

/// The largest chunk into which pipelined algorithms cut a tensor. It is small enough to stay in a core's cache and to
/// fill a pipeline soon, and large enough that the cost per message is negligible.
inline constexpr std::int64_t kChunkBytes = 128 << 10;

/// Returns a modulo n, which is never negative.
constexpr int mod(int a, int n) { return ((a % n) + n) % n; }

/// Send and receive helpers. A tensor of zero elements sends no message, since both ends know the number of elements.
Work start_send(Communicator& group, const at::Tensor& tensor, int to, int tag = kTag);
Work start_recv(Communicator& group, const at::Tensor& tensor, int from, int tag = kTag);
void send(Communicator& group, const at::Tensor& tensor, int to);
void recv(Communicator& group, const at::Tensor& tensor, int from);
void exchange(Communicator& group, const at::Tensor& outgoing, int to, const at::Tensor& incoming, int from);

/// Returns uninitialized memory for `count` elements with the options of `tensor`.
at::Tensor scratch(const at::Tensor& tensor, std::int64_t count);

/// Returns elements [begin, begin + count) of `tensor`.
at::Tensor run_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count);

/// Returns part `index` of `parts` nearly equal parts, cut as in framework/base/parts.h.
at::Tensor part_of(const at::Tensor& tensor, std::int64_t index, std::int64_t parts);

/// Returns the number of chunks of at most kChunkBytes for `count` elements of the dtype of `tensor`; at least 1.
std::int64_t chunks_of(const at::Tensor& tensor, std::int64_t count);

/// Copies all elements. Does nothing if both tensors are the same memory.
void copy(const at::Tensor& to, const at::Tensor& from);

/// Sets result = result . next.
void combine(const Reduction& op, const at::Tensor& result, const at::Tensor& next);

/// Sets result = previous . result. Overwrites `previous`, too.
void combine_before(const Reduction& op, const at::Tensor& previous, const at::Tensor& result);

void finish(const Reduction& op, const at::Tensor& result, int ranks);

/// Processes items 0..count-1 in order, with up to `depth` of them in flight. start(i) starts messages and returns
/// their Works. When these are complete, pipeline() calls arrived(i) and then start(i + depth).
///
/// There is no deadlock if all ranks number their items in the same way, the messages of item i of one rank belong to
/// item i of its peers, and the data that start(i) sends is ready when arrived(i - depth) has returned. Then the rank
/// that is furthest behind can always make progress.
template <class Start, class Arrived>
void pipeline(std::int64_t count, std::int64_t depth, const Start& start, const Arrived& arrived) {
  std::deque<std::vector<Work>> flying;
  for (std::int64_t i = 0; i < std::min(count, depth); ++i) flying.push_back(start(i));
  for (std::int64_t i = 0; i < count; ++i) {
    wait_all(flying.front());
    flying.pop_front();
    arrived(i);
    if (i + depth < count) flying.push_back(start(i + depth));
  }
}

/// A queue of at most `limit` Works in flight. add() waits for the oldest one if there are more.
class Window {
 public:
  explicit Window(std::size_t limit) : limit_(limit) {}
  void add(Work work);
  void wait_all();

 private:
  std::size_t limit_;
  std::deque<Work> works_;
};

}  // namespace phalanx::collectives
