#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "tools/launch/mpi.h"

namespace phalanx {
namespace {

bool is_program(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0;
}

// Empty if there is none.
std::string on_path(const std::string& name, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && is_program(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

}  // namespace

std::string find_mpirun() { return find_mpirun(PHALANX_MPI_HOME); }

std::string find_mpirun(const std::string& built_with) {
  const std::string home = environment("MPI_HOME").value_or("");
  const std::string path = environment("PATH").value_or("");
  const std::string in_home = home + "/bin/mpirun", in_built_with = built_with + "/bin/mpirun";
  if (!home.empty()) {
    if (is_program(in_home)) return in_home;
    throw ConfigError(
        "MPI_HOME is " + home + ", but there is no " + in_home +
        ".\nCorrect MPI_HOME, or unset it: then mpirun is looked for on PATH and in " + built_with +
        "/bin (the MPI this program was built with). To launch on this host without MPI: launch.with=local.");
  }
  if (const auto found = on_path("mpirun", path); !found.empty()) return found;
  if (is_program(in_built_with)) return in_built_with;
  throw ConfigError(
      "cannot find mpirun. Looked for\n"
      "  $MPI_HOME/bin/mpirun: MPI_HOME is not set\n"
      "  mpirun on PATH: " +
      (path.empty() ? "PATH is empty" : "not in " + path) + "\n" + "  " + in_built_with +
      " (the MPI this program was built with): not there\n" +
      "Install Open MPI 5 and set MPI_HOME to its folder, or launch on this host without MPI: launch.with=local.");
}

}  // namespace phalanx
