// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/planned_fault.h"

#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/new_file.h"
#include "framework/base/text.h"
#include "framework/base/wall_clock.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

// Kinds that the training set causes, kinds in which every rank has a part, and kinds that flip a bit.
const std::set<std::string> kLoaderKinds{"exception_in_loader", "loader_hangs", "loader_blocks"};
const std::set<std::string> kKindsOfAllRanks{"skip_collective", "other_order"};
constexpr std::array<std::string_view, 6> kFlips{"flip_parameter", "flip_optimizer", "flip_buffer",
                                                 "flip_gradient",  "flip_message",   "flip_checkpoint"};
constexpr std::int64_t kSlowSteps = 10;
constexpr double kNewcomerPatience = 20;  // seconds for which ranks wait for newcomers

// The point of a run at which a fault happens.
struct FaultPoint {
  const PlannedFault& fault;
  Communicator& world;
  State& state;
  std::optional<Clock::time_point>& before;  // end of the same fault in the step before, of faults that last
};

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Computes in vain for nine times as long as the rank has taken since the step before.
void take_ten_times_as_long(const FaultPoint& point) {
  const auto now = Clock::now();
  if (point.before) {
    const auto end = now + 9 * (now - *point.before);
    while (Clock::now() < end) continue;
  }
  point.before = Clock::now();
}

// Returns the number of steps in which a fault happens.
std::int64_t steps_of(const PlannedFault& fault) {
  if (fault.kind == "tenth_speed") return std::numeric_limits<std::int64_t>::max();
  return fault.kind == "slow" ? kSlowSteps : 1;
}

// Ends this process in the calling thread, so that a stack trace shows where the fault was planned.
[[noreturn]] void send_to_itself(int signal) {
  ::raise(signal);
  throw std::logic_error("signal " + std::to_string(signal) + " did not end the process");
}

// Complex numbers are an input of no model here.
void spoil_input(State& state) {
  auto& inputs = state.batch.inputs;
  if (inputs.empty()) throw std::logic_error("a planned fault in the model needs a batch with inputs");
  inputs[0] = at::zeros(inputs[0].sizes(), inputs[0].options().dtype(at::kComplexDouble));
}

void wait_for_go(const PlannedFault& fault) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(fault.seconds);
  std::error_code none;
  while (!std::filesystem::exists(fault.note + ".go", none) && Clock::now() < deadline) sleep_for(0.001);
}

[[noreturn]] void hang() {
  for (;;) sleep_for(1);
}

void reduce(Communicator& world, std::int64_t elements) {
  world.all_reduce(at::zeros({elements}, at::kDouble), Reduction::kMax).wait();
}

void reduce_in_own_order(const FaultPoint& point) {
  const bool swapped = point.world.rank() == point.fault.rank;
  reduce(point.world, swapped ? 9 : 5);
  reduce(point.world, swapped ? 5 : 9);
}

void wait_for_lost_message(Communicator& world) {
  constexpr int kTag = 77;
  world.recv(at::zeros({3}, at::kDouble), (world.rank() + 1) % world.size(), kTag).wait();
}

[[noreturn]] void write_to_full_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::logic_error("a planned fault cannot make a pipe");
  const std::string much(1 << 20, 'x');
  while (::write(ends[1], much.data(), much.size()) > 0) {
  }
  throw std::logic_error("a pipe that nobody reads took everything");
}

void lock_in_opposite_orders() {
  std::mutex one, two;
  std::barrier both_have_one(2);
  const auto lock = [&](std::mutex& first, std::mutex& second) {
    const std::lock_guard outer(first);
    both_have_one.arrive_and_wait();
    const std::lock_guard inner(second);
  };
  const std::jthread other([&] { lock(two, one); });
  lock(one, two);
}

using Cause = std::function<void(const FaultPoint&)>;

