// SPDX-License-Identifier: Apache-2.0
// The format is defined in torch/csrc/distributed/c10d/FlightRecorder.hpp, version 2.
#include "framework/observe/hang/flight_recorder_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/observe/hang/flight_recorder_groups.h"
#include "framework/observe/hang/flight_recorder_operations.h"
#include "framework/observe/hang/flight_recorder_value.h"

namespace phalanx {
namespace {

constexpr std::int64_t kMaxFileBytes = 256 << 20;

void check_version(const DumpValue& content) {
  const std::string version = content.at("version").text();
  if (!version.starts_with("2.")) {
    content.at("version").refuse(" is " + shortened(version) + "; only 2.x can be read");
  }
}

}  // namespace

FlightRecorderDump read_flight_recorder_dump(const std::string& path) {
  const auto digits = path.find_last_not_of("0123456789") + 1;
  FlightRecorderDump dump{.source = path};
  const char* const end = path.data() + path.size();
  const auto read = std::from_chars(path.data() + digits, end, dump.rank);
  if (read.ec != std::errc() || read.ptr != end || dump.rank >= kMaxDumpRanks) {
    throw DataError(path + ": the name of a dump must end with the number of its rank, as in nccl_trace_rank_12");
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    if (status.st_size > kMaxFileBytes) throw DataError(path + ": is larger than " + format_bytes(kMaxFileBytes));
    dump.written = static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) * 1e-9;
  }
  dump.pickle = read_file(path);
  return dump;
}

JobPicture picture_of_dumps(const std::vector<FlightRecorderDump>& dumps) {
  DumpGroups groups;
  std::map<int, DumpValue::Document> documents;  // by rank
  for (const auto& dump : dumps) {
    const auto [place, added] = documents.emplace(dump.rank, DumpValue::parse(dump.source, dump.pickle));
    if (!added) {
      throw DataError(dump.source + ": is a second dump of rank " + std::to_string(dump.rank) + ", besides " +
                      place->second.source);
    }
    const DumpValue content(place->second);
    check_version(content);
    groups.add(dump.rank, dump.source, content);
  }
  JobPicture job{.size = groups.size(), .only_operations = true};
  for (auto& [rank, document] : documents) {
    auto operations = operations_in(DumpValue(document), groups, rank);
    start_oldest(operations);
    RankPicture picture{.rank = rank};
    for (auto& one : operations) {
      if (!one.group->ranks.empty()) job.groups.try_emplace(one.operation.group, one.group->ranks);
      for (const double time : {one.operation.launched, one.operation.started, one.operation.finished}) {
        job.taken = std::max(job.taken, time);
      }
      picture.operations.push_back(std::move(one.operation));
    }
    job.ranks.push_back(std::move(picture));
    job.size = std::max(job.size, rank + 1);
  }
  for (const auto& dump : dumps) job.taken = std::max(job.taken, dump.written);
  for (auto& rank : job.ranks) rank.taken = job.taken;
  return job;
}

}  // namespace phalanx
