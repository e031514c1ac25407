// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/command_line.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "tools/bench/flag_words.h"
#include "tools/bench/operation.h"
#include "tools/bench/peer_library.h"
#include "tools/command/flags.h"

namespace phalanx::bench {
namespace {

// The values of the flags that are not one of the Options yet.
struct Words {
  std::string op = "all_reduce";
  std::string backends = "shm,openmpi";
  std::string against{};
  std::string algorithms = "native";
  std::string bytes = "1KB,64KB,1MB,16MB";
  std::string memory = "registered,private";
  std::string bind = "none";
  std::string progress = "auto";
};

void add_flags(Flags& flags, Words& words, Options& options) {
  flags.add("op", &words.op,
            "operations to measure: all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, "
            "scatter, send_recv (ping-pong), barrier, launch (cost of launching an asynchronous all_reduce), or all");
  flags.add("backends", &words.backends,
            "backends to measure (shm, mpi, ...; inproc only by itself), and openmpi as in --against; the first is "
            "the baseline");
  flags.add(
      "against", &words.against,
      "what to compare them with. Other libraries, called directly: mpi (Open MPI), gloo (the library, over "
      "TCP), torch (Python's torch.distributed with gloo), intelmpi, mpich, oneccl (these three are installed once, "
      "with pip); servers: an all-reduce through parameter servers; flags: a barrier that is a bare exchange of "
      "flags in shared memory");
  flags.add("algorithms", &words.algorithms, "algorithms of the backends: native, names of registered ones, or all");
  flags.add("bytes", &words.bytes,
            "sizes, as in nccl-tests (the table says of which tensor), rounded up to divide evenly among the ranks");
  flags.add("memory", &words.memory, "memory to measure: registered (from allocate()), private (any other)");
  flags.add("device", &options.device,
            "where tensors are: cpu, or a kind of device, such as cuda, which only backends support");
  flags.add("ranks", &options.ranks, "ranks to start");
  flags.add("rounds", &options.rounds, "samples of each row; backends, algorithms and memories take turns");
  flags.add("budget_ms", &options.budget_ms, "approximate time of one sample");
  flags.add("bind", &words.bind, "none, or core: bind rank r to core r, modulo the number of cores");
  flags.add("progress", &words.progress, "whether backends have a progress thread: auto, on, off");
  flags.add("python", &options.python,
            "for --against torch: interpreter with PyTorch; empty: one is installed once, with pip");
  flags.add("json", &options.json, "JSON file for the rows");
  flags.add("plot", &options.plot, "SVG file for a plot of time and bandwidth over bytes");
}

std::vector<std::string> choose_ops(const std::string& op) {
  auto known = operation_names();
  if (op == "all") return known;
  return choose("op", op, known);
}

std::vector<std::string> choose_peers(const std::string& against) {
  std::vector<std::string> known{"mpi", "openmpi", "gloo", "torch", "servers", "flags"};
  for (const auto& library : peer_libraries()) known.push_back(library.name);
  auto peers = choose_any("against", against, known);
  std::ranges::replace(peers, "mpi", "openmpi");
  return peers;
}

std::vector<std::int64_t> choose_bytes(const std::string& bytes) {
  std::vector<std::int64_t> sizes;
  for (const auto& size : choose("bytes", bytes)) sizes.push_back(parse_bytes(size));
  return sizes;
}

std::optional<bool> choose_progress(const std::string& progress) {
  const std::string word = choose_one("progress", progress, {"auto", "on", "off"});
  if (word == "auto") return {};
  return word == "on";
}

void check(const Options& options) {
  if (options.ranks < 1 || options.rounds < 1) throw ConfigError("--ranks and --rounds must be at least 1");
  if (!(options.budget_ms > 0)) throw ConfigError("--budget_ms must be more than 0");
  const auto threads =
      std::ranges::find_if(options.backends, [](const auto& name) { return backend_traits(name).threads; });
  if (threads != options.backends.end() && (options.backends.size() > 1 || options.uses("openmpi"))) {
    throw ConfigError("--backends: " + *threads +
                      " has all ranks in one process, so it cannot be compared with processes");
  }
  if (std::ranges::find(options.against, "openmpi") != options.against.end() &&
      std::ranges::find(options.backends, "openmpi") != options.backends.end()) {
    throw ConfigError("openmpi is both in --backends and in --against; name it once");
  }
  if (options.device != "cpu" && (!options.against.empty() || options.uses("openmpi"))) {
    throw ConfigError(
        "--device: other libraries are measured only on the CPU; measure only backends, such as --backends shm");
  }
  if (!options.plot.empty() && std::filesystem::path(options.plot).extension() != ".svg") {
    throw ConfigError("--plot: " + options.plot + " does not end in .svg, the only supported format");
  }
  if (!options.python.empty() && !options.uses("torch")) throw ConfigError("--python is for --against torch");
}

}  // namespace

Options parse_options(const Arguments& arguments) {
  Options options;
  Words words;
  Flags flags(arguments, {"--op all_reduce --ranks 2 --backends shm,mpi"});
  add_flags(flags, words, options);
  refuse(flags.parse(arguments.words));
  options.ops = choose_ops(words.op);
  options.backends = choose("backends", words.backends);
  options.against = choose_peers(words.against);
  options.algorithms = choose("algorithms", words.algorithms);
  options.bytes = choose_bytes(words.bytes);
  options.memories = choose("memory", words.memory, {"registered", "private"});
  options.bind = choose_one("bind", words.bind, {"none", "core"}) == "core";
  options.progress = choose_progress(words.progress);
  check(options);
  return options;
}

}  // namespace phalanx::bench
