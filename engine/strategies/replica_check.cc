// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/replica_check.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/parallel/digest.h"

namespace phalanx {

ReplicaCheck::ReplicaCheck(std::vector<DataParallelGroup> groups, bool repair, std::int64_t every_steps)
    : groups_(std::move(groups)), repair_(repair), every_steps_(every_steps) {}

void ReplicaCheck::after_step(std::int64_t step, bool to_be_equal) {
  due_ |= every_steps_ > 0 && step % every_steps_ == 0;
  if (!due_ || !to_be_equal) return;
  check(step);
  due_ = false;
}

void ReplicaCheck::at_end(std::int64_t step) {
  if (due_) check(step);
  due_ = false;
}

// Returns the digests by rank, in the order of the buckets and their segments.
std::vector<std::vector<std::int64_t>> ReplicaCheck::all_digests(const DataParallelGroup& group) {
  Communicator& control = *group.control;
  std::vector<std::int64_t> own;
  for (const auto& bucket : group.parameters.buckets()) {
    for (const auto& segment : bucket.segments) {
      own.push_back(static_cast<std::int64_t>(digest(bucket.values.narrow(0, segment.begin, segment.count))));
    }
  }
  const at::Tensor all = at::zeros({control.size(), static_cast<std::int64_t>(own.size())}, at::kLong);
  std::ranges::copy(own, all[control.rank()].mutable_data_ptr<std::int64_t>());
  control.all_gather(all, all[control.rank()]).wait();
  std::vector<std::vector<std::int64_t>> digests;
  for (int rank = 0; rank < control.size(); ++rank) {
    const auto* row = all[rank].const_data_ptr<std::int64_t>();
    digests.emplace_back(row, row + own.size());
  }
  return digests;
}

void ReplicaCheck::find(const DataParallelGroup& group, std::vector<Divergence>& found) {
  const auto digests = all_digests(group);
  const int ranks_of_group = group.control->size();
  std::size_t column = 0;
  for (const auto& bucket : group.parameters.buckets()) {
    for (const auto& segment : bucket.segments) {
      std::map<std::int64_t, std::vector<int>> ranks_with;
      for (int rank = 0; rank < ranks_of_group; ++rank) ranks_with[digests[rank][column]].push_back(rank);
      const auto* most = &ranks_with.at(digests[0][column]);
      for (const auto& [_, ranks] : ranks_with) {
        if (ranks.size() > most->size()) most = &ranks;
      }
      std::vector<int> others;
      for (int rank = 0; rank < ranks_of_group; ++rank) {
        if (std::ranges::find(*most, rank) == most->end()) others.push_back(rank);
      }
      const at::Tensor values = bucket.values.narrow(0, segment.begin, segment.count);
      if (!others.empty()) found.push_back({segment.name, values, std::move(others), most->front(), group.group.get()});
      ++column;
    }
  }
}

void ReplicaCheck::check(std::int64_t step) {
  std::vector<Divergence> found;
  for (const auto& group : groups_) find(group, found);
  if (found.empty()) return;
  const auto& first = found.front();
  std::vector<std::string> ranks;
  for (const int rank : first.ranks) ranks.push_back(std::to_string(rank));
  std::ostringstream text;
  text << "after step " << step << " replicas differ: parameter " << first.parameter << " on rank "
       << join(ranks, ", ");
  if (found.size() > 1) text << ", and " << found.size() - 1 << " more parameters";
  if (!repair_) throw Error(text.str());
  log_warning() << text.str() << "; repaired with the values of rank " << first.source;
  for (const auto& divergence : found) divergence.group->broadcast(divergence.values, divergence.source).wait();
}

}  // namespace phalanx
