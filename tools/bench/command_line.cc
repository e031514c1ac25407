// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/command_line.h"

#include <gflags/gflags.h>

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
#include "tools/flags/parse_flags.h"

DEFINE_string(op, "all_reduce",
              "operations to measure: all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, "
              "scatter, send_recv (ping-pong), barrier, launch (cost of launching an asynchronous all_reduce), or all");
DEFINE_string(backends, "shm,openmpi",
              "backends to measure (shm, mpi, ...; inproc only by itself), and openmpi as in --against; the first is "
              "the baseline");
DEFINE_string(
    against, "",
    "what to compare them with. Other libraries, called directly: mpi (Open MPI), gloo (the library, over "
    "TCP), torch (Python's torch.distributed with gloo); and servers: an all-reduce through parameter servers");
DEFINE_string(algorithms, "native", "algorithms of the backends: native, names of registered ones, or all");
DEFINE_string(bytes, "1KB,64KB,1MB,16MB",
              "sizes, as in nccl-tests (the table says of which tensor), rounded up to divide evenly among the ranks");
DEFINE_string(memory, "registered,private", "memory to measure: registered (from allocate()), private (any other)");
DEFINE_string(device, "cpu", "where tensors are: cpu, or a kind of device, such as cuda, which only backends support");
DEFINE_int32(ranks, 2, "ranks to start");
DEFINE_int32(rounds, 40, "samples of each row; backends, algorithms and memories take turns");
DEFINE_double(budget_ms, 10, "approximate time of one sample");
DEFINE_string(bind, "none", "none, or core: bind rank r to core r, modulo the number of cores");
DEFINE_string(progress, "auto", "whether backends have a progress thread: auto, on, off");
DEFINE_string(python, "", "for --against torch: interpreter with PyTorch; empty: one is installed once, with pip");
DEFINE_string(json, "", "JSON file for the rows");
DEFINE_string(plot, "", "SVG file for a plot of time and bandwidth over bytes");

namespace phalanx::bench {
namespace {

std::vector<std::string> choose_ops() {
  auto known = operation_names();
  if (FLAGS_op == "all") return known;
  return choose("op", FLAGS_op, known);
}

std::vector<std::string> choose_peers() {
  auto peers = choose_any("against", FLAGS_against, {"mpi", "openmpi", "gloo", "torch", "servers"});
  std::ranges::replace(peers, "mpi", "openmpi");
  return peers;
}

std::vector<std::int64_t> choose_bytes() {
  std::vector<std::int64_t> sizes;
  for (const auto& size : choose("bytes", FLAGS_bytes)) sizes.push_back(parse_bytes(size));
  return sizes;
}

std::optional<bool> choose_progress() {
  const std::string word = choose_one("progress", FLAGS_progress, {"auto", "on", "off"});
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

Options parse_options(int argc, char** argv) {
  refuse(parse_flags(
      {.purpose = "measures collectives of several backends and libraries side by side", .files = "tools/bench/"}, argc,
      argv));
  Options options{.ops = choose_ops(),
                  .backends = choose("backends", FLAGS_backends),
                  .against = choose_peers(),
                  .algorithms = choose("algorithms", FLAGS_algorithms),
                  .bytes = choose_bytes(),
                  .memories = choose("memory", FLAGS_memory, {"registered", "private"}),
                  .device = FLAGS_device,
                  .ranks = FLAGS_ranks,
                  .rounds = FLAGS_rounds,
                  .budget_ms = FLAGS_budget_ms,
                  .bind = choose_one("bind", FLAGS_bind, {"none", "core"}) == "core",
                  .progress = choose_progress(),
                  .python = FLAGS_python,
                  .json = FLAGS_json,
                  .plot = FLAGS_plot};
  check(options);
  return options;
}

}  // namespace phalanx::bench
