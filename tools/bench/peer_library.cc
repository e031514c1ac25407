// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/peer_library.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/text.h"
#include "tools/bench/child.h"
#include "tools/bench/install.h"
#include "tools/bench/peer_sources.h"

namespace phalanx::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLauncher = "bin/mpiexec.hydra";

Installation installation_of(const PeerLibrary& library, const std::string& flag) {
  return {
      .folder = library.name + "-" + library.version, .what = join(library.wheels, ", "), .flag = flag, .remedy = ""};
}

// Debian's pip puts files into PREFIX/local, others into PREFIX.
fs::path root_of(const fs::path& prefix) {
  return fs::exists(prefix / "local" / kLauncher) ? prefix / "local" : prefix;
}

void pip_install(const std::vector<std::string>& wheels, const fs::path& prefix, const std::string& flag) {
  std::vector<std::string> command{
      "python3",  "-m",  "pip", "install", "-q", "--no-deps", "--ignore-installed", "--no-warn-script-location",
      "--prefix", prefix};
  command.insert(command.end(), wheels.begin(), wheels.end());
  if (run_program(command) == 0) return;
  throw ConfigError(flag + ": python3 -m pip install " + join(wheels, " ") +
                    " failed, as printed above; the first measurement needs network access");
}

// The extra wheel contains other files of the same names, so it gets a separate prefix, which is removed.
void add_extra_file(const PeerLibrary& library, const fs::path& prefix, const std::string& flag) {
  if (library.extra_wheel.empty()) return;
  const fs::path extra = prefix / "extra";
  pip_install({library.extra_wheel}, extra, flag);
  const fs::path from = fs::exists(extra / "local") ? extra / "local" : extra;
  fs::copy_file(from / library.extra_file, root_of(prefix) / library.extra_file);
  fs::remove_all(extra);
}

using Source = std::pair<const char*, const char*>;  // name and text

std::array<Source, 4> sources_of(const PeerLibrary& library) {
  return {{{"timed.h", kTimedSource},
           {"mpi_calls.h", kMpiCallsSource},
           {"peer_program.h", kPeerProgramSource},
           {"peer.cc", library.source}}};
}

// The name changes with the sources, so that another version of bench compiles its own program.
fs::path program_of(const PeerLibrary& library, const fs::path& prefix) {
  std::string text;
  for (const auto& [name, source] : sources_of(library)) text += source;
  return prefix / ("peer-" + sha256(text).substr(0, 12));
}

void compile(const PeerLibrary& library, const fs::path& prefix, const std::string& flag) {
  const fs::path program = program_of(library, prefix), folder = prefix / "source", root = root_of(prefix);
  if (fs::exists(program)) return;
  fs::create_directories(folder / "tools" / "bench");
  for (const auto& [name, text] : sources_of(library)) write_atomically(folder / "tools" / "bench" / name, text);
  const fs::path unfinished = program.string() + ".new";
  std::vector<std::string> command{"c++", "-std=c++17", "-O2", "-w", "-DMPICH_SKIP_MPICXX"};
  command.insert(command.end(), {"-iquote", folder, "-isystem", root / "include"});
  command.insert(command.end(), {folder / "tools" / "bench" / "peer.cc", "-o", unfinished});
  command.insert(command.end(), {"-L" + (root / "lib").string(), "-Wl,-rpath-link," + (root / "lib").string()});
  command.insert(command.end(), library.links.begin(), library.links.end());
  const int status = run_program(command);
  if (status == 127) throw ConfigError(flag + ": needs a C++ compiler, c++, which is not installed");
  if (status != 0) {
    throw ConfigError(flag + ": c++ cannot compile the program that calls " + library.name + ", as printed above");
  }
  fs::rename(unfinished, program);
}

fs::path prefix_of(const PeerLibrary& library, const std::string& flag) {
  return install_once(installation_of(library, flag), [&](const fs::path& prefix) {
    pip_install(library.wheels, prefix, flag);
    add_extra_file(library, prefix, flag);
  });
}

