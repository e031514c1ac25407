// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/runtime.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/ulfm.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/communicator.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

constexpr Seconds kShortFinalizeTimeout{1};

std::mutex start_mutex;
std::atomic<bool> unhealthy{false};
std::atomic<double> finalize_timeout_seconds{0};

bool initialized() {
  if (!loaded()) return false;
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

bool finalized() {
  if (!loaded()) return false;
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

std::string to_string(int thread_level) {
  switch (thread_level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
  }
  return "thread level " + std::to_string(thread_level);
}

// The rank and size of this process according to the caller or, if it does not know them, to the launcher.
struct ExpectedRank {
  RankInfo rank_info;
  std::string launcher = "the launcher";
};

ExpectedRank expected_rank(const RankInfo& rank_info) {
  ExpectedRank expected{.rank_info = rank_info};
  if (const auto launch = detect_launch_environment()) {
    expected.launcher = launch->launcher;
    if (rank_info.size == 1) expected.rank_info = launch->rank_info;
  }
  return expected;
}

bool any_rank_has_ended() { return ulfm() != nullptr && !ulfm()->ended_ranks(MPI_COMM_WORLD).empty(); }

enum class Leaving : std::uint8_t { kAlone, kTogether, kToFinalize };

// Waits until all ranks that have not ended begin to exit, no longer than `timeout`. With ULFM, these ranks agree on
// whether they finalize MPI: not if one of them is unhealthy or knows of a rank that has ended.
Leaving leave_together(Seconds timeout) {
  static int healthy = 1;  // after a timeout, MPI may still write to it
  healthy = unhealthy || any_rank_has_ended() ? 0 : 1;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MPI_Request request = MPI_REQUEST_NULL;
  const int begun = ulfm() != nullptr ? ulfm()->begin_agreement(MPI_COMM_WORLD, &healthy, &request)
                                      : MPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (begun != MPI_SUCCESS) return Leaving::kAlone;
  while (true) {
    int done = 0;
    const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS && ulfm() == nullptr) return Leaving::kAlone;
    // With ULFM, an error means that ranks have ended since then.
    if (done) return code == MPI_SUCCESS && healthy != 0 ? Leaving::kToFinalize : Leaving::kTogether;
    if (code != MPI_SUCCESS) return Leaving::kAlone;
    if (std::chrono::steady_clock::now() >= deadline) return Leaving::kAlone;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Returns the files of MPI's shared memory that this process has mapped.
std::set<std::string> segments() {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != line.npos && is_segment(line.substr(path))) paths.insert(line.substr(path));
  }
  return paths;
}

// Removes these files. MPI removes them only in MPI_Finalize, which a killed rank never calls.
void remove_segments() {
  for (const auto& path : segments()) ::unlink(path.c_str());
}

// Removes the files if all ranks have mapped all files that they use, which they do in MPI_Init. Then no one needs the
// files.
void remove_segments_if_mapped(int local_size) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mapped = static_cast<int>(segments().size()) == expected_segments(std::min(local_size, size));
  int by_all = 0;
  check(MPI_Allreduce(&mapped, &by_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (by_all) remove_segments();
}

// With ULFM, mpirun tells the other ranks of a rank that has ended only if it has ended by a signal, or with status 0
// without MPI_Finalize. After any other status they would wait for it until their timeout.
void leave_others(int status) {
  if (status == 0) return;
  std::fflush(nullptr);
  ::raise(SIGKILL);
}

void leave(int status, void*) {
  if (finalized()) return;
  const bool in_order = status == 0 && !unhealthy;
  const Seconds timeout = in_order ? Seconds(finalize_timeout_seconds.load()) : kShortFinalizeTimeout;
  const Leaving leaving = unhealthy && ulfm() == nullptr ? Leaving::kAlone : leave_together(timeout);
  if (leaving == Leaving::kToFinalize) {
    MPI_Finalize();
    return;
  }
  remove_segments();
  if (ulfm() != nullptr) {
    if (leaving == Leaving::kAlone) leave_others(status);
    return;
  }
  if (launcher_notices_exit()) return;  // and prints less than MPI_Abort does
  std::fflush(nullptr);                 // because MPI_Abort does not return to exit()
  MPI_Abort(MPI_COMM_WORLD, status == 0 ? 1 : status);
}

void initialize(const RankInfo& rank_info) {
  prepare_environment(rank_info);
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors_return());
  MPI_Comm_set_errhandler(MPI_COMM_SELF, errors_return());
  ::on_exit(&leave, nullptr);  // unlike atexit, it passes the status, which tells an error from a normal exit
  remove_segments_if_mapped(rank_info.local_size);
}

int highest_tag() {
  const int* highest = nullptr;
  int known = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &known), "MPI_TAG_UB");
  return known ? *highest : 0;
}

