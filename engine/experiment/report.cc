// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/report.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/checkpoint/provenance.h"
#include "engine/watch/html/run_page.h"
#include "engine/watch/matrix_peak.h"
#include "engine/watch/metrics_log.h"
#include "engine/watch/prometheus.h"
#include "engine/watch/step_times_json.h"
#include "engine/watch/tensorboard.h"
#include "engine/watch/time_table.h"
#include "framework/base/config/config.h"
#include "framework/base/console.h"
#include "framework/base/device_memory.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/text.h"
#include "models/model.h"

namespace phalanx {
namespace {

constexpr const char* kMetersConfig = "config";

at::Tensor as_text(const std::vector<MeterConfig>& meters) {
  const std::string yaml = config::dump_as("meters", meters);
  at::Tensor letters = at::empty({static_cast<std::int64_t>(yaml.size())}, at::kByte);
  std::ranges::copy(yaml, letters.data_ptr<std::uint8_t>());
  return letters;
}

// Returns the meters that are shown at the end of an epoch: only the loss, because other meters may have a hundred
// readings.
std::vector<MeterConfig> meters_of_epochs(const WatchConfig& watch) {
  std::vector<MeterConfig> meters;
  for (const auto& config : watch.meters) {
    if (config.meter.selected() == "loss") meters.push_back(config);
  }
  return meters;
}

std::string in_words(const Readings& readings) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(readings.size(), 6); ++i) {
    words.push_back(format_text("%s %.4g", readings[i].first.c_str(), readings[i].second));
  }
  if (readings.size() > words.size()) words.push_back(format_text("%zu more", readings.size() - words.size()));
  return join(words, ", ");
}

}  // namespace

Report::Report(const ExperimentConfig& config, const ExperimentContext& context, Progress::Total total,
               StepClock& clock, const ParameterUpdate& update)
    : config_(config),
      context_(context),
      speaks_(context.world->rank() == 0),
      clock_(clock),
      update_(update),
      meters_(config.watch.meters),
      epoch_meters_(meters_of_epochs(config.watch)),
      steps_per_epoch_(total.steps_per_epoch),
      meters_config_(as_text(config.watch.meters)) {
  if (!speaks_) return;
  const auto& watch = config.watch;
  sinks_.push_back({std::make_unique<MetricsLog>(context.folder.metrics())});
  if (watch.tensorboard) {
    auto board = std::make_unique<TensorBoard>(context.folder.tensorboard());
    board_ = board.get();
    sinks_.push_back({std::move(board)});
  }
  if (watch.prometheus.port > 0) {
    sinks_.push_back({std::make_unique<PrometheusEndpoint>(watch.prometheus, config.name, context.world->size())});
  }
  if (watch.progress) {
    progress_ =
        std::make_unique<Progress>(standard_output(), context.terminal, total, context.terminal && wants_colors());
  }
}

void Report::tell_start(const Start& start) {
  if (!speaks_ || !config_.watch.progress) return;
  std::vector<std::string> samples{format_text("%" PRId64 " training", start.training_samples)};
  if (start.validation_samples > 0) samples.push_back(format_text("%" PRId64 " validation", start.validation_samples));
  if (start.test_samples > 0) samples.push_back(format_text("%" PRId64 " test", start.test_samples));
  standard_output().write("Samples     " + join(samples, ", ") + "\nParameters  " + std::to_string(start.parameters) +
                          "\n" + (start.selected ? "Selected    strategy " + start.strategy + "\n" : "") +
                          (context_.device.is_cpu() ? "" : "Device      " + context_.device.str() + "\n") +
                          format_text("Ready       after %.1f s\n", seconds_since(context_.started)));
}

void Report::attach(Engine& engine, const Mesh& mesh) {
  mesh_ = &mesh;
  engine.on(Event::kStart, [this](State&) { start(); });
  engine.on(Event::kUpdate, [this](State& state) {
    count(state);
    if (state.step % config_.watch.every_steps == 0) read_meters(state);
  });
  engine.on(Event::kEndEpoch, [this](State& state) {
    if (window_samples_ > 0) read_meters(state);
    read_epoch(state);
  });
  engine.on(Event::kEnd, [this](State&) {
    train_seconds_ = seconds_since(train_start_);
    times_ = across_ranks(clock_.total(), *mesh_->control());
  });
}

void Report::start() { train_start_ = window_start_ = Clock::now(); }

void Report::count(const State& state) {
  if (seconds_to_first_step_ == 0) seconds_to_first_step_ = seconds_since(context_.started);
  window_samples_ += state.batch.global_rows;
  samples_ += state.batch.global_rows;
  meters_.add(state.batch, state.result);
  epoch_meters_.add(state.batch, state.result);
  epoch_has_steps_ = true;
  latest_.step = state.step;
  if (!progress_) return;
  latest_.epoch = state.epoch;
  latest_.seconds = seconds_since(train_start_);
  progress_->update(latest_);
}

