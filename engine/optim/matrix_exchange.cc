// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/matrix_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/mesh/fake_communicator.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

struct Holders {
  Placement placement;
  std::vector<int> ranks;
};

// The ranks that hold each part, by name, then by part.
using Held = std::map<std::string, std::map<std::string, Holders>>;

Held held_by(const std::vector<std::string>& of_ranks) {
  Held all;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    std::istringstream lines(of_ranks[rank]);
    for (std::string line; std::getline(lines, line);) {
      std::string name = line;
      Placement placement;
      if (!take_placement(name, placement)) throw std::logic_error("not a part of a parameter: " + line);
      auto& holders = all[name][line];
      holders.placement = std::move(placement);
      holders.ranks.push_back(static_cast<int>(rank));
    }
  }
  return all;
}

std::int64_t elements_in(const Placement& placement) { return c10::multiply_integers(placement.part_shape()); }

// Returns the number of replicas that have a matrix.
std::size_t replicas_of(const std::string& name, const std::map<std::string, Holders>& parts) {
  const auto replicas = parts.begin()->second.ranks.size();
  const auto& shape = parts.begin()->second.placement.shape;
  std::int64_t elements = 0;
  for (const auto& [text, holders] : parts) {
    if (holders.ranks.size() != replicas) throw std::logic_error("some ranks have no part of " + name);
    elements += elements_in(holders.placement);
  }
  if (elements != c10::multiply_integers(shape)) throw std::logic_error("the ranks do not have all of " + name);
  return replicas;
}

// Returns about the number of operations for the product of a matrix with its transpose, on which the cost of an update
// depends. The first of three dimensions is the number of matrices.
double cost_of(at::IntArrayRef shape) {
  const bool several = shape.size() == 3;
  const auto all = static_cast<double>(c10::multiply_integers(shape));
  const auto count = several ? static_cast<double>(shape[0]) : 1.0, rows = static_cast<double>(shape[several ? 1 : 0]);
  return all * std::min(rows, all / (count * rows));
}

}  // namespace

MatrixExchange::MatrixExchange(CommunicatorPtr group, Placements placements, at::TensorOptions options)
    : group_(std::move(group)), placements_(std::move(placements)), options_(options) {}

const Placement* MatrixExchange::placement(const std::string& name) const {
  const auto found = placements_.find(name);
  return found == placements_.end() ? nullptr : &found->second;
}

// Assigns the most expensive matrices first, each to the rank with the least work so far among the ranks that hold
// parts of it. All ranks compute the same result.
std::vector<MatrixExchange::Visit> MatrixExchange::deal_out(const std::vector<std::string>& of_ranks) const {
  const Held held = held_by(of_ranks);
  std::vector<std::pair<double, const Held::value_type*>> matrices;
  for (const auto& matrix : held)
    matrices.emplace_back(cost_of(matrix.second.begin()->second.placement.shape), &matrix);
  std::ranges::stable_sort(matrices, std::greater<>(), &std::pair<double, const Held::value_type*>::first);
  std::vector<double> load(of_ranks.size(), 0);
  std::vector<Visit> visits;
  std::size_t number = 0;
  for (const auto& [cost, matrix] : matrices) {
    const auto& [name, parts] = *matrix;
    const auto replicas = replicas_of(name, parts);
    for (std::size_t replica = 0; replica < replicas; ++replica, ++number) {
      int owner = parts.begin()->second.ranks[replica];
      for (const auto& [text, holders] : parts) {
        const int rank = holders.ranks[replica];
        if (load[static_cast<std::size_t>(rank)] < load[static_cast<std::size_t>(owner)]) owner = rank;
      }
      load[static_cast<std::size_t>(owner)] += cost;
      for (const auto& [text, holders] : parts) {
        visits.push_back({name, number, holders.ranks[replica], owner, holders.placement});
      }
    }
  }
  return visits;
}

void MatrixExchange::attach(const std::vector<std::string>& names) {
  if (dynamic_cast<FakeCommunicator*>(group_.get()) != nullptr) {
    throw ConfigError(
        "optimizer: plans do not include gathering matrices that are divided among ranks; plan with adamw");
  }
  std::map<std::string, std::size_t> index;
  std::string mine;
  for (std::size_t i = 0; i < names.size(); ++i) {
    index[names[i]] = i;
    mine += names[i] + to_text(placements_.at(names[i])) + "\n";
  }
  const auto of_ranks = all_gather_text(mine, *group_);
  auto visits = deal_out(of_ranks);
  any_ = !visits.empty();
  to_.assign(of_ranks.size(), 0);
  from_.assign(of_ranks.size(), 0);
  arriving_.clear();
  leaving_.clear();
  owned_.clear();
  std::ranges::stable_sort(visits, {}, &Visit::owner);
  for (const auto& visit : visits) {
    if (visit.rank != group_->rank()) continue;
    to_[static_cast<std::size_t>(visit.owner)] += elements_in(visit.placement);
    leaving_.push_back(index.at(visit.name));
  }
  std::ranges::stable_sort(visits, {}, &Visit::rank);
  std::map<std::size_t, std::size_t> place;  // index in owned_, by matrix
  for (auto& visit : visits) {
    if (visit.owner != group_->rank()) continue;
    from_[static_cast<std::size_t>(visit.rank)] += elements_in(visit.placement);
    const auto [at, first] = place.emplace(visit.matrix, owned_.size());
    if (first) owned_.push_back({visit.placement.shape, {}});
    owned_[at->second].visits.push_back(arriving_.size());
    arriving_.push_back(std::move(visit));
  }
}

void MatrixExchange::update(const std::vector<at::Tensor>& parts, const Update& update) const {
  if (!any_) return;
  const at::NoGradGuard no_grad;
  const auto total = [](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  const at::Tensor own = at::empty({total(to_)}, options_), arrived = at::empty({total(from_)}, options_);
  std::vector<at::Tensor> leaving, arriving;  // views of these
  std::int64_t begin = 0;
  for (const auto part : leaving_) {
    const at::Tensor& values = parts.at(part);
    leaving.push_back(own.narrow(0, begin, values.numel()).view(values.sizes()));
    leaving.back().copy_(values);
    begin += values.numel();
  }
  begin = 0;
  for (const auto& visit : arriving_) {
    arriving.push_back(arrived.narrow(0, begin, elements_in(visit.placement)).view(visit.placement.part_shape()));
    begin += arriving.back().numel();
  }
  group_->all_to_all(arrived, own, from_, to_).wait();
  for (const auto& matrix : owned_) {
    const at::Tensor whole = at::empty(matrix.shape, options_);
    for (const auto visit : matrix.visits) arriving_[visit].placement.put(whole, arriving[visit]);
    const at::Tensor updated = update(whole);
    for (const auto visit : matrix.visits) arriving[visit].copy_(arriving_[visit].placement.take(updated));
  }
  group_->all_to_all(own, arrived, to_, from_).wait();
  for (std::size_t i = 0; i < leaving_.size(); ++i) parts[leaving_[i]].copy_(leaving[i]);
}

}  // namespace phalanx
