// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/slurm/queue.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "tools/doctor/capture.h"
#include "tools/regress/places/slurm/script.h"

namespace phalanx::regress {
namespace {

using namespace std::chrono_literals;

constexpr auto kCommandTime = 60s;
constexpr auto kBetweenQuestions = 1s;
constexpr auto kPatience = 300s;  // time for which Slurm's controller may not answer
constexpr auto kCancelTime = 60s;
constexpr std::size_t kMaxTasks = 1000;  // Slurm's MaxArraySize is 1001 unless it is configured

std::optional<std::map<SlurmTaskId, SlurmTask>> ask_squeue(const std::string& owner) {
  const auto answer = doctor::capture({"squeue", "--noheader", "--array", "--states=all",
                                       "--user=" + std::to_string(::geteuid()), "--Format", kSqueueFormat},
                                      kCommandTime);
  if (answer.status != 0 || answer.late) return std::nullopt;
  return parse_tasks(answer.output, owner);
}

std::string name_of(const SlurmTaskId& task) { return std::to_string(task.array) + "_" + std::to_string(task.index); }

}  // namespace

SlurmQueue::SlurmQueue(std::string partition, std::string owner)
    : partition_(std::move(partition)), owner_(std::move(owner)) {}

std::size_t SlurmQueue::add(const Job& job) {
  entries_.push_back({.job = job});
  return entries_.size() - 1;
}

std::optional<JobEnd> SlurmQueue::end_of(std::size_t number) {
  submit_added();
  Entry& entry = entries_.at(number);
  if (!entry.end && Clock::now() - asked_ >= kBetweenQuestions) ask();
  return entry.end;
}

void SlurmQueue::submit_added() {
  while (submitted_ < entries_.size()) {
    std::vector<std::size_t> alike;
    for (std::size_t i = submitted_; i < entries_.size() && alike.size() < kMaxTasks; ++i) {
      const Entry& entry = entries_[i];
      const bool waits = !entry.task && !entry.end;
      if (waits && (alike.empty() || need_the_same(entry.job, entries_[alike.front()].job))) alike.push_back(i);
    }
    if (!alike.empty()) submit(alike);
    while (submitted_ < entries_.size() && (entries_[submitted_].task || entries_[submitted_].end)) ++submitted_;
  }
}

void SlurmQueue::submit(const std::vector<std::size_t>& numbers) {
  SlurmArray array{.partition = partition_, .owner = owner_};
  for (const auto number : numbers) array.jobs.push_back(entries_[number].job);
  const auto folder = std::filesystem::path(owner_) / "slurm";
  std::filesystem::create_directories(folder);
  const auto script = folder / (array.jobs.front().name + ".sh");
  write_atomically(script, sbatch_script(array));
  const auto answer = doctor::capture({"sbatch", "--parsable", script}, kCommandTime);
  int id = 0;  // followed by the name of the cluster, where there are several
  const auto [rest, error] = std::from_chars(answer.output.data(), answer.output.data() + answer.output.size(), id);
  const bool accepted = answer.status == 0 && error == std::errc();
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    Entry& entry = entries_[numbers[index]];
    if (accepted) {
      entry.task = {.array = id, .index = static_cast<int>(index)};
      if (entry.cancelled_by != 0) cancel(numbers[index], entry.cancelled_by);
    } else {
      entry.end = {.exit_status = 1, .infrastructure_error = "sbatch " + script.string() + ": " + answer.errors};
    }
  }
  asked_ = Clock::now();
}

void SlurmQueue::ask() {
  asked_ = Clock::now();
  if (auto tasks = ask_squeue(owner_)) {
    tasks_ = std::move(*tasks);
    answered_ = Clock::now();
  } else if (Clock::now() - answered_ < kPatience) {
    return;  // the controller may be restarting
  } else {
    tasks_.clear();
  }
  for (std::size_t number = 0; number < entries_.size(); ++number) {
    if (entries_[number].task && !entries_[number].end) update(number);
  }
}

void SlurmQueue::update(std::size_t number) {
  Entry& entry = entries_[number];
  const auto found = tasks_.find(*entry.task);
  const std::string name = "Slurm's job " + name_of(*entry.task);
  if (found == tasks_.end()) {
    entry.end = {.exit_status = 1, .infrastructure_error = name + " is no longer known to Slurm"};
    return;
  }
  const SlurmTask& task = found->second;
  if (auto end = regress::end_of(task)) {
    if (entry.cancelled_by != 0 && task.state == "CANCELLED") end = end_of_cancelled(entry);
    auto& error = end->infrastructure_error;
    if (!error.empty()) error = name + " " + error + "; see " + owner_ + "/slurm/" + name_of(*entry.task) + ".log";
    entry.end = std::move(end);
  } else if (cannot_start(task)) {
    cancel(number, SIGKILL);
    entry.end = {.exit_status = 1, .infrastructure_error = name + " cannot start: " + task.reason};
  } else if (entry.job.time_limit > 0 && task.seconds > entry.job.time_limit && entry.cancelled_by == 0) {
    entry.timed_out = true;
    cancel(number, SIGTERM);
  }
}

JobEnd SlurmQueue::end_of_cancelled(const Entry& entry) const {
  return {.exit_status = 128 + entry.cancelled_by, .timed_out = entry.timed_out};
}

void SlurmQueue::cancel(std::size_t number, int signal) {
  Entry& entry = entries_.at(number);
  if (entry.end) return;
  entry.cancelled_by = signal;
  if (!entry.task) {
    entry.end = end_of_cancelled(entry);
    return;
  }
  const std::string task = name_of(*entry.task);
  if (signal == SIGKILL) doctor::capture({"scancel", "--signal=KILL", "--full", task}, kCommandTime);
  doctor::capture({"scancel", task}, kCommandTime);
}

void SlurmQueue::cancel_all() {
  const auto deadline = Clock::now() + kCancelTime;
  for (bool asked = false;; asked = true) {
    std::vector<std::string> left;
    if (const auto tasks = ask_squeue(owner_)) {
      for (const auto& [id, task] : *tasks) {
        if (!regress::end_of(task)) left.push_back(name_of(id));
      }
      if (left.empty()) return;
    }
    if (Clock::now() > deadline) {
      throw Error("Slurm has not ended the jobs of " + owner_ + " within a minute: " + join(left, ", "));
    }
    if (!asked) {
      left.insert(left.begin(), "scancel");
      doctor::capture(left, kCommandTime);
    }
    std::this_thread::sleep_for(200ms);
  }
}

}  // namespace phalanx::regress
