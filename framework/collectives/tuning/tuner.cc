// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/tuning/tuner.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/collectives/tuning/best_rules.h"
#include "framework/collectives/tuning/measure.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

using Used = LiveSelection::Used;

// Writes one line per entry: the operation, the class and the ranks.
std::string to_lines(const std::vector<Used>& used) {
  std::ostringstream text;
  for (const auto& one : used) {
    text << to_string(one.op) << ' ' << one.size_class;
    for (const int rank : one.ranks) text << ' ' << rank;
    text << '\n';
  }
  return text.str();
}

void read_lines(const std::string& lines, std::set<Used>& all) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    Used used;
    std::string op;
    words >> op >> used.size_class;
    used.op = selectable_op(op);
    for (int rank; words >> rank;) used.ranks.push_back(rank);
    all.insert(std::move(used));
  }
}

std::set<Used> used_by_all(const LiveSelection& selection, Communicator& world) {
  std::set<Used> all;
  for (const auto& lines : all_gather_text(to_lines(selection.used()), world)) read_lines(lines, all);
  std::erase_if(all, [](const Used& used) { return used.ranks.size() < 2; });
  return all;
}

std::vector<Measured> measurements_in(const std::string& text) {
  return text.empty() ? std::vector<Measured>() : parse_tuned("the tuned file of rank 0", text).measured;
}

// Returns the number of the first of these disjoint groups that has the rank, or -1.
int number_of(const std::vector<std::vector<int>>& groups, int rank) {
  const auto has_rank = [rank](const std::vector<int>& group) { return std::ranges::find(group, rank) != group.end(); };
  const auto found = std::ranges::find_if(groups, has_rank);
  return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
}

bool overlap(const std::vector<int>& group, const std::vector<std::vector<int>>& others) {
  return std::ranges::any_of(group, [&](int rank) { return number_of(others, rank) >= 0; });
}

// Stable between runs of the same build, which is enough for a cache.
std::string digest(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return format_text("%016llx", static_cast<unsigned long long>(hash));
}

}  // namespace

Tuner::Tuner(std::shared_ptr<LiveSelection> selection, Options options)
    : selection_(std::move(selection)), options_(std::move(options)) {}

// Rank 0 reads for all ranks, which may not share a file system.
bool Tuner::adopt(Communicator& world) {
  const std::string text = broadcast_text(world.rank() == 0 ? read_fitting(options_.run_file) : "", world);
  if (text.empty()) return false;
  log_info() << "tune: uses " << options_.run_file;
  use(measurements_in(text));
  return true;
}

void Tuner::record() { selection_->record(true); }

void Tuner::tune(Communicator& world) {
  const auto used = used_by_all(*selection_, world);
  selection_->record(false);
  std::string known;
  if (world.rank() == 0) known = read_fitting(options_.run_file);
  if (world.rank() == 0 && known.empty()) known = read_fitting(cache_file());
  auto measured = measurements_in(broadcast_text(known, world));

  std::set<Task> missing;
  Groups groups;
  for (const auto& [ranks, op, size_class] : used) {
    const Task task{static_cast<std::int64_t>(ranks.size()), selection_->scope_of(ranks), op, size_class};
    const auto is_task = [&](const Measured& row) {
      return row.ranks == task.ranks && row.scope == to_string(task.scope) && row.op == to_string(task.op) &&
             row.bytes == OperationSizes::bytes_of(task.size_class);
    };
    groups.insert(ranks);
    if (std::ranges::none_of(measured, is_task)) missing.insert(task);
  }
  auto more = measure(world, missing, groups);
  log_info() << "tune: " << used.size() << " operations and sizes, of which " << missing.size() << " were measured now";
  std::ranges::move(more, std::back_inserter(measured));
  std::ranges::stable_sort(measured, {}, [](const Measured& row) { return std::tie(row.op, row.ranks, row.scope); });
  use(measured);
  if (world.rank() == 0) save(measured);
}

void Tuner::use(const std::vector<Measured>& measured) {
  SelectionTable table = options_.first.followed_by(SelectionTable(best_rules(measured)));
  log_info() << "algorithms by operation:\n" << table.to_text();
  selection_->replace(std::move(table));
}

bool Tuner::has_shape(const std::vector<int>& group, const Task& task) const {
  return static_cast<std::int64_t>(group.size()) == task.ranks && selection_->scope_of(group) == task.scope;
}

// Each kind of group is measured on all groups of this kind that have no rank in common, at the same time, as they
// would be used. They are new groups, because a rank knows only its own groups, but all ranks must choose the same
// ones.
std::vector<Measured> Tuner::measure(Communicator& world, const std::set<Task>& tasks, const Groups& groups) const {
  std::vector<Measured> rows;
  for (auto task = tasks.begin(); task != tasks.end();) {
    const auto end = std::ranges::find_if(
        task, tasks.end(), [&](const Task& other) { return other.ranks != task->ranks || other.scope != task->scope; });
    std::vector<std::vector<int>> disjoint;
    for (const auto& group : groups) {
      if (has_shape(group, *task) && !overlap(group, disjoint)) disjoint.push_back(group);
    }
    const auto group = world.split(number_of(disjoint, world.rank()), world.rank());
    for (; task != end; ++task) {
      const auto names = candidates_of(task->op);
      const auto bytes = OperationSizes::bytes_of(task->size_class);
      const at::Tensor times = at::zeros({static_cast<std::int64_t>(names.size())}, at::kDouble);
      if (group) std::ranges::copy(measure_candidates(group, task->op, bytes), times.mutable_data_ptr<double>());
      world.all_reduce(times, Reduction::kMax).wait();
      for (std::size_t i = 0; i < names.size(); ++i) {
        const double us = times.const_data_ptr<double>()[i];
        if (us <= 0) continue;
        rows.push_back({.op = std::string(to_string(task->op)),
                        .algorithm = names[i],
                        .bytes = bytes,
                        .p50_us = us,
                        .ranks = task->ranks,
                        .scope = to_string(task->scope)});
      }
    }
  }
  return rows;
}

std::string Tuner::cache_file() const {
  if (options_.cache.empty()) return "";
  return options_.cache + "/" + digest(to_text(TunedFile{.topology = options_.topology})) + ".json";
}

// Returns the text of a tuned file, or an empty string if this program cannot use the file: its measurements are then
// made again.
std::string Tuner::read_fitting(const std::string& path) const {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return "";
  try {
    const TunedFile file = load_tuned(path);
    check_fits(file, options_.topology, path);
    return to_text(file);
  } catch (const Error& refused) {
    log_warning() << "tune: " << refused.what();
    return "";
  }
}

void Tuner::save(const std::vector<Measured>& measured) const {
  const TunedFile file{
      .topology = options_.topology, .table = SelectionTable(best_rules(measured)), .measured = measured};
  std::error_code error;
  if (!options_.cache.empty()) std::filesystem::create_directories(options_.cache, error);
  for (const auto& path : {options_.run_file, cache_file()}) {
    try {
      if (!path.empty()) save_tuned(path, file);
    } catch (const DataError& failed) {
      log_warning() << "tune: " << failed.what();
    }
  }
}

}  // namespace phalanx
