// SPDX-License-Identifier: Apache-2.0
#include "launch/local/meeting_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWaits = "waits";
constexpr const char* kInvited = "invited";
constexpr const char* kPart = "part";
constexpr const char* kEnded = "ended";

// The time within which the decision of another process must appear, also on a network file system.
constexpr std::chrono::seconds kDecisionDeadline{10};

// The names of one file in the folder of an attempt.
constexpr const char* kOpen = "open";
constexpr const char* kYes = "yes";
constexpr const char* kNo = "no";
constexpr const char* kLater = "later";

// More than ranks write to the store of an attempt, unless they are hundreds.
constexpr std::size_t kRoom = std::size_t{64} << 10;

// Returns true for "waits.3", and false for files that are being written.
bool is_wait(const std::string& name) {
  const std::string prefix = std::string(kWaits) + ".";
  return name.starts_with(prefix) && name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

// Returns true if there is a note. A network file system may remember for a minute that there was none; it looks again
// if the folder has changed, which it learns from the server when somebody opens the folder.
bool exists(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  const Descriptor asks(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::error_code none;
  return fs::exists(path, none);
}

void read(std::istream& in, Newcomer& newcomer) {
  std::chrono::system_clock::rep lost_at = 0;
  in >> newcomer.number >> newcomer.in_place_of >> newcomer.place >> newcomer.local_rank >> newcomer.local_size >>
      lost_at;
  newcomer.lost_at = std::chrono::system_clock::time_point(std::chrono::system_clock::duration(lost_at));
}

}  // namespace

std::string to_text(const Newcomer& newcomer) {
  std::ostringstream out;
  out << newcomer.number << ' ' << newcomer.in_place_of << ' ' << newcomer.place << ' ' << newcomer.local_rank << ' '
      << newcomer.local_size << ' ' << newcomer.lost_at.time_since_epoch().count();
  return out.str();
}

Newcomer parse_newcomer(const std::string& text) {
  std::istringstream in(text);
  Newcomer newcomer;
  read(in, newcomer);
  const bool whole = in && (in >> std::ws).eof();
  const bool valid = newcomer.number >= 0 && newcomer.in_place_of >= kNobody && newcomer.place >= 0 &&
                     newcomer.local_rank >= 0 && newcomer.local_size >= 1 &&
                     newcomer.lost_at.time_since_epoch().count() >= 0;
  if (!whole || !valid) throw Error("\"" + text + "\" describes no newcomer");
  return newcomer;
}

std::vector<int> Attempt::numbers() const {
  std::vector<int> all = members;
  for (const auto& one : newcomers) all.push_back(one.number);
  return all;
}

std::string to_text(const Attempt& attempt) {
  std::string text = std::to_string(attempt.number);
  for (const int member : attempt.members) text += " " + std::to_string(member);
  for (const auto& newcomer : attempt.newcomers) text += "\n" + to_text(newcomer);
  return text;
}

Attempt parse_attempt(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  Attempt attempt;
  std::getline(lines, line);
  std::istringstream head(line);
  head >> attempt.number;
  for (int member = 0; head >> member;) attempt.members.push_back(member);
  if (!head.eof() || attempt.members.empty()) throw Error("\"" + text + "\" describes no new world");
  while (std::getline(lines, line)) attempt.newcomers.push_back(parse_newcomer(line));
  return attempt;
}

std::string MeetingFolder::file(const std::string& kind, int number) const {
  return path_ + "/" + kind + "." + std::to_string(number);
}

std::string MeetingFolder::file(const Attempt& attempt, const std::string& name) const {
  return file("attempt", attempt.number) + "/" + name;
}

void MeetingFolder::note_end(int number) const { write_atomically(file(kEnded, number), ""); }

bool MeetingFolder::has_ended(int number) const { return exists(file(kEnded, number)); }

bool MeetingFolder::takes_part(int number) const { return exists(file(kPart, number)); }

void MeetingFolder::wait(const Newcomer& self) const { write_atomically(file(kWaits, self.number), to_text(self)); }

std::optional<Attempt> MeetingFolder::invitation(int number) const {
  const auto path = file(kInvited, number);
  return exists(path) ? std::optional(parse_attempt(read_file(path))) : std::nullopt;
}

void MeetingFolder::wait_again(int number) const {
  std::error_code error;
  fs::remove(file(kInvited, number), error);
  if (error) throw Error(file(kInvited, number) + ": " + error.message());
}

std::vector<Newcomer> MeetingFolder::waiting() const {
  std::vector<Newcomer> all;
  std::error_code removed;  // a long job may lose its folder to a program that tidies up
  for (fs::directory_iterator entry(path_, removed), end; !removed && entry != end; entry.increment(removed)) {
    if (!is_wait(entry->path().filename().string())) continue;
    const Newcomer one = parse_newcomer(read_file(entry->path().string()));
    const bool invited = exists(file(kInvited, one.number)) || takes_part(one.number);
    if (!invited && !has_ended(one.number)) all.push_back(one);
  }
  std::ranges::sort(all, {}, &Newcomer::number);
  return all;
}

Attempt MeetingFolder::invite(const std::vector<int>& members, const std::vector<Newcomer>& newcomers) const {
  Attempt attempt{.members = members, .newcomers = newcomers};
  std::error_code error;
  while (!fs::create_directory(file("attempt", attempt.number), error) && !error) ++attempt.number;
  if (error) throw Error(file("attempt", attempt.number) + ": " + error.message());
  write_atomically(file(attempt, kOpen), "");
  try {
    for (const auto& one : newcomers) write_atomically(file(kInvited, one.number), to_text(attempt));
  } catch (const Error&) {
    postpone(attempt);
    throw;
  }
  return attempt;
}

void MeetingFolder::note_part(const Attempt& attempt) const {
  for (const auto& one : attempt.newcomers) {
    std::error_code error;
    fs::rename(file(kInvited, one.number), file(kPart, one.number), error);
    // The first rank and the newcomer both note it.
    if (error && !takes_part(one.number)) throw Error(file(kPart, one.number) + ": " + error.message());
  }
}

void MeetingFolder::arrive(const Attempt& attempt, int rank) const {
  write_atomically(file(attempt, std::to_string(rank)), "");
}

bool MeetingFolder::has_arrived(const Attempt& attempt, int rank) const {
  return exists(file(attempt, std::to_string(rank)));
}

std::string MeetingFolder::store(const Attempt& attempt) const { return file(attempt, "store"); }

bool MeetingFolder::has_folder(const Attempt& attempt) const { return exists(file("attempt", attempt.number)); }

bool MeetingFolder::has_room(const Attempt& attempt, int rank) const {
  const std::string path = file(attempt, "room." + std::to_string(rank));
  try {
    write_atomically(path, std::string(kRoom, ' '));
  } catch (const Error&) {
    return false;
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  return true;
}

bool MeetingFolder::is_decided_against(const Attempt& attempt) const {
  return exists(file(attempt, kNo)) || is_postponed(attempt);
}

void MeetingFolder::postpone(const Attempt& attempt) const {
  std::error_code error;  // it is decided already, or decide() says that it cannot be
  fs::rename(file(attempt, kOpen), file(attempt, kLater), error);
}

bool MeetingFolder::is_postponed(const Attempt& attempt) const { return exists(file(attempt, kLater)); }

bool MeetingFolder::decide(const Attempt& attempt, bool use) const {
  std::error_code error;  // of all but the first, which do not find the file under this name
  fs::rename(file(attempt, kOpen), file(attempt, use ? kYes : kNo), error);
  const auto deadline = std::chrono::steady_clock::now() + kDecisionDeadline;
  while (true) {
    if (exists(file(attempt, kYes))) return true;
    if (is_decided_against(attempt)) return false;
    if (!exists(file("attempt", attempt.number)) || std::chrono::steady_clock::now() >= deadline) {
      throw Error(file(attempt, kOpen) + ": " + error.message());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace phalanx
