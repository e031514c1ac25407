// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace phalanx {

/// The folder with all files of a run: config.yaml, dataset.json (parameters that were fitted to the samples of a
/// table: Splits::fitted), metrics.jsonl, summary.json, live.prom (while the run trains), tuned.json (algorithms chosen
/// by framework.tune), report.html, trace.json, digests/rank<r>.txt (train.digests), weights.safetensors,
/// embeddings.safetensors (if the model's embeddings are on parameter servers), checkpoints/, tensorboard/ and
/// logs/rank<r>.log.
class RunFolder {
 public:
  RunFolder() = default;
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  /// Creates the folder and its logs/. Throws ConfigError if this fails, and if the folder already holds a run (a
  /// summary, metrics or checkpoints), unless that run `goes_on`: next to checkpoints of later steps, a new run would
  /// remove its own checkpoints.
  static RunFolder create(const std::string& path, bool goes_on = false);

  /// Throws ConfigError if the folder already holds a run, like create().
  void refuse_if_held() const;

  /// Prevents other runs from writing to the folder. The lock lasts until all copies of the result are gone and all
  /// processes that were forked from this one have ended, even if they run another program, unless they close inherited
  /// files. Waits up to 3 s for another run in this folder to end, then throws ConfigError.
  [[nodiscard]] std::shared_ptr<void> claim() const;

  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.yaml"; }
  std::string dataset() const { return path_ + "/dataset.json"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string summary() const { return path_ + "/summary.json"; }
  std::string live() const { return path_ + "/live.prom"; }
  std::string tuned() const { return path_ + "/tuned.json"; }
  std::string report() const { return path_ + "/report.html"; }
  std::string trace() const { return path_ + "/trace.json"; }
  std::string digests() const { return path_ + "/digests"; }
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
