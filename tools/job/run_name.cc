#include "tools/job/run_name.h"

#include <ctime>
#include <filesystem>

namespace phalanx {

std::string choose_run_dir(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  const std::string first = "runs/" + name + "-" + stamp;
  std::string path = first;
  for (int i = 2; std::filesystem::exists(path); ++i) path = first + "-" + std::to_string(i);
  return path;
}

}  // namespace phalanx
