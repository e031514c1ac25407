// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "engine/checkpoint/choose.h"
#include "engine/checkpoint/numbers_part.h"
#include "engine/checkpoint/provenance.h"
#include "engine/checkpoint/random_part.h"
#include "engine/checkpoint/restore.h"
#include "engine/checkpoint/strategy_part.h"
#include "framework/base/config/config.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/state_dict.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"
#include "framework/kernels/kernels.h"
#include "framework/observe/metrics/metrics_log.h"
#include "framework/parallel/random_state.h"
#include "models/model.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

// Returns a section as one line, without the folders of files.
std::string in_one_line(const std::string& key, const std::string& yaml) {
  std::istringstream lines(yaml);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line == key + ":" || line.compare(begin, 5, "root:") == 0) continue;
    text += (text.empty() ? "" : ", ") + line.substr(begin);
  }
  return text;
}

// Describes the samples.
std::string describe(const Datasets::Choice& dataset) {
  return in_one_line("dataset", config::dump_as("dataset", dataset));
}

// Describes the order of the samples.
std::string order_of(const LoaderConfig& loader) {
  std::string text = loader.shuffle ? "true" : "false";
  if (loader.sampler.selected() != "auto") {
    text += ", sampler " + in_one_line("sampler", config::dump_as("sampler", loader.sampler));
  }
  if (loader.last_batch != "smaller") text += ", last_batch: " + loader.last_batch;
  return text;
}

CheckpointPart schedule_part(Schedule& schedule) {
  return numbers_part(
      "schedule", [&schedule] { return schedule.state(); },
      [&schedule](const std::vector<double>& state) { schedule.load(state); });
}

// Each rank saves its own running statistics, since ranks see different batches. The same number of ranks restores
// them; another number keeps the means, which were restored with the weights.
CheckpointPart buffers_part(Model& model, int rank, int ranks) {
  return {.name = "buffers",
          .save = [&model] { return model.named_buffers(); },
          .load =
              [&model, rank, ranks](const SavedRanks& saved) {
                if (saved.ranks != ranks) return;
                const at::NoGradGuard no_grad;
                const NamedTensors own = saved.of(rank);
                const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
                for (auto& [name, buffer] : model.named_buffers()) {
                  const auto found = by_name.find(name);  // absent if that rank had other layers
                  if (found != by_name.end()) buffer.copy_(found->second);
                }
              }};
}

CheckpointPart flag_part(const std::string& name, bool& flag) {
  return {.name = name,
          .save = [&flag] { return NamedTensors{{"flag", at::full({1}, flag ? 1 : 0, at::kLong)}}; },
          .load = [&flag](const SavedRanks& saved) { flag = saved.of(0).at(0).second.item<std::int64_t>() != 0; },
          .every_rank = false};
}

// Removes the results of the resumed run, which are out of date.
void remove_results(const RunFolder& folder) {
  for (const auto& file : {folder.summary(), folder.report()}) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) throw DataError(file + " cannot be removed: " + error.message());
  }
}

bool lies_in(const std::string& checkpoint, const std::string& folder) {
  std::error_code none;
  return std::filesystem::equivalent(std::filesystem::path(checkpoint).parent_path(), folder, none);
}

}  // namespace

void Checkpointing::check_metric(const Metrics& measured) const {
  const auto& config = run_.config.checkpoint;
  if (config.keep_best == 0 || std::ranges::count(measured, config.best_by, &Metrics::value_type::first) > 0) return;
  throw ConfigError("checkpoint.best_by is \"" + config.best_by +
                    "\", which none of evaluate.meters measures; add the meter, or name another metric");
}

void Checkpointing::attach(Engine& engine) {
  ExperimentConfig all = run_.config;
  config_text_ = config::dump(all);
  engine.on(Event::kStart, HookPhase::kCheckpoint, [this, &engine](State& state) { start(engine.slices(), state); });
  engine.on(Event::kUpdate, HookPhase::kCheckpoint, [this](State& state) { update(state); });
  engine.on(Event::kEndEpoch, HookPhase::kCheckpoint, [this](State& state) { end_epoch(state); });
  engine.on(Event::kEnd, HookPhase::kCheckpoint, [this](State&) { end(); });
}

