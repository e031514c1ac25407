// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/locality.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "framework/base/cores.h"
#include "framework/base/environment.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Returns an empty line if the file cannot be read. That part of a key is then the same for all processes.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string namespace_of(const std::string& kind) {
  std::error_code error;
  return fs::read_symlink("/proc/self/ns/" + kind, error).string();  // "net:[4026531840]"
}

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id"); }

}  // namespace

std::string host_key() {
  if (const auto given = environment("PHALANX_HOST_KEY")) return *given;
  return host_name() + ' ' + boot_id() + ' ' + namespace_of("net") + ' ' + namespace_of("pid");
}

std::string process_ids_key() { return boot_id() + '/' + namespace_of("pid"); }

std::string numa_key() {
  std::set<int> nodes;
  for (const int core : allowed_cores()) nodes.insert(numa_node(core));
  return nodes.size() == 1 ? std::to_string(*nodes.begin()) : kUnbound;
}

}  // namespace phalanx
