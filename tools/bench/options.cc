#include "tools/bench/options.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <sstream>

#include "framework/base/error.h"
#include "framework/base/text.h"

DEFINE_string(op, "all_reduce", "operations to measure, of all_reduce, broadcast, barrier");
DEFINE_string(
    backends, "shm,openmpi",
    "what to measure: the backends shm and mpi, and openmpi, that is Open MPI's blocking calls with no Phalanx "
    "between; the first is what the others are compared with");
DEFINE_string(bytes, "1KB,64KB,1MB,16MB", "sizes of each rank's tensor");
DEFINE_string(memory, "registered,private", "memory to measure: registered (from allocate()), private");
DEFINE_int32(ranks, 2, "processes to start");
DEFINE_int32(rounds, 40, "samples of each row; backends and memories take turns");
DEFINE_string(json, "", "file for the rows");

namespace phalanx::bench {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::vector<std::string> choose(const char* flag, const std::string& text, const std::vector<std::string>& known) {
  auto words = split(text);
  if (words.empty()) throw ConfigError(std::string("--") + flag + " names nothing; choose of " + join(known, ", "));
  for (const auto& word : words) {
    if (std::ranges::find(known, word) != known.end()) continue;
    throw ConfigError(std::string("--") + flag + ": \"" + word + "\" is none of " + join(known, ", "));
  }
  return words;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  google::SetUsageMessage("measures collectives of several backends side by side");
  google::ParseCommandLineFlags(&argc, &argv, true);
  if (argc > 1) throw ConfigError("unexpected argument \"" + std::string(argv[1]) + "\"; see --helpshort");
  if (FLAGS_ranks < 1 || FLAGS_rounds < 1) throw ConfigError("--ranks and --rounds must be at least 1");
  Options options{.ops = choose("op", FLAGS_op, {"all_reduce", "broadcast", "barrier"}),
                  .backends = choose("backends", FLAGS_backends, {"shm", "mpi", "openmpi"}),
                  .memories = choose("memory", FLAGS_memory, {"registered", "private"}),
                  .ranks = FLAGS_ranks,
                  .rounds = FLAGS_rounds,
                  .json = FLAGS_json};
  options.bytes.clear();
  for (const auto& size : split(FLAGS_bytes)) options.bytes.push_back(parse_bytes(size));
  return options;
}

}  // namespace phalanx::bench
