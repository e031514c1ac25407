// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/tuned_file.h"

#include <nlohmann/json.hpp>

#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Topology& topology) {
  Json hosts = Json::array();
  for (const auto& host : topology.hosts) {
    hosts.push_back({{"ranks", host.ranks}, {"cores", host.cores}, {"cpu", host.cpu}});
  }
  return {{"hosts", hosts},
          {"device", topology.device},
          {"backend", topology.backend},
          {"phalanx", topology.phalanx},
          {"libtorch", topology.libtorch},
          {"mpi", topology.mpi},
          {"levels", topology.levels}};
}

Topology topology_of(const Json& json) {
  Topology topology{.device = json.at("device"),
                    .backend = json.at("backend"),
                    .phalanx = json.at("phalanx"),
                    .libtorch = json.at("libtorch"),
                    .mpi = json.at("mpi"),
                    .levels = json.value("levels", std::string())};
  for (const auto& host : json.at("hosts")) {
    topology.hosts.push_back({.ranks = host.at("ranks"), .cores = host.at("cores"), .cpu = host.at("cpu")});
  }
  return topology;
}

Json to_json(const SelectionRule& rule) {
  return {{"op", rule.op},         {"up_to", rule.up_to},     {"ranks", rule.ranks},        {"scope", rule.scope},
          {"device", rule.device}, {"backend", rule.backend}, {"algorithm", rule.algorithm}};
}

SelectionRule rule_of(const Json& json) {
  return {.op = json.at("op"),
          .up_to = json.at("up_to"),
          .ranks = json.at("ranks"),
          .scope = json.value("scope", std::string(kAny)),
          .device = json.value("device", std::string(kAny)),
          .backend = json.at("backend"),
          .algorithm = json.at("algorithm")};
}

Json to_json(const Measured& row) {
  return {{"op", row.op},       {"algorithm", row.algorithm}, {"bytes", row.bytes},  {"p50_us", row.p50_us},
          {"ranks", row.ranks}, {"scope", row.scope},         {"device", row.device}};
}

Measured measured_of(const Json& json, int ranks) {
  return {.op = json.at("op"),
          .algorithm = json.at("algorithm"),
          .bytes = json.at("bytes"),
          .p50_us = json.at("p50_us"),
          .ranks = json.value("ranks", std::int64_t{ranks}),
          .scope = json.value("scope", std::string(kAny)),
          .device = json.value("device", std::string("cpu"))};
}

std::string how_to_make_one(const Topology& topology, const std::string& path) {
  return "create a new one: bazel run //tools:tune -- --ranks " + std::to_string(topology.ranks()) + " --backend " +
         topology.backend + " --output " + path;
}

TunedFile parse(const std::string& path, const std::string& text) {
  const Json json = parse_json(text, "it").raw();
  const int format = json.at("format");
  if (format < 1 || format > TunedFile::kFormat) {
    throw ConfigError(path + ": has format " + std::to_string(format) + ", but this program reads 1 to " +
                      std::to_string(TunedFile::kFormat) + "; create a new one: bazel run //tools:tune -- --output " +
                      path);
  }
  TunedFile tuned{.topology = topology_of(json.at("topology"))};
  std::vector<SelectionRule> rules;
  for (const auto& rule : json.at("rules")) rules.push_back(rule_of(rule));
  for (const auto& row : json.at("measured")) {
    tuned.measured.push_back(measured_of(row, tuned.topology.ranks()));
  }
  auto problems = problems_of(rules, path, "rules");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  tuned.table = SelectionTable(std::move(rules));
  return tuned;
}

}  // namespace

std::string to_text(const TunedFile& tuned) {
  Json rules = Json::array(), measured = Json::array();
  for (const auto& rule : tuned.table.rules()) rules.push_back(to_json(rule));
  for (const auto& row : tuned.measured) measured.push_back(to_json(row));
  const Json json{
      {"format", TunedFile::kFormat}, {"topology", to_json(tuned.topology)}, {"rules", rules}, {"measured", measured}};
  return json.dump(1) + "\n";
}

void save_tuned(const std::string& path, const TunedFile& tuned) { write_atomically(path, to_text(tuned)); }

TunedFile parse_tuned(const std::string& path, const std::string& text) {
  try {
    return parse(path, text);
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw ConfigError(path + ": is not a file written by tools:tune: " + error.what());
  }
}

TunedFile load_tuned(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const DataError& error) {
    throw ConfigError("cannot read the selection file: " + std::string(error.what()) +
                      "; bazel run //tools:tune creates one");
  }
  return parse_tuned(path, text);
}

void check_fits(const TunedFile& tuned, const Topology& here, const std::string& path) {
  const auto found = differences(tuned.topology, here);
  if (found.empty()) return;
  throw ConfigError(path + ": was measured elsewhere: " + join(found, "; ") +
                    ". Leave framework.selection_file out, or " + how_to_make_one(here, path));
}

}  // namespace phalanx
