// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/shards/dense_shard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/ps/protocol/element_ranges.h"

namespace phalanx::ps {

DenseShard::DenseShard(const TableSpec& spec, int shard, int shards)
    : Shard(spec), values_(at::zeros({elements_of_shard(spec, shard, shards)}, dtype_of(spec.dtype))) {
  for (const auto& text : spec.rules) {
    auto rule = config::load_as<UpdateRules::Choice>("rules", text, "table " + spec.name).make();
    rule->attach(values_);
    rules_.push_back(std::move(rule));
  }
}

Transfer DenseShard::transfer(const Header& request) const {
  return dense_transfer(request.verb, values_.nbytes(), values_.scalar_type());
}

void DenseShard::apply(const Push& push, std::int64_t staleness, const at::Tensor& payload) {
  const at::Tensor update = payload.defined() ? payload : at::empty({0}, values_.options());
  if (update.numel() != values_.numel() || update.scalar_type() != values_.scalar_type()) {
    throw Error("an update of table \"" + spec().name + "\" has " + std::to_string(values_.numel()) + " elements of " +
                spec().dtype + " here, not " + std::to_string(update.numel()) + " of " +
                c10::toString(update.scalar_type()));
  }
  rules_[push.rule]->apply(update, {.client = push.client,
                                    .staleness = staleness,
                                    .clock = push.clock,
                                    .scale = push.scale,
                                    .unused = ranges_of_text(push.unused, values_.numel())});
}

at::Tensor DenseShard::read(const Pull& pull) {
  for (const auto& rule : rules_) rule->read_by(pull.client);
  return values_;
}

StateDict DenseShard::state() {
  StateDict all{{"values", values_}};
  for (std::size_t i = 0; i < rules_.size(); ++i) append(all, "rule" + std::to_string(i) + "/", rules_[i]->state());
  return all;
}

}  // namespace phalanx::ps
