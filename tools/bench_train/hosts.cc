#include "tools/bench_train/hosts.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "tools/bench_train/scripts.h"

namespace phalanx::bench_train {
namespace {

constexpr Seconds kMaking{30};

}  // namespace

Hosts::Hosts() : hosts_(1) {}

Hosts::Hosts(const std::string& rate)
    : network_(std::make_unique<bench::Child>(std::vector<std::string>{"python3", "-c", kNetwork, rate}, "the network",
                                              Seconds(30))) {
  const auto answer = nlohmann::json::parse(network_->hear(kMaking));
  if (answer.contains("missing")) throw ConfigError("--hosts 2: " + answer["missing"].get<std::string>());
  for (const auto& host : answer.at("hosts")) {
    hosts_.push_back(
        {.enter = host.at("enter"), .variables = {"GLOO_SOCKET_IFNAME=" + host.at("interface").get<std::string>()}});
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
