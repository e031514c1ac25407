#include "engine/checkpoint/choose.h"

#include <algorithm>
#include <filesystem>

#include "engine/checkpoint/restore.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void check_identity(const Checkpoint& checkpoint, const Manifest::Words& identity) {
  for (const auto& [key, mine] : identity) {
    const auto& theirs = checkpoint.manifest.identity;
    const auto found = std::ranges::find(theirs, key, &Manifest::Words::value_type::first);
    const std::string saved = found == theirs.end() ? "nothing" : found->second;
    if (saved == mine) continue;
    throw DataError(checkpoint.path + " is of another run: its " + key + " is " + saved + ", here it is " + mine);
  }
}

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// What to take in place of one that cannot be used.
std::string offer_beside(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const auto other = CheckpointFolder(folder.empty() ? "." : folder).newest_good([](const std::string&) {});
  return other.path.empty() ? "there is no other whole one beside it"
                            : "the newest whole one is --resume " + other.path;
}

Checkpoint open(const std::string& path) {
  try {
    Checkpoint checkpoint = read_checkpoint(path);
    verify(checkpoint);
    return checkpoint;
  } catch (const DataError& error) {
    throw DataError("checkpoint.resume: " + std::string(error.what()) + "; " + offer_beside(path));
  }
}

Checkpoint newest(const CheckpointFolder& folder, std::vector<std::string>& refused) {
  Checkpoint found = folder.newest_good([&](const std::string& reason) { refused.push_back(reason); });
  if (found.path.empty() && !refused.empty()) {
    throw DataError("checkpoint.resume: none of the checkpoints in " + folder.path() + " is whole:\n  " +
                    join(refused, "\n  ") + "\nRemove the folder to begin anew.");
  }
  return found;
}

Checkpoint look_for(const std::string& resume, const CheckpointFolder& folder, const Manifest::Words& identity,
                    const RunState& state, std::vector<std::string>& refused) {
  Checkpoint found = resume == "auto" ? newest(folder, refused) : open(without_last_slash(resume));
  if (found.path.empty()) return found;
  check_identity(found, identity);
  check_fits(found, state);
  return found;
}

}  // namespace

Choice choose(const std::string& resume, const CheckpointFolder& folder, const Manifest::Words& identity,
              const RunState& state, Communicator& world) {
  if (resume == "none") return {};
  Choice choice;
  std::string path, problem;
  if (world.rank() == 0) {
    try {
      path = look_for(resume, folder, identity, state, choice.refused).path;
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = broadcast_text(problem, world);
  if (!problem.empty()) throw DataError(problem);
  path = broadcast_text(path, world);
  if (!path.empty()) choice.checkpoint = read_checkpoint(path);
  return choice;
}

}  // namespace phalanx
