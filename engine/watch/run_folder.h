// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace phalanx {

/// The folder that holds everything a run leaves: config.yaml, dataset.json (what a table's samples were made with:
/// Splits::fitted), metrics.jsonl, summary.json, report.html, trace.json, weights.safetensors, embeddings.safetensors
/// (of a model whose embeddings are on parameter servers), checkpoints/, tensorboard/ and logs/rank<r>.log.
class RunFolder {
 public:
  RunFolder() = default;
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  /// Makes the folder and its logs/. One that holds a run already (a summary, metrics or checkpoints) is refused,
  /// unless that run `goes_on`: among checkpoints of later steps, a new run would remove its own. Throws ConfigError.
  static RunFolder create(const std::string& path, bool goes_on = false);

  /// Throws ConfigError where it holds a run already, as create() does.
  void refuse_if_held() const;

  /// Keeps other runs from writing here, until no copy of the result is left in this process, and those that were
  /// forked from it have ended, whatever program they run, unless they close what they inherit. Waits 3 s for another
  /// run that is at work here to end, then throws ConfigError.
  [[nodiscard]] std::shared_ptr<void> claim() const;

  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.yaml"; }
  std::string dataset() const { return path_ + "/dataset.json"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string summary() const { return path_ + "/summary.json"; }
  std::string report() const { return path_ + "/report.html"; }
  std::string trace() const { return path_ + "/trace.json"; }
  std::string tensorboard() const { return path_ + "/tensorboard"; }
  std::string weights() const { return path_ + "/weights.safetensors"; }
  std::string embeddings() const { return path_ + "/embeddings.safetensors"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string logs() const { return path_ + "/logs"; }
  std::string log(int rank) const { return logs() + "/rank" + std::to_string(rank) + ".log"; }

 private:
  std::string path_;
};

}  // namespace phalanx