// The kinds that a hook causes.
const std::map<std::string, Cause>& causes() {
  static const std::map<std::string, Cause> all{
      {"kill", [](const FaultPoint&) { send_to_itself(SIGKILL); }},
      {"crash", [](const FaultPoint&) { send_to_itself(SIGSEGV); }},
      {"stop", [](const FaultPoint&) { ::kill(::getpid(), SIGSTOP); }},
      {"leave", [](const FaultPoint&) { ::_exit(0); }},
      {"exception_in_hook", [](const FaultPoint&) { throw std::runtime_error("planned fault: exception in a hook"); }},
      {"exception_in_model", [](const FaultPoint& point) { spoil_input(point.state); }},
      {"bad_alloc", [](const FaultPoint&) { throw std::bad_alloc(); }},
      {"mismatch",
       [](const FaultPoint& point) { point.world.all_reduce(at::zeros({7}, at::kDouble), Reduction::kMax).wait(); }},
      {"skip_collective",
       [](const FaultPoint& point) {
         if (point.world.rank() != point.fault.rank) reduce(point.world, 7);
       }},
      {"other_order", reduce_in_own_order},
      {"lost_message", [](const FaultPoint& point) { wait_for_lost_message(point.world); }},
      {"full_pipe", [](const FaultPoint&) { write_to_full_pipe(); }},
      {"deadlock", [](const FaultPoint&) { lock_in_opposite_orders(); }},
      {"slow", [](const FaultPoint& point) { sleep_for(point.fault.seconds); }},
      {"tenth_speed", take_ten_times_as_long},
      {"clock_jump",
       [](const FaultPoint& point) {
         shift_wall_clock(std::chrono::seconds(static_cast<std::int64_t>(point.fault.seconds)));
       }},
      {"pause", [](const FaultPoint& point) { wait_for_go(point.fault); }},
  };
  return all;
}

// An exception of the model comes from a batch, which can only be changed before the step.
Event event_of(const PlannedFault& fault) { return fault.kind == "exception_in_model" ? Event::kSample : fault.event; }

/// A dataset that fails when it is asked for the batch of a given number.
class FailingDataset final : public Dataset {
 public:
  FailingDataset(std::shared_ptr<const Dataset> dataset, PlannedFault fault)
      : dataset_(std::move(dataset)), fault_(std::move(fault)) {}

  std::int64_t size() const override { return dataset_->size(); }
  const SampleSpec& spec() const override { return dataset_->spec(); }
  bool samples_overlap() const override { return dataset_->samples_overlap(); }
  std::int64_t label(std::int64_t index) const override { return dataset_->label(index); }
  std::int64_t length(std::int64_t index) const override { return dataset_->length(index); }
  bool varies() const override { return dataset_->varies(); }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    if (++gathered_ == fault_.step && note_planned_fault(fault_)) fail();
    dataset_->gather(indices, seed, batch);
  }

 private:
  void fail() const {
    if (fault_.kind == "loader_hangs") hang();
    if (fault_.kind == "loader_blocks") {
      const std::string path = fault_.note + ".fifo";
      ::mkfifo(path.c_str(), 0600);
      const Descriptor never(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    throw DataError("planned fault: batch " + std::to_string(fault_.step) + " cannot be read");
  }

  std::shared_ptr<const Dataset> dataset_;
  PlannedFault fault_;
  mutable std::atomic<std::int64_t> gathered_{0};
};

void require_one_of(const std::vector<std::string>& names, const std::string& name, const JsonValue& place) {
  if (std::ranges::find(names, name) != names.end()) return;
  place.refuse("\"" + name + "\" is not one of " + join(names, ", "));
}

PlannedFault parse_planned_fault(const std::string& text) {
  const JsonValue json = parse_json(text, kPlannedFault);
  PlannedFault fault{.kind = json.get<std::string>("kind"),
                     .rank = json.get<int>("rank"),
                     .step = json.get<std::int64_t>("step"),
                     .event = event_from_name(json.get_or<std::string>("event", "on_update")),
                     .seconds = json.get_or<double>("seconds", 0),
                     .times = json.get_or<std::int64_t>("times", 1),
                     .note = json.get<std::string>("note"),
                     .newcomer = json.get_or<std::string>("newcomer", ""),
                     .awaits_newcomers = json.get_or<std::int64_t>("awaits_newcomers", 0)};
  require_one_of(planned_fault_kinds(), fault.kind, json.at("kind"));
  if (!fault.newcomer.empty()) require_one_of(newcomer_points(), fault.newcomer, json.at("newcomer"));
  return fault;
}

}  // namespace

