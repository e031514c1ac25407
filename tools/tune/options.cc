// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/options.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/comm/backend.h"
#include "tools/bench/flag_words.h"
#include "tools/command/flags.h"

namespace phalanx::tune {
namespace {

std::vector<std::string> read_ops(const std::string& ops) {
  const auto known = selectable_op_names();
  if (ops == "all") return known;
  return bench::choose("ops", ops, known);
}

std::vector<std::int64_t> read_bytes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const auto& size : bench::choose("bytes", text)) sizes.push_back(parse_bytes(size));
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  if (sizes.front() < 1) throw ConfigError("--bytes: sizes must be at least 1");
  return sizes;
}

void check(const Options& options) {
  if (options.ranks < 2) throw ConfigError("--ranks must be at least 2: a single rank does not communicate");
  if (options.rounds < 1) throw ConfigError("--rounds must be at least 1");
  if (!(options.budget_ms > 0)) throw ConfigError("--budget_ms must be more than 0");
  if (options.output.empty()) throw ConfigError("--output is empty");
  if (backend_traits(options.backend).threads) {
    throw ConfigError("--backend: tune starts processes, but ranks of " + options.backend + " are threads");
  }
  bench::check_word("memory", options.memory, {"registered", "private"});
}

}  // namespace

Options parse_options(const Arguments& arguments) {
  Options options;
  std::string ops = "all", bytes = "256,1KB,4KB,16KB,64KB,256KB,1MB,4MB,16MB", hosts;
  Flags flags(arguments, {"--ranks 2 --backend shm --ops all_reduce,broadcast --output tuned.json"});
  flags.add("backend", &options.backend, "backend to tune, as in a config; not inproc");
  flags.add("ops", &ops, "operations to tune: all, or some of all_reduce,broadcast,...");
  flags.add("bytes", &bytes, "sizes to measure; rules change halfway between them");
  flags.add("memory", &options.memory, "memory of the tensors: registered (as in training), private");
  flags.add("ranks", &options.ranks, "ranks to start; the rules hold for this number only");
  flags.add("hosts", &hosts, "hosts on which mpirun starts them, as name or name:slots; empty: this host");
  flags.add("rounds", &options.rounds, "samples of each algorithm and size, interleaved");
  flags.add("budget_ms", &options.budget_ms, "approximate time of one sample");
  flags.add("output", &options.output, "output file, for framework.selection_file");
  refuse(flags.parse(arguments.words));
  check(options);
  options.ops = read_ops(ops);
  options.bytes = read_bytes(bytes);
  options.hosts = bench::words_of(hosts);
  return options;
}

}  // namespace phalanx::tune
