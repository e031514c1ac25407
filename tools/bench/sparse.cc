// SPDX-License-Identifier: Apache-2.0
// Measures how many rows of a sparse table clients pull and then push per second through one server; all of them are
// processes of this machine. For comparison it measures an upper bound: as many processes copy the same rows out of a
// table in their own memory and back.
//
//     bazel run //tools/bench:sparse -- --clients 1,2 --dim 32 --keys uniform,zipf
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gflags/gflags.h>
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
#include "framework/ps/server.h"
#include "framework/ps/sparse_table.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/bench/flag_words.h"
#include "tools/flags/parse_flags.h"

DEFINE_string(clients, "1,2", "numbers of clients");
DEFINE_string(keys, "uniform,zipf", "how keys are drawn: uniform, zipf");
DEFINE_string(rule, "{name: adagrad, rowwise: true}", "rule that updates the rows");
DEFINE_int64(dim, 32, "elements of a row");
DEFINE_int64(rows, 1000000, "rows of the table");
DEFINE_int64(batch, 16384, "keys of a request");
DEFINE_double(zipf, 1.05, "exponent of the zipf distribution");
DEFINE_double(seconds, 3, "duration of each measurement");
DEFINE_bool(tcp, false, "through TCP instead of a Unix socket");

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatches = 32;  // drawn in advance
constexpr std::chrono::seconds kWarmUp(3);

std::vector<at::Tensor> draw_batches(const std::string& distribution, int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<double> sums;  // cumulative weights of the zipf distribution
  if (distribution == "zipf") {
    double sum = 0;
    for (std::int64_t rank = 1; rank <= FLAGS_rows; ++rank) sums.push_back(sum += std::pow(rank, -FLAGS_zipf));
  }
  std::vector<at::Tensor> batches;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(at::empty({FLAGS_batch}, at::kLong));
    auto* const keys = batches.back().mutable_data_ptr<std::int64_t>();
    for (std::int64_t j = 0; j < FLAGS_batch; ++j) {
      std::uint64_t key = random() % static_cast<std::uint64_t>(FLAGS_rows);
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
double measure(Clock::time_point begin, const std::vector<at::Tensor>& batches,
               const std::function<void(const at::Tensor& keys)>& step) {
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(FLAGS_seconds));
  std::int64_t steps = 0;
  for (std::size_t i = 0; Clock::now() < end; ++i) {
    step(batches[i % batches.size()]);
    if (Clock::now() >= begin) ++steps;
  }
  return static_cast<double>(steps * FLAGS_batch) / FLAGS_seconds;
}

double run_client(const std::string& address, const std::string& secret, int number, const std::string& distribution,
                  Clock::time_point begin) {
  ps::Client client({.servers = {{address}}, .number = number, .secret = secret});
  ps::SparseTable table(client, {.name = "rows",
                                 .rules = {FLAGS_rule},
                                 .dim = FLAGS_dim,
                                 .sparse = {.capacity = FLAGS_rows, .initial = "uniform"}});
  const auto rows = at::empty({FLAGS_batch, FLAGS_dim}), updates = at::full({FLAGS_batch, FLAGS_dim}, 0.01F);
  Work push;
  const auto batches = draw_batches(distribution, number);
  return measure(begin, batches, [&](const at::Tensor& keys) {
    table.pull(keys, rows).wait();
    push = table.push(keys, updates, {.scale = 0.01});
  });
}

double run_copies(int number, const std::string& distribution, Clock::time_point begin) {
  const auto bytes = static_cast<std::size_t>(FLAGS_dim) * sizeof(float);
  std::vector<char> table(static_cast<std::size_t>(FLAGS_rows) * bytes, 1), rows(FLAGS_batch * bytes);
  const auto batches = draw_batches(distribution, number);
  return measure(begin, batches, [&](const at::Tensor& keys) {
    const auto* const data = keys.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < FLAGS_batch; ++i) {
      std::memcpy(rows.data() + i * bytes, table.data() + data[i] % FLAGS_rows * bytes, bytes);
    }
    for (std::int64_t i = 0; i < FLAGS_batch; ++i) {
      std::memcpy(table.data() + data[i] % FLAGS_rows * bytes, rows.data() + i * bytes, bytes);
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

int run(int argc, char** argv) {
  refuse(
      parse_flags({"Measures rows of a sparse table that clients pull and push.", "tools/bench/sparse"}, argc, argv));
  std::printf("%-8s %-8s %14s %10s %14s %6s\n", "keys", "clients", "rows/s", "MB/s", "copied rows/s", "part");
  for (const auto& distribution : choose("keys", FLAGS_keys, {"uniform", "zipf"})) {
    for (const auto& clients : words_of(FLAGS_clients)) {
      const int count = std::stoi(clients);
      const std::string secret = random_text();
      const std::string address = FLAGS_tcp ? "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000)
                                            : "unix:@phalanx-" + secret.substr(0, 16);
      std::unique_ptr<ps::Server> server;
      const double rows = run_processes(
          count,
          [&] { server = std::make_unique<ps::Server>(ps::ServerOptions{.listen = {address}, .secret = secret}); },
          [&](int number, auto begin) { return run_client(address, secret, number, distribution, begin); });
      server.reset();
      const double copies =
          run_processes(count, [] {}, [&](int number, auto begin) { return run_copies(number, distribution, begin); });
      std::printf("%-8s %-8d %14.0f %10.0f %14.0f %5.1f%%\n", distribution.c_str(), count, rows,
                  rows * 2 * 4 * static_cast<double>(FLAGS_dim) / 1e6, copies, 100 * rows / copies);
      std::fflush(stdout);
    }
  }
  return kDone;
}

}  // namespace
}  // namespace phalanx::bench

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::bench::run(argc, argv); });
}
