// SPDX-License-Identifier: Apache-2.0
#include "launch/job/replay_rank.h"

#include <ATen/Parallel.h>

#include "engine/checkpoint/folder.h"
#include "engine/experiment/experiment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/ps/recording/replayed_links.h"
#include "launch/job/device.h"
#include "launch/job/make_data.h"
#include "launch/job/recording.h"
#include "launch/job/role.h"

namespace phalanx {
namespace {

/// Ends a replay that has done the steps that it was to do.
struct LastStepDone {};

// Returns the checkpoint of the recorded run at which a recording begins.
std::string checkpoint_at(std::int64_t step, const std::string& run_folder) {
  const std::string folder = RunFolder(run_folder).checkpoints();
  for (const auto& checkpoint : CheckpointFolder(folder).list([](const std::string&) {})) {
    if (checkpoint.manifest.position.step == step) return checkpoint.path;
  }
  throw DataError("the recording begins after step " + std::to_string(step) + ", but there is no checkpoint of it in " +
                  folder + "; call replay where the run was started, and keep its folder");
}

// Refuses a rank that was a parameter server.
void refuse_server(const ExperimentConfig& config, const recording::Header& header) {
  const auto training = header.ranks - config.roles.server;
  if (header.rank < training) return;
  throw ConfigError("rank " + std::to_string(header.rank) + " of " + std::to_string(header.ranks) +
                    " was a parameter server, which only carries out requests in the order in which they happen to "
                    "arrive; its answers are in the recordings of the ranks that train: replay one of ranks 0 to " +
                    std::to_string(training - 1));
}

// Returns the config with which a rank is replayed.
ExperimentConfig config_for(const ExperimentConfig& recorded, const recording::Recording& recording) {
  ExperimentConfig config = recorded;
  config.watch.prometheus.port = 0;
  if (recording.begins_at() > 0) {
    config.checkpoint.resume = checkpoint_at(recording.begins_at(), recording.header().run_folder);
  }
  return config;
}

}  // namespace

ReplayResult replay_rank(const Job& job, const std::shared_ptr<recording::Replay>& replay, const RunFolder& folder,
                         std::int64_t until) {
  recording::Recording& recording = replay->recording();
  const ThreadLog log({.file = folder.log(recording.header().rank),
                       .stderr_threshold = LogLevel::kNone,
                       .rank = recording.header().rank});
  at::set_num_threads(recording.header().threads);
  const ExperimentConfig config = config_for(job.config, recording);
  refuse_server(config, recording.header());
  const Role role = assign_role(config, replay->world(), ps::replay_links(replay));
  const DeviceAssignment placed = choose_devices(config, role.world);
  ExperimentContext context{.world = placed.world,
                            .device = placed.device,
                            .splits = make_data(job, false),
                            .folder = folder,
                            .servers = role.servers,
                            .started = job.started};
  std::shared_ptr<const EndOfTraining> end;
  context.recorded_bytes = recorded_bytes(config, context.world, [] { return 0; });
  context.add_hooks = [&](Engine& engine) {
    end = attach(replay, engine);
    if (until > 0) {
      engine.on(Event::kSample, HookPhase::kFirst, [until](State& state) {
        if (state.step >= until) throw LastStepDone();
      });
    }
  };
  ReplayResult result{.first_step = recording.begins_at()};
  try {
    (void)run_experiment(config, context);
    replay->end_run(end->parameters);
    result.last_step = end->step;
  } catch (const LastStepDone&) {
    result.stopped = true;
    result.last_step = until;
  } catch (const recording::ReplayDifference&) {
    throw;
  } catch (const recording::RecordingEnded& error) {
    result.ended = error.what();
    result.last_step = recording.last_step();
  } catch (const std::exception& error) {
    if (const std::string difference = replay->difference(); !difference.empty()) {
      throw recording::ReplayDifference(difference);
    }
    if (recording.parameters_at_end() || recording.first_left()) throw;
    result.ended = error.what();
    result.last_step = recording.last_step();
  }
  if (const std::string difference = replay->difference(); !difference.empty()) {
    throw recording::ReplayDifference(difference);
  }
  result.operations = replay->operations();
  return result;
}

}  // namespace phalanx
