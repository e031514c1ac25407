// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/table_versions.h"

#include <algorithm>

#include "framework/ps/protocol/handshake.h"

namespace phalanx::ps {

void TableVersions::advance(std::uint32_t number, std::int64_t version) {
  const auto found = tables_.find(number);
  if (found != tables_.end()) found->second.version = std::max(found->second.version, version);
}

void TableVersions::ask(Channel& channel, Clock::time_point deadline, const std::atomic<bool>& stopping) {
  for (auto& [number, table] : tables_) {
    const Message reply = round_trip(channel, {.header = {.verb = Verb::kVersion, .table = number}, .text = table.name},
                                     deadline, stopping);
    if (reply.header.status == Status::kRefused) {
      throw TableMissing("it was restarted without a checkpoint that holds table \"" + table.name +
                         "\": " + reply.text);
    }
    lost_updates_ += std::max<std::int64_t>(0, table.version - reply.header.version);
    table.version = reply.header.version;
  }
}

void TableVersions::merge(const TableVersions& renewed) {
  for (const auto& [number, table] : renewed.tables_) {
    if (const auto found = tables_.find(number); found != tables_.end()) found->second.version = table.version;
  }
  lost_updates_ = renewed.lost_updates_;
}

}  // namespace phalanx::ps
