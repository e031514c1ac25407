// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/failure.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/new_file.h"
#include "framework/base/printable.h"
#include "framework/base/wall_clock.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr const char* kPrefix = "rank";
constexpr const char* kSuffix = ".failure";
constexpr const char* kLost = ".lost";
constexpr const char* kTraining = "/training.begun";
constexpr const char* kReported = "/failure.reported";

std::string to_json(const Failure& failure) {
  const json fields = {{"rank", failure.rank},
                       {"host", failure.host},
                       {"log", failure.log},
                       {"message", failure.message},
                       {"secondary", failure.secondary},
                       {"time", failure.time},
                       {"status", failure.status},
                       {"spares_host", failure.spares_host}};
  // A message may contain any bytes, such as a file name in another encoding.
  return fields.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Failure from_json(const std::string& text) {
  const JsonValue fields = parse_json(text, "it");
  return {.rank = fields.get<int>("rank"),
          .host = fields.get<std::string>("host"),
          .log = fields.get<std::string>("log"),
          .message = fields.get<std::string>("message"),
          .secondary = fields.get<bool>("secondary"),
          .time = fields.get<double>("time"),
          .status = fields.get<int>("status"),
          .spares_host = fields.get_or<bool>("spares_host", false)};
}

bool is_file_of_rank(const std::filesystem::path& path, const char* suffix) {
  return path.extension() == suffix && path.filename().string().starts_with(kPrefix);
}

// Returns the number in the name of a file of a rank.
int rank_of(const std::filesystem::path& path) {
  return std::atoi(path.stem().c_str() + std::char_traits<char>::length(kPrefix));
}

// Returns nothing if another rank has taken the file in the meantime.
std::optional<Failure> read(const std::filesystem::path& path) {
  try {
    return from_json(read_file(path));
  } catch (const std::exception& error) {
    std::error_code none;
    if (!std::filesystem::exists(path, none)) return std::nullopt;
    return Failure{.rank = rank_of(path),
                   .message = "Its failure report cannot be read: " + std::string(error.what()),
                   .time = failure_time()};
  }
}

std::vector<std::filesystem::path> files_of_ranks(const std::string& folder, const char* suffix) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    if (is_file_of_rank(entry->path(), suffix)) paths.push_back(entry->path());
  }
  return paths;
}

std::vector<std::filesystem::path> reports_in(const std::string& folder) { return files_of_ranks(folder, kSuffix); }

std::string file_of_rank(const std::string& folder, int rank, const char* suffix) {
  return folder + "/" + kPrefix + std::to_string(rank) + suffix;
}

std::vector<Failure> read(const std::vector<std::filesystem::path>& paths) {
  std::vector<Failure> failures;
  for (const auto& path : paths) {
    if (auto failure = read(path)) failures.push_back(*std::move(failure));
  }
  std::ranges::sort(failures, is_more_likely_cause);
  return failures;
}

}  // namespace

double failure_time() { return wall_seconds(); }

void write_failure(const std::string& folder, const Failure& failure) noexcept {
  try {
    const std::string name = "/" + std::string(kPrefix) + std::to_string(failure.rank) + kSuffix;
    try {
      write_atomically(folder + name, to_json(failure));
    } catch (const DataError&) {
      const auto spare = environment(kSpareFailureFolder);
      if (!spare) throw;
      write_atomically(*spare + name, to_json(failure));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n(and its failure report could not be written to %s: %s)\n", failure.rank,
                 printable(failure.message).c_str(), folder.c_str(), printable(error.what()).c_str());
  }
}

std::vector<Failure> read_failures(const std::string& folder) { return read(reports_in(folder)); }

std::vector<Failure> take_failures(const std::string& folder, const std::string& spare) {
  auto paths = reports_in(folder);
  if (!spare.empty()) std::ranges::move(reports_in(spare), std::back_inserter(paths));
  auto failures = read(paths);
  std::error_code ignored;  // at worst, the next run in this folder reports it again
  for (const auto& path : paths) std::filesystem::remove(path, ignored);
  return failures;
}

void mark_lost(const std::string& folder, const Failure& failure) noexcept {
  std::error_code ignored;
  try {
    write_atomically(file_of_rank(folder, failure.rank, kLost), to_json(failure));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d is lost, which could not be noted in %s: %s\n", failure.rank, folder.c_str(),
                 printable(error.what()).c_str());
  }
  std::filesystem::remove(file_of_rank(folder, failure.rank, kSuffix), ignored);
}

void note_training(const std::string& folder) noexcept {
  try {
    write_atomically(folder + kTraining, "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the beginning of training could not be noted in %s, so a lost rank ends the job: %s\n",
                 folder.c_str(), printable(error.what()).c_str());
  }
}

bool training_has_begun(const std::string& folder) {
  std::error_code none;
  return std::filesystem::exists(folder + kTraining, none);
}

std::vector<int> lost_ranks(const std::string& folder) {
  std::vector<int> ranks;
  for (const auto& path : files_of_ranks(folder, kLost)) ranks.push_back(rank_of(path));
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<int> take_lost_ranks(const std::string& folder) {
  std::error_code ignored;
  const auto ranks = lost_ranks(folder);
  for (const int rank : ranks) std::filesystem::remove(file_of_rank(folder, rank, kLost), ignored);
  std::filesystem::remove(folder + kTraining, ignored);
  return ranks;
}

std::vector<Failure> lost_notes(const std::string& folder) { return read(files_of_ranks(folder, kLost)); }

bool claim_report(const std::string& folder) {
  return create_new_file(folder + kReported).valid() || errno != EEXIST;  // reporting twice is better than not at all
}

void remove_failures(const std::string& folder) {
  take_failures(folder);
  std::error_code ignored;
  std::filesystem::remove(folder + kReported, ignored);
}

std::string crash_path(const std::string& folder, int rank) {
  return folder + "/" + kPrefix + std::to_string(rank) + ".crash";
}

// A line of a frame is "    @     0x55d0c8a5f1b2 phalanx::Engine::train()". Functions without a known name belong to
// the system, and std::function adds a frame to every call.
std::vector<std::string> crash_frames(const std::string& folder, int rank) {
  std::vector<std::string> frames;
  std::ifstream file(crash_path(folder, rank));
  for (std::string line; std::getline(file, line);) {
    const auto address = line.find("0x");
    if (!line.starts_with("    @ ") || address == line.npos) continue;
    const auto space = line.find(' ', address);
    const std::string name = space == line.npos ? "(unknown)" : line.substr(space + 1);
    if (name != "(unknown)" && !name.starts_with("_ZNSt17_Function_handler")) frames.push_back(name);
  }
  return frames;
}

bool is_more_likely_cause(const Failure& a, const Failure& b) {
  return std::tie(a.secondary, a.time, a.rank) < std::tie(b.secondary, b.time, b.rank);
}

}  // namespace phalanx