void Report::read_meters(const State& state) {
  Readings readings = meters_.take(*mesh_->control(kResultAxes));
  for (auto& reading : update_.readings()) readings.push_back(std::move(reading));
  if (!context_.device.is_cpu())
    readings.emplace_back("device_memory_peak_gib", peak_of_ranks(*mesh_->control()) * 0x1p-30);
  latest_ = {.step = state.step,
             .epoch = state.epoch,
             .split = "train",
             .readings = std::move(readings),
             .samples_per_second = static_cast<double>(window_samples_) / seconds_since(window_start_),
             .seconds = seconds_since(train_start_),
             .learning_rate = update_.optimizer().learning_rate(),
             .times = across_ranks(clock_.total() - window_times_, *mesh_->control())};
  window_samples_ = 0;
  window_start_ = Clock::now();
  window_times_ = clock_.total();
  add(latest_);
  if (progress_) progress_->update(latest_);
}

// Returns the peak memory of the rank that used most.
double Report::peak_of_ranks(Communicator& ranks) const {
  const at::Tensor bytes = at::full({1}, peak_bytes(context_.device), at::kLong);
  ranks.all_reduce(bytes, Reduction::kMax).wait();
  return static_cast<double>(bytes.item<std::int64_t>());
}

void Report::read_epoch(const State& state) {
  const auto so_far = epoch_meters_.state();
  Readings readings = epoch_meters_.take(*mesh_->control(kResultAxes));
  // A run that ends within an epoch may be resumed there, so its meters must continue.
  if (state.cursor < steps_per_epoch_) epoch_meters_.load(so_far, true);
  const bool measured = std::exchange(epoch_has_steps_, false);  // false if a resumed run had no step left here
  if (!progress_ || readings.empty() || !measured) return;
  for (auto& [name, value] : readings) name = "mean " + name;
  progress_->result({.step = state.step,
                     .epoch = state.epoch,
                     .split = "train",
                     .readings = std::move(readings),
                     .seconds = seconds_since(train_start_)});
}

void Report::add(const Measurement& measurement) {
  for (auto& [sink, effort] : sinks_) {
    effort.attempt([&] { sink->add(measurement); }, "the run continues, and tries again at the next measurement");
  }
}

std::vector<CheckpointPart> Report::parts() {
  return {{.name = "report",
           .save = [this] { return save(); },
           .load = [this](const SavedRanks& saved) { load(saved.of(0)); },
           .every_rank = false},
          meters_part("meters", meters_),
          meters_part("epoch_meters", epoch_meters_)};
}

// Returns the checkpoint part of some meters. If the config has changed them, they start empty.
CheckpointPart Report::meters_part(const std::string& name, MeterSet& meters) const {
  const auto save = [this, &meters] {
    NamedTensors state = meters.state();
    state.emplace_back(kMetersConfig, meters_config_);
    return state;
  };
  const auto load = [this, &meters](const SavedRanks& saved) {
    const auto& readers = *mesh_->control(kResultAxes);
    for (int rank = 0; rank < saved.ranks; ++rank) {
      NamedTensors state = saved.of(rank);
      const auto config = std::ranges::find(state, kMetersConfig, &NamedTensors::value_type::first);
      if (config == state.end() || !at::equal(config->second, meters_config_)) return;
      state.erase(config);
      meters.load(state, rank % readers.size() == readers.rank());
    }
  };
  return {.name = name, .save = save, .load = load};
}

NamedTensors Report::save() const {
  std::error_code none;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(context_.folder.metrics(), none));
  return {{"counts", at::tensor({bytes, window_samples_, samples_}, at::kLong)},
          {"step", at::full({1}, latest_.step, at::kLong)},
          {"seconds",
           at::tensor({seconds_since(train_start_), seconds_since(window_start_), evaluation_seconds_}, at::kDouble)}};
}