std::vector<std::string> planned_fault_kinds() {
  std::vector<std::string> kinds(kLoaderKinds.begin(), kLoaderKinds.end());
  kinds.insert(kinds.end(), kFlips.begin(), kFlips.end());
  for (const auto& [kind, cause] : causes()) kinds.push_back(kind);
  std::ranges::sort(kinds);
  return kinds;
}

std::string to_text(const PlannedFault& fault) {
  return nlohmann::ordered_json{{"kind", fault.kind},
                                {"rank", fault.rank},
                                {"step", fault.step},
                                {"event", std::string(to_string(fault.event))},
                                {"seconds", fault.seconds},
                                {"times", fault.times},
                                {"note", fault.note},
                                {"newcomer", fault.newcomer},
                                {"awaits_newcomers", fault.awaits_newcomers}}
      .dump();
}

std::optional<PlannedFault> planned_fault() {
  const auto text = environment(kPlannedFault);
  if (!text || text->empty()) return std::nullopt;
  try {
    return parse_planned_fault(*text);
  } catch (const DataError& error) {
    throw ConfigError(std::string("environment: ") + error.what());
  }
}

bool flips_bit(const PlannedFault& fault) { return std::ranges::find(kFlips, fault.kind) != kFlips.end(); }

bool note_planned_fault(const PlannedFault& fault, std::int64_t repetition) {
  return create_new_file(repetition == 0 ? fault.note : fault.note + "." + std::to_string(repetition)).valid();
}

// A hook counts the steps that are complete; until kUpdate, the current one is not.
std::int64_t number_of_step(const State& state, Event event) { return state.step + (event == Event::kUpdate ? 0 : 1); }

const std::vector<std::string>& newcomer_points() {
  static const std::vector<std::string> points{"loads", "waits", "trains"};
  return points;
}

void end_newcomer(const PlannedFault& fault, const std::string& point) {
  if (fault.newcomer == point && note_planned_fault(fault, 1)) send_to_itself(SIGKILL);
}

void await_newcomers(const PlannedFault& fault, const State& state, const std::function<bool()>& present) {
  if (fault.awaits_newcomers == 0 || number_of_step(state, Event::kUpdate) < fault.awaits_newcomers) return;
  const auto deadline = Clock::now() + std::chrono::duration<double>(kNewcomerPatience);
  while (!present() && Clock::now() < deadline) sleep_for(0.002);
}

std::optional<PlannedHook> planned_hook(const PlannedFault& fault, const CommunicatorPtr& world) {
  const bool takes_part = fault.rank == world->rank() || kKindsOfAllRanks.contains(fault.kind);
  if (!takes_part || kLoaderKinds.contains(fault.kind) || flips_bit(fault)) return std::nullopt;
  const Event event = event_of(fault);
  const std::int64_t steps = steps_of(fault);
  return PlannedHook{event, [fault, world, event, steps, active = false,
                             before = std::optional<Clock::time_point>()](State& state) mutable {
                       const std::int64_t since = number_of_step(state, event) - fault.step;
                       // Only the rank that is named leaves the note; the others have no way to know of it.
                       if (since == 0) active = world->rank() != fault.rank || note_planned_fault(fault);
                       if (active && since >= 0 && since < steps)
                         causes().at(fault.kind)({fault, *world, state, before});
                     }};
}

Splits with_planned_fault(const PlannedFault& fault, int rank, Splits splits) {
  if (!kLoaderKinds.contains(fault.kind) || fault.rank != rank) return splits;
  splits.train = std::make_shared<FailingDataset>(splits.train, fault);
  return splits;
}

}  // namespace phalanx
