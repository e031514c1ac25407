// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "framework/base/text.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

using Notes = std::vector<std::string>;

void on_cores(const Machine& machine, Notes& notes) {
  if (machine.allowed_cores < machine.cores) {
    notes.push_back("this process may use " + std::to_string(machine.allowed_cores) + " of " +
                    std::to_string(machine.cores) + " cores (taskset or a container): start no more ranks than that");
  }
  if (machine.quota_cores > 0 && machine.quota_cores < machine.allowed_cores) {
    notes.push_back("the container's quota is " + format_text("%.1f", machine.quota_cores) +
                    " cores: ranks that wait by spinning are throttled with those that compute");
  }
  if (machine.virtual_machine) {
    notes.push_back("a virtual machine: its host may move cores, so only figures of one run can be compared");
  }
}

void on_memory(const Machine& machine, Notes& notes) {
  if (machine.dev_shm > 0 && machine.dev_shm < (std::int64_t{64} << 20)) {
    notes.push_back("/dev/shm has only " + format_bytes(machine.dev_shm) +
                    ", which Open MPI and MPICH may need more of (docker run --shm-size); backend shm does not use it");
  }
  if (machine.open_files >= 0 && machine.open_files < 1024) {
    notes.push_back("only " + std::to_string(machine.open_files) +
                    " open files are allowed (ulimit -n): many ranks need more");
  }
}

void on_libraries(const Diagnosis& found, Notes& notes) {
  for (const auto& library : found.libraries) {
    if (library.loaded.empty() || library.loaded == library.linked) continue;
    // Newer versions of these run programs that were built with older ones.
    if (library.name == "glibc" || library.name == "SQLite") continue;
    notes.push_back(library.name + " " + library.loaded + " was loaded, but Phalanx was built with " + library.linked +
                    ": rebuild, or check LD_LIBRARY_PATH (" + library.path + ")");
  }
  const bool blas = std::ranges::any_of(found.torch_build, [](const std::string& line) {
    return line.find("BLAS_INFO=mkl") != std::string::npos || line.find("BLAS_INFO=open") != std::string::npos ||
           line.find("BLAS_INFO=accelerate") != std::string::npos || line.find("BLAS_INFO=nvpl") != std::string::npos;
  });
  if (!found.libraries.empty() && !blas) {
    notes.push_back(
        "LibTorch has a generic BLAS, which can be 17 times slower: install one built with MKL or OpenBLAS");
  }
}

void on_backends(const Diagnosis& found, Notes& notes) {
  const bool no_devices = found.machine.devices.empty();
  for (const auto& backend : found.backends) {
    if (backend.device != "cpu" && no_devices) continue;
    const auto failed = std::ranges::count_if(backend.operations, [](const auto& one) { return one.second != "ok"; });
    if (failed > 0) {
      notes.push_back("backend " + backend.name + " fails in " + std::to_string(failed) + " of " +
                      std::to_string(backend.operations.size()) + " operations; the table says why");
    }
  }
  if (!no_devices && !found.works("nccl")) {
    notes.push_back("ranks cannot compute on " + join(found.machine.devices, ", ") + ": see backend nccl in the table");
  }
}

}  // namespace

std::vector<std::string> notes_on(const Diagnosis& found) {
  Notes notes;
  on_backends(found, notes);
  on_libraries(found, notes);
  on_cores(found.machine, notes);
  on_memory(found.machine, notes);
  return notes;
}

}  // namespace phalanx::doctor
