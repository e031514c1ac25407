// SPDX-License-Identifier: Apache-2.0
// Answers questions about past nights: history --database nightly; history change_points; history who FILE

#include <SQLiteCpp/Exception.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/history/listing.h"
#include "tools/history/origin.h"
#include "tools/history/queries.h"
#include "tools/history/seeds.h"

namespace phalanx::history {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kQuestions = "runs (the default), change_points or who FILE";
constexpr const char* kDefaultMetric = "throughput";

struct Options {
  std::string database{};
  std::string suite{}, config{}, case_name{}, state{};
  std::vector<std::string> metrics{};
  std::int32_t nights = 30;
  double least = ChangeLimits{}.least, false_alarms = ChangeLimits{}.false_alarms;
  std::string format = "table";
};

void add_flags(Flags& flags, Options& options) {
  flags.add_path("database", &options.database,
                 "results.sqlite, or the folder that has it, the --out of regress; by default the current folder");
  flags.add("suite", &options.suite, "only nights of this suite");
  flags.add("config", &options.config, "only runs of this config: a path, or a name as in mnist_*");
  flags.add("case", &options.case_name, "only this case, or cases that match, as in mnist_*");
  flags.add("state", &options.state, "runs: only cases that passed, failed, ... (passed, failed, error, skipped, ...)");
  flags.add(
      "metric", &options.metrics,
      "a metric, such as throughput or test.accuracy; may be repeated; runs: a column, and only runs that have it");
  flags.add("nights", &options.nights, "only the newest nights; 0: all of them");
  flags.add("least", &options.least, "change_points: smallest change of the median, relative to the one before");
  flags.add("false_alarms", &options.false_alarms,
            "change_points: probability that a series without a change is reported");
  flags.add("format", &options.format, "table, csv or json");
}

Database open_database(const std::string& path) {
  std::error_code none;
  const std::string given = path.empty() ? "." : path;
  const bool is_folder = std::filesystem::is_directory(given, none);
  return Database(is_folder ? (std::filesystem::path(given) / "results.sqlite").string() : given, OpenMode::kReadOnly);
}

std::vector<MetricName> parse_metrics(const std::vector<std::string>& words) {
  std::vector<MetricName> metrics;
  for (const auto& word : words) metrics.push_back(parse_metric(word));
  return metrics;
}

bool has_a_metric(const StoredRun& run) {
  for (const auto& value : run.metrics) {
    if (value) return true;
  }
  return false;
}

void list_runs(Database& database, const Options& options, Format format) {
  RunFilter filter{
      .suite = options.suite,
      .config = options.config,
      .case_name = options.case_name,
      .state = options.state,
      .metrics = parse_metrics(options.metrics.empty() ? std::vector<std::string>{kDefaultMetric} : options.metrics),
      .nights = options.nights};
  auto runs = find_runs(database, filter);
  if (!options.metrics.empty()) std::erase_if(runs, [](const StoredRun& run) { return !has_a_metric(run); });
  print_text("%s", to_listing(to_records(runs, filter.metrics), format, "no runs").c_str());
}

std::vector<FoundChange> find_changes(Database& database, const Options& options) {
  SeriesFilter filter{
      .suite = options.suite, .config = options.config, .case_name = options.case_name, .nights = options.nights};
  if (options.metrics.size() > 1) throw ConfigError("change_points takes one --metric");
  if (!options.metrics.empty()) filter.metric = parse_metric(options.metrics.front());
  std::vector<FoundChange> found;
  for (const auto& one : average_over_seeds(find_series(database, filter))) {
    for (const auto& point :
         find_change_points(one.nights, {.false_alarms = options.false_alarms, .least = options.least})) {
      found.push_back({one, point});
    }
  }
  return found;
}

void list_change_points(Database& database, const Options& options, Format format) {
  const auto found = find_changes(database, options);
  if (format != Format::kTable) {
    print_text("%s", to_listing(to_records(found), format, "").c_str());
    return;
  }
  if (found.empty()) std::puts("no change points");
  for (const auto& [series, point] : found) {
    const std::string subject = to_text(series.metric) + " of " + series.case_name;
    print_text("%s, since the night of %s\n", describe(subject, point).c_str(),
               to_utc(series.nights[point.night].started_at).c_str());
  }
}

// Returns the facts that the database has about the run of a file.
std::vector<std::pair<std::string, std::string>> facts_of(Database& database, const std::string& run) {
  std::error_code none;
  const auto folder = std::filesystem::canonical(database.folder(), none);
  RunFilter filter{.folder = std::filesystem::path(run).lexically_relative(folder).string()};
  auto runs = find_runs(database, filter);
  if (runs.empty()) {
    filter.folder = run;
    runs = find_runs(database, filter);
  }
  if (runs.empty()) return {};
  const StoredRun& found = runs.front();
  return {{"case", found.record.name},
          {"suite", found.session.session.suite},
          {"night", to_utc(found.session.session.started_at)},
          {"state", to_text(found.record.state)}};
}

// Finds the origin of a file, or with a database also the origin of the file that it is a copy of.
Origin origin_of(const std::string& path, Database* database) {
  if (auto origin = find_origin(path)) return *origin;
  const std::string no_record = path + ": no checkpoint and no run has left a record of it";
  if (database == nullptr) {
    throw DataError(no_record + " in its folder; --database FOLDER compares it with the files of all runs there");
  }
  const auto copied_from = find_copy(path, database->folder());
  auto origin = copied_from ? find_origin(*copied_from) : std::nullopt;
  if (!origin) throw DataError(no_record + ", and no file under " + database->folder() + " has the same bytes");
  origin->facts.insert(origin->facts.begin(), {"copy_of", *copied_from});
  return *origin;
}

void print_origin(const Origin& origin, Format format) {
  Json object{{"record", origin.record}};
  Json records = Json::array({{{"fact", "record"}, {"value", origin.record}}});
  for (const auto& [name, value] : origin.facts) {
    object[name] = value;
    records.push_back({{"fact", name}, {"value", value}});
  }
  if (format == Format::kCsv) {
    print_text("%s", to_listing(records, format, "").c_str());
  } else if (format == Format::kJson) {
    print_text("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    for (const auto& [name, value] : object.items()) {
      print_text("%-14s %s\n", name.c_str(), value.get<std::string>().c_str());
    }
  }
}

void tell_who(const std::string& path, const Options& options, Format format) {
  std::optional<Database> database;
  if (!options.database.empty()) database.emplace(open_database(options.database));
  Origin origin = origin_of(path, database ? &*database : nullptr);
  if (database && !origin.run.empty()) {
    for (auto& fact : facts_of(*database, origin.run)) origin.facts.push_back(std::move(fact));
  }
  print_origin(origin, format);
}

void check(const Options& options) {
  if (options.nights < 0) throw ConfigError("--nights: must not be negative");
  if (!(options.false_alarms > 0 && options.false_alarms < 1)) {
    throw ConfigError("--false_alarms: must be above 0 and below 1");
  }
  if (options.state.empty()) return;
  try {
    parse_case_state(options.state);
  } catch (const DataError& error) {
    throw ConfigError(std::string("--state: ") + error.what());
  }
}

// Returns the question that the words ask: one of kQuestions.
std::string check(const std::vector<std::string>& words) {
  const std::string question = words.empty() ? "runs" : words.front();
  if (question != "runs" && question != "change_points" && question != "who") {
    throw ConfigError("unexpected \"" + question + "\": the questions are " + kQuestions);
  }
  const std::size_t expected = question == "who" ? 2 : 1;
  if (words.size() > expected) throw ConfigError("unexpected argument \"" + words[expected] + "\"; see --help");
  if (question == "who" && words.size() < expected) throw ConfigError("name a file: history who FILE");
  return question;
}

void answer(const std::vector<std::string>& words, const Options& options) {
  check(options);
  const std::string question = check(words);
  const Format format = parse_format(options.format);
  if (question == "who") {
    tell_who(words[1], options, format);
    return;
  }
  Database database = open_database(options.database);
  if (question == "runs") {
    list_runs(database, options, format);
  } else {
    list_change_points(database, options, format);
  }
}

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments,
              {"--database nightly --nights 3", "--database nightly --config mnist_* --metric test.accuracy",
               "change_points --database nightly --metric throughput", "who runs/first/weights.safetensors"});
  add_flags(flags, options);
  const auto words = flags.parse(arguments.words);
  try {
    answer(words, options);
  } catch (const SQLite::Exception& error) {
    throw DataError(std::string("the database cannot be read: ") + error.what());
  }
  std::fflush(stdout);
  return kDone;
}

const bool history_registered = register_command(
    {"history", "lists nightly runs, and finds what changed and who made a file", CommandGroup::kNightly, run});

}  // namespace
}  // namespace phalanx::history