void require_not_finalized() {
  if (finalized()) throw ConfigError("backend mpi: MPI has been finalized, and cannot start a second time");
}

void require_abilities() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  require_threads(provided);
  require_tags(highest_tag());
}

std::string describe(int rank, int size) { return "rank " + std::to_string(rank) + " of " + std::to_string(size); }

[[noreturn]] void refuse_world_of_one(const ExpectedRank& expected) {
  throw ConfigError("backend mpi: " + expected.launcher + " started this process as " +
                    describe(expected.rank_info.rank, expected.rank_info.size) +
                    ", but it did not tell MPI, which sees a world of one; " + how_to_start());
}

void check_world(const ExpectedRank& expected) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto& [rank_info, launcher] = expected;
  if (rank == rank_info.rank && size == rank_info.size) return;
  if (size == 1) refuse_world_of_one(expected);
  throw ConfigError("backend mpi: this process is " + describe(rank_info.rank, rank_info.size) + " according to " +
                    launcher + ", but " + describe(rank, size) + " according to MPI");
}

}  // namespace

void require_threads(int provided) {
  if (provided >= MPI_THREAD_MULTIPLE) return;
  throw ConfigError("backend mpi: needs MPI_THREAD_MULTIPLE, but MPI provides " + to_string(provided) +
                    "; initialize it with MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...), or use an MPI built for it");
}

void require_tags(int highest) {
  if (highest >= kMaxAnyTag) return;
  throw ConfigError("backend mpi: needs message tags up to " + std::to_string(kMaxAnyTag) +
                    ", but MPI allows them up to " + std::to_string(highest) +
                    " (MPI_TAG_UB); use another MPI, or another transport of it");
}

void require_running() {
  load();
  require_not_finalized();
  if (!initialized()) {
    throw ConfigError("backend mpi: MPI is not running; call MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...) first");
  }
  require_abilities();
}

RankInfo rank_info_of(MPI_Comm communicator) {
  RankInfo info;
  check(MPI_Comm_rank(communicator, &info.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(communicator, &info.size), "MPI_Comm_size");
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, info.rank, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
  check(MPI_Comm_rank(host, &info.local_rank), "MPI_Comm_rank");
  check(MPI_Comm_size(host, &info.local_size), "MPI_Comm_size");
  check(MPI_Comm_free(&host), "MPI_Comm_free");
  return info;
}

void start(const RankInfo& rank_info, Seconds finalize_timeout) {
  std::lock_guard lock(start_mutex);
  require_not_finalized();
  finalize_timeout_seconds = finalize_timeout.count();
  load();
  const ExpectedRank expected = expected_rank(rank_info);
  if (!initialized()) {
    if (expected.rank_info.size > 1 && !launched_for_mpi()) refuse_world_of_one(expected);
    initialize(expected.rank_info);
  }
  require_abilities();
  check_world(expected);
}

std::string version_if_running() {
  if (!initialized()) return "";
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  return short_version({text.data(), static_cast<std::size_t>(length)});
}

// Returns the name and version from the text of a library, which is one of "Open MPI v5.0.6, package: ...",
// "MPICH Version:      5.0.2\nMPICH Release date: ..." and "Intel(R) MPI Library 2021.18.1 for Linux* OS\n".
std::string short_version(const std::string& library_version) {
  std::istringstream words(library_version.substr(0, library_version.find_first_of(",\n")));
  std::string version;
  for (std::string word; words >> word && word != "for";) {
    if (word != "Version:") version += (version.empty() ? "" : " ") + word;
  }
  return version;
}

void mark_unhealthy() noexcept { unhealthy = true; }

bool healthy() noexcept { return initialized() && !finalized() && !unhealthy && std::uncaught_exceptions() == 0; }

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
