// SPDX-License-Identifier: Apache-2.0
// Measures how many rows of a sparse table clients pull and then push per second through one server; all of them are
// processes of this machine. For comparison it measures an upper bound: as many processes copy the same rows out of a
// table in their own memory and back.
//
//     bazel run //tools/bench:sparse -- --clients 1,2 --dim 32 --keys uniform,zipf
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/ps/server/server.h"
#include "framework/ps/sparse/sparse_table.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/bench/flag_words.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string clients = "1,2";
  std::string keys = "uniform,zipf";
  std::string rule = "{name: adagrad, rowwise: true}";
  std::int64_t dim = 32;
  std::int64_t rows = 1000000;
  std::int64_t batch = 16384;
  double zipf = 1.05;
  double seconds = 3;
  bool tcp = false;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"--clients 1,2 --dim 32 --keys uniform,zipf"});
  flags.add("clients", &options.clients, "numbers of clients");
  flags.add("keys", &options.keys, "how keys are drawn: uniform, zipf");
  flags.add("rule", &options.rule, "rule that updates the rows");
  flags.add("dim", &options.dim, "elements of a row");
  flags.add("rows", &options.rows, "rows of the table");
  flags.add("batch", &options.batch, "keys of a request");
  flags.add("zipf", &options.zipf, "exponent of the zipf distribution");
  flags.add("seconds", &options.seconds, "duration of each measurement");
  flags.add("tcp", &options.tcp, "through TCP instead of a Unix socket");
  refuse(flags.parse(arguments.words));
  return options;
}

constexpr int kBatches = 32;  // drawn in advance
constexpr std::chrono::seconds kWarmUp(3);

std::vector<at::Tensor> draw_batches(const Options& options, const std::string& distribution, int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<double> sums;  // cumulative weights of the zipf distribution
  if (distribution == "zipf") {
    double sum = 0;
    for (std::int64_t rank = 1; rank <= options.rows; ++rank) sums.push_back(sum += std::pow(rank, -options.zipf));
  }
  std::vector<at::Tensor> batches;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(at::empty({options.batch}, at::kLong));
    auto* const keys = batches.back().mutable_data_ptr<std::int64_t>();
    for (std::int64_t j = 0; j < options.batch; ++j) {
      std::uint64_t key = random() % static_cast<std::uint64_t>(options.rows);
      if (!sums.empty()) {
        const double place = std::uniform_real_distribution<>(0, sums.back())(random);
        key = static_cast<std::uint64_t>(std::ranges::lower_bound(sums, place) - sums.begin());
      }
      keys[j] = static_cast<std::int64_t>(key * 2654435761 % 1000000007);  // scatters the keys
    }
  }
  return batches;
}

// Calls `step` with each of the batches in turn. Returns the rows per second between `begin`, when all processes are
// warm, and the end.
double measure(const Options& options, Clock::time_point begin, const std::vector<at::Tensor>& batches,
               const std::function<void(const at::Tensor& keys)>& step) {
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::int64_t steps = 0;
  for (std::size_t i = 0; Clock::now() < end; ++i) {
    step(batches[i % batches.size()]);
    if (Clock::now() >= begin) ++steps;
  }
  return static_cast<double>(steps * options.batch) / options.seconds;
}

double run_client(const Options& options, const std::string& address, const std::string& secret, int number,
                  const std::string& distribution, Clock::time_point begin) {
  ps::Client client({.servers = {{address}}, .number = number, .secret = secret});
  ps::SparseTable table(client, {.name = "rows",
                                 .rules = {options.rule},
                                 .dim = options.dim,
                                 .sparse = {.capacity = options.rows, .initial = "uniform"}});
  const auto rows = at::empty({options.batch, options.dim}), updates = at::full({options.batch, options.dim}, 0.01F);
  Work push;
  const auto batches = draw_batches(options, distribution, number);
  return measure(options, begin, batches, [&](const at::Tensor& keys) {
    table.pull(keys, rows).wait();
    push = table.push(keys, updates, {.scale = 0.01});
  });
}

double run_copies(const Options& options, int number, const std::string& distribution, Clock::time_point begin) {
  const auto bytes = static_cast<std::size_t>(options.dim) * sizeof(float);
  std::vector<char> table(static_cast<std::size_t>(options.rows) * bytes, 1), rows(options.batch * bytes);
  const auto batches = draw_batches(options, distribution, number);
  return measure(options, begin, batches, [&](const at::Tensor& keys) {
    const auto* const data = keys.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < options.batch; ++i) {
      std::memcpy(rows.data() + i * bytes, table.data() + data[i] % options.rows * bytes, bytes);
    }
    for (std::int64_t i = 0; i < options.batch; ++i) {
      std::memcpy(table.data() + data[i] % options.rows * bytes, rows.data() + i * bytes, bytes);
    }
  });
}

// Returns the sum of the results of `run` in `count` processes. Calls `start` in this process after they have been
// forked, because a process that has threads should not be forked.
double run_processes(int count, const std::function<void()>& start,
                     const std::function<double(int number, Clock::time_point begin)>& run) {
  std::array<int, 2> go{}, results{};
  if (::pipe(go.data()) != 0 || ::pipe(results.data()) != 0) throw Error("cannot make a pipe");
  for (int number = 0; number < count; ++number) {
    if (::fork() != 0) continue;
    Clock::time_point begin;
    double result = -1;
    if (::read(go[0], &begin, sizeof(begin)) == sizeof(begin)) {
      try {
        result = run(number, begin);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "sparse: %s\n", error.what());
      }
    }
    ::_exit(::write(results[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  start();
  const auto begin = Clock::now() + kWarmUp;
  double sum = 0;
  for (int number = 0; number < count; ++number) {
    if (::write(go[1], &begin, sizeof(begin)) != sizeof(begin)) throw Error("cannot start a client");
  }
  for (int number = 0; number < count; ++number) {
    double result = -1;
    if (::read(results[0], &result, sizeof(result)) != sizeof(result) || result < 0) throw Error("a client failed");
    sum += result;
  }
  while (::wait(nullptr) > 0) {
  }
  for (const int end : {go[0], go[1], results[0], results[1]}) ::close(end);
  return sum;
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  std::printf("%-8s %-8s %14s %10s %14s %6s\n", "keys", "clients", "rows/s", "MB/s", "copied rows/s", "part");
  for (const auto& distribution : choose("keys", options.keys, {"uniform", "zipf"})) {
    for (const auto& clients : words_of(options.clients)) {
      const int count = std::stoi(clients);
      const std::string secret = random_text();
      const std::string address = options.tcp ? "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000)
                                              : "unix:@phalanx-" + secret.substr(0, 16);
      std::unique_ptr<ps::Server> server;
      const double rows = run_processes(
          count,
          [&] { server = std::make_unique<ps::Server>(ps::ServerOptions{.listen = {address}, .secret = secret}); },
          [&](int number, auto begin) { return run_client(options, address, secret, number, distribution, begin); });
      server.reset();
      const double copies = run_processes(
          count, [] {}, [&](int number, auto begin) { return run_copies(options, number, distribution, begin); });
      std::printf("%-8s %-8d %14.0f %10.0f %14.0f %5.1f%%\n", distribution.c_str(), count, rows,
                  rows * 2 * 4 * static_cast<double>(options.dim) / 1e6, copies, 100 * rows / copies);
      std::fflush(stdout);
    }
  }
  return kDone;
}

const bool sparse_registered = register_command(
    {"sparse", "measures rows of a sparse table that clients pull and push", CommandGroup::kHidden, run});

}  // namespace
}  // namespace phalanx::bench