void Checkpointing::follow(Engine& engine) {
  if (run_.recovery == nullptr || goes_back()) return;
  engine.on(Event::kSample, HookPhase::kFirst, [this](State& state) { begin_step(state); });
  engine.on(Event::kUpdate, HookPhase::kFirst, [this](State& state) {
    in_step_ = false;
    position_ = position_of(state);
    stage_ = StepStage::kUpdated;
  });
  engine.on(Event::kUpdate, HookPhase::kAdapt, [this](State&) { stage_ = StepStage::kEvaluated; });
  engine.on(Event::kUpdate, HookPhase::kLast, [this](State&) { stage_ = StepStage::kDone; });
  engine.on(Event::kEndEpoch, HookPhase::kLast, [this](State& state) {
    const bool ends = run_.length.ends_epoch(state.epoch, state.cursor) || state.step >= run_.length.steps;
    if (ends) position_ = {state.step, state.epoch + 1, 0};
  });
}

// Keeps what the step changes before the update, apart from gradients. The update itself does not communicate once it
// has changed anything, since every rank updates everything, so a loss does not interrupt it.
void Checkpointing::begin_step(const State& state) {
  position_ = position_of(state);
  stage_ = StepStage::kDone;
  random_before_step_ = random_state(run_.replica.part->device);
  const auto buffers = run_.replica.model().buffers();
  buffers_before_step_.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    auto& kept = buffers_before_step_[i];
    kept.defined() ? void(kept.copy_(buffers[i])) : void(kept = buffers[i].detach().clone());
  }
  in_step_ = true;
}

void Checkpointing::carry_state() {
  if (run_.recovery == nullptr || !started_) return;
  if (goes_back()) {
    if (copies_) copies_->keep_what_arrives();
    return;
  }
  if (in_step_) {
    const at::NoGradGuard no_grad;
    const auto buffers = run_.replica.model().buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(buffers_before_step_[i]);
    set_random_state(random_before_step_, run_.replica.part->device);
  }
  state_.buffers = run_.replica.model().named_buffers();
  LeftCentre centre;
  if (auto* const keeps = run_.replica.strategy().extensions().keeps_centre) centre = keeps->leave();
  run_.recovery->carried = carry(state_, manifest_at(position_), stage_);
  run_.recovery->carried->centre = std::move(centre);
}

void Checkpointing::prepare_for_newcomers(const State& state) {
  settle();
  if (!goes_back()) return;
  if (!copies_) make_copies();
  copy(position_of(state));
  copies_->arrive();
}

RunState Checkpointing::run_state(const std::vector<Slice>& slices) {
  const Replica& replica = run_.replica;
  const PartitionedModel& part = *replica.part;
  const Mesh& mesh = part.mesh;
  RunState state{.parameters = &replica.flat->parameters,
                 .slices = slices,
                 .optimizer = &replica.optimizer(),
                 .buffers = replica.model().named_buffers(),
                 .frozen = frozen_parameters(replica.model()),
                 .parts = parts_,
                 .placements = part.placements,
                 .elsewhere = replica.elsewhere(),
                 .owns_buffers = mesh.replicas()->rank() == 0 && mesh.position(Axis::kTensor) == 0,
                 .owns_frozen = mesh.replicas()->rank() == 0,
                 .owns_frozen_parts = mesh.position(Axis::kData) == 0 && mesh.position(Axis::kContext) == 0,
                 .part = mesh.model()->rank(),
                 .values_in_slices = run_.config.strategy.traits().shards_values};
  state.parts.push_back(random_part(world().rank(), part.device));
  state.parts.push_back(buffers_part(replica.model(), world().rank(), world().size()));
  state.parts.push_back(schedule_part(run_.schedule));
  state.parts.push_back(strategy_part(replica.strategy(), world().rank(), part.placements, same_setup_));
  state.parts.push_back(flag_part("were_apart", replicas_differed_));
  return state;
}

Manifest::Strings Checkpointing::identity() const {
  Manifest::Strings words{{"seed", std::to_string(run_.config.seed)},
                          {"dataset", describe(run_.config.dataset)},
                          {"number of training samples", std::to_string(run_.length.samples)},
                          {"loader.shuffle", order_of(run_.config.loader)},
                          {"train.global_batch_size", std::to_string(run_.config.train.global_batch_size)}};
  if (!run_.fitted.empty()) {
    words.emplace_back("CRC-32C of dataset.json", std::to_string(crc32c(run_.fitted.data(), run_.fitted.size())));
  }
  return words;
}

