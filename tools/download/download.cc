// SPDX-License-Identifier: Apache-2.0
// Downloads datasets: download mnist --to data/mnist
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/download/fetch.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string to{};
  std::string url{};
  std::string sha256{};
  std::string max_size = "16GB";
  double timeout = 60;
};

std::string known_names() {
  std::vector<std::string> names;
  for (const auto& set : known_sets()) names.push_back(set.name);
  return join(names, ", ");
}

std::int64_t max_bytes(const Options& options) {
  try {
    return parse_bytes(options.max_size);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("--max_size: ") + error.what());
  }
}

KnownSet wanted(const std::vector<std::string>& words, const Options& options) {
  if (options.url.empty()) {
    if (words.size() != 1) throw ConfigError("name one dataset: " + known_names() + " (see --help)");
    for (const auto& set : known_sets()) {
      if (set.name == words[0]) return set;
    }
    throw ConfigError("unknown dataset \"" + words[0] + "\"; known: " + known_names() +
                      "; for others, use --url and --sha256");
  }
  if (!words.empty())
    throw ConfigError("--url cannot be used with the name of a dataset, but got \"" + words[0] + "\"");
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (options.sha256.size() != 64 || !std::ranges::all_of(options.sha256, digit)) {
    throw ConfigError("--sha256: --url needs the file's checksum, 64 hexadecimal digits in lower case");
  }
  if (options.to.empty()) throw ConfigError("--to: --url needs a folder to download to");
  RemoteFile file{.name = "", .sha256 = options.sha256, .max_bytes = max_bytes(options), .mirrors = {}};
  for (std::size_t begin = 0; begin < options.url.size();) {
    const auto end = std::min(options.url.find(' ', begin), options.url.size());
    if (end > begin) file.mirrors.push_back(options.url.substr(begin, end - begin));
    begin = end + 1;
  }
  file.name = file.mirrors.empty() ? "" : fs::path(file.mirrors[0]).filename().string();
  if (file.name.empty() || file.name == "." || file.name == "..") {
    throw ConfigError("--url: \"" + options.url + "\" does not end with the name of a file");
  }
  return {.name = file.name, .folder = "", .files = {file}, .unpack = ""};
}

fs::path folder_of(const KnownSet& set, const Options& options) {
  if (!options.to.empty()) return options.to;
  const auto data = environment("PHALANX_DATA").value_or("");
  return fs::path(data.empty() ? "data" : data) / set.folder;
}

// Shows the progress in one line of a terminal, a few times per second.
class Progress {
 public:
  explicit Progress(std::string name) : name_(std::move(name)), shown_(::isatty(STDOUT_FILENO) == 1) {}
  void operator()(std::int64_t have, std::int64_t size) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || (now < next_ && have < size)) return;
    next_ = now + std::chrono::milliseconds(200);
    standard_output().write("\r" + name_ + ": " + format_bytes(have) + " of " + format_bytes(size) +
                            (have == size ? "   \n" : "   "));
  }

 private:
  std::string name_;
  bool shown_;
  std::chrono::steady_clock::time_point next_;
};

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"mnist", "--url https://host/file.txt --sha256 DIGITS --to data/mine"},
              "known: " + known_names());
  flags.add("to", &options.to,
            "folder to download to; empty: where the dataset looks, ${PHALANX_DATA}/NAME or else data/NAME");
  flags.add("url", &options.url,
            "download this file instead of a known dataset; separate several addresses of it by spaces");
  flags.add("sha256", &options.sha256, "with --url: checksum of the file");
  flags.add("max_size", &options.max_size, "with --url: a larger file is not downloaded");
  flags.add("timeout", &options.timeout, "seconds without any data after which a server is given up");
  const auto words = flags.parse(arguments.words);
  if (!(options.timeout > 0)) throw ConfigError("--timeout: must be above 0");
  const auto set = wanted(words, options);
  const auto folder = folder_of(set, options);
  for (const auto& file : set.files) {
    const bool fetched = fetch(file, folder, {.timeout = options.timeout, .progress = Progress(file.name)});
    standard_output().write((folder / file.name).string() + (fetched ? ": downloaded" : ": already downloaded") +
                            ", the checksum is right\n");
  }
  if (!set.unpack.empty()) standard_output().write("Now unpack it: cd " + folder.string() + " && " + set.unpack + "\n");
  return kDone;
}

const bool download_registered = register_command(
    {"download", "downloads a dataset, and continues where it was interrupted", CommandGroup::kData, run});

}  // namespace
}  // namespace phalanx
