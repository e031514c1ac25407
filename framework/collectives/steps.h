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

/// What the algorithms of this folder are made of. Tensors are contiguous runs of elements.
namespace phalanx::collectives {

/// The tag of all messages; algorithms of two independent flows use the ones behind it too. Ranks that are an operation
/// ahead do no harm: messages of one sender, receiver and tag arrive in order.
inline constexpr int kTag = kMaxTag + 1;

/// Pipelined algorithms cut what they move into chunks of at most this: small enough to stay in a core's cache and to
/// fill a pipeline soon, large enough that the cost of a message does not count.
inline constexpr std::int64_t kChunkBytes = 128 << 10;

/// a modulo n, never negative.
constexpr int mod(int a, int n) { return ((a % n) + n) % n; }

/// Messages. Of zero elements there is none: both ends know the number.
Work start_send(Communicator& group, const at::Tensor& tensor, int to, int tag = kTag);
Work start_recv(Communicator& group, const at::Tensor& tensor, int from, int tag = kTag);
void send(Communicator& group, const at::Tensor& tensor, int to);
void recv(Communicator& group, const at::Tensor& tensor, int from);
void exchange(Communicator& group, const at::Tensor& outgoing, int to, const at::Tensor& incoming, int from);

/// Uninitialised memory for `count` elements like those of `tensor`.
at::Tensor scratch(const at::Tensor& tensor, std::int64_t count);

/// Elements [begin, begin + count).
at::Tensor run_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count);

/// The index-th of `parts` nearly equal parts, as framework/base/parts.h cuts them.
at::Tensor part_of(const at::Tensor& tensor, std::int64_t index, std::int64_t parts);

/// How many chunks of at most kChunkBytes `count` elements like those of `tensor` make; at least 1.
std::int64_t chunks_of(const at::Tensor& tensor, std::int64_t count);

/// Copies all elements; nothing to do when both are the same memory.
void copy(const at::Tensor& to, const at::Tensor& from);

/// result = result . next
void combine(const Reduction& op, const at::Tensor& result, const at::Tensor& next);

/// result = previous . result; overwrites `previous`, too.
void combine_before(const Reduction& op, const at::Tensor& previous, const at::Tensor& result);

void finish(const Reduction& op, const at::Tensor& result, int ranks);

/// Works items 0..count-1 in order with `depth` in flight: start(i) starts messages and returns their Works,
/// arrived(i) is called when they are through, and start(i + depth) after that.
///
/// No deadlock when all ranks number their items alike, the messages of item i of one rank belong to items i of its
/// peers, and whatever start(i) sends was there when arrived(i - depth) returned: then the rank that is furthest behind
/// can always go on.
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

/// Works that nobody needs to wait for yet, at most `limit` of them: add() waits for the oldest.
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
