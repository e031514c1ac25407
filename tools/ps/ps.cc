// SPDX-License-Identifier: Apache-2.0
// A standalone parameter server for any number of jobs: ps --listen 10.0.0.1:7000 --secret_file FILE
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/printable.h"
#include "framework/base/secret_file.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "launch/signals/signals.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"

namespace phalanx {
namespace {

struct Options {
  std::string listen{};
  std::string secret_file{};
  std::string checkpoint{};
  double every = 60;
  double grace = 60;
  std::string memory = "1TB";
  std::string status{};
  double timeout = 10;
};

std::vector<std::string> addresses(const std::string& list) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    all.push_back(list.substr(begin, end - begin));
    if (all.back().empty()) throw ConfigError("--listen: an address is empty; use HOST:PORT or unix:PATH");
    begin = end + 1;
  }
  return all;
}

// Removes the socket of a server that was killed: it still exists, but no process listens at it.
void remove_stale(const std::string& address) {
  if (!address.starts_with("unix:/")) return;
  const std::string path = address.substr(std::strlen("unix:"));
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  try {
    (void)connect_to(address, 1);
  } catch (const Error&) {
    ::unlink(path.c_str());
  }
}

ps::ServerOptions server_options(const Options& options) {
  if (!(options.every > 0)) throw ConfigError("--every must be above 0");
  if (!(options.grace >= 0)) throw ConfigError("--grace must be at least 0");
  return {.listen = addresses(options.listen),
          .secret = read_secret(options.secret_file),
          .limits = {.memory_bytes = parse_bytes(options.memory)},
          .grace = Seconds(options.grace),
          .checkpoint = {.folder = options.checkpoint, .every = Seconds(options.every)}};
}

int serve(const Options& options) {
  // Only this thread handles the signals; it has nothing else to do.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (!ignored(signal)) ::sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  keep_freed_memory();
  const auto wanted = server_options(options);
  for (const auto& address : wanted.listen) remove_stale(address);
  std::string lost;
  {
    ps::Server server(wanted);
    std::printf("parameter server: ready at %s\n", join(server.addresses(), ",").c_str());
    std::fflush(stdout);
    int signal = 0;
    ::sigwait(&signals, &signal);
    std::printf("parameter server: ending because of SIG%s\n", ::sigabbrev_np(signal));
    std::fflush(stdout);
    try {
      server.stop();
    } catch (const Error& error) {
      lost = error.what();
    }
  }
  for (const auto& address : wanted.listen) {
    if (address.starts_with("unix:/")) ::unlink(address.c_str() + std::strlen("unix:"));
  }
  if (!lost.empty()) throw Error(lost);
  return kDone;
}

// Returns the mean staleness of all reads, in clocks.
std::string mean_staleness(const nlohmann::json& table) {
  double reads = 0, sum = 0;
  for (std::size_t behind = 0; behind < table.at("staleness_seen").size(); ++behind) {
    const auto count = table.at("staleness_seen")[behind].get<double>();
    reads += count;
    sum += count * static_cast<double>(behind);
  }
  return reads > 0 ? format_text("%.2f", sum / reads) : "-";
}

int print_status(const Options& options) {
  ps::Client client({.servers = {{options.status}},
                     .job = "status",
                     .number = -1,
                     .secret = read_secret(options.secret_file),
                     .timeout = Seconds(options.timeout)});
  const auto status = parse_json(client.status().at(0), "the status of " + options.status).raw();
  print_text("%-32s %-32s %-15s %-9s %10s %9s %8s %9s %10s %10s %9s\n", "job", "table", "shard", "dtype", "bytes",
             "version", "waiting", "requests", "received", "sent", "staleness");
  for (const auto& table : status.at("tables")) {
    const auto bytes = [&table](const char* key) { return format_bytes(table.at(key).get<std::int64_t>()); };
    const std::string shard = table.at("shard").dump() + " of " + table.at("shards").dump() +
                              (table.contains("role") ? ", " + table.at("role").get<std::string>() : "");
    print_text("%-32s %-32s %-15s %-9s %10s %9s %8s %9s %10s %10s %9s\n", table.at("job").get<std::string>().c_str(),
               table.at("name").get<std::string>().c_str(), shard.c_str(), table.at("dtype").get<std::string>().c_str(),
               bytes("bytes").c_str(), table.at("version").dump().c_str(), table.at("waiting").dump().c_str(),
               table.at("requests").dump().c_str(), bytes("bytes_received").c_str(), bytes("bytes_sent").c_str(),
               mean_staleness(table).c_str());
  }
  print_text("%zu tables, %s\n", status.at("tables").size(),
             format_bytes(status.at("bytes").get<std::int64_t>()).c_str());
  return kDone;
}

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"--listen 127.0.0.1:7000 --secret_file FILE", "--status 127.0.0.1:7000 --secret_file FILE"});
  flags.add("listen", &options.listen, "HOST:PORT or unix:PATH to listen at, or several of them, separated by commas");
  flags.add("secret_file", &options.secret_file,
            "file with the secret of servers and clients, which only its owner may read");
  flags.add("checkpoint", &options.checkpoint,
            "folder for checkpoints of only this server, which starts from the newest one there");
  flags.add("every", &options.every, "seconds between two checkpoints");
  flags.add("grace", &options.grace, "seconds that other clients wait for a client whose connection has broken");
  flags.add("memory", &options.memory, "limit for the values of all tables, such as 64GB");
  flags.add("status", &options.status, "address of a running server: prints what it holds");
  flags.add("timeout", &options.timeout, "seconds for an answer to --status");
  refuse(flags.parse(arguments.words));
  if (options.listen.empty() == options.status.empty()) {
    throw ConfigError("ps needs --listen HOST:PORT to serve, or --status ADDRESS to ask a server what it holds");
  }
  if (options.secret_file.empty())
    throw ConfigError("ps needs --secret_file FILE, with the secret of servers and clients");
  return options.status.empty() ? serve(options) : print_status(options);
}

const bool ps_registered = register_command(
    {"ps", "serves parameters to several jobs, or prints what a server holds", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx
