// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/choose.h"

#include <algorithm>
#include <filesystem>

#include "engine/checkpoint/restore.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void check_identity(const Checkpoint& checkpoint, const Manifest::Strings& identity) {
  for (const auto& [key, mine] : identity) {
    const auto& theirs = checkpoint.manifest.identity;
    const auto found = std::ranges::find(theirs, key, &Manifest::Strings::value_type::first);
    const std::string saved = found == theirs.end() ? "nothing" : found->second;
    if (saved == mine) continue;
    throw DataError(checkpoint.path + " belongs to another run: its " + key + " is " + saved + ", but this run's is " +
                    mine);
  }
}

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// The properties of the resuming run.
struct Run {
  const Manifest::Strings& identity;
  const RunState& state;

  // Throws DataError if the run cannot resume from this checkpoint.
  void check(const Checkpoint& checkpoint) const {
    check_identity(checkpoint, identity);
    check_fits(checkpoint, state);
  }
};

// Returns advice to use a different checkpoint than the one that was refused.
std::string offer_in(const CheckpointFolder& folder, const Run& run) {
  const auto ignore = [](const std::string&) {};
  for (const auto& other : folder.list(ignore)) {
    try {
      run.check(other);
      verify(other);
      return "the newest that this run can resume from is --resume " + other.path;
    } catch (const DataError&) {
    }
  }
  return "there is no other one that this run can resume from";
}

template <class Refusal>
[[noreturn]] void refuse(const DataError& why, const CheckpointFolder& folder, const Run& run) {
  throw Refusal("checkpoint.resume: " + std::string(why.what()) + "; " + offer_in(folder, run));
}

// A damaged checkpoint is a DataError, and one that does not fit the config is a ConfigError.
Checkpoint open(const std::string& path, const Run& run) {
  const std::string parent = fs::path(path).parent_path().string();
  const CheckpointFolder folder(parent.empty() ? "." : parent);
  Checkpoint checkpoint;
  try {
    checkpoint = read_checkpoint(path);
    verify(checkpoint);
  } catch (const DataError& error) {
    refuse<DataError>(error, folder, run);
  }
  try {
    run.check(checkpoint);
  } catch (const DataError& error) {
    refuse<ConfigError>(error, folder, run);
  }
  return checkpoint;
}

// A checkpoint of another run is an error, not a reason to search further: most likely the wrong config was used.
Checkpoint newest(const CheckpointFolder& folder, const Run& run, std::vector<std::string>& refused) {
  Checkpoint found = folder.newest_intact([&](const std::string& reason) { refused.push_back(reason); });
  if (found.path.empty() && !refused.empty()) {
    throw DataError("checkpoint.resume: none of the checkpoints in " + folder.path() + " is intact:\n  " +
                    join(refused, "\n  ") + "\nRemove the folder to start from scratch.");
  }
  try {
    if (!found.path.empty()) run.check(found);
  } catch (const DataError& error) {
    refuse<ConfigError>(error, folder, run);
  }
  return found;
}

}  // namespace

Choice choose(const std::string& resume, const CheckpointFolder& folder, const Manifest::Strings& identity,
              const RunState& state, Communicator& world) {
  if (resume == "none") return {};
  Choice choice;
  std::string path = resume == "auto" ? "" : without_last_slash(resume), problem, misfit;
  if (world.rank() == 0) {
    try {
      const Run run{identity, state};
      path = (resume == "auto" ? newest(folder, run, choice.refused) : open(path, run)).path;
    } catch (const ConfigError& error) {
      misfit = error.what();
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  const MeasuredInputs measured;  // the contents of the folder
  misfit = broadcast_text(misfit, world);
  if (!misfit.empty()) throw ConfigError(misfit);
  problem = broadcast_text(problem, world);
  if (!problem.empty()) throw DataError(problem);
  path = broadcast_text(path, world);
  if (!path.empty()) choice.checkpoint = read_checkpoint(path);
  return choice;
}

}  // namespace phalanx
