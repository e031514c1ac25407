// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/replica_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "framework/base/text.h"
#include "framework/parallel/digest.h"

namespace phalanx {
namespace {

using Kind = ReplicatedTensor::Kind;

constexpr std::size_t kKinds = 3;
constexpr std::uint64_t kUnstable = 1, kChanged = 2;  // flags of a tensor on a rank
constexpr std::size_t kOfRank = 2;                    // words about a rank, before two words for each of its tensors

// Gathers the same number of words from all ranks. Returns one row for each rank.
std::vector<std::vector<std::uint64_t>> gather_words(const std::vector<std::uint64_t>& own, Communicator& control) {
  const at::Tensor all = at::zeros({control.size(), static_cast<std::int64_t>(own.size())}, at::kLong);
  std::ranges::copy(own, all[control.rank()].mutable_data_ptr<std::int64_t>());
  control.all_gather(all, all[control.rank()]).wait();
  std::vector<std::vector<std::uint64_t>> rows;
  for (int rank = 0; rank < control.size(); ++rank) {
    const auto* row = all[rank].const_data_ptr<std::int64_t>();
    rows.emplace_back(row, row + own.size());
  }
  return rows;
}

std::string name_of(const ReplicatedTensor& tensor) {
  switch (tensor.kind) {
    case Kind::kParameter:
      return "parameter " + tensor.name;
    case Kind::kOptimizerState:
      return "optimizer state " + tensor.name;
    case Kind::kBuffer:
      return "buffer " + tensor.name;
  }
  return tensor.name;
}

std::string list_ranks(const std::vector<int>& ranks, const char* separator) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(std::to_string(rank));
  return join(texts, separator);
}

}  // namespace

/// The digests of a set's tensors on all ranks of its group.
class ReplicaCheck::Comparison {
 public:
  /// Exchanges them. Collective.
  Comparison(const Set& set, const std::vector<ReplicatedTensor>& tensors, const std::vector<std::uint64_t>& digests,
             int world_rank, bool wrong_before)
      : set_(set) {
    const auto again = digests_of(tensors);
    std::vector<std::uint64_t> row{static_cast<std::uint64_t>(world_rank), wrong_before ? 1U : 0U};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto last = set.last_buffers.find(tensors[i].name);
      const bool changed =
          tensors[i].kind == Kind::kBuffer && last != set.last_buffers.end() && last->second != digests[i];
      row.push_back(digests[i]);
      row.push_back((again[i] != digests[i] ? kUnstable : 0) | (changed ? kChanged : 0));
    }
    rows_ = gather_words(row, *set.of.control);
  }

  bool equal(std::size_t tensor) const {
    return std::ranges::all_of(rows_,
                               [&](const auto& row) { return digest_in(row, tensor) == digest_in(rows_[0], tensor); });
  }

  /// Returns true if more than half of the ranks have changed the tensor since the last check.
  bool changed_by_most(std::size_t tensor) const { return 2 * with_flag(tensor, kChanged).size() > rows_.size(); }

  Divergence judge(std::size_t index, const ReplicatedTensor& tensor) const {
    std::map<std::uint64_t, std::vector<int>> ranks_with;
    for (int rank = 0; rank < size(); ++rank) ranks_with[digest_in(rows_[rank], index)].push_back(rank);
    const auto* most = &ranks_with.at(digest_in(rows_[0], index));
    for (const auto& [_, ranks] : ranks_with) {
      if (ranks.size() > most->size()) most = &ranks;
    }
    const auto as_large =
        std::ranges::count_if(ranks_with, [&](const auto& one) { return one.second.size() == most->size(); });
    std::vector<int> wrong;
    if (as_large == 1) {
      for (int rank = 0; rank < size(); ++rank) {
        if (std::ranges::find(*most, rank) == most->end()) wrong.push_back(rank);
      }
    } else {
      wrong = with_flag(index, kUnstable);
      if (wrong.empty() && tensor.kind == Kind::kBuffer) wrong = with_flag(index, kChanged);
    }
    const bool ambiguous = wrong.empty() || static_cast<int>(wrong.size()) == size();
    const bool repeated = !ambiguous && std::ranges::any_of(wrong, [&](int rank) { return rows_[rank][1] != 0; });
    int source = most->front();
    if (!ambiguous) {
      for (source = 0; std::ranges::find(wrong, source) != wrong.end();) ++source;
    } else {
      wrong.clear();
      for (int rank = 0; rank < size(); ++rank) wrong.push_back(rank);
    }
    for (int& rank : wrong) rank = in_world(rank);
    return {tensor, std::move(wrong), ambiguous, repeated, source, in_world(source), set_.of.group.get()};
  }

 private:
  int size() const { return static_cast<int>(rows_.size()); }
  int in_world(int rank) const { return static_cast<int>(rows_[rank][0]); }

  static std::uint64_t digest_in(const std::vector<std::uint64_t>& row, std::size_t tensor) {
    return row[kOfRank + 2 * tensor];
  }

  std::vector<int> with_flag(std::size_t tensor, std::uint64_t flag) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank) {
      if ((rows_[rank][kOfRank + 2 * tensor + 1] & flag) != 0) ranks.push_back(rank);
    }
    return ranks;
  }

  const Set& set_;
  std::vector<std::vector<std::uint64_t>> rows_;  // by rank: the rank in the world, 1 if it has been wrong before, and
                                                  // then digest and flags by tensor
};

