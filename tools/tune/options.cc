// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/options.h"

#include <gflags/gflags.h>

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/comm/backend.h"
#include "tools/bench/flag_words.h"
#include "tools/flags/parse_flags.h"

DEFINE_string(backend, "auto", "backend to tune, as in a config; not inproc");
DEFINE_string(ops, "all", "operations to tune: all, or some of all_reduce,broadcast,...");
DEFINE_string(bytes, "256,1KB,4KB,16KB,64KB,256KB,1MB,4MB,16MB", "sizes to measure; rules change halfway between them");
DEFINE_string(memory, "registered", "memory of the tensors: registered (as in training), private");
DEFINE_int32(ranks, 2, "ranks to start; the rules hold for this number only");
DEFINE_string(hosts, "", "hosts on which mpirun starts them, as name or name:slots; empty: this host");
DEFINE_int32(rounds, 20, "samples of each algorithm and size, interleaved");
DEFINE_double(budget_ms, 5, "approximate time of one sample");
DEFINE_string(output, "tuned.json", "output file, for framework.selection_file");

namespace phalanx::tune {
namespace {

std::vector<std::string> read_ops() {
  const auto known = selectable_op_names();
  if (FLAGS_ops == "all") return known;
  return bench::choose("ops", FLAGS_ops, known);
}

std::vector<std::int64_t> read_bytes() {
  std::vector<std::int64_t> sizes;
  for (const auto& size : bench::choose("bytes", FLAGS_bytes)) sizes.push_back(parse_bytes(size));
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  if (sizes.front() < 1) throw ConfigError("--bytes: sizes must be at least 1");
  return sizes;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  refuse(parse_flags({.purpose = "measures collective algorithms, and saves which are best", .files = "tools/tune/"},
                     argc, argv));
  if (FLAGS_ranks < 2) throw ConfigError("--ranks must be at least 2: a single rank does not communicate");
  if (FLAGS_rounds < 1) throw ConfigError("--rounds must be at least 1");
  if (!(FLAGS_budget_ms > 0)) throw ConfigError("--budget_ms must be more than 0");
  if (FLAGS_output.empty()) throw ConfigError("--output is empty");
  if (backend_traits(FLAGS_backend).threads) {
    throw ConfigError("--backend: tune starts processes, but ranks of " + FLAGS_backend + " are threads");
  }
  bench::check_word("memory", FLAGS_memory, {"registered", "private"});
  return {.backend = FLAGS_backend,
          .ops = read_ops(),
          .bytes = read_bytes(),
          .memory = FLAGS_memory,
          .ranks = FLAGS_ranks,
          .hosts = bench::words_of(FLAGS_hosts),
          .rounds = FLAGS_rounds,
          .budget_ms = FLAGS_budget_ms,
          .output = FLAGS_output};
}

}  // namespace phalanx::tune
