// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/collect.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/wall_clock.h"
#include "framework/observe/hang/process_state.h"
#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

std::string file_of(const std::string& folder, int rank, const char* suffix) {
  return folder + "/rank" + std::to_string(rank) + suffix;
}

constexpr const char* kProcessFile = ".process";
constexpr const char* kPictureFile = ".picture";

struct Announced {
  std::string host{};
  std::int64_t process = 0, start = 0;
  int descriptor = -1;

  bool is_alive() const {
    const auto id = static_cast<pid_t>(process);
    return process_start_ticks(id) == start && process_state(id) != RankPicture::Process::kGone;
  }
};

// Returns nothing if the file is absent, or if another process replaces it now.
std::optional<Announced> announced(const std::string& folder, int rank) {
  const std::string path = file_of(folder, rank, kProcessFile);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::nullopt;
  try {
    const JsonValue json = parse_json(read_file(path), path);
    return Announced{.host = json.get<std::string>("host"),
                     .process = json.get<std::int64_t>("process"),
                     .start = json.get<std::int64_t>("start"),
                     .descriptor = json.get<int>("descriptor")};
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::optional<RankPicture> written_picture(const std::string& folder, int rank) {
  const std::string path = file_of(folder, rank, kPictureFile);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::nullopt;
  try {
    return rank_picture_from_json(read_file(path), path);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Returns what the page of a rank of this host says. Activities are up to date even if the rank is stopped.
RankPicture picture_from(const PageContents& page) {
  RankPicture picture;
  if (!page.text.empty()) {
    try {
      picture = rank_picture_from_json(page.text, "the page of rank " + std::to_string(page.rank));
    } catch (const DataError&) {
      picture = {};  // cut off at the end of the page
    }
  }
  picture.rank = page.rank;
  picture.host = host_name();
  picture.process = page.process;
  picture.state = process_state(page.process);
  picture.activity = to_string(page.activity);
  picture.activity_since = wall_seconds() - static_cast<double>(monotonic_ns() - page.activity_since_ns) * 1e-9;
  picture.step = page.step;
  if (picture.state != RankPicture::Process::kRuns) {
    picture.blocked_in.clear();
  } else if (picture.blocked_in.empty()) {
    picture.blocked_in = blocked_in(page.process, page.thread);
  }
  return picture;
}

std::optional<RankPicture> picture_of_rank(const std::string& folder, int rank) {
  const auto where = announced(folder, rank);
  auto written = written_picture(folder, rank);
  if (!where) return written;
  if (where->host == host_name() && where->is_alive()) {
    if (auto page = read_page(static_cast<pid_t>(where->process), where->descriptor)) return picture_from(*page);
  }
  RankPicture picture = written.value_or(RankPicture{.rank = rank});
  picture.host = where->host;
  picture.process = where->process;
  picture.state = where->host != host_name() ? RankPicture::Process::kUnknown
                  : where->is_alive()        ? process_state(static_cast<pid_t>(where->process))
                                             : RankPicture::Process::kGone;
  return picture;
}

}  // namespace

void announce(const RankPage& page, const std::string& folder, int rank) {
  const nlohmann::ordered_json fields{{"host", host_name()},
                                      {"process", ::getpid()},
                                      {"start", process_start_ticks(::getpid())},
                                      {"descriptor", page.descriptor()}};
  write_atomically(file_of(folder, rank, kProcessFile), fields.dump() + "\n");
}

void withdraw(const std::string& folder, int rank) noexcept {
  std::error_code ignored;  // the file may not exist
  std::filesystem::remove(file_of(folder, rank, kProcessFile), ignored);
}

void write_picture(const std::string& folder, const RankPicture& picture) {
  write_atomically(file_of(folder, picture.rank, kPictureFile), to_json(picture) + "\n");
}

void remove_picture(const std::string& folder, int rank) noexcept {
  std::error_code ignored;
  std::filesystem::remove(file_of(folder, rank, kPictureFile), ignored);
}

JobPicture picture_of_job(const std::string& folder, int size) {
  JobPicture job{.size = size, .folder = folder};
  for (int rank = 0; rank < size; ++rank) {
    if (auto picture = picture_of_rank(folder, rank)) job.ranks.push_back(*std::move(picture));
  }
  job.taken = wall_seconds();
  return job;
}

JobPicture picture_of_process(pid_t process) {
  if (process_state(process) == RankPicture::Process::kGone) {
    throw Error("there is no process " + std::to_string(process) + " on this host");
  }
  std::vector<PageContents> pages;
  for (const pid_t descendant : process_tree(process)) {
    for (auto& page : pages_of(descendant)) pages.push_back(std::move(page));
  }
  if (pages.empty()) {
    throw Error("neither process " + std::to_string(process) +
                " nor any that it has started is a rank that has connected to the others; it must be the process of a "
                "rank or of its launcher, and this must run as the same user on the same host");
  }
  JobPicture job = picture_of_job(pages.front().folder, pages.front().size);
  for (const auto& page : pages) {  // in case the folder of the run was removed
    if (page.folder == job.folder && job.find(page.rank) == nullptr) job.ranks.push_back(picture_from(page));
  }
  std::ranges::sort(job.ranks, {}, &RankPicture::rank);
  return job;
}

}  // namespace phalanx
