// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "launch/stall/stall.h"

namespace phalanx {
namespace {

using nlohmann::json;

std::string path_of(const std::string& folder, int rank) {
  return folder + "/rank" + std::to_string(rank) + ".waiting";
}

}  // namespace

void write_wait_note(const std::string& folder, const WaitNote& note) {
  const json fields = {{"rank", note.rank},
                       {"operation", note.operation},
                       {"peer", note.peer},
                       {"since", note.since},
                       {"reported", note.reported}};
  write_atomically(path_of(folder, note.rank), fields.dump(2) + "\n");
}

void remove_wait_note(const std::string& folder, int rank) noexcept {
  std::error_code ignored;  // the file may not exist
  std::filesystem::remove(path_of(folder, rank), ignored);
}

std::vector<WaitNote> read_wait_notes(const std::string& folder, int size) {
  std::vector<WaitNote> notes;
  for (int rank = 0; rank < size; ++rank) {
    const auto path = path_of(folder, rank);
    std::error_code unknown;  // if the file system reports an error, nothing is known about that rank
    if (!std::filesystem::exists(path, unknown)) continue;
    try {
      const json fields = parse_json(read_file(path), path).raw();
      notes.push_back({.rank = rank,
                       .operation = fields.at("operation"),
                       .peer = fields.at("peer"),
                       .since = fields.at("since"),
                       .reported = fields.at("reported")});
    } catch (const DataError&) {
      // The rank has continued in the meantime.
    } catch (const json::exception&) {
      // The file was not written by this program.
    }
  }
  return notes;
}

}  // namespace phalanx
