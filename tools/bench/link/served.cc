// SPDX-License-Identifier: Apache-2.0
// Pushes a dense tensor to a parameter server and pulls it from there: one end of the link serves, the other measures.
//
//     served --serve 10.0.0.2:29700 --secret WORDS                       until its input ends
//     served --ask 10.0.0.2:29700 --secret WORDS --bytes 16777216 --rounds 10
//
// The measuring end writes {"bytes", "push": [seconds, ...], "pull": [...]}, a line of JSON.
#include <ATen/ops/full.h>
#include <gflags/gflags.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"

DEFINE_string(serve, "", "address to serve at");
DEFINE_string(ask, "", "address of the server");
DEFINE_string(secret, "", "secret that the server and its client share");
DEFINE_int64(bytes, 16 << 20, "bytes of the tensor");
DEFINE_int32(rounds, 10, "number of pushes, and of pulls");

namespace {

using namespace phalanx;

void measure() {
  const std::int64_t elements = FLAGS_bytes / static_cast<std::int64_t>(sizeof(float));
  ps::Client client({.servers = {{FLAGS_ask}}, .number = 0, .secret = FLAGS_secret});
  ps::Table table = client.create({.name = "values", .elements = elements});
  const at::Tensor values = at::full({elements}, 1.0);
  nlohmann::json seconds{{"bytes", FLAGS_bytes}, {"push", nlohmann::json::array()}, {"pull", nlohmann::json::array()}};
  const auto timed = [&](const char* what, Work work, std::chrono::steady_clock::time_point begin) {
    work.wait();
    seconds[what].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  };
  for (int round = -1; round < FLAGS_rounds; ++round) {
    if (round == 0) seconds["push"] = seconds["pull"] = nlohmann::json::array();  // the first round warms up
    auto begin = std::chrono::steady_clock::now();
    timed("push", client.push(table, values, {.rule = 0}), begin);
    begin = std::chrono::steady_clock::now();
    timed("pull", client.pull(table, values), begin);
  }
  std::printf("%s\n", seconds.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_serve.empty()) {
    measure();
    return 0;
  }
  const ps::Server server({.listen = {FLAGS_serve}, .secret = FLAGS_secret});
  std::printf("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