void Report::load(const NamedTensors& saved) {
  const auto before = [now = Clock::now()](double seconds) {
    return now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  for (const auto& [name, tensor] : saved) {
    if (name == "counts") {
      const auto* count = tensor.data_ptr<std::int64_t>();
      if (speaks_) cut_metrics(context_.folder.metrics(), count[0]);
      window_samples_ = count[1];
      samples_ = count[2];
    } else if (name == "step") {
      latest_.step = tensor.item<std::int64_t>();
      if (board_ != nullptr) board_->go_on_after(latest_.step);
    } else if (name == "seconds") {
      const auto* seconds = tensor.data_ptr<double>();
      train_start_ = before(seconds[0]);
      window_start_ = before(seconds[1]);
      evaluation_seconds_ = seconds[2];
    }
  }
}

void Report::start_evaluation() {
  clock_.lap(Phase::kHooks);  // hooks of the step that the evaluation interrupts
  evaluation_start_ = Clock::now();
}

void Report::end_evaluation(const State& state, const Evaluated& evaluated, const Readings& readings) {
  const double seconds = seconds_since(evaluation_start_);
  if (train_seconds_ == 0) evaluation_seconds_ += seconds;  // an evaluation after the end is not part of training
  // Samples that were trained on before the evaluation stay in the window, and so must their time.
  window_start_ += Clock::now() - evaluation_start_;
  clock_.skip();
  if (!speaks_) return;
  const Measurement evaluation{.step = state.step,
                               .epoch = state.epoch,
                               .split = evaluated.split,
                               .readings = readings,
                               .samples_per_second = static_cast<double>(evaluated.samples) / seconds,
                               .seconds = seconds_since(train_start_),
                               .version = evaluated.version};
  add(evaluation);
  if (progress_ && evaluated.shown) progress_->result(evaluation);
}

void Report::finish(const ExperimentResult& result, const NamedTensors& weights) {
  if (!speaks_) return;
  progress_.reset();
  if (config_.checkpoint.final_weights) save_safetensors(context_.folder.weights(), weights);
  write_atomically(context_.folder.summary(), summary(result));
  if (config_.watch.report) {
    BestEffort().attempt([&] { write_run_page(context_.folder); },
                         "the run itself is not affected; tools:report can write the page later");
  }
  if (result.unreadable) tell_skipped(*result.unreadable);
  Console& console = standard_output();
  if (!result.early_stop.empty()) console.write("Ended early: " + result.early_stop + "\n");
  if (config_.watch.progress) {
    if (times_.steps > 0) console.write(to_time_table(times_, console.columns()));
    return;
  }
  // Shows the final readings as progress does.
  for (const auto& [split, readings] : {std::pair("validation", result.validation), std::pair("test", result.test)}) {
    if (!readings.empty()) console.write(std::string(split) + ": " + in_words(readings) + "\n");
  }
}

double Report::seconds_since(Clock::time_point start) const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the operations of training and their share of the peak. The peak is measured on one core, assuming that all
// cores are equally fast.
nlohmann::ordered_json Report::matrix_products(double operations_per_sample, double samples_per_second) const {
  if (operations_per_sample == 0) return nullptr;
  const double peak = measure_matrix_peak(PeakEffort::kQuick);
  const double cores = static_cast<double>(context_.world->size()) * at::get_num_threads();
  return {{"operations_per_sample", operations_per_sample},
          {"peak_of_core", peak},
          {"share_of_peak", operations_per_sample * samples_per_second / (peak * cores)}};
}

std::string Report::summary(const ExperimentResult& result) const {
  nlohmann::ordered_json train = nlohmann::ordered_json::object(), validation = train, test = train;
  for (const auto& [name, value] : result.train) train[name] = value;
  for (const auto& [name, value] : result.validation) validation[name] = value;
  for (const auto& [name, value] : result.test) test[name] = value;
  nlohmann::ordered_json strategy = {{"name", result.strategy}};
  for (const auto& [name, value] : result.figures) strategy[name] = value;
  nlohmann::ordered_json loader = {{"shares", config_.loader.shares}};
  if (!result.shares.empty()) loader["last_shares"] = result.shares;
  if (config_.loader.shares == "measured") loader["reproducible"] = false;
  if (result.unreadable) {
    loader["unreadable"] = result.unreadable->samples;
    loader["replaced"] = result.unreadable->replaced;
  }
  nlohmann::ordered_json device = {{"name", context_.device.str()}};
  if (!context_.device.is_cpu()) device["memory_peak_bytes"] = peak_bytes(context_.device);
  nlohmann::ordered_json update = nlohmann::ordered_json::object();
  for (const auto& [name, value] : result.update) update[name] = value;
  nlohmann::ordered_json made = nlohmann::ordered_json::object();
  for (const auto& [name, value] : provenance()) made[name] = value;
  const double training = train_seconds_ - evaluation_seconds_;
  const double rate = training > 0 ? static_cast<double>(samples_) / training : 0;
  return nlohmann::ordered_json{{"name", config_.name},
                                {"ranks", context_.world->size()},
                                {"device", device},
                                {"steps", result.steps},
                                {"stopped", result.stopped},
                                {"early_stop", result.early_stop},
                                {"failed_checkpoints", result.failed_checkpoints},
                                {"train_seconds", train_seconds_},
                                {"seconds_to_first_step", seconds_to_first_step_},
                                {"samples_per_second", rate},
                                {"matrix_products", matrix_products(result.operations_per_sample, rate)},
                                {"bucket_bytes", result.bucket_bytes},
                                {"loader", loader},
                                {"strategy", strategy},
                                {"update", update},
                                {"train", train},
                                {"validation", validation},
                                {"test", test},
                                {"chosen_by", result.chosen_by},
                                {"step_time", spreads_to_json(times_)},
                                {"provenance", made}}
             .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace phalanx
