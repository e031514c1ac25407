// SPDX-License-Identifier: Apache-2.0
// The place "kubernetes": each job is a TrainJob of Kubeflow Trainer, whose manifest is written into a folder, and
// which kubectl submits.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/doctor/capture.h"
#include "tools/regress/place.h"
#include "tools/regress/places/kubernetes/runtime.h"
#include "tools/regress/places/kubernetes/train_job.h"

namespace phalanx::regress {
namespace {

using namespace std::chrono_literals;

constexpr auto kKubectlTime = 60s;
constexpr auto kBetweenKubectls = 2s;
constexpr auto kPatience = 300s;  // time for which the API server may not answer
constexpr int kMaxPods = 16;      // at once; the cluster lets those wait that it has no room for

doctor::ProgramOutput kubectl(std::vector<std::string> words) {
  words.insert(words.begin(), "kubectl");
  return doctor::capture(words, kKubectlTime);
}

// The TrainJobs of an owner, as kubectl listed them last. Shared by all of its jobs.
class TrainJobs {
 public:
  explicit TrainJobs(std::string owner) : owner_(std::move(owner)) {}

  const std::string& owner() const { return owner_; }

  // Returns nullopt if the TrainJob is unknown, or if kubectl has failed.
  std::optional<TrainJobState> state_of(const std::string& name) {
    if (std::chrono::steady_clock::now() - asked_ >= kBetweenKubectls) {
      const auto answer =
          kubectl({"get", "trainjobs", "-l", std::string(kOwnerLabel) + "=" + owner_label(owner_), "-o", "json"});
      if (answer.status == 0) listed_ = answer.output;
      asked_ = std::chrono::steady_clock::now();
    }
    return listed_.empty() ? std::nullopt : find_state(listed_, name);
  }

 private:
  const std::string owner_;
  std::chrono::steady_clock::time_point asked_{};
  std::string listed_;
};

class KubernetesJob final : public RunningJob {
 public:
  KubernetesJob(std::shared_ptr<TrainJobs> train_jobs, std::string name, const std::string& manifest)
      : train_jobs_(std::move(train_jobs)), name_(std::move(name)) {
    const auto applied = kubectl({"apply", "-f", manifest});
    if (applied.status == 0) return;
    const std::string why = applied.status == 127 ? "there is no kubectl on PATH" : applied.errors;
    end_ = {.exit_status = 1, .infrastructure_error = "kubectl apply -f " + manifest + ": " + why};
  }

  ~KubernetesJob() override {
    if (!end_) stop();
  }

  std::optional<JobEnd> poll() override {
    if (end_) return end_;
    const auto state = train_jobs_->state_of(name_);
    if (state) seen_ = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() - seen_ > kPatience) {
      end_ = {.exit_status = 1, .infrastructure_error = "TrainJob " + name_ + " is no longer known to Kubernetes"};
      return end_;
    }
    if (!state || (!state->complete && !state->failed)) return std::nullopt;
    end_ = state->complete ? JobEnd{} : end_of_failed(*state);
    remove();
    return end_;
  }

  void stop() override {
    remove();
    end_ = {.exit_status = 128 + SIGTERM};
  }

 private:
  JobEnd end_of_failed(const TrainJobState& state) const {
    if (state.reason == "DeadlineExceeded") return {.exit_status = 128 + SIGTERM, .timed_out = true};
    const auto pods = kubectl({"get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=" + name_, "-o", "json"});
    if (pods.status == 0) {
      if (const auto exit_status = find_exit_status(pods.output)) return {.exit_status = *exit_status};
    }
    return {.exit_status = 1,
            .infrastructure_error = "TrainJob " + name_ + " failed: " + state.reason + ": " + state.message};
  }

  // Waits until the pods are gone.
  void remove() { kubectl({"delete", "trainjob", name_, "--ignore-not-found", "--cascade=foreground"}); }

  const std::shared_ptr<TrainJobs> train_jobs_;
  const std::string name_;
  std::chrono::steady_clock::time_point seen_ = std::chrono::steady_clock::now();
  std::optional<JobEnd> end_;
};

class KubernetesPlace final : public Place {
 public:
  KubernetesPlace(const std::string& folder, const std::string& owner)
      : folder_(folder), train_jobs_(std::make_shared<TrainJobs>(owner)) {}

  int slots() const override { return kMaxPods; }
  int slots_of(const Job& job) const override { return std::min(job.hosts, kMaxPods); }
  int most_hosts() const override { return kMaxPods; }
  std::string description() const override { return "kubernetes"; }

  void end_orphans() override {
    kubectl({"delete", "trainjobs", "-l", std::string(kOwnerLabel) + "=" + owner_label(train_jobs_->owner()),
             "--cascade=foreground"});
  }

  std::unique_ptr<RunningJob> start(const Job& job) override {
    const std::string name = kubernetes_name(job, train_jobs_->owner());
    const std::string manifest = folder_ / (name + ".json");
    write_atomically(manifest, train_job(job, train_jobs_->owner()));
    return std::make_unique<KubernetesJob>(train_jobs_, name, manifest);
  }

 private:
  const std::filesystem::path folder_;
  const std::shared_ptr<TrainJobs> train_jobs_;
};

std::unique_ptr<Place> make_kubernetes_place(const NoFields&, const PlaceOptions& options) {
  if (options.argument.empty())
    throw ConfigError("--on kubernetes: name the folder of the manifests: kubernetes:FOLDER");
  const auto folder = std::filesystem::absolute(options.argument);
  std::filesystem::create_directories(folder);
  const auto runtimes = folder / "runtime.yaml";
  if (!std::filesystem::exists(runtimes)) {
    write_atomically(runtimes, kRuntimes);
    throw ConfigError("--on kubernetes: wrote " + runtimes.string() +
                      "; edit it for your cluster, apply it with kubectl apply -f, and start again");
  }
  return std::make_unique<KubernetesPlace>(folder, options.owner);
}

const bool kubernetes_registered = Places::global().add<NoFields>(
    "kubernetes", "TrainJobs of Kubeflow Trainer; kubernetes:FOLDER names the folder of the manifests",
    make_kubernetes_place);

}  // namespace
}  // namespace phalanx::regress
