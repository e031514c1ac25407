// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/hosts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/parts.h"
#include "launch/rank/core_shares.h"
#include "tools/virtual_cluster/script.h"

namespace phalanx::bench_train {
namespace {

constexpr Seconds kMaking{30};

// Returns the words before a command that make it run on one of `parts` nearly equal parts of the cores.
std::vector<std::string> on_part_of_cores(std::int64_t part, std::int64_t parts) {
  const auto cores = allowed_cores();
  if (std::ssize(cores) < parts) return {};
  return {"taskset", "--cpu-list", describe_cores(part_of(cores, part, parts))};
}

}  // namespace

Hosts::Hosts() : hosts_(1) {}

Hosts::Hosts(const std::string& rate) {
  const nlohmann::json job = {{"do", "serve"}, {"hosts", 2}, {"link", rate}};
  const std::vector<std::string> program = {"python3", "-c", virtual_cluster::kScript, job.dump()};
  cluster_ = std::make_unique<bench::Child>(program, "the virtual cluster", Seconds(30));
  const auto answer = nlohmann::json::parse(cluster_->receive(kMaking));
  if (answer.contains("missing")) throw ConfigError("--hosts 2: " + answer["missing"].get<std::string>());
  const auto& hosts = answer.at("hosts");
  for (const auto& host : hosts) {
    auto enter = on_part_of_cores(std::ssize(hosts_), static_cast<std::int64_t>(hosts.size()));
    std::ranges::copy(host.at("enter"), std::back_inserter(enter));
    hosts_.push_back(
        {.enter = std::move(enter), .variables = {"GLOO_SOCKET_IFNAME=" + host.at("interface").get<std::string>()}});
  }
}

std::vector<std::string> Hosts::command(int host, const std::vector<std::string>& variables,
                                        const std::vector<std::string>& command) const {
  const auto& [enter, own] = hosts_.at(static_cast<std::size_t>(host));
  std::vector<std::string> words = enter;
  words.emplace_back("env");
  for (const auto& part : {own, variables, command}) std::ranges::copy(part, std::back_inserter(words));
  return words;
}

}  // namespace phalanx::bench_train
