// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/picture.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/json.h"

namespace phalanx {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kFormat = 1;
constexpr std::array<const char*, 4> kProcessStates{"runs", "stopped", "gone", "unknown"};

std::string dumped(const ordered_json& json, int indent) {
  // Names of files may contain any bytes.
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json json_of(const PicturedOperation& operation) {
  ordered_json json{{"number", operation.number},     {"sequence", operation.sequence},
                    {"group", operation.group},       {"op", operation.op},
                    {"call", operation.call},         {"state", operation.state},
                    {"launched", operation.launched}, {"started", operation.started},
                    {"finished", operation.finished}};
  if (!operation.what.empty()) json["what"] = operation.what;
  if (!operation.place.empty()) json["place"] = operation.place;
  if (operation.is_message()) {
    json["peer"] = operation.peer;
    json["tag"] = operation.tag;
  }
  return json;
}

ordered_json json_of(const RankPicture& picture) {
  ordered_json operations = ordered_json::array();
  for (const auto& operation : picture.operations) operations.push_back(json_of(operation));
  return {{"rank", picture.rank},
          {"host", picture.host},
          {"process", picture.process},
          {"state", to_string(picture.state)},
          {"taken", picture.taken},
          {"activity", picture.activity},
          {"activity_since", picture.activity_since},
          {"step", picture.step},
          {"dataset", picture.dataset},
          {"blocked_in", picture.blocked_in},
          {"waiting_since", picture.waiting_since},
          {"operations", std::move(operations)}};
}

PicturedOperation operation_from(const JsonValue& json) {
  return {.number = json.get<std::uint64_t>("number"),
          .sequence = json.get<std::uint64_t>("sequence"),
          .group = json.get<std::string>("group"),
          .op = json.get<std::string>("op"),
          .call = json.get<std::string>("call"),
          .what = json.get_or<std::string>("what", ""),
          .place = json.get_or<std::string>("place", ""),
          .peer = json.get_or<int>("peer", -1),
          .tag = json.get_or<int>("tag", 0),
          .state = json.get<std::string>("state"),
          .launched = json.get<double>("launched"),
          .started = json.get<double>("started"),
          .finished = json.get<double>("finished")};
}

RankPicture::Process state_from(const JsonValue& json) {
  const auto found = std::ranges::find(kProcessStates, json.as<std::string>());
  if (found == kProcessStates.end()) json.refuse("is not the state of a process");
  return static_cast<RankPicture::Process>(found - kProcessStates.begin());
}

RankPicture rank_from(const JsonValue& json) {
  RankPicture picture{.rank = json.get<int>("rank"),
                      .host = json.get<std::string>("host"),
                      .process = json.get<std::int64_t>("process"),
                      .state = state_from(json.at("state")),
                      .taken = json.get<double>("taken"),
                      .activity = json.get<std::string>("activity"),
                      .activity_since = json.get<double>("activity_since"),
                      .step = json.get<std::int64_t>("step"),
                      .dataset = json.get<std::string>("dataset"),
                      .blocked_in = json.get<std::string>("blocked_in"),
                      .waiting_since = json.get<double>("waiting_since")};
  for (const auto& operation : json.at("operations").elements()) {
    picture.operations.push_back(operation_from(operation));
  }
  return picture;
}

}  // namespace

const RankPicture* JobPicture::find(int rank) const {
  const auto found = std::ranges::find(ranks, rank, &RankPicture::rank);
  return found == ranks.end() ? nullptr : &*found;
}

std::string to_string(RankPicture::Process state) { return kProcessStates[static_cast<std::size_t>(state)]; }

std::string to_json(const RankPicture& picture) { return dumped(json_of(picture), -1); }

RankPicture rank_picture_from_json(const std::string& text, const std::string& source) {
  return rank_from(parse_json(text, source));
}

std::string to_json(const JobPicture& picture, const std::string& sentence) {
  ordered_json ranks = ordered_json::array();
  for (const auto& rank : picture.ranks) ranks.push_back(json_of(rank));
  ordered_json json{{"format", kFormat},        {"sentence", sentence}, {"taken", picture.taken},
                    {"folder", picture.folder}, {"size", picture.size}, {"ranks", std::move(ranks)}};
  if (!picture.groups.empty()) json["groups"] = picture.groups;
  if (picture.only_operations) json["only_operations"] = true;
  return dumped(json, 1) + "\n";
}

JobPicture job_picture_from_json(const std::string& text, const std::string& source) {
  const JsonValue json = parse_json(text, source);
  if (json.get<std::int64_t>("format") != kFormat) json.at("format").refuse("is not a format that this version reads");
  JobPicture picture{
      .size = json.get<int>("size"), .taken = json.get<double>("taken"), .folder = json.get<std::string>("folder")};
  for (const auto& rank : json.at("ranks").elements()) picture.ranks.push_back(rank_from(rank));
  picture.groups = json.get_or<std::map<std::string, std::vector<int>>>("groups", {});
  picture.only_operations = json.get_or<bool>("only_operations", false);
  std::ranges::sort(picture.ranks, {}, &RankPicture::rank);
  return picture;
}

}  // namespace phalanx