void Checkpointing::start(const std::vector<Slice>& slices, State& state) {
  const auto& config = run_.config.checkpoint;
  const CheckpointFolder folder(run_.folder.checkpoints());
  state_ = run_state(slices);
  checkpointer_.emplace(folder,
                        Retention{.keep_last = config.keep_last,
                                  .keep_best = config.keep_best,
                                  .best_by = config.best_by,
                                  .highest = config.best_is == "highest"},
                        run_.replica.mesh().control(), state_,
                        Patience{.wait = Seconds(config.max_wait),
                                 .retry = Seconds(config.retry),
                                 .hang = Seconds(run_.config.framework.timeout),
                                 .deadline = Seconds(config.deadline)},
                        run_.config.framework.checksums);
  const bool rebuilt = run_.recovery != nullptr && run_.recovery->rebuilt;
  const bool from_memory = rebuilt && (!goes_back() || go_back_to_copy(state));
  const std::string resume = from_memory ? "none" : rebuilt ? "auto" : config.resume;
  const Choice choice = choose(resume, folder, identity(), state_, world());
  if (rebuilt && !from_memory) require(choice.checkpoint);
  const bool first = world().rank() == 0;
  if (first) {
    folder.remove_temporary();
    remove_results(run_.folder);
  }
  for (const auto& reason : choice.refused) {
    log_warning() << "a checkpoint is skipped: " << reason;
    standard_error().write("A checkpoint is skipped: " + reason + "\n");
  }
  if (choice.checkpoint) resume_from(*choice.checkpoint, state);
  if (rebuilt && !goes_back()) go_on(state);
  if (first && !rebuilt && !choice.checkpoint && config.resume == "auto") cut_metrics(run_.folder.metrics(), 0);
  // No rank may write before rank 0 has cleaned up, or change memory that ranks share before all ranks have filled it.
  world().barrier().wait();
  position_ = position_of(state);
  started_ = true;
  if (goes_back()) begin_copies(state);
}

// Restores what the ranks that are left have carried.
void Checkpointing::go_on(State& state) {
  const CarriedState& own = run_.recovery->carried.value();
  auto* const keeps = run_.replica.strategy().extensions().keeps_centre;
  const CarriedPosition carried =
      keeps != nullptr ? restore_replicas(own, state_, world()) : restore_carried(own, state_, world());
  if (keeps != nullptr) keeps->succeed(own.centre.remove);
  stage_ = carried.stage;
  if (stage_ == StepStage::kUpdated) state.unfinished = HookPhase::kEvaluate;
  if (stage_ == StepStage::kEvaluated) state.unfinished = HookPhase::kAdapt;
  set_position(carried.manifest, carried.manifest.position.within_epoch(), state);
  log_info() << "goes on after step " << state.step << " on ranks: " << world().size();
}

// Restores what the ranks that are left have of the newest copy. Returns false if it is not complete, on all ranks.
bool Checkpointing::go_back_to_copy(State& state) {
  Recovery& recovery = *run_.recovery;
  const Copy* const copy = restore_copy(recovery.copies, state_, world());
  if (copy == nullptr) return false;
  const Manifest& manifest = copy->manifest;
  set_position(manifest, manifest.position.within_epoch() && manifest.tested_at != manifest.position.step, state);
  if (recovery.noticed) {
    const std::chrono::duration<double> repeated = *recovery.noticed - copy->taken;
    recovery.add_repeated(repeated.count());
  }
  if (world().rank() == 0) CheckpointFolder(run_.folder.checkpoints()).set_aside_after(state.step);
  log_info() << "goes back to the copy of step " << state.step << " on ranks: " << world().size();
  return true;
}

// Ends the run if there is no checkpoint to go back to either.
void Checkpointing::require(const std::optional<Checkpoint>& checkpoint) const {
  if (checkpoint) {
    log_warning() << "copies in memory were lost with the ranks that had them, so the run goes back to a checkpoint";
    count_repeated(*checkpoint);
    return;
  }
  world().barrier().wait();  // so that no rank takes the end of another one for the cause
  throw Error(
      "ranks were lost together with the copies of their state, which their neighbours had in memory "
      "(faults.copies_every), and there is no checkpoint to go back to; set checkpoint.every_steps");
}

