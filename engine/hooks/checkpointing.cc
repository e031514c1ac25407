// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/checkpointing.h"

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <string>

#include "engine/checkpoint/choose.h"
#include "engine/checkpoint/provenance.h"
#include "engine/checkpoint/restore.h"
#include "engine/hooks/checkpointed_state.h"
#include "framework/base/config/config.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/kernels/kernels.h"
#include "framework/observe/metrics/metrics_log.h"

namespace phalanx {
namespace {

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

// Warns if other kernels compute now: the run resumes, but its bits differ from a run without interruption.
void warn_of_other_kernels(const Manifest& manifest) {
  const auto before = std::ranges::find(manifest.provenance, "kernels", &Manifest::Strings::value_type::first);
  const std::string now = kernels::kernels_in_use();
  if (before == manifest.provenance.end() || before->second == now) return;
  const std::string text = "The checkpoint was made with the kernels \"" + before->second +
                           "\", and this run computes with \"" + now + "\": results differ in their last bits";
  log_warning() << text;
  standard_error().write(text + ".\n");
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

void Checkpointing::start(const std::vector<Slice>& slices, State& state) {
  const auto& config = run_.config.checkpoint;
  const CheckpointFolder folder(run_.folder.checkpoints());
  state_ = checkpointed_state(run_, slices, parts_, same_setup_, replicas_differed_);
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
  const bool rebuilt = continuation_.rebuilt();
  const bool from_memory = rebuilt && (!run_.goes_back() || continuation_.go_back_to_copy(state));
  const std::string resume = from_memory ? "none" : rebuilt ? "auto" : config.resume;
  const Choice choice = choose(resume, folder, run_.identity(), state_, world());
  if (rebuilt && !from_memory) continuation_.require(choice.checkpoint);
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
  if (rebuilt && !run_.goes_back()) continuation_.go_on(state);
  if (first && !rebuilt && !choice.checkpoint && config.resume == "auto") cut_metrics(run_.folder.metrics(), 0);
  // No rank may write before rank 0 has cleaned up, or change memory that ranks share before all ranks have filled it.
  world().barrier().wait();
  continuation_.begin(state);
}

void Checkpointing::resume_from(const Checkpoint& checkpoint, State& state) {
  const auto& manifest = checkpoint.manifest;
  // Replicas that have diverged can only be restored by the same number of ranks with the same strategy.
  same_setup_ = manifest.ranks == world().size() && manifest.strategy == settings_;
  restore(checkpoint, state_, same_setup_ ? std::optional(world().rank()) : std::nullopt);
  replicas_differed_ &= same_setup_;
  run_.set_position(manifest, manifest.position.within_epoch() && manifest.tested_at != manifest.position.step, state);
  log_info() << "resumes after step " << state.step << ", from " << checkpoint.path;
  if (world().rank() != 0) return;
  if (lies_in(checkpoint.path, run_.folder.checkpoints())) {
    CheckpointFolder(run_.folder.checkpoints()).set_aside_after(state.step);
  }
  warn_of_other_kernels(manifest);
  if (!run_.config.watch.progress) return;
  standard_output().write(format_text("Resumes after step %" PRId64 ", from ", state.step) + checkpoint.path + "\n");
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
  if (run_.vote.stopped() || due) save(run_.position_of(state));
  if (run_.vote.stopped() || end_of_epoch) return;
  continuation_.copy_if_due(state.step, due, run_.position_of(state));
}

void Checkpointing::end_epoch(State& state) {
  state.stop |= state.step >= run_.length.steps;  // true if a run that was stopped after its last step resumes
  if (run_.vote.stopped()) return;
  const auto& config = run_.config.checkpoint;
  const bool whole = run_.length.ends_epoch(state.epoch, state.cursor);
  const bool epoch_due = whole && config.every_epochs > 0 && (state.epoch + 1) % config.every_epochs == 0;
  const bool end = regular() && state.stop;
  const Position next = whole ? Position{state.step, state.epoch + 1, 0} : run_.position_of(state);
  const bool due = epoch_due || end || due_by_test(state.step) || due_at_step(state.step);
  if (due) save(next);
  if (!state.stop) continuation_.copy_if_due(state.step, due, next);
}

void Checkpointing::save(const Position& position) {
  check_numbers();
  state_.buffers = run_.replica.shared_buffers();
  Manifest manifest = run_.manifest_at(position);
  manifest.identity = run_.identity();
  manifest.strategy = settings_;
  manifest.config = config_text_;
  manifest.provenance = provenance(config_text_);
  checkpointer_->save(std::move(manifest), !replicas_differed_);
  // A recording that keeps the last steps begins at complete checkpoints.
  if (run_.config.framework.record_last > 0) checkpointer_->settle();
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
  continuation_.arrive();
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
