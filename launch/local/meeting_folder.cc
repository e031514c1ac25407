// SPDX-License-Identifier: Apache-2.0
#include "launch/local/meeting_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

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
  if (!in) throw Error("\"" + text + "\" describes no newcomer");
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

bool MeetingFolder::anyone_waits() const { return !waiting().empty(); }

std::vector<Newcomer> MeetingFolder::waiting() const {
  std::vector<Newcomer> all;
  std::error_code removed;  // by somebody who tidies up during a long job
  for (const auto& entry : fs::directory_iterator(path_, removed)) {
    if (!is_wait(entry.path().filename().string())) continue;
    const Newcomer one = parse_newcomer(read_file(entry.path().string()));
    if (!has_ended(one.number) && !exists(file(kInvited, one.number))) all.push_back(one);
  }
  std::ranges::sort(all, {}, &Newcomer::number);
  return all;
}

Attempt MeetingFolder::invite(const std::vector<int>& members, const std::vector<Newcomer>& newcomers) const {
  Attempt attempt{.members = members, .newcomers = newcomers};
  while (!fs::create_directory(file("attempt", attempt.number))) ++attempt.number;
  for (const auto& one : newcomers) write_atomically(file(kInvited, one.number), to_text(attempt));
  return attempt;
}

void MeetingFolder::note_part(const Attempt& attempt) const {
  for (const auto& one : attempt.newcomers) write_atomically(file(kPart, one.number), "");
}

void MeetingFolder::arrive(const Attempt& attempt, int rank) const {
  write_atomically(file(attempt, std::to_string(rank)), "");
}

bool MeetingFolder::has_arrived(const Attempt& attempt, int rank) const {
  return exists(file(attempt, std::to_string(rank)));
}

std::string MeetingFolder::store(const Attempt& attempt) const { return file(attempt, "store"); }

bool MeetingFolder::decide(const Attempt& attempt, bool use) const {
  // A link appears together with its text, so no process reads half a decision.
  const std::string path = file(attempt, "decision"), yes = "yes";
  std::error_code error;
  fs::create_symlink(use ? yes : "no", path, error);
  if (error && error != std::errc::file_exists) throw Error(path + ": " + error.message());
  return fs::read_symlink(path) == yes;
}

}  // namespace phalanx