std::vector<PeerLibrary> make_peer_libraries() {
  const std::vector<std::string> intel_mpi{"impi-rt==2021.18.1", "impi-devel==2021.18.1"};
  const std::vector<std::string> intel_settings{"I_MPI_ROOT=@", "I_MPI_PIN=0", "I_MPI_FABRICS=shm"};
  const std::vector<std::string> intel_oversubscribed{"I_MPI_WAIT_MODE=1"};  // gives way, as Open MPI does here
  PeerLibrary intel{.name = "intelmpi",
                    .version = "2021.18.1",
                    .wheels = intel_mpi,
                    .extra_wheel = "",
                    .extra_file = "",
                    .source = kMpiPeerSource,
                    .links = {"-lmpi"},
                    .settings = intel_settings,
                    .oversubscribed = intel_oversubscribed,
                    .lacks = {}};
  PeerLibrary mpich{.name = "mpich",
                    .version = "5.0.2",
                    .wheels = {"mpich==5.0.2"},
                    .extra_wheel = "",
                    .extra_file = "",
                    .source = kMpiPeerSource,
                    .links = {"-lmpi"},
                    .settings = {},
                    .oversubscribed = {},
                    .lacks = {}};
  PeerLibrary oneccl = intel;
  oneccl.name = "oneccl";
  oneccl.version = "2022.1.2";
  for (const char* wheel : {"oneccl-cpu==2022.1.2", "oneccl-cpu-devel==2022.1.2", "intel-cmplr-lib-rt==2026.2.0"}) {
    oneccl.wheels.emplace_back(wheel);
  }
  oneccl.extra_wheel = "oneccl==2022.1.2";
  oneccl.extra_file = "lib/libccl.so.2";
  oneccl.source = kCclPeerSource;
  oneccl.links = {"-lccl", "-l:libccl.so.2", "-lmpi"};
  // The rank's thread works itself. oneCCL's worker would compete with it for the core that both are bound to.
  oneccl.settings.insert(oneccl.settings.end(), {"CCL_WORKER_OFFLOAD=0", "CCL_LOG_LEVEL=error"});
  oneccl.lacks = {"gather", "scatter"};
  return {std::move(intel), std::move(mpich), std::move(oneccl)};
}

// The user's settings of these libraries.
std::vector<std::string> settings_of_user() {
  constexpr std::array<std::string_view, 6> kPrefixes{"I_MPI_", "MPICH_", "MPIR_", "FI_", "UCX_", "CCL_"};
  std::vector<std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (std::ranges::any_of(kPrefixes, [&](auto prefix) { return text.starts_with(prefix); })) {
      settings.emplace_back(text);
    }
  }
  return settings;
}

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return std::string(name) + "=" + (value == nullptr ? otherwise : value);
}

}  // namespace

const std::vector<PeerLibrary>& peer_libraries() {
  static const std::vector<PeerLibrary> all = make_peer_libraries();
  return all;
}

const PeerLibrary* find_peer_library(const std::string& name) {
  const auto found = std::ranges::find(peer_libraries(), name, &PeerLibrary::name);
  return found == peer_libraries().end() ? nullptr : &*found;
}

void install_peer_library(const PeerLibrary& library, const std::string& flag) {
  compile(library, prefix_of(library, flag), flag);
}

void require_peer_library(const PeerLibrary& library, const std::string& flag) {
  const Installation installation = installation_of(library, flag);
  const bool ready = is_installed(installation) && fs::exists(program_of(library, prefix_of(library, flag)));
  if (ready) return;
  throw ConfigError(flag + ": " + library.name +
                    " is not installed; run bench once without a launcher, which installs it");
}

std::vector<std::string> start_command(const PeerLibrary& library, int ranks, const std::string& argument) {
  const fs::path prefix = prefix_of(library, library.name), root = root_of(prefix);
  std::vector<std::string> command{"env", "-i", variable("PATH", "/usr/bin:/bin"), variable("HOME", "/"),
                                   "LD_LIBRARY_PATH=" + (root / "lib").string()};
  auto settings = library.settings;
  if (ranks > ::sysconf(_SC_NPROCESSORS_ONLN)) {
    settings.insert(settings.end(), library.oversubscribed.begin(), library.oversubscribed.end());
  }
  for (auto& setting : settings) {
    if (setting.ends_with('@')) setting.replace(setting.size() - 1, 1, root.string());
    command.push_back(setting);
  }
  for (auto& setting : settings_of_user()) command.push_back(std::move(setting));
  command.insert(command.end(), {"sh", "-c", "exec \"$@\" >&2", "sh"});
  command.insert(command.end(), {root / kLauncher, "-n", std::to_string(ranks), program_of(library, prefix), argument});
  return command;
}

}  // namespace phalanx::bench
