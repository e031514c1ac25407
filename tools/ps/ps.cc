// SPDX-License-Identifier: Apache-2.0
// A standalone parameter server for any number of jobs: ps --listen 10.0.0.1:7000 --secret_file FILE
#include <gflags/gflags.h>
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
#include "framework/ps/client.h"
#include "framework/ps/server.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "launch/signals.h"
#include "tools/flags/parse_flags.h"

DEFINE_string(listen, "", "HOST:PORT or unix:PATH to listen at, or several of them, separated by commas");
DEFINE_string(secret_file, "", "file with the secret of servers and clients, which only its owner may read");
DEFINE_string(checkpoint, "", "folder for checkpoints of only this server, which starts from the newest one there");
DEFINE_double(every, 60, "seconds between two checkpoints");
DEFINE_double(grace, 60, "seconds that other clients wait for a client whose connection has broken");
DEFINE_string(memory, "1TB", "limit for the values of all tables, such as 64GB");
DEFINE_string(status, "", "address of a running server: prints what it holds");
DEFINE_double(timeout, 10, "seconds for an answer to --status");

namespace phalanx {
namespace {

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

ps::ServerOptions options() {
  if (!(FLAGS_every > 0)) throw ConfigError("--every must be above 0");
  if (!(FLAGS_grace >= 0)) throw ConfigError("--grace must be at least 0");
  ps::ServerOptions options{.listen = addresses(FLAGS_listen),
                            .secret = read_secret(FLAGS_secret_file),
                            .limits = {.memory_bytes = parse_bytes(FLAGS_memory)},
                            .grace = Seconds(FLAGS_grace),
                            .checkpoint = {.folder = FLAGS_checkpoint, .every = Seconds(FLAGS_every)}};
  return options;
}

int serve() {
  // Only this thread handles the signals; it has nothing else to do.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (!ignored(signal)) ::sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  keep_freed_memory();
  const auto wanted = options();
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

int print_status() {
  ps::Client client({.servers = {{FLAGS_status}},
                     .job = "status",
                     .number = -1,
                     .secret = read_secret(FLAGS_secret_file),
                     .timeout = Seconds(FLAGS_timeout)});
  const auto status = parse_json(client.status().at(0), "the status of " + FLAGS_status).raw();
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

int run(int argc, char** argv) {
  refuse(
      parse_flags({.purpose = "serves parameters to several jobs, as in\n"
                              "ps --listen 127.0.0.1:7000 --secret_file FILE, or prints what a server holds (--status)",
                   .files = "tools/ps/"},
                  argc, argv));
  if (FLAGS_listen.empty() == FLAGS_status.empty()) {
    throw ConfigError("ps needs --listen HOST:PORT to serve, or --status ADDRESS to ask a server what it holds");
  }
  if (FLAGS_secret_file.empty())
    throw ConfigError("ps needs --secret_file FILE, with the secret of servers and clients");
  return FLAGS_status.empty() ? serve() : print_status();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
