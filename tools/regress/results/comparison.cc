// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/results/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/quantile.h"
#include "framework/base/text.h"
#include "tools/history/change_points.h"

namespace phalanx::regress {
namespace {

// Returns the training losses by step.
std::map<std::int64_t, double> losses_of(const MetricsLines& lines, std::int64_t steps) {
  std::map<std::int64_t, double> losses;
  for (const auto& [key, line] : lines) {
    const auto& [split, step] = key;
    const auto loss = line.metrics.find("loss");
    if (split == "train" && loss != line.metrics.end() && (steps == 0 || step <= steps)) losses[step] = loss->second;
  }
  return losses;
}

double relative_difference(double a, double b) {
  if (a == b) return 0;
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));  // NaN if one of them is
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Returns the first difference between the lines after step `from`, or an empty string.
std::string first_difference(const MetricsLines& whole, const MetricsLines& resumed, std::int64_t from) {
  for (const auto& [key, line] : whole) {
    const auto& [split, step] = key;
    if (step <= from) continue;
    const std::string where = split + " line of step " + std::to_string(step);
    const auto other = resumed.find(key);
    if (other == resumed.end()) return "the resumed run has no " + where;
    for (const auto& [name, value] : line.metrics) {
      const auto found = other->second.metrics.find(name);
      if (found != other->second.metrics.end() && same(value, found->second)) continue;
      const double got = found == other->second.metrics.end() ? std::nan("") : found->second;
      return format_text("%s: %s is %.9g instead of %.9g", where.c_str(), name.c_str(), got, value);
    }
  }
  return {};
}

// Returns the data of a safetensors file without its header, which has the provenance. Empty if there is no file.
std::string data_of(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  const std::string file = read_file(path);
  std::uint64_t header = 0;
  if (file.size() < sizeof(header)) throw DataError(path + ": is too short");
  std::memcpy(&header, file.data(), sizeof(header));
  if (header > file.size() - sizeof(header)) throw DataError(path + ": is too short for its header");
  return file.substr(sizeof(header) + header);
}

}  // namespace

history::ExpectationResult compare_losses(const MetricsLines& run, const MetricsLines& reference, double tolerance,
                                          std::int64_t steps) {
  history::ExpectationResult result;
  result.key = "same_as";
  result.wanted = format_text("losses within %g of the reference", tolerance);
  const auto ours = losses_of(run, steps), theirs = losses_of(reference, steps);
  double worst = 0;
  std::int64_t worst_step = 0;
  for (const auto& [step, loss] : ours) {
    const auto other = theirs.find(step);
    if (other == theirs.end()) {
      result.got = "the reference has no loss of step " + std::to_string(step);
      return result;
    }
    const double difference = relative_difference(loss, other->second);
    if (difference <= worst) continue;
    worst = difference;
    worst_step = step;
    if (std::isnan(worst)) break;
  }
  if (ours.empty() || ours.size() != theirs.size()) {
    result.got = std::to_string(ours.size()) + " losses, but the reference has " + std::to_string(theirs.size());
    return result;
  }
  result.value = worst;
  result.met = worst <= tolerance;
  result.got = worst == 0 ? "equal losses"
                          : format_text("%.3g at step %lld: %.9g and %.9g", worst, static_cast<long long>(worst_step),
                                        ours.at(worst_step), theirs.at(worst_step));
  return result;
}

history::ExpectationResult compare_resumed(const std::string& whole_folder, const std::string& resumed_folder,
                                           std::int64_t from) {
  history::ExpectationResult result;
  result.key = "resume_at";
  result.wanted = "the same after a kill at step " + std::to_string(from);
  result.got = first_difference(read_lines(whole_folder), read_lines(resumed_folder), from);
  if (result.got.empty() &&
      data_of(RunFolder(whole_folder).weights()) != data_of(RunFolder(resumed_folder).weights())) {
    result.got = "the weights at the end differ";
  }
  result.met = result.got.empty();
  if (result.met) result.got = "the same";
  return result;
}

history::ExpectationResult check_scaling(double throughput, int ranks, double of_one_rank, double least) {
  const double efficiency = throughput / (ranks * of_one_rank);
  return {
      .key = "scaling.min",
      .wanted = format_text(">= %g", least),
      .got = format_text("%.3g: %.5g samples/s on %d ranks, %.5g on one", efficiency, throughput, ranks, of_one_rank),
      .value = efficiency,
      .met = efficiency >= least};
}

history::ExpectationResult check_median(double throughput, const std::vector<double>& earlier, double share,
                                        std::int64_t wanted_nights) {
  history::ExpectationResult result;
  result.key = "throughput.of_median";
  result.value = throughput;
  if (static_cast<std::int64_t>(earlier.size()) < std::min(kFewestNights, wanted_nights)) {
    result.wanted = format_text(">= %g of the median", share);
    result.got = format_text("%.5g; %zu nights are too few for a median", throughput, earlier.size());
    result.met = true;
    return result;
  }
  const double usual = median(earlier);
  result.wanted = format_text(">= %.5g, %g of the median of %zu nights", share * usual, share, earlier.size());
  result.got = format_text("%.5g, %.3g of it", throughput, throughput / usual);
  result.met = throughput >= share * usual;
  return result;
}

history::ExpectationResult check_faults(const JsonValue& findings, const SurvivedFaults& wanted) {
  std::int64_t injected = 0, survived = 0;
  std::string first;
  for (const auto& row : findings.at("rows").elements()) {
    ++injected;
    const auto verdict = row.get<std::string>("verdict");
    if (verdict == "ok") {
      ++survived;
    } else if (first.empty()) {
      first = format_text("; run %d, %s: ", row.get<int>("run"), row.get<std::string>("fault").c_str()) + verdict;
    }
  }
  const auto count = [](std::int64_t some, std::int64_t all) {
    return std::to_string(some) + " of " + std::to_string(all) + " runs with a fault";
  };
  return {.key = "faults.survived",
          .wanted = ">= " + count(wanted.survived, wanted.injected),
          .got = count(survived, injected) + first,
          .value = static_cast<double>(survived),
          .met = injected == wanted.injected && survived >= wanted.survived};
}

}  // namespace phalanx::regress
