// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/act.h"

#include <signal.h>

#include <map>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/chaos/leftovers.h"

namespace phalanx::chaos {
namespace {

constexpr double kStopped = 0.5, kFull = 0.7, kBetweenInterrupts = 0.3, kDown = 0.2, kUp = 0.3;  // seconds
constexpr int kFlaps = 3;
constexpr const char* kInterface = "eth0";     // of virtual hosts
constexpr const char* kOnePercent = "10mbit";  // of the 1 Gbit/s of Hosts

// Runs a program on the second host.
void on_host(const Stage& stage, const std::vector<std::string>& command) {
  const auto done = regress::capture(stage.hosts->command(1, {}, command));
  if (done.status != 0) throw Error(join(command, " ") + " failed: " + done.errors);
}

void set_link(const Stage& stage, const char* state) { on_host(stage, {"ip", "link", "set", kInterface, state}); }

void stop_and_continue(const Stage& stage) {
  stage.attempt.wait(kStopped);
  for (const pid_t process : processes_with(stage.run_folder)) ::kill(process, SIGCONT);
}

void kill_launcher(const Stage& stage) { stage.attempt.signal(SIGKILL); }

void fill_disk(const Stage& stage) {
  stage.disk->fill();
  stage.go();
  stage.attempt.wait(kFull);
  stage.disk->free();
}

void terminate(const Stage& stage) {
  stage.attempt.signal(SIGTERM);
  stage.go();
}

void interrupt_twice(const Stage& stage) {
  stage.attempt.signal_groups(SIGINT);
  stage.attempt.wait(kBetweenInterrupts);
  stage.attempt.signal_groups(SIGINT);
  stage.go();
}

void cut(const Stage& stage) {
  set_link(stage, "down");
  stage.go();
}

void flap(const Stage& stage) {
  stage.go();
  for (int i = 0; i < kFlaps; ++i) {
    set_link(stage, "down");
    stage.attempt.wait(kDown);
    set_link(stage, "up");
    stage.attempt.wait(kUp);
  }
}

void slow_down(const Stage& stage) {
  on_host(stage, {"tc", "qdisc", "replace", "dev", kInterface, "root", "tbf", "rate", kOnePercent, "burst", "16kb",
                  "limit", "4mb"});
  stage.go();
}

using Act = void (*)(const Stage&);

const std::map<std::string, Act>& acts() {
  static const std::map<std::string, Act> all{{"stop_and_continue", stop_and_continue},
                                              {"kill_launcher", kill_launcher},
                                              {"disk_full", fill_disk},
                                              {"sigterm_in_checkpoint", terminate},
                                              {"double_ctrl_c", interrupt_twice},
                                              {"network_cut", cut},
                                              {"network_flapping", flap},
                                              {"network_slow", slow_down}};
  return all;
}

}  // namespace

void act(const std::string& fault, const Stage& stage) { acts().at(fault)(stage); }

}  // namespace phalanx::chaos
