// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shm/readable_by.h"

#include <sys/prctl.h>

#include <mutex>
#include <set>
#include <utility>

namespace phalanx::shm {
namespace {

struct Readers {
  std::mutex mutex;
  std::multiset<pid_t> processes;

  // The call fails on systems without Yama, where no permission is needed.
  void tell_system() const {
    unsigned long reader = 0;  // no process
    if (!processes.empty()) {
      const bool only_one = *processes.begin() == *processes.rbegin();
      reader = only_one ? static_cast<unsigned long>(*processes.begin()) : PR_SET_PTRACER_ANY;
    }
    ::prctl(PR_SET_PTRACER, reader, 0, 0, 0);
  }
};

Readers& readers() {
  static Readers all;
  return all;
}

}  // namespace

ReadableBy::ReadableBy(std::vector<pid_t> processes) : processes_(std::move(processes)) {
  const std::lock_guard lock(readers().mutex);
  readers().processes.insert(processes_.begin(), processes_.end());
  readers().tell_system();
}

ReadableBy::~ReadableBy() {
  const std::lock_guard lock(readers().mutex);
  for (const auto process : processes_) readers().processes.extract(process);
  readers().tell_system();
}

}  // namespace phalanx::shm
