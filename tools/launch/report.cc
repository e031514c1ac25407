#include "tools/launch/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "tools/launch/frame.h"
#include "tools/launch/log_tail.h"

namespace phalanx {
namespace {

constexpr int kColumns = 100;
constexpr int kLogLines = 10;

int columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return std::min<int>(kColumns, size.ws_col);
}

}  // namespace

std::string log_path(const std::string& log_folder, int rank) {
  return log_folder + "/rank" + std::to_string(rank) + ".log";
}

void report(const Verdict& verdict, int ranks, const std::string& log_folder) {
  if (!verdict.cause) return;
  Failure failure = *verdict.cause;
  std::error_code none;
  const std::string log = log_path(log_folder, failure.rank);
  if (failure.log.empty() && failure.rank >= 0 && std::filesystem::exists(log, none)) failure.log = log;
  FrameContext context{.ranks = ranks, .others = verdict.others, .columns = columns()};
  if (verdict.unexplained) context.last_lines = last_lines(failure.log, kLogLines);
  const std::string text = frame(failure, context);
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace phalanx
