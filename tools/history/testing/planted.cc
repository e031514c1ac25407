// SPDX-License-Identifier: Apache-2.0
#include "tools/history/testing/planted.h"

#include "framework/base/random.h"
#include "framework/base/text.h"

namespace phalanx::history {
namespace {

constexpr std::int64_t kFirstNight = 1767232800;  // 2026-01-01T02:00:00Z
constexpr std::int64_t kDay = 24 * 60 * 60;
constexpr int kSecondsOfRun = 60;
constexpr double kThroughput = 1000;

RunResult result_of(const PlantedNights& planted, int night, int one) {
  const std::uint64_t series = mix(planted.seed, static_cast<std::uint64_t>(one));
  const double noise = planted_noise(series, static_cast<std::uint64_t>(night));
  const bool slower = one == 0 && planted.slower_from >= 0 && night >= planted.slower_from;
  const double throughput = kThroughput * (1 + planted.noise * noise) * (slower ? 1 - planted.slower_by : 1);
  RunResult result{.seconds = kSecondsOfRun};
  result.metrics = {{.split = "run", .name = "throughput", .value = throughput},
                    {.split = "run", .name = "peak_memory", .value = 1e9},
                    {.split = "test", .name = "accuracy", .value = 0.97},
                    {.split = "test", .name = "loss", .value = 0.1}};
  for (int epoch = 0; epoch < planted.epochs; ++epoch) {
    result.metrics.push_back({.split = "train", .name = "loss", .value = 1.0 / (epoch + 1), .epoch = epoch});
    result.metrics.push_back({.split = "test", .name = "accuracy", .value = 0.9 + 0.01 * epoch, .epoch = epoch});
  }
  result.expectations = {{.key = "test.accuracy.min", .wanted = ">= 0.95", .got = "0.97", .value = 0.97, .met = true}};
  return result;
}

void plant_run(Database& database, std::int64_t session, const PlantedNights& planted, int night, int one) {
  const std::string number = std::to_string(one), name = "case_" + number;
  const auto id = database.add_case(session, {.name = name, .config = "configs/mnist_" + number + ".yaml", .ranks = 2});
  const Run run{.environment = Environment{.hardware = "planted", .cores = 2, .hosts = {"here"}},
                .started_at = kFirstNight + night * kDay,
                .folder = "runs/" + std::to_string(session) + "/" + name + "/1"};
  database.finish_run(database.begin_run(id, run), result_of(planted, night, one));
  database.set_state(id, CaseState::kPassed, "");
}

}  // namespace

void plant(Database& database, const PlantedNights& planted) {
  for (int night = 0; night < planted.nights; ++night) {
    const auto session = database.begin_session(
        {.suite = "nightly", .started_at = kFirstNight + night * kDay, .git_commit = planted_commit(night)});
    for (int one = 0; one < planted.cases; ++one) plant_run(database, session, planted, night, one);
    database.finish_session(session);
  }
}

std::string planted_commit(int night) { return format_text("%08x", night + 0x10000000) + std::string(32, 'c'); }

double planted_noise(std::uint64_t seed, std::uint64_t index) {
  constexpr double kUnit = 1.0 / (std::uint64_t{1} << 53);
  double sum = 0;
  for (std::uint64_t i = 0; i < 12; ++i) sum += static_cast<double>(mix(mix(seed, index), i) >> 11) * kUnit;
  return sum - 6;
}

}  // namespace phalanx::history
