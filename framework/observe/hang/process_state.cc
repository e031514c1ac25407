// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/process_state.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

namespace phalanx {
namespace {

constexpr std::size_t kParentField = 4, kStartField = 22, kFirstAfterName = 3;  // of /proc/PID/stat, from 1

// Files in /proc have no size, so that read_file() cannot read them all.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string proc(pid_t process) { return "/proc/" + std::to_string(process); }

// Returns the fields of /proc/PID/stat from the state on; empty if there is no such process.
std::vector<std::string> stat_fields(pid_t process) {
  const std::string stat = text_of(proc(process) + "/stat");
  const auto name_end = stat.rfind(')');  // the name before it may contain any characters
  if (name_end == stat.npos) return {};
  std::istringstream words(stat.substr(name_end + 1));
  return {std::istream_iterator<std::string>(words), {}};
}

std::int64_t number_field(pid_t process, std::size_t field) {
  const auto fields = stat_fields(process);
  return fields.size() > field - kFirstAfterName ? std::atoll(fields[field - kFirstAfterName].c_str()) : 0;
}

enum class Argument { kNone, kDescriptor, kPath };

struct KnownCall {
  const char* text;
  Argument argument;  // what the first argument is; a path is the second one of openat
};

std::optional<KnownCall> known_call(long number) {
  switch (number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
      return KnownCall{"read of", Argument::kDescriptor};
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
      return KnownCall{"write to", Argument::kDescriptor};
    case SYS_fsync:
    case SYS_fdatasync:
      return KnownCall{"fsync of", Argument::kDescriptor};
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
      return KnownCall{"receive from", Argument::kDescriptor};
    case SYS_sendto:
    case SYS_sendmsg:
      return KnownCall{"send to", Argument::kDescriptor};
    case SYS_openat:
      return KnownCall{"open of", Argument::kPath};
    case SYS_futex:
      return KnownCall{"a lock or another thread (futex)", Argument::kNone};
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
      return KnownCall{"waiting for input or output (poll)", Argument::kNone};
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return KnownCall{"sleep", Argument::kNone};
    case SYS_wait4:
    case SYS_waitid:
      return KnownCall{"waiting for another process", Argument::kNone};
    default:
      return std::nullopt;
  }
}

// Returns the text at an address of a process that sleeps in a system call to which it has passed the address.
std::string path_at(pid_t process, std::uint64_t address) {
  std::array<char, 256> text{};
  const iovec to{text.data(), text.size() - 1};
  const iovec from{reinterpret_cast<void*>(address), text.size() - 1};  // NOLINT: an address of another process
  if (::process_vm_readv(process, &to, 1, &from, 1, 0) > 0) return text.data();
  return "a file";
}

std::string file_of(pid_t process, std::uint64_t descriptor) {
  std::error_code none;
  const auto file = std::filesystem::read_symlink(proc(process) + "/fd/" + std::to_string(descriptor), none);
  return none ? "descriptor " + std::to_string(descriptor) : file.string();
}

}  // namespace

RankPicture::Process process_state(pid_t process) {
  const auto fields = stat_fields(process);
  if (fields.empty()) return RankPicture::Process::kGone;
  const char state = fields.front().front();
  if (state == 'Z' || state == 'X') return RankPicture::Process::kGone;
  return state == 'T' || state == 't' ? RankPicture::Process::kStopped : RankPicture::Process::kRuns;
}

std::int64_t process_start_ticks(pid_t process) { return number_field(process, kStartField); }

std::string blocked_in(pid_t process, pid_t thread) {
  // "running", or the number of the system call and its arguments in hexadecimal
  std::istringstream words(text_of(proc(process) + "/task/" + std::to_string(thread) + "/syscall"));
  long number = -1;
  std::string first, second;
  if (!(words >> number >> first >> second) || number < 0) return "";
  const auto call = known_call(number);
  if (!call) return "system call " + std::to_string(number);
  switch (call->argument) {
    case Argument::kNone:
      return call->text;
    case Argument::kPath:
      return std::string(call->text) + " " + path_at(process, std::strtoull(second.c_str(), nullptr, 16));
    case Argument::kDescriptor:
      return std::string(call->text) + " " + file_of(process, std::strtoull(first.c_str(), nullptr, 16));
  }
  return "";
}

std::vector<std::string> blocked_on_files(pid_t process) {
  std::vector<std::string> calls;
  std::error_code none;
  std::filesystem::directory_iterator entry(proc(process) + "/task", none);
  for (const std::filesystem::directory_iterator end; !none && entry != end; entry.increment(none)) {
    const auto call = blocked_in(process, std::atoi(entry->path().filename().c_str()));
    if (call.find(" /") != call.npos && std::ranges::find(calls, call) == calls.end()) calls.push_back(call);
  }
  return calls;
}

std::vector<pid_t> process_tree(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::error_code none;
  std::filesystem::directory_iterator entry("/proc", none);
  for (const std::filesystem::directory_iterator end; !none && entry != end; entry.increment(none)) {
    const pid_t process = std::atoi(entry->path().filename().c_str());
    if (process > 0) children.emplace(static_cast<pid_t>(number_field(process, kParentField)), process);
  }
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto child = begin; child != end; ++child) {
      if (std::ranges::find(tree, child->second) == tree.end()) tree.push_back(child->second);
    }
  }
  return tree;
}

}  // namespace phalanx
