// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/attempt.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "framework/base/files.h"

namespace phalanx::chaos {
namespace {

constexpr std::chrono::milliseconds kInterval(2);

std::string error_file(const std::string& folder, std::size_t process) {
  return folder + "/stderr" + std::to_string(process);
}

}  // namespace

Attempt::Attempt(const std::vector<Start>& starts, const std::string& folder, std::string note)
    : folder_(folder), note_(std::move(note)) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    processes_.push_back(
        std::make_unique<regress::Process>(regress::ProcessOptions{.command = starts[i].command,
                                                                   .output = folder + "/stdout" + std::to_string(i),
                                                                   .errors = error_file(folder, i),
                                                                   .variables = starts[i].variables,
                                                                   .ends_group = false}));
  }
  if (note_.empty()) noted_at_ = started_;
}

bool Attempt::poll() {
  // Read before the note is looked for, since a rank may show a fault as soon as it has left the note.
  const auto bytes = written();
  std::error_code none;
  if (!noted_at_) {
    if (std::filesystem::exists(note_, none)) {
      noted_at_ = Clock::now();
    } else {
      written_before_ = bytes;
    }
  }
  const auto ended = std::ranges::count_if(processes_, [](const auto& one) { return one->poll().has_value(); });
  if (noted_at_ && !shown_at_ && bytes > written_before_) shown_at_ = Clock::now();
  return static_cast<std::size_t>(ended) == processes_.size();
}

void Attempt::wait(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (!poll() && Clock::now() < deadline) std::this_thread::sleep_for(kInterval);
}

bool Attempt::wait_for_fault(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (!poll() && !noted_at_ && Clock::now() < deadline) std::this_thread::sleep_for(kInterval);
  return noted_at_.has_value();
}

int Attempt::status() const {
  for (const auto& process : processes_) {
    const auto status = process->poll();
    if (status && *status != 0) return *status;
  }
  return 0;
}

void Attempt::signal(int number) {
  for (const auto& process : processes_) process->signal(number);
}

void Attempt::signal_groups(int number) {
  for (const auto& process : processes_) process->signal_group(number);
}

std::optional<double> Attempt::detected_seconds() const {
  if (!noted_at_ || !shown_at_) return std::nullopt;
  return std::chrono::duration<double>(*shown_at_ - *noted_at_).count();
}

std::string Attempt::errors() const {
  std::string text;
  for (std::size_t i = 0; i < processes_.size(); ++i) text += read_file(error_file(folder_, i));
  return text;
}

std::uintmax_t Attempt::written() const {
  std::uintmax_t bytes = 0;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    std::error_code error;
    const auto size = std::filesystem::file_size(error_file(folder_, i), error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace phalanx::chaos