// Counts the time since a checkpoint was written. An earlier run may have written it.
void Checkpointing::count_repeated(const Checkpoint& checkpoint) const {
  using Duration = std::chrono::duration<double>;
  Recovery& recovery = *run_.recovery;
  if (!recovery.noticed) return;
  const Duration trained = *recovery.noticed - recovery.began;
  const Duration since_noticed = std::chrono::steady_clock::now() - *recovery.noticed;
  const auto age = age_of(checkpoint);
  recovery.add_repeated(age ? std::min(*age - since_noticed.count(), trained.count()) : trained.count());
}

void Checkpointing::make_copies() {
  const MeshShape& shape = run_.replica.mesh().shape();
  copies_.emplace(run_.replica.mesh().control(), state_, run_.recovery->copies,
                  static_cast<int>(shape.product() / shape[Axis::kData]));
}

// From the first step on, there is a copy to go back to, unless the only replica would be lost with any rank.
void Checkpointing::begin_copies(const State& state) {
  run_.recovery->carried.reset();  // of a rank that had nothing until now
  if (run_.replica.mesh().shape()[Axis::kData] == 1) return run_.recovery->copies.clear();
  make_copies();
  copy(position_of(state));
  copies_->arrive();
  world().barrier().wait();
}

void Checkpointing::copy(const Position& position) {
  state_.buffers = run_.replica.shared_buffers();
  copies_->take(manifest_at(position), !replicas_differed_);
}

// Batches of other sizes than the configured one are counted by their samples, since the ranks that continue may have
// batches of another size.
Position Checkpointing::position_of(const State& state) const {
  const RunLength& length = run_.length;
  Position position{.step = state.step, .epoch = state.epoch, .batch = state.cursor};
  if (length.batch != length.configured.batch || state.epoch == length.continued.epoch) {
    position.samples = length.samples_before(state.epoch, state.cursor);
  }
  return position;
}

void Checkpointing::set_position(const Manifest& manifest, bool end_to_come, State& state) {
  const Position& position = manifest.position;
  RunLength& length = run_.length;
  state.step = position.step;
  state.epoch = position.epoch;
  state.cursor = position.batch;
  const auto samples = position.samples >= 0 ? position.samples : position.batch * length.configured.batch;
  if (samples != length.samples_before(state.epoch, state.cursor)) {
    state.cursor = 0;
    length.continued = {.epoch = state.epoch, .batches = run_.loader.skip(state.epoch, samples), .skipped = samples};
  }
  length.count_steps(state.step, state.epoch, state.cursor);
  run_.last_evaluation = {manifest.metrics, manifest.tested_at};
  const bool over = state.step >= length.steps;
  if (over && end_to_come) state.cursor = length.batches_of(state.epoch);
  state.stop = over && !end_to_come;
}

void Checkpointing::resume_from(const Checkpoint& checkpoint, State& state) {
  const auto& manifest = checkpoint.manifest;
  // Replicas that have diverged can only be restored by the same number of ranks with the same strategy.
  same_setup_ = manifest.ranks == world().size() && manifest.strategy == settings_;
  restore(checkpoint, state_, same_setup_ ? std::optional(world().rank()) : std::nullopt);
  replicas_differed_ &= same_setup_;
  set_position(manifest, manifest.position.within_epoch() && manifest.tested_at != manifest.position.step, state);
  log_info() << "resumes after step " << state.step << ", from " << checkpoint.path;
  if (world().rank() != 0) return;
  if (lies_in(checkpoint.path, run_.folder.checkpoints())) {
    CheckpointFolder(run_.folder.checkpoints()).set_aside_after(state.step);
  }
  warn_of_other_kernels(manifest);
  if (!run_.config.watch.progress) return;
  standard_output().write(format_text("Resumes after step %" PRId64 ", from ", state.step) + checkpoint.path + "\n");
}

// Warns if other kernels compute now: the run resumes, but its bits differ from a run without interruption.
void Checkpointing::warn_of_other_kernels(const Manifest& manifest) const {
  const auto before = std::ranges::find(manifest.provenance, "kernels", &Manifest::Strings::value_type::first);
  const std::string now = kernels::kernels_in_use();
  if (before == manifest.provenance.end() || before->second == now) return;
  const std::string text = "The checkpoint was made with the kernels \"" + before->second +
                           "\", and this run computes with \"" + now + "\": results differ in their last bits";
  log_warning() << text;
  standard_error().write(text + ".\n");
}

bool Checkpointing::regular() const {
  const auto& config = run_.config.checkpoint;
  return config.every_steps > 0 || config.every_epochs > 0 || config.keep_best > 0;
}

