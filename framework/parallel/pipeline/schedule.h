#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::pipeline {

/// What a rank does with one micro-batch on one of its stages.
struct Action {
  enum class Kind {
    kForward,
    kBackward,        // gradients of the stage's input and of its parameters
    kInputGradient,   // the first of these alone,
    kWeightGradient,  // and, later, the others
  };
  Kind kind = Kind::kForward;
  int stage = 0, micro_batch = 0;

  bool operator==(const Action&) const = default;
};

/// Who does what in which order in a step of a pipeline. A forward needs that of the stage before, a backward that of
/// the stage behind; every rank does its actions one after the other.
struct Schedule {
  std::string name;
  int ranks = 1, stages = 1, micro_batches = 1;
  std::vector<std::vector<Action>> actions;  // by rank

  /// The rank that computes a micro-batch on a stage.
  int rank_of(int stage, int micro_batch) const;

  /// Of which a rank has the parameters, ascending.
  std::vector<int> stages_of(int rank) const;
};

struct ScheduleOptions {
  int ranks = 1, stages_per_rank = 1, micro_batches = 1;
};

/// "gpipe" (Huang et al. 2019, arXiv:1811.06965): all forwards, then all backwards; "1f1b" (Narayanan et al. 2021,
/// arXiv:2104.04473, section 2.2): as soon as the pipeline is full each rank does a backward after each forward, so
/// that rank r holds the activations of at most ranks - r micro-batches. Throws ConfigError for a name that it does not
/// know and options that do not suit it.
Schedule make_schedule(const std::string& name, const ScheduleOptions& options);

}  // namespace phalanx::pipeline
