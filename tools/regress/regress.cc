// SPDX-License-Identifier: Apache-2.0
// Runs a suite of configs and records the results: regress --suite configs/suites/smoke.yaml --out nightly
#include <fnmatch.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/history/database.h"
#include "tools/regress/commands.h"
#include "tools/regress/place.h"
#include "tools/regress/places/process.h"
#include "tools/regress/results/session_report.h"
#include "tools/regress/session/environment.h"
#include "tools/regress/session/run_session.h"
#include "tools/regress/site/write_site.h"
#include "tools/regress/suite/planned_case.h"
#include "tools/regress/suite/quarantine.h"
#include "tools/regress/suite/shard.h"
#include "tools/regress/suite/suite.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

constexpr double kNotifySeconds = 60;

struct Options {
  std::string suite{};
  std::string out{};
  std::vector<std::string> cases{};
  std::string on = "local";
  std::string shard = "1/1";
  std::string notify{};
  std::vector<std::string> overrides{};
  bool dry_run = false;
  bool keep = false;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments,
              {"configs/suites/smoke.yaml --out nightly", "configs/suites/nightly.yaml --out nightly --on hosts:a,b",
               "bisect configs/quickstart.yaml --metric throughput --good A --bad B"},
              "A session that was killed goes on where it was if it is started again with the same --out.");
  flags.add_path("suite", &options.suite, "YAML file with the configs to run and their matrix; --suite may be omitted");
  flags.add_path("out", &options.out, "folder for results.sqlite, junit.xml, summary.json, report/ and the runs");
  flags.add("cases", &options.cases,
            "run only cases whose names match this pattern, such as '*tensor2*'; may be repeated");
  flags.add("on", &options.on, "where to run: local, hosts:a,b or another place (see docs/nightly.md)");
  flags.add("shard", &options.shard, "part of the suite to run: I/N runs the I-th of N parts");
  flags.add("notify", &options.notify, "shell command that gets a summary as JSON on standard input at the end");
  flags.add_overrides(&options.overrides, "key.path=value, added to every case; may be repeated");
  flags.add("dry_run", &options.dry_run, "print the cases and exit");
  flags.add("keep", &options.keep, "keep weights and checkpoints of cases that passed too");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.suite);
  refuse(others);
  if (options.suite.empty()) throw ConfigError("no suite: " + arguments.name + " --suite FILE --out DIR (see --help)");
  if (options.out.empty() && !options.dry_run) throw ConfigError("--out is missing: a folder for the results");
  return options;
}

// Returns the cases whose names match one of the patterns, or all cases if there are no patterns.
std::vector<PlannedCase> select(const std::vector<PlannedCase>& cases, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return cases;
  std::vector<bool> selected(cases.size());
  for (const auto& pattern : patterns) {
    bool found = false;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (::fnmatch(pattern.c_str(), cases[i].name.c_str(), 0) != 0) continue;
      selected[i] = found = true;
    }
    if (!found) throw ConfigError("--cases " + pattern + ": no case has such a name; --dry_run prints all names");
  }
  std::vector<PlannedCase> result;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (selected[i]) result.push_back(cases[i]);
  }
  return result;
}

std::vector<PlannedCase> plan(const Suite& suite, const Options& options) {
  const Shard shard = parse_shard(options.shard);
  std::vector<PlannedCase> all = select(plan_cases(suite, options.overrides), options.cases), mine;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (shard.has(i)) mine.push_back(std::move(all[i]));
  }
  return mine;
}

int print_cases(const std::vector<PlannedCase>& cases) {
  std::size_t skipped = 0;
  for (const auto& one : cases) {
    const std::string ranks =
        one.config.empty() ? one.command : std::to_string(one.ranks) + (one.ranks == 1 ? " rank" : " ranks");
    print_text("%s  %s\n", one.name.c_str(), one.refused.empty() ? ranks.c_str() : ("skipped: " + one.refused).c_str());
    skipped += one.refused.empty() ? 0 : 1;
  }
  print_text("%zu cases, %zu of them skipped\n", cases.size(), skipped);
  return kDone;
}

std::string prepare_folder(const std::string& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw ConfigError("--out " + out + ": cannot be made: " + error.message());
  return fs::canonical(out);
}

void notify(const std::string& command, const std::string& summary) {
  Process process({.command = {"/bin/sh", "-c", command}, .input = summary});
  const auto status = process.wait(kNotifySeconds);
  if (status == 0) return;
  standard_error().write("--notify: the command " +
                         (status ? "ended with status " + std::to_string(*status)
                                 : format_text("had not ended after %g s", kNotifySeconds)) +
                         ": " + command + "\n");
}

// Writes everything that a session leaves for people and other programs. Returns the exit status.
int conclude(history::Database& database, std::int64_t session, const std::string& out, const Options& options) {
  database.finish_session(session);
  const auto report = read_report(database, session);
  const std::string summary = out + "/summary.json";
  write_atomically(out + "/junit.xml", to_junit(report, out, host_name()));
  write_atomically(summary, to_json(report, out));
  write_site(database, out + "/report");
  print_text("%s\nresults: %s/results.sqlite, junit.xml, report/index.html\n", to_sentence(report).c_str(),
             out.c_str());
  if (!options.notify.empty()) notify(options.notify, summary);
  return report.passed() ? kDone : kFailed;
}

int run_cases(const Arguments& arguments, const Options& options, const std::string& suite,
              const std::vector<PlannedCase>& cases, const Quarantine& quarantine) {
  const std::string out = prepare_folder(options.out);
  history::Database database(out + "/results.sqlite", history::OpenMode::kCreate);
  const auto place = make_place(options.on, out);
  const auto checkout = read_checkout(environment("BUILD_WORKSPACE_DIRECTORY").value_or("."));
  const StoredSession stored = begin_or_continue(database,
                                                 {.suite = suite,
                                                  .started_at = static_cast<std::int64_t>(std::time(nullptr)),
                                                  .git_commit = checkout.commit,
                                                  .git_dirty = checkout.dirty,
                                                  .shard = options.shard},
                                                 cases);
  const auto ended = static_cast<std::size_t>(
      std::ranges::count_if(stored.cases, [](const auto& one) { return is_final(one.state); }));
  if (stored.resumed) {
    print_text("Goes on with session %lld, in which %zu of %zu cases have ended\n", static_cast<long long>(stored.id),
               ended, cases.size());
  }
  CaseContext context{.database = database,
                      .place = *place,
                      .environment = read_environment(place->description()),
                      .session = stored.id,
                      .out = out,
                      .program = arguments.program.front(),
                      .keep = options.keep};
  SessionProgress progress(standard_output(), cases.size(), ended);
  if (run_session(cases, stored, quarantine, context, progress)) return conclude(database, stored.id, out, options);
  standard_error().write("Interrupted; the same command goes on with the session\n");
  return kInterrupted;
}

int run(const Arguments& arguments) {
  if (!arguments.words.empty() && arguments.words.front() == "bisect") {
    Arguments rest = arguments;
    rest.name += " bisect";
    rest.words.erase(rest.words.begin());
    return bisect(rest);
  }
  const Options options = parse(arguments);
  const Suite suite = load_suite(options.suite);
  const auto cases = plan(suite, options);
  const auto quarantine = load_quarantine(fs::path(suite.path).parent_path() / "quarantine.yaml", today());
  return options.dry_run ? print_cases(cases) : run_cases(arguments, options, suite.name, cases, quarantine);
}

const bool regress_registered =
    register_command({"regress", "runs a suite of configs and records the results", CommandGroup::kNightly, run});

}  // namespace
}  // namespace phalanx::regress
