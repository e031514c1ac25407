// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/knomial.h"

#include <algorithm>

#include "framework/collectives/steps.h"

namespace phalanx::collectives {

KnomialPlace knomial_place(int place, int ranks, int radix) {
  KnomialPlace result;
  std::int64_t weight = 1;  // place value of the current digit
  for (; weight < ranks; weight *= radix) {
    const auto digit = place / weight % radix;
    if (digit != 0) {
      result.parent = static_cast<int>(place - digit * weight);
      break;
    }
    for (int i = 1; i < radix; ++i) {
      const std::int64_t child = place + i * weight;
      if (child >= ranks) break;
      result.children.push_back(
          {static_cast<int>(child), static_cast<int>(std::min<std::int64_t>(child + weight, ranks))});
    }
  }
  result.end = static_cast<int>(std::min<std::int64_t>(place + weight, ranks));
  return result;
}

PartLayout parts_by_place(const PartLayout& parts, int root) {
  std::vector<std::int64_t> counts;
  for (int place = 0; place < parts.ranks(); ++place) counts.push_back(parts.count(mod(place + root, parts.ranks())));
  return PartLayout(counts, parts.ranks(), parts.total());
}

void knomial_broadcast(Communicator& group, const Operation& operation, int radix) {
  const int ranks = group.size(), root = operation.root();
  const auto place = knomial_place(mod(group.rank() - root, ranks), ranks, radix);
  if (place.parent >= 0) recv(group, operation.output, mod(place.parent + root, ranks));
  std::vector<Work> works;  // the highest subtrees first, because they take the longest
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    works.push_back(start_send(group, operation.output, mod(child->place + root, ranks)));
  }
  wait_all(works);
}

void knomial_reduce(Communicator& group, const Operation& operation, int radix) {
  const at::Tensor& tensor = operation.output;
  const Reduction& op = operation.reduction;
  const int rank = group.rank(), ranks = group.size(), root = operation.root();
  const int top = op.commutative() ? root : 0;
  const auto place = knomial_place(mod(rank - top, ranks), ranks, radix);

  // Only the root's tensor may be written, and not before it has been sent.
  at::Tensor held = tensor;
  if (!place.children.empty() && !(rank == root && place.parent < 0)) {
    held = scratch(tensor, tensor.numel());
    copy(held, tensor);
  }
  const at::Tensor received[2] = {scratch(tensor, place.children.empty() ? 0 : tensor.numel()),
                                  scratch(tensor, place.children.size() < 2 ? 0 : tensor.numel())};
  pipeline(
      static_cast<std::int64_t>(place.children.size()), 2,
      [&](std::int64_t i) {
        std::vector<Work> works;
        works.push_back(start_recv(group, received[i % 2], mod(place.children[i].place + top, ranks)));
        return works;
      },
      [&](std::int64_t i) { combine(op, held, received[i % 2]); });
  if (place.parent >= 0) send(group, held, mod(place.parent + top, ranks));

  if (top != root && rank == top) send(group, held, root);
  if (top != root && rank == root) recv(group, tensor, top);
  if (rank == root) finish(op, tensor, ranks);
}

}  // namespace phalanx::collectives
