// SPDX-License-Identifier: Apache-2.0
#include "tools/history/origin.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "engine/checkpoint/folder.h"
#include "engine/html/run_summary.h"
#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/text.h"

namespace phalanx::history {
namespace {

namespace fs = std::filesystem;

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kDigest = "config_sha256";
constexpr int kFoldersAbove = 3;  // run/checkpoints/step-00000100/weights.safetensors

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

bool is_run(const fs::path& folder) { return is_there(RunFolder(folder.string()).summary()); }

// Adds the digest that older versions did not record.
void add_digest(Facts& facts, const std::string& config) {
  if (std::ranges::count(facts, kDigest, &Facts::value_type::first) == 0 && !config.empty()) {
    facts.emplace_back(kDigest, sha256(config));
  }
}

// Throws DataError if `file` belongs to the checkpoint and has changed.
void check_against(const Checkpoint& checkpoint, const fs::path& file) {
  for (const auto& record : checkpoint.manifest.files) {
    if (record.name == file.filename().string()) check_file(checkpoint.path, record);
  }
}

Origin of_checkpoint(const fs::path& folder, const fs::path& file) {
  const Checkpoint checkpoint = read_checkpoint(folder.string());
  check_against(checkpoint, file);
  const Manifest& manifest = checkpoint.manifest;
  Origin origin{.record = (folder / kManifestName).string(), .run = {}};
  const fs::path run = folder.parent_path().parent_path();
  if (is_there(RunFolder(run.string()).config())) origin.run = run.string();
  origin.facts = {{"kind", "checkpoint"},
                  {"step", std::to_string(manifest.position.step)},
                  {"epoch", std::to_string(manifest.position.epoch)},
                  {"ranks", std::to_string(manifest.ranks)}};
  std::ranges::copy(manifest.provenance, std::back_inserter(origin.facts));
  add_digest(origin.facts, manifest.config);
  for (const auto& [name, value] : manifest.metrics) origin.facts.emplace_back(name, format_text("%.6g", value));
  return origin;
}

Origin of_run(const fs::path& folder) {
  const RunFolder files(folder.string());
  const RunSummary summary = read_summary(files.summary());
  Origin origin{.record = files.summary(), .run = folder.string()};
  origin.facts = {{"kind", "run"},
                  {"name", summary.name},
                  {"strategy", summary.strategy},
                  {"steps", std::to_string(summary.steps)},
                  {"ranks", std::to_string(summary.ranks)}};
  std::ranges::copy(summary.provenance, std::back_inserter(origin.facts));
  if (is_there(files.config())) add_digest(origin.facts, read_file(files.config()));
  return origin;
}

bool same_bytes(const fs::path& one, const fs::path& other) {
  std::ifstream first(one, std::ios::binary), second(other, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return first && second && std::equal(Bytes(first), Bytes(), Bytes(second), Bytes());
}

}  // namespace

std::optional<Origin> find_origin(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) throw DataError(path + ": " + error.message());
  fs::path folder = fs::is_directory(file, error) ? file : file.parent_path();
  for (int i = 0; i <= kFoldersAbove; ++i, folder = folder.parent_path()) {
    if (is_there(folder / kManifestName)) return of_checkpoint(folder, file);
    if (is_run(folder)) return of_run(folder);
  }
  return std::nullopt;
}

std::optional<std::string> find_copy(const std::string& path, const std::string& folder) {
  std::error_code none;
  const auto bytes = fs::file_size(path, none);
  if (none) return std::nullopt;  // a folder
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, none), end; !none && entry != end;
       entry.increment(none)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || entry->file_size(gone) != bytes) continue;
    if (!fs::equivalent(entry->path(), path, gone) && same_bytes(entry->path(), path)) return entry->path().string();
  }
  return std::nullopt;
}

}  // namespace phalanx::history
