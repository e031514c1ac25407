// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/halving.h"

#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

// Returns the parts of an interval from a tensor that begins with part `first`.
at::Tensor parts_of(const at::Tensor& tensor, const PartLayout& parts, Halving::Interval interval, int first = 0) {
  const std::int64_t begin = parts.begin(interval.begin);
  return run_of(tensor, begin - parts.begin(first), parts.begin(interval.end) - begin);
}

}  // namespace

std::vector<Halving> halvings(int rank, int ranks) {
  std::vector<Halving> all;
  int begin = 0, end = ranks;
  while (end - begin > 1) {
    const int middle = begin + (end - begin + 1) / 2;
    const int left = middle - begin, right = end - middle;
    Halving halving;
    if (rank < middle) {
      const bool extra = rank - begin == right;  // only if the left half is longer
      halving = {.keep = {begin, middle}, .give = {middle, end}, .to = extra ? middle : rank + left, .from = {}};
      if (!extra) halving.from = {rank + left};
      end = middle;
    } else {
      halving = {.keep = {middle, end}, .give = {begin, middle}, .to = rank - left, .from = {rank - left}};
      if (rank == middle && left > right) halving.from.push_back(middle - 1);
      begin = middle;
    }
    all.push_back(std::move(halving));
  }
  return all;
}

at::Tensor reduce_scatter_by_halving(Communicator& group, const at::Tensor& input, const PartLayout& parts,
                                     const Reduction& op) {
  at::Tensor held = run_of(input, 0, input.numel());
  int first = 0;  // the part that `held` begins with
  for (const Halving& halving : halvings(group.rank(), group.size())) {
    at::Tensor kept = parts_of(held, parts, halving.keep, first);
    std::vector<at::Tensor> received;
    std::vector<Work> works;
    for (const int peer : halving.from) {
      received.push_back(scratch(input, kept.numel()));
      works.push_back(start_recv(group, received.back(), peer));
    }
    works.push_back(start_send(group, parts_of(held, parts, halving.give, first), halving.to));
    wait_all(works);
    for (const at::Tensor& contribution : received) {
      combine(op, contribution, kept);
      kept = contribution;
    }
    held = kept;
    first = halving.keep.begin;
  }
  return held;
}

void all_gather_by_doubling(Communicator& group, const at::Tensor& output, const PartLayout& parts) {
  const auto all = halvings(group.rank(), group.size());
  for (auto halving = all.rbegin(); halving != all.rend(); ++halving) {
    std::vector<Work> works;
    works.push_back(start_recv(group, parts_of(output, parts, halving->give), halving->to));
    for (const int peer : halving->from) {
      works.push_back(start_send(group, parts_of(output, parts, halving->keep), peer));
    }
    wait_all(works);
  }
}

}  // namespace phalanx::collectives
