#include "engine/sync/parameter_service.h"

#include <algorithm>
#include <utility>

#include "framework/comm/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/authentication.h"

namespace phalanx {
namespace {

// Rule 0 of every table sets values.
constexpr std::size_t kCopy = 0;

}  // namespace

ParameterService::ParameterService(const SyncContext& context, Contract contract)
    : group_(context.group), contract_(std::move(contract)) {
  ps::ClientOptions options{
      .job = "strategy of " + group_->name(), .number = group_->rank(), .timeout = context.timeout};
  if (context.servers) {
    options.secret = context.servers->secret;
    options.servers = context.servers->reached_from(host_key());
  } else {
    options.secret = broadcast_text(group_->rank() == 0 ? ps::random_text() : "", *group_);
    const auto hosts = all_gather_text(host_key(), *group_);
    const bool one_host = std::ranges::all_of(hosts, [&](const auto& host) { return host == hosts.front(); });
    server_ = std::make_unique<ps::Server>(
        ps::ServerOptions{.listen = ps::listen_addresses(one_host), .secret = options.secret});
    const auto servers = ps::gather_servers(server_.get(), options.secret, *group_);
    options.servers = servers.reached_from(host_key());
  }
  client_ = std::make_unique<ps::Client>(std::move(options));
}

void ParameterService::attach(const FlatParameters& parameters) {
  tables_.clear();
  std::vector<at::Tensor> values;
  auto rules = contract_.rules;
  rules.insert(rules.begin(), "copy");
  ++attached_;
  for (const auto& bucket : parameters.buckets()) {
    tables_.push_back(client_->create({.name = std::to_string(attached_) + "/" + std::to_string(tables_.size()),
                                       .elements = bucket.values.numel(),
                                       .dtype = ps::name_of(bucket.values.scalar_type()),
                                       .rules = rules,
                                       .clients = group_->size(),
                                       .staleness = contract_.staleness}));
    values.push_back(bucket.values);
  }
  set(values);
}

void ParameterService::set(const std::vector<at::Tensor>& values) {
  if (group_->rank() == 0) {
    std::vector<Work> works;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      works.push_back(client_->push(tables_[i], values[i], {.rule = kCopy}));
    }
    wait_all(works);
  }
  group_->barrier().wait();
}

std::vector<Work> ParameterService::push(const std::vector<at::Tensor>& tensors,
                                         const ps::Client::PushOptions& options) {
  std::vector<Work> works;
  auto own = options;
  own.rule += 1;
  for (std::size_t i = 0; i < tables_.size(); ++i) works.push_back(client_->push(tables_[i], tensors[i], own));
  return works;
}

std::vector<Work> ParameterService::pull(const std::vector<at::Tensor>& tensors) {
  std::vector<Work> works;
  for (std::size_t i = 0; i < tables_.size(); ++i) works.push_back(client_->pull(tables_[i], tensors[i]));
  return works;
}

std::vector<Work> ParameterService::exchange(const std::vector<at::Tensor>& tensors,
                                             const ps::Client::PushOptions& options) {
  std::vector<Work> works;
  auto own = options;
  own.rule += 1;
  for (std::size_t i = 0; i < tables_.size(); ++i) works.push_back(client_->exchange(tables_[i], tensors[i], own));
  return works;
}

void ParameterService::pull_last(const std::vector<at::Tensor>& tensors) {
  group_->barrier().wait();
  auto works = pull(tensors);
  wait_all(works);
  group_->barrier().wait();  // nobody goes on to push while others read
}

Figures ParameterService::figures() const {
  std::int64_t pulls = 0, sum = 0, most = 0;
  for (const auto& table : tables_) {
    const auto& seen = table.staleness_seen();
    for (std::size_t behind = 0; behind < seen.size(); ++behind) {
      pulls += seen[behind];
      sum += seen[behind] * static_cast<std::int64_t>(behind);
      if (seen[behind] > 0) most = std::max<std::int64_t>(most, static_cast<std::int64_t>(behind));
    }
  }
  const double mean = pulls > 0 ? static_cast<double>(sum) / static_cast<double>(pulls) : 0;
  return {{"pulls", static_cast<double>(pulls)}, {"staleness_mean", mean}, {"staleness_max", static_cast<double>(most)}};
}

}  // namespace phalanx