// Returns true if the ranks' optimizers see different gradients. Their state then differs even if the replicas are
// averaged after every step.
bool Checkpointing::updates_with_own_gradients() const {
  const auto traits = run_.config.strategy.traits();
  return run_.replica.mesh().replicas()->size() > 1 && !traits.reduces_gradients && !traits.servers_update;
}

// Returns true if the run goes on without lost ranks, and has to go back to a copy for that.
bool Checkpointing::goes_back() const { return run_.recovery != nullptr && !run_.replica.goes_on_from_own_state(); }

// A copy follows each checkpoint (`saved`), so that the run does not go back further once the copy has arrived.
bool Checkpointing::copy_due(std::int64_t step, bool saved) const {
  const auto every = run_.config.faults.copies_every;
  return copies_.has_value() && every > 0 && (saved || step % every == 0);
}

bool Checkpointing::due_at_step(std::int64_t step) const {
  const auto every = run_.config.checkpoint.every_steps;
  return every > 0 && step % every == 0;
}

bool Checkpointing::due_by_test(std::int64_t step) const {
  return run_.config.checkpoint.keep_best > 0 && run_.last_evaluation.step == step;
}

void Checkpointing::update(const State& state) {
  replicas_differed_ |= !run_.replica.strategy().replicas_equal() || updates_with_own_gradients();
  checkpointer_->advance();
  show_notice();
  const bool end_of_epoch =
      run_.length.ends_epoch(state.epoch, state.cursor) || state.step >= run_.length.steps || state.stop;
  const bool due = !end_of_epoch && (due_at_step(state.step) || due_by_test(state.step));
  if (run_.vote.stopped() || due) save(position_of(state));
  if (run_.vote.stopped() || end_of_epoch) return;
  if (copy_due(state.step, due)) copy(position_of(state));
}

void Checkpointing::end_epoch(State& state) {
  state.stop |= state.step >= run_.length.steps;  // true if a run that was stopped after its last step resumes
  if (run_.vote.stopped()) return;
  const auto& config = run_.config.checkpoint;
  const bool whole = run_.length.ends_epoch(state.epoch, state.cursor);
  const bool epoch_due = whole && config.every_epochs > 0 && (state.epoch + 1) % config.every_epochs == 0;
  const bool end = regular() && state.stop;
  const Position next = whole ? Position{state.step, state.epoch + 1, 0} : position_of(state);
  const bool due = epoch_due || end || due_by_test(state.step) || due_at_step(state.step);
  if (due) save(next);
  if (!state.stop && copy_due(state.step, due)) copy(next);
}

void Checkpointing::save(const Position& position) {
  check_numbers();
  state_.buffers = run_.replica.shared_buffers();
  Manifest manifest = manifest_at(position);
  manifest.identity = identity();
  manifest.strategy = settings_;
  manifest.config = config_text_;
  manifest.provenance = provenance(config_text_);
  checkpointer_->save(std::move(manifest), !replicas_differed_);
  // A recording that keeps the last steps begins at complete checkpoints.
  if (run_.config.framework.record_last > 0) checkpointer_->settle();
}

// Returns what a position and the numbers that belong to it need in a manifest.
Manifest Checkpointing::manifest_at(const Position& position) const {
  return {.position = position,
          .updates = run_.replica.optimizer().updates(),
          .metrics = run_.last_evaluation.metrics,
          .tested_at = run_.last_evaluation.step};
}

// Ends the run if its numbers are not finite, after the checkpoints before, which are good, are complete.
void Checkpointing::check_numbers() {
  try {
    run_.nan_guard.check_now();
  } catch (const CommError&) {
    throw;
  } catch (const Error&) {
    checkpointer_->settle();
    throw;
  }
}

void Checkpointing::end() {
  if (copies_) copies_->arrive();
  checkpointer_->settle();
  show_notice();
}

void Checkpointing::show_notice() {
  const std::string notice = checkpointer_->take_notice();
  if (notice.empty() || world().rank() != 0) return;
  log_warning() << notice;
  standard_error().write(notice + "\n");
}

std::string Checkpointing::why_unsaved() const {
  if (!run_.vote.stopped() || checkpointer_->failure().empty()) return "";
  return "the run was stopped, but its checkpoint could not be written: " + checkpointer_->failure();
}

void Checkpointing::check() const {
  if (const auto why = why_unsaved(); !why.empty()) throw DataError(why);
}

}  // namespace phalanx
