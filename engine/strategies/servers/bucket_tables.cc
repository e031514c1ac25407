// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/bucket_tables.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <utility>

#include "engine/strategies/servers/staleness_metrics.h"
#include "framework/base/config/config.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx {
namespace {

// Returns the state that the rules keep for a shard of two elements.
StateDict remembered_by(const std::vector<std::string>& rules, at::ScalarType dtype) {
  StateDict all;
  const at::Tensor values = at::zeros({2}, dtype);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto rule = config::load_as<ps::UpdateRules::Choice>("rules", rules[i], "strategy").make();
    rule->attach(values);
    append(all, "rule" + std::to_string(i) + "/", rule->state());
  }
  return all;
}

StateDict zeros_for_rules(const std::vector<ps::Table>& tables, const StateDict& remembered) {
  StateDict all;
  for (const auto& table : tables) {
    for (const auto& one : remembered) {
      const std::int64_t elements = one.values.numel() == 1 ? 1 : table.spec().elements;
      all.push_back({one.name, at::zeros({elements}, one.values.options()), true});
    }
  }
  return all;
}

// Calls `launch` for each entry of `state`, with a tensor that has the layout of the servers' state and with the entry.
template <class Launch>
void for_each_state(const ps::Client& client, std::vector<ps::Table>& tables, const StateDict& remembered,
                    const StateDict& state, const Launch& launch) {
  const auto servers = static_cast<std::int64_t>(client.servers());
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::size_t number = i % remembered.size();
    const at::Tensor& one = state[i].values;
    const bool of_shards = remembered[number].values.numel() == 1;
    const at::Tensor own = of_shards ? at::zeros({servers}, one.options()) : at::empty_like(one);
    launch(tables[i / remembered.size()], number + 1, own, one);
  }
}

// A number of a shard is the same on all servers once every rank's updates have been applied.
void read_rules(ps::Client& client, std::vector<ps::Table>& tables, const StateDict& remembered,
                const StateDict& state) {
  for_each_state(client, tables, remembered, state,
                 [&client](ps::Table& table, std::size_t number, const at::Tensor& own, const at::Tensor& one) {
                   client.read_state(table, number, own).wait();
                   one.copy_(one.numel() == own.numel() ? own : own.narrow(0, 0, 1));
                 });
}

}  // namespace

void BucketTables::attach(const FlatParameters& parameters) {
  tables_.clear();
  std::vector<at::Tensor> values;
  auto rules = contract_.rules;
  rules.emplace_back("copy");
  remembered_.clear();
  ++attached_;
  for (const auto& bucket : parameters.buckets()) {
    const std::string number = std::to_string(attached_) + "/" + std::to_string(tables_.size());
    tables_.push_back(service_.client().create({.name = contract_.name + "/" + number,
                                                .elements = bucket.values.numel(),
                                                .dtype = ps::name_of(bucket.values.scalar_type()),
                                                .rules = rules,
                                                .clients = service_.group().size(),
                                                .staleness = contract_.staleness}));
    values.push_back(bucket.values);
  }
  if (!values.empty()) remembered_ = remembered_by(contract_.rules, values[0].scalar_type());
  set(values);
}

void BucketTables::follow() {
  for (auto& table : tables_) {
    for (std::size_t behind = 0; behind < reads_left_.size(); ++behind) {
      reads_left_[behind] += table.staleness_seen()[behind];
    }
    table = service_.client().create(table.spec());
  }
}

void BucketTables::set(const std::vector<at::Tensor>& values, const StateDict& state) {
  if (service_.group().rank() == 0) {
    std::vector<Work> works;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      works.push_back(service_.client().push(tables_[i], values[i], {.rule = contract_.rules.size()}));
    }
    wait_all(works);
    for_each_state(service_.client(), tables_, remembered_, state,
                   [this](ps::Table& table, std::size_t number, const at::Tensor& own, const at::Tensor& one) {
                     own.copy_(one.numel() == own.numel() ? one : one.expand_as(own));
                     service_.client().write_state(table, number, own).wait();
                   });
  }
  service_.group().barrier().wait();
}

ps::Client::PushOptions BucketTables::of_bucket(ps::Client::PushOptions options,
                                                const std::vector<ps::ElementRanges>& unused, std::size_t bucket) {
  if (!unused.empty()) options.unused = unused.at(bucket);
  return options;
}

std::vector<Work> BucketTables::push(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                                     const std::vector<ps::ElementRanges>& unused) {
  std::vector<Work> works;
  for (auto i = tables_.size(); i-- > 0;) {
    works.push_back(service_.client().push(tables_[i], tensors[i], of_bucket(options, unused, i)));
  }
  return works;
}

std::vector<Work> BucketTables::pull(const std::vector<at::Tensor>& tensors) {
  std::vector<Work> works;
  for (auto i = tables_.size(); i-- > 0;) works.push_back(service_.client().pull(tables_[i], tensors[i]));
  return works;
}

void BucketTables::exchange(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                            const WithBucket& prepare, const WithBucket& take,
                            const std::vector<ps::ElementRanges>& unused) {
  std::vector<Work> works(tables_.size());
  for (auto i = tables_.size(); i-- > 0;) {
    prepare(i);
    works[i] = service_.client().exchange(tables_[i], tensors[i], of_bucket(options, unused, i));
  }
  for (auto i = tables_.size(); i-- > 0;) {
    works[i].wait();
    take(i);
  }
}

void BucketTables::read_state(const StateDict& state) { read_rules(service_.client(), tables_, remembered_, state); }

std::function<BucketTables::Contents()> BucketTables::reader(ps::ClientOptions options) const {
  std::vector<ps::TableSpec> specs;
  for (const auto& table : tables_) specs.push_back(table.spec());
  return [options = std::move(options), specs = std::move(specs), remembered = remembered_] {
    ps::Client client(options);
    std::vector<ps::Table> tables;
    for (const auto& spec : specs) tables.push_back(client.create(spec));
    Contents contents{.values = {}, .state = zeros_for_rules(tables, remembered)};
    for (auto& table : tables) {
      contents.values.push_back(at::zeros({table.spec().elements}, ps::dtype_of(table.spec().dtype)));
      client.pull(table, contents.values.back()).wait();
    }
    read_rules(client, tables, remembered, contents.state);
    return contents;
  };
}

StateDict BucketTables::state_of_rules() const { return zeros_for_rules(tables_, remembered_); }

void BucketTables::pull_last(const std::vector<at::Tensor>& tensors, const StateDict& state) {
  service_.group().barrier().wait();
  auto works = pull(tensors);
  wait_all(works);
  read_state(state);
  service_.group().barrier().wait();  // no rank may push while others still read
}

Metrics BucketTables::metrics() const {
  auto reads = reads_left_;
  for (const auto& table : tables_) {
    for (std::size_t behind = 0; behind < reads.size(); ++behind) reads[behind] += table.staleness_seen()[behind];
  }
  Metrics all = staleness_metrics("", reads);
  for (auto& metric : service_.metrics_of_servers("")) all.push_back(std::move(metric));
  if (const auto lost = service_.lost_updates(); lost > 0) {
    all.emplace_back("lost_updates", static_cast<double>(lost));
  }
  return all;
}

}  // namespace phalanx
