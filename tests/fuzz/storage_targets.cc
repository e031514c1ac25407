// SPDX-License-Identifier: Apache-2.0
// Files of weights, checkpoints, recordings and flight recorders.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/checkpoint/manifest.h"
#include "framework/base/json.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/storage/stored_zip.h"
#include "framework/base/storage/torch_file.h"
#include "framework/base/storage/torch_pickle.h"
#include "framework/collectives/recording/recording.h"
#include "framework/observe/hang/explain.h"
#include "framework/observe/hang/flight_recorder_dump.h"
#include "models/exported/program.h"
#include "tests/fuzz/mutators.h"
#include "tests/fuzz/scratch_file.h"

namespace phalanx::fuzz {
namespace {

namespace fs = std::filesystem;

void read_json(std::string_view input) { parse_json(input, "input").raw(); }

void read_safetensors(std::string_view input) {
  const ScratchFile file(input);
  load_safetensors(file.path());
}

void read_zip(std::string_view input) {
  const ScratchFile file(input);
  const StoredZip zip(file.path());
  for (const auto& entry : zip.entries()) zip.read(entry);
}

void read_pickle(std::string_view input) { unpickle_state_dict("input", input); }

void read_torch(std::string_view input) {
  const ScratchFile file(input);
  const TorchFile torch(file.path());
  for (const auto& tensor : torch.tensors()) torch.read(tensor);
}

// Programs are loaded but not run: their results are as large as their author likes.
void read_program(std::string_view input) {
  const ScratchFile file(input);
  const exported::Program program(file.path());
  program.parameters();
}

void read_manifest(std::string_view input) { parse_manifest(std::string(input), "input"); }

// A recording is a folder, so the input is linked into one.
void read_recording(std::string_view input) {
  const ScratchFile file(input);
  const fs::path folder = fs::temp_directory_path() / ("phalanx-fuzz-" + std::to_string(::getpid()));
  const struct Removal {
    ~Removal() {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
    const fs::path& folder;
  } removal{folder};
  fs::create_directories(folder);
  fs::create_symlink(file.path(), recording::file_of(folder.string(), 0));
  recording::Recording recording(folder.string(), 0);
  while (const auto head = recording.first_left()) {
    (void)recording::describe(*head, recording);
    (void)recording.next(recording::Stream::of(*head));
  }
}

// Two ranks have the same dump.
void read_flight_recorder(std::string_view input) {
  const std::string pickle(input);
  explain(picture_of_dumps(
      {{.source = "input", .rank = 0, .pickle = pickle}, {.source = "other", .rank = 1, .pickle = pickle}}));
}

const bool kStorageAdded =
    add_target({"json", read_json, mutate_json}) && add_target({"safetensors", read_safetensors, mutate_safetensors}) &&
    add_target({"zip", read_zip, mutate_zip}) && add_target({"pickle", read_pickle, mutate_pickle}) &&
    add_target({"torch", read_torch, mutate_zip}) && add_target({"program", read_program, mutate_zip}) &&
    add_target({"manifest", read_manifest, mutate_manifest}) && add_target({"recording", read_recording, nullptr}) &&
    add_target({"flight_recorder", read_flight_recorder, mutate_pickle});

}  // namespace
}  // namespace phalanx::fuzz
