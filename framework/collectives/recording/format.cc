// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/format.h"

#include <nlohmann/json.hpp>

#include "framework/base/json.h"
#include "framework/base/storage/crc32c.h"

namespace phalanx::recording {

Call EntryHead::call() const {
  return {.elements = elements,
          .detail = detail,
          .peer = peer,
          .tag = tag,
          .op = op,
          .dtype = static_cast<c10::ScalarType>(dtype),
          .reduction = static_cast<Reduction::Kind>(reduction)};
}

void EntryHead::set_call(const Call& call) {
  elements = call.elements;
  detail = call.detail;
  peer = call.peer;
  tag = call.tag;
  op = call.op;
  dtype = static_cast<std::int8_t>(call.dtype);
  reduction = static_cast<std::uint8_t>(call.reduction);
}

std::string to_json(const Header& header) {
  return nlohmann::ordered_json{{"rank", header.rank},
                                {"ranks", header.ranks},
                                {"local_rank", header.local_rank},
                                {"local_ranks", header.local_ranks},
                                {"threads", header.threads},
                                {"seed", header.seed},
                                {"backend", header.backend},
                                {"build", header.build},
                                {"run_folder", header.run_folder},
                                {"config", header.config},
                                {"digest", header.digest},
                                {"last", header.last}}
      .dump();
}

Header header_in(const std::string& json, const std::string& source) {
  const JsonValue value = parse_json(json, source);
  return {.rank = value.get<int>("rank"),
          .ranks = value.get<int>("ranks"),
          .local_rank = value.get<int>("local_rank"),
          .local_ranks = value.get<int>("local_ranks"),
          .threads = value.get<int>("threads"),
          .seed = value.get<std::int64_t>("seed"),
          .backend = value.get<std::string>("backend"),
          .build = value.get<std::string>("build"),
          .run_folder = value.get<std::string>("run_folder"),
          .config = value.get<std::string>("config"),
          .digest = value.get<std::uint32_t>("digest"),
          .last = value.get<std::int64_t>("last")};
}

std::string to_json(const GroupInfo& group) {
  return nlohmann::ordered_json{{"name", group.name}, {"rank", group.rank}, {"size", group.size}, {"ways", group.ways}}
      .dump();
}

GroupInfo group_in(const std::string& json, const std::string& source) {
  const JsonValue value = parse_json(json, source);
  return {.name = value.get<std::string>("name"),
          .rank = value.get<int>("rank"),
          .size = value.get<int>("size"),
          .ways = value.get<std::uint32_t>("ways")};
}

std::string file_of(const std::string& folder, int rank, std::int64_t segment) {
  const std::string begin = folder + "/rank" + std::to_string(rank);
  return begin + (segment < 0 ? "" : "." + std::to_string(segment)) + ".rec";
}

std::uint32_t sum_of_head(EntryHead head) {
  head.head_sum = 0;
  return crc32c(&head, sizeof(head));
}

}  // namespace phalanx::recording
