// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/exchange.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/strategies/replicated_strategy.h"
#include "framework/base/error.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/partition/bucket_size.h"
#include "phalanx/internal/module_tensors.h"
#include "phalanx/internal/strategy_section.h"

namespace phalanx {
namespace {

std::int64_t bytes_of(const NamedTensors& parameters) {
  std::int64_t bytes = 0;
  for (const auto& [name, parameter] : parameters) bytes += static_cast<std::int64_t>(parameter.nbytes());
  return bytes;
}

// Moves the parameters into buckets, each of which has one dtype and can be divided into equal parts.
FlatParameters flatten_by_dtype(const NamedTensors& parameters, Communicator& group, std::int64_t bucket_bytes,
                                std::int64_t parts) {
  std::map<at::ScalarType, NamedTensors> by_dtype;
  for (const auto& named : parameters) by_dtype[named.second.scalar_type()].push_back(named);
  std::vector<Bucket> buckets;
  for (const auto& [dtype, some] : by_dtype) {
    const FlatParameters flat(some, group, bucket_bytes, parts);
    std::ranges::copy(flat.buckets(), std::back_inserter(buckets));
  }
  return FlatParameters(std::move(buckets));
}

void require_device(const NamedTensors& parameters, const Communicator& group) {
  if (parameters.empty()) {
    throw ConfigError("DistributedDataParallel: the module has no parameters that require gradients");
  }
  const auto device = parameters.front().second.device();
  for (const auto& [name, parameter] : parameters) {
    if (parameter.device() == device) continue;
    throw ConfigError("DistributedDataParallel: parameter " + name + " is on " + parameter.device().str() +
                      ", but others are on " + device.str());
  }
  if (group.takes(device.type())) return;
  throw ConfigError("DistributedDataParallel: the parameters are on " + device.str() +
                    ", whose tensors the backend of this world does not take; use backend nccl");
}

FlatParameters make_buckets(const NamedTensors& parameters, Communicator& group, std::int64_t bucket_bytes,
                            const StrategyTraits& traits) {
  require_device(parameters, group);
  if (bucket_bytes == 0) {
    bucket_bytes = default_bucket_bytes(bytes_of(parameters), traits.overlaps_backward && !group.shares_memory(),
                                        parameters.front().second.device());
  }
  return flatten_by_dtype(parameters, group, bucket_bytes, traits.shards_update ? group.size() : 1);
}

void check_options(const DistributedDataParallelOptions& options, const StrategyTraits& traits) {
  const auto refuse = [](const std::string& why) { throw ConfigError("DistributedDataParallel: " + why); };
  if (options.bucket_bytes < 0) refuse("bucket_bytes must not be negative");
  if (!options.uneven_inputs) return;
  if (!traits.reduces_gradients || traits.frees_gradients) {
    refuse(
        "uneven_inputs needs a strategy that exchanges the gradients of every step and keeps them, such as "
        "all_reduce or overlapped");
  }
}

}  // namespace

Exchange::Exchange(const NamedTensors& parameters, CommunicatorPtr group, const Options& options,
                   std::shared_ptr<const bool> accumulates)
    : options_(options),
      group_(std::move(group)),
      choice_(choose_strategy(options, *group_)),
      traits_(choice_.traits()),
      parameters_(make_buckets(parameters, *group_, options.bucket_bytes, traits_)) {
  check_options(options, traits_);
  strategy_ = make_strategy(choice_, {.mesh = Mesh(group_), .group = group_, .accumulates = std::move(accumulates)});
  if (options.find_unused_parameters) {
    unused_.emplace(std::vector<DataParallelGroup>{{group_, group_, parameters_}}, [](const auto&) { return false; });
  }
  if (options.uneven_inputs) active_.emplace(group_);
}

void Exchange::attach(Cut cut) {
  slices_ = strategy_->attach(parameters_, cut);
  if (!traits_.frees_gradients) views_.emplace(parameters_);
}

void Exchange::take(std::size_t bucket, std::size_t parameter) {
  if (views_) views_->take(bucket, parameter);
}

void Exchange::begin(bool with_data) {
  if (active_) active_->launch(with_data);
}

std::optional<int> Exchange::complete(std::int64_t step, bool with_data) {
  if (active_) {
    active_->wait();
    if (active_->count() == 0) return std::nullopt;
  }
  if (!with_data) zero_gradients();
  if (views_) views_->take_all();
  if (auto* const frees = strategy_->extensions().frees_gradients) frees->after_backward();
  strategy_->before_update(step);
  if (active_ && !options_.divide_by_all_ranks) divide_by_active_ranks();
  if (unused_) {
    if (!with_data) unused_->skip_step();
    unused_->agree(strategy_->gradient_groups());
    if (views_) views_->give_back(unused_->names());
  }
  return active_ ? active_->lowest() : 0;
}

// The strategy has divided the sum over all ranks, some of which gave zeros, by the number of all ranks.
void Exchange::divide_by_active_ranks() {
  if (active_->count() == group_->size()) return;
  const double factor = static_cast<double>(group_->size()) / active_->count();
  for (const auto& slice : slices_) at::Tensor(slice.gradients).mul_(factor);
}

void Exchange::take_gradients() {
  if (views_) views_->take_all();
}

void Exchange::zero_gradients() {
  if (views_) return views_->zero();
  for (const auto& slice : slices_) at::Tensor(slice.gradients).zero_();
}

void Exchange::require_values_in_buckets() const {
  if (views_) views_->require_values_in_buckets();
}

void Exchange::broadcast_values(int root) {
  std::vector<at::Tensor> values;
  for (const auto& bucket : parameters_.buckets()) values.push_back(bucket.values);
  phalanx::broadcast_values(values, root, *group_);
}

bool Exchange::ends_with_backward() const { return dynamic_cast<const GradientStrategy*>(strategy_.get()) != nullptr; }

const std::set<std::string>& Exchange::unused() const {
  static const std::set<std::string> none;
  return unused_ ? unused_->names() : none;
}

}  // namespace phalanx
