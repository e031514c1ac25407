// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/machine.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "framework/base/cores.h"
#include "framework/base/environment.h"

namespace phalanx::doctor {
namespace {

namespace fs = std::filesystem;

#ifdef __clang__
const char* const kCompiler = __VERSION__;  // names Clang itself
#else
const char* const kCompiler = "g++ " __VERSION__;
#endif

std::string trimmed(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  const auto begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// Returns the text after `key` and a separator, in the first line of the file that begins with `key`.
std::string value_of(const std::string& path, const std::string& key, char separator = ':') {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(separator);
    if (at != std::string::npos && trimmed(line.substr(0, at)) == key) return trimmed(line.substr(at + 1));
  }
  return "";
}

std::int64_t kilobytes_of(const std::string& path, const std::string& key) {
  std::int64_t count = 0;
  std::istringstream(value_of(path, key)) >> count;
  return count * 1024;
}

// Returns the entries of a folder up to the first error.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

int count_entries(const fs::path& folder, const std::string& begin) {
  int count = 0;
  for (const auto& entry : entries_of(folder)) {
    const std::string rest = entry.filename().string();
    count += rest.starts_with(begin) && rest.size() > begin.size() && std::isdigit(rest[begin.size()]) != 0;
  }
  return count;
}

std::int64_t limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(limit.rlim_cur);
}

// Parses "200000 100000": the microseconds of CPU time, and the period in microseconds.
double quota_cores(const std::string& path) {
  double time = 0, period = 0;
  std::ifstream(path) >> time >> period;
  return period > 0 ? time / period : 0;
}

std::int64_t size_of_file_system(const std::string& path) {
  struct statvfs status{};
  return ::statvfs(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.f_blocks * status.f_frsize) : 0;
}

std::string describe_malloc() {
  const std::string preloaded = environment("LD_PRELOAD").value_or("");
  for (const char* other : {"jemalloc", "tcmalloc", "mimalloc"}) {
    if (preloaded.find(other) != std::string::npos) return std::string(other) + " (LD_PRELOAD)";
  }
  return "glibc's; train keeps freed memory (mallopt)";
}

std::vector<std::string> devices(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : entries_of(folder)) names.push_back(value_of(entry / "information", "Model"));
  return names;
}

std::string describe_kernel() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release + " " + names.machine : "";
}

}  // namespace

Machine read_machine(const std::string& root) {
  const std::string flags = " " + value_of(root + "/proc/cpuinfo", "flags") + " ";
  return {.host = host_name(),
          .kernel = describe_kernel(),
          .distribution = value_of(root + "/etc/os-release", "PRETTY_NAME", '='),
          .compiler = kCompiler,
          .cpu = value_of(root + "/proc/cpuinfo", "model name"),
          .cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
          .allowed_cores = static_cast<int>(allowed_cores().size()),
          .quota_cores = quota_cores(root + "/sys/fs/cgroup/cpu.max"),
          .numa_nodes = std::max(1, count_entries(root + "/sys/devices/system/node", "node")),
          .virtual_machine = flags.find(" hypervisor ") != std::string::npos,
          .memory = kilobytes_of(root + "/proc/meminfo", "MemTotal"),
          .available_memory = kilobytes_of(root + "/proc/meminfo", "MemAvailable"),
          .dev_shm = size_of_file_system(root + "/dev/shm"),
          .open_files = limit_of(RLIMIT_NOFILE),
          .locked_memory = limit_of(RLIMIT_MEMLOCK),
          .malloc = describe_malloc(),
          .devices = devices(root + "/proc/driver/nvidia/gpus")};
}

}  // namespace phalanx::doctor
