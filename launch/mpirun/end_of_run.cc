// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/end_of_run.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"

namespace phalanx {
namespace {

constexpr const char* kNote = "/run.ended";

}  // namespace

void note_end_of_run(const std::string& folder, int status) noexcept {
  try {
    const std::string text = std::to_string(status) + "\n";
    try {
      write_atomically(folder + kNote, text);
    } catch (const DataError&) {
      const auto spare = environment(kSpareFailureFolder);
      if (!spare) throw;
      write_atomically(*spare + kNote, text);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the end of the run could not be noted in %s, so the launcher takes it for failed: %s\n",
                 folder.c_str(), printable(error.what()).c_str());
  }
}

std::optional<int> take_end_of_run(const std::string& folder, const std::string& spare) {
  std::optional<int> status;
  for (const auto& one : {spare, folder}) {
    if (one.empty()) continue;
    if (int noted = 0; std::ifstream(one + kNote) >> noted && !is_failure(noted)) status = noted;
    std::error_code ignored;  // the next launcher in this folder tries again
    std::filesystem::remove(one + kNote, ignored);
  }
  return status;
}

}  // namespace phalanx
