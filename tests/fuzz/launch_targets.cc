// SPDX-License-Identifier: Apache-2.0
// What the launcher, its agents, hosts that join, and ranks tell each other, through connections and in shared folders.
#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "launch/agents/agent.h"
#include "launch/agents/beats.h"
#include "launch/agents/join_protocol.h"
#include "launch/agents/join_relay.h"
#include "launch/agents/launcher_link.h"
#include "launch/agents/rank_notice.h"
#include "launch/failure/failure.h"
#include "launch/local/meeting_folder.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/temporary_folder.h"
#include "tests/fuzz/mutators.h"

namespace phalanx::fuzz {
namespace {

// The text by which a host asks to join, once it has proved that it knows the secret.
void read_join_request(std::string_view input) { to_claim(parse_join_request(input)); }

// The launcher's answer to a host that joins.
void read_join_answer(std::string_view input) {
  const auto length = length_of_answer(input.substr(0, kLengthDigits));
  const auto rest = input.substr(kLengthDigits);
  if (rest.size() != length) throw Error("the answer has another length");
  to_text(parse_join_answer(rest));
}

// The output of an agent and its ranks, which arrives in parts.
void read_agent_output(std::string_view input) {
  constexpr std::size_t kPart = 7;
  BeatReader reader;
  for (std::size_t begin = 0; begin < input.size(); begin += kPart) {
    for (const auto& line : reader.read(input.substr(begin, kPart)).lines) {
      if (!parse_rank_notice(line) && !parse_status(line)) throw Error("an agent says nothing like this");
    }
  }
}

void obey(const std::string& order) {
  for (const char* known : {kStopRanks, kEndRanks, kKillRanks}) {
    if (order == known) return;
  }
  const std::string start = std::string(kStartRank) + " ";
  if (!order.starts_with(start)) throw Error("the launcher orders nothing like this");
  to_text(parse_newcomer(order.substr(start.size())));
}

// The lines that an agent gets from its launcher.
void read_orders(std::string_view input) {
  constexpr int kRanks = 8;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("socketpair failed");
  const Descriptor near(pair[0]), far(pair[1]), nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Console nobody(nowhere.get());  // gets the beats
  LauncherLink link(near.get(), nobody, std::chrono::hours(1), kRanks);
  while (!input.empty()) {
    const ssize_t count = ::send(far.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
    for (const auto& order : link.take().orders) obey(order);
  }
}

// The notes of newcomers, and the invitations of ranks, in the meeting folder.
void read_newcomer(std::string_view input) { to_text(parse_newcomer(std::string(input))); }
void read_attempt(std::string_view input) { (void)parse_attempt(to_text(parse_attempt(std::string(input)))).numbers(); }

// A folder with one file, of which nothing is left behind.
class FolderWithFile {
 public:
  FolderWithFile(const std::string& name, std::string_view content) {
    std::ofstream(path() + "/" + name, std::ios::binary) << content;
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

// The file that a rank leaves in the log folder when it fails.
void read_failure(std::string_view input) {
  const FolderWithFile folder("rank3.failure", input);
  for (const auto& failure : read_failures(folder.path())) {
    if (failure.message.starts_with("Its failure report cannot be read")) throw Error(failure.message);
  }
}

// The note that a rank below mpirun leaves at the end of the run.
void read_end_of_run(std::string_view input) {
  const FolderWithFile folder("run.ended", input);
  if (!take_end_of_run(folder.path())) throw Error("there is no status");
}

const bool kLaunchAdded =
    add_target({"join_request", read_join_request, mutate_json}) && add_target({"join_answer", read_join_answer}) &&
    add_target({"agent_output", read_agent_output}) && add_target({"agent_orders", read_orders}) &&
    add_target({"newcomer", read_newcomer}) && add_target({"attempt", read_attempt}) &&
    add_target({"failure", read_failure, mutate_json}) && add_target({"end_of_run", read_end_of_run});

}  // namespace
}  // namespace phalanx::fuzz
