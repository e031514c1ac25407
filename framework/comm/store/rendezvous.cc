// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/rendezvous.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "framework/comm/store/joined_ranks.h"

namespace phalanx {
namespace {

struct Url {
  std::string text;  // as given, for messages
  std::string scheme;
  std::string address;  // host:port, or a path
  std::map<std::string, std::string> parameters;
};

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw ConfigError("rendezvous " + url + ": " + why);
}

int to_int(const std::string& url, const std::string& name, const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end) refuse(url, name + ": expected an integer, got \"" + value + "\"");
  return number;
}

std::map<std::string, std::string> parse_parameters(const std::string& url, std::string text) {
  std::map<std::string, std::string> parameters;
  while (!text.empty()) {
    const auto next = std::min(text.find('&'), text.size());
    const std::string parameter = text.substr(0, next);
    const auto equals = std::min(parameter.find('='), parameter.size());
    const std::string name = parameter.substr(0, equals);
    if (name != "rank" && name != "world_size") refuse(url, "\"" + name + "\" is neither rank nor world_size");
    parameters[name] = parameter.substr(std::min(equals + 1, parameter.size()));
    text.erase(0, next + 1);
  }
  return parameters;
}

Url parse(const std::string& text) {
  const auto colon = text.find("://");
  if (colon == std::string::npos) refuse(text, "expected env://, tcp://host:port or file:///path");
  const auto address = colon + 3;
  const auto query = std::min(text.find('?', address), text.size());
  return {text, text.substr(0, colon), text.substr(address, query - address),
          parse_parameters(text, text.substr(std::min(query + 1, text.size())))};
}

// Returns a parameter of the URL, or else the variable of the same meaning.
int number_of(const Url& url, const std::string& parameter, const std::string& variable) {
  const auto given = url.parameters.find(parameter);
  if (given != url.parameters.end()) return to_int(url.text, parameter, given->second);
  if (const auto value = environment(variable)) return to_int(url.text, variable, *value);
  refuse(url.text, "no " + parameter + ": add it to the URL, or set " + variable);
}

Rendezvous read_ranks(const Url& url) {
  Rendezvous result{
      .store = nullptr, .rank = number_of(url, "rank", "RANK"), .size = number_of(url, "world_size", "WORLD_SIZE")};
  if (result.size < 1) refuse(url.text, "world_size " + std::to_string(result.size) + " is not positive");
  if (result.rank < 0 || result.rank >= result.size) {
    refuse(url.text, "rank " + std::to_string(result.rank) + " is not one of " + std::to_string(result.size));
  }
  return result;
}

// Returns a store in which no earlier rendezvous has left values. torchrun's agent keeps its store when it restarts the
// ranks, and a program may connect several worlds, one after the other.
StorePtr make_fresh_store(StorePtr store, int rank) {
  const auto attempt = "phalanx/attempt_" + environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  store = make_prefix_store(attempt, std::move(store));
  const auto number = store->add("rendezvous/" + std::to_string(rank), 1);  // the same on all ranks
  return make_prefix_store("rendezvous_" + std::to_string(number), std::move(store));
}

StorePtr connect_tcp(const std::string& host, int port, Rendezvous& result, Seconds timeout) {
  const bool agent = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const StoreHost hosted_by = agent ? StoreHost::kAgent : result.rank == 0 ? StoreHost::kThisProcess : StoreHost::kPeer;
  result.host = host;
  auto store = make_tcp_store({host, port, hosted_by, result.size, timeout, job_secret(), result.rank});
  return agent ? make_fresh_store(std::move(store), result.rank) : store;
}

int to_port(const Url& url, const std::string& name, const std::string& value) {
  const int port = to_int(url.text, name, value);
  if (port < 1 || port > 65535) refuse(url.text, name + " " + value + " is not between 1 and 65535");
  return port;
}

// An IPv6 address may be written as [::1].
std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

StorePtr connect(const Url& url, Rendezvous& result, Seconds timeout) {
  if (url.scheme == "file") {
    if (!url.address.starts_with('/')) refuse(url.text, "the path is not absolute; write file:///path");
    auto store = make_file_store(url.address, result.size, timeout);
    join_ranks(*store, {.store = "file store " + url.address,
                        .rank = result.rank,
                        .ranks = result.size,
                        .waits = result.rank == 0,
                        .timeout = timeout});
    return store;
  }
  if (url.scheme == "tcp") {
    const auto colon = url.address.rfind(':');
    if (colon == std::string::npos || colon == 0) refuse(url.text, "expected tcp://host:port");
    const int port = to_port(url, "port", url.address.substr(colon + 1));
    return connect_tcp(without_brackets(url.address.substr(0, colon)), port, result, timeout);
  }
  if (url.scheme != "env") refuse(url.text, "unknown scheme \"" + url.scheme + "\"; expected env, tcp or file");
  const auto host = environment("MASTER_ADDR");
  const auto port = environment("MASTER_PORT");
  if (!host || !port) refuse(url.text, std::string(host ? "MASTER_PORT" : "MASTER_ADDR") + " is not set");
  return connect_tcp(without_brackets(*host), to_port(url, "MASTER_PORT", *port), result, timeout);
}

}  // namespace

Rendezvous rendezvous(const std::string& url, Seconds timeout) {
  const Url parsed = parse(url);
  Rendezvous result = read_ranks(parsed);
  result.store = connect(parsed, result, timeout);
  return result;
}

}  // namespace phalanx
