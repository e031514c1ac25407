#include "tools/job/process_start.h"

#include <unistd.h>

#include <ctime>
#include <sstream>
#include <string>

#include "framework/base/files.h"

namespace phalanx {
namespace {

constexpr int kStartField = 22;  // of /proc/self/stat: clock ticks from boot to the start of the process
constexpr int kFirstAfterName = 3;

double seconds_from_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

std::chrono::steady_clock::time_point process_start() {
  const std::string stat = read_file("/proc/self/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));  // the name before it may hold anything
  std::string field;
  for (int i = kFirstAfterName; i <= kStartField; ++i) fields >> field;
  const double start = std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::chrono::duration<double> age(seconds_from_boot() - start);
  using Clock = std::chrono::steady_clock;
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(age);
}

}  // namespace phalanx
