// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/regress/place.h"

// Objects of Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1).
namespace phalanx::regress {

/// The label that all objects of an owner have.
inline constexpr const char* kOwnerLabel = "phalanx-owner";

/// Returns the value of kOwnerLabel: a hash of PlaceOptions::owner.
std::string owner_label(const std::string& owner);

/// Returns a name for the TrainJob: the job's name in the letters that Kubernetes permits, and a hash, which makes
/// names unique that differ only in other letters or other owners.
std::string kubernetes_name(const Job& job, const std::string& owner);

/// Returns the TrainJob in JSON. A job of one host uses the runtime phalanx-torch, others use phalanx-mpi. The program
/// is found on the image's PATH; folders are as in the job. A pod that is started again resumes the run.
std::string train_job(const Job& job, const std::string& owner);

/// The state of a TrainJob.
struct TrainJobState {
  bool complete = false;
  bool failed = false;
  std::string reason{};  // why it failed, such as DeadlineExceeded
  std::string message{};
};

/// Returns the state of the TrainJob of this name from the answer of `kubectl get trainjobs -o json`, or nullopt if it
/// is not among them. Throws DataError for other text.
std::optional<TrainJobState> find_state(const std::string& train_jobs, const std::string& name);

/// Returns the exit status of the first container that failed, from the answer of `kubectl get pods -o json`, or
/// nullopt if none has, or if its pod was evicted. Throws DataError for other text.
std::optional<int> find_exit_status(const std::string& pods);

}  // namespace phalanx::regress
