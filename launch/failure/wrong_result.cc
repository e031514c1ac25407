// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/wrong_result.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/log.h"
#include "framework/base/write_all.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr const char* kWrong = ".wrong";

std::vector<WrongResult> wrong_results_in(const std::filesystem::path& path) {
  std::vector<WrongResult> results;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    try {
      const JsonValue fields = parse_json(line, path.string());
      results.push_back({.rank = fields.get<int>("rank"),
                         .host = fields.get<std::string>("host"),
                         .message = fields.get<std::string>("message")});
    } catch (const DataError&) {
      // The rank ended while it wrote the line, or the line was not written by this program.
    }
  }
  return results;
}

}  // namespace

void note_wrong_result(const std::string& folder, const WrongResult& result) noexcept {
  try {
    const json fields = {{"rank", result.rank}, {"host", result.host}, {"message", result.message}};
    const std::string path = folder + "/rank" + std::to_string(result.rank) + kWrong;
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    const std::string line = fields.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    const int problem = file.valid() ? write_all(file.get(), line) : errno;
    if (problem != 0) throw Error(path + ": " + std::generic_category().message(problem));
  } catch (const std::exception& error) {
    log_warning() << "the launcher will not know of this wrong result: " << error.what();
  }
}

std::vector<WrongResult> take_wrong_results(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    if (entry->path().extension() == kWrong) paths.push_back(entry->path());
  }
  std::vector<WrongResult> all;
  for (const auto& path : paths) {
    for (auto& result : wrong_results_in(path)) all.push_back(std::move(result));
    std::filesystem::remove(path, none);  // at worst, it counts twice
  }
  std::ranges::stable_sort(all, {}, &WrongResult::rank);
  return all;
}

}  // namespace phalanx