std::vector<ReplicatedTensors> replicated_parameters(const std::vector<DataParallelGroup>& groups) {
  std::vector<ReplicatedTensors> sets;
  for (const auto& group : groups) {
    sets.push_back({group.group, group.control, [parameters = group.parameters] {
                      std::vector<ReplicatedTensor> tensors;
                      for (const auto& bucket : parameters.buckets()) {
                        for (const auto& segment : bucket.segments) {
                          tensors.push_back({segment.name, bucket.values.narrow(0, segment.begin, segment.count)});
                        }
                      }
                      return tensors;
                    }});
  }
  return sets;
}

ReplicaCheck::ReplicaCheck(std::vector<ReplicatedTensors> sets, const Options& options)
    : options_(options), wrong_before_(options.wrong_before) {
  for (auto& set : sets) {
    if (set.control->size() > 1) sets_.push_back({.of = std::move(set)});
  }
}

std::vector<ReplicatedTensor> ReplicaCheck::Set::compared() const {
  auto tensors = of.tensors();
  std::erase_if(tensors, [this](const ReplicatedTensor& tensor) {
    return tensor.kind == Kind::kBuffer && own.contains(tensor.name);
  });
  return tensors;
}

void ReplicaCheck::Set::remember(const std::vector<ReplicatedTensor>& tensors,
                                 const std::vector<std::uint64_t>& digests) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind == Kind::kBuffer) last_buffers[tensors[i].name] = digests[i];
  }
}

void ReplicaCheck::start() {
  for (auto& set : sets_) {
    auto buffers = set.compared();
    std::erase_if(buffers, [](const ReplicatedTensor& tensor) { return tensor.kind != Kind::kBuffer; });
    set.remember(buffers, digests_of(buffers));
  }
}

void ReplicaCheck::after_step(std::int64_t step, bool to_be_equal) {
  due_ |= options_.every_steps > 0 && step % options_.every_steps == 0;
  if (!due_ || !to_be_equal) return;
  check(step);
  due_ = false;
}

void ReplicaCheck::at_end(std::int64_t step) {
  if (due_) check(step);
  due_ = false;
}

std::vector<std::uint64_t> ReplicaCheck::digests_of(const std::vector<ReplicatedTensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<std::uint64_t> digests;
  digests.reserve(tensors.size());
  for (const auto& tensor : tensors) digests.push_back(digest(tensor.values.contiguous()));
  return digests;
}

void ReplicaCheck::find(Set& set, std::vector<Divergence>& found) const {
  const auto tensors = set.compared();
  const auto digests = digests_of(tensors);
  std::vector<std::uint64_t> totals(kKinds);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& total = totals[static_cast<std::size_t>(tensors[i].kind)];
    total = mix(total, digests[i]);
  }
  const auto of_ranks = gather_words(totals, *set.of.control);
  if (std::ranges::any_of(of_ranks, [&](const auto& row) { return row != totals; })) {
    const Comparison comparison(set, tensors, digests, options_.world_rank, wrong_before_);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (comparison.equal(i)) continue;
      if (tensors[i].may_be_own && comparison.changed_by_most(i)) {
        log_info() << name_of(tensors[i]) << " is each rank's own, and is not compared";
        set.own.insert(tensors[i].name);
      } else {
        found.push_back(comparison.judge(i, tensors[i]));
      }
    }
  }
  set.remember(tensors, digests);
}

void ReplicaCheck::check(std::int64_t step) {
  std::vector<Divergence> found;
  for (auto& set : sets_) find(set, found);
  if (found.empty()) return;
  const auto& first = found.front();
  std::string text = "after step " + std::to_string(step) + " replicas differ: " + name_of(first.tensor) + " on rank " +
                     list_ranks(first.ranks, first.ambiguous ? " or rank " : ", ");
  if (found.size() > 1) {
    text += ", and " + std::to_string(found.size() - 1) + (found.size() == 2 ? " more tensor" : " more tensors");
  }
  const bool again = ends(found), repairs = options_.repair && !again;
  if (again) text += ", for the second time";
  if (repairs) {
    text += "; repaired with the values of rank " + std::to_string(first.source_in_world);
    log_warning() << text;
    if (first.group->rank() == 0) standard_error().write("Warning: " + text + "\n");
    repair(found);
  }
  if (is_wrong(found) && options_.on_wrong) options_.on_wrong(text);
  if (!repairs) fail(text, found);
}

// Returns true if a rank is wrong that has been wrong before, and the run has to end therefore.
bool ReplicaCheck::ends(const std::vector<Divergence>& found) const {
  return options_.ends_on_repetition && std::ranges::any_of(found, &Divergence::repeated);
}

// Returns true if this rank is wrong.
bool ReplicaCheck::is_wrong(const std::vector<Divergence>& found) const {
  return std::ranges::any_of(found, [&](const Divergence& one) {
    return !one.ambiguous && std::ranges::find(one.ranks, options_.world_rank) != one.ranks.end();
  });
}

void ReplicaCheck::fail(const std::string& text, const std::vector<Divergence>& found) const {
  if (is_wrong(found)) throw Error(text);
  throw CommError(CommError::Kind::kPeerLost, text);
}

void ReplicaCheck::repair(const std::vector<Divergence>& found) {
  const at::NoGradGuard no_grad;
  for (const auto& divergence : found) {
    const at::Tensor& values = divergence.tensor.values;
    const at::Tensor dense = values.contiguous();
    divergence.group->broadcast(dense, divergence.source).wait();
    if (!values.is_same(dense)) values.copy_(dense);
  }
  wrong_before_ |= is_wrong(found);
  repaired_ += static_cast<std::int64_t>(found.size());
  start();
}

}  // namespace phalanx
