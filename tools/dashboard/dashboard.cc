// SPDX-License-Identifier: Apache-2.0
// Serves the pages of nightly runs, with the jobs that are running: dashboard nightly --port 8080

#include <SQLiteCpp/SQLiteCpp.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/http/http_server.h"
#include "framework/base/job_secret.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/dashboard/job_json.h"
#include "tools/dashboard/served_files.h"
#include "tools/history/database.h"
#include "tools/live/job_state.h"
#include "tools/regress/site/write_site.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kInterval(1);
constexpr int kRestShare = 20;  // at most this share of the time is spent on writing pages: 1 part of 20

double epoch_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The pages, which are written again when the database has changed.
class Pages {
 public:
  explicit Pages(const std::string& folder)
      : folder_(folder), database_(folder + "/results.sqlite", history::OpenMode::kReadOnly) {}

  // Writes the pages if the database has changed. Returns true if it did.
  bool update() {
    if (Clock::now() < next_) return false;
    const std::int64_t version = database_.connection().execAndGet("PRAGMA data_version").getInt64();
    if (version == version_) return false;
    const auto start = Clock::now();
    write_site(database_, folder_ + "/report");
    version_ = version;
    next_ = Clock::now() + std::max<Clock::duration>(kInterval, kRestShare * (Clock::now() - start));
    return true;
  }

  // Returns the folders of runs that have begun and not ended.
  std::vector<std::string> running() {
    std::vector<std::string> folders;
    SQLite::Statement rows(database_.connection(), "SELECT folder FROM runs WHERE exit_status IS NULL ORDER BY id");
    while (rows.executeStep()) {
      folders.push_back(std::filesystem::path(folder_) / rows.getColumn(0).getString());
    }
    return folders;
  }

 private:
  std::string folder_;
  history::Database database_;
  std::int64_t version_ = -1;
  Clock::time_point next_{};
};

// Returns the jobs whose state can be read, from the nightly and from another folder with runs.
std::vector<JobState> read_jobs(std::vector<std::string> folders, const std::string& other) {
  for (auto& found : find_live_runs(other)) folders.push_back(std::move(found));
  std::vector<JobState> jobs;
  std::set<std::string> seen;
  for (const auto& folder : folders) {
    if (!seen.insert(std::filesystem::absolute(folder).lexically_normal()).second) continue;
    try {
      auto job = read_job_state(folder);
      if (job.phase == JobPhase::kTraining) jobs.push_back(std::move(job));
    } catch (const Error&) {
      // The run has measured nothing yet, or has ended in the meantime.
    }
  }
  return jobs;
}

// The server, and the state of the jobs that it has sent last.
class Dashboard {
 public:
  Dashboard(const std::string& folder, const std::string& address, int port)
      : files_(folder),
        server_(address, port, [this](const HttpRequest& request) { return answer(request); }, job_secret()) {}

  int port() const { return server_.port(); }

  void show_jobs(const std::string& json) {
    {
      const std::lock_guard lock(mutex_);
      jobs_ = json;
    }
    server_.send_event("jobs", json);
  }
  void show_new_pages() { server_.send_event("site", "new"); }

 private:
  HttpResponse answer(const HttpRequest& request) {
    if (request.path != kEventsPath) return files_.answer(request.path);
    const std::lock_guard lock(mutex_);
    return {.content_type = "text/event-stream", .body = "event: jobs\ndata: " + jobs_ + "\n\n", .events = true};
  }

  ServedFiles files_;
  std::mutex mutex_;
  std::string jobs_ = "[]";  // guarded by mutex_
  HttpServer server_;        // destroyed first, since its thread uses the members above
};

// Blocks the signals that end a program, so that they can be waited for.
class EndingSignals {
 public:
  EndingSignals() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals_, number);
    ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  // Returns true if one arrives within the time.
  bool wait(std::chrono::seconds limit) const {
    const std::timespec time{.tv_sec = limit.count(), .tv_nsec = 0};
    return ::sigtimedwait(&signals_, nullptr, &time) > 0;
  }

 private:
  sigset_t signals_;
};

int run(const Arguments& arguments) {
  std::string address = "127.0.0.1";
  std::int32_t port = 8080;
  std::string runs = "runs";
  Flags flags(arguments, {"nightly", "nightly --port 9000 --address 0.0.0.0"},
              "FOLDER is that of a nightly, with results.sqlite. With PHALANX_JOB_SECRET or\n"
              "PHALANX_JOB_SECRET_FILE, browsers ask for a name, phalanx, and a password, the secret. Without,\n"
              "whoever reaches the address can read its pages and run folders.");
  flags.add("port", &port, "port to listen on; 0: any free one");
  flags.add("address", &address, "address to listen on; 0.0.0.0: all interfaces");
  flags.add("runs", &runs, "folder with further runs whose progress is shown");
  const auto words = flags.parse(arguments.words);
  if (words.size() != 1) throw ConfigError("name one folder of a nightly: " + arguments.name + " FOLDER (see --help)");
  if (port < 0 || port > 65535) throw ConfigError("--port: must be from 0 to 65535");
  const EndingSignals signals;  // before there are threads
  Pages pages(words.front());
  pages.update();
  Dashboard dashboard(words.front(), address, port);
  standard_output().write(
      format_text("Dashboard at http://%s:%d/ (Ctrl-C ends it)\n", address.c_str(), dashboard.port()));
  do {
    if (pages.update()) dashboard.show_new_pages();
    dashboard.show_jobs(to_json(read_jobs(pages.running(), runs), epoch_seconds()));
  } while (!signals.wait(kInterval));
  return kDone;
}

const bool dashboard_registered = register_command(
    {"dashboard", "serves the pages of nightly runs, with the jobs that are running", CommandGroup::kNightly, run});

}  // namespace
}  // namespace phalanx
