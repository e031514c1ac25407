// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "launch/temporary_folder.h"
#include "tools/bench/child.h"
#include "tools/bench/subject.h"
#include "tools/bench/torch_peer.h"

namespace phalanx::bench {
namespace {

using ChildPtr = std::shared_ptr<Child>;

std::string ask(Child& child, const std::string& line, Seconds timeout) {
  child.send(line);
  return child.receive(timeout);
}

class TorchTrial final : public Trial {
 public:
  TorchTrial(ChildPtr child, int id, Seconds timeout)
      : child_(std::move(child)), id_(std::to_string(id)), timeout_(timeout) {}
  ~TorchTrial() override {
    try {
      ask(*child_, "drop " + id_, timeout_);
    } catch (const Error&) {  // it has ended; the next call reports that
    }
  }

  double run(std::int64_t repeats) override {
    const std::string answer = ask(*child_, "run " + id_ + " " + std::to_string(repeats), timeout_);
    double microseconds = 0;
    const char* end = answer.data() + answer.size();
    if (std::from_chars(answer.data(), end, microseconds).ptr != end) {
      throw Error("torch: expected a time, got \"" + answer + "\"");
    }
    return microseconds;
  }

 private:
  ChildPtr child_;
  std::string id_;
  Seconds timeout_;
};

class TorchSubject final : public Subject {
 public:
  TorchSubject(const std::string& python, const RankInfo& rank_info, StorePtr store, Seconds timeout)
      : size_(rank_info.size), timeout_(timeout) {
    if (!rank_info.one_host()) throw ConfigError("--against torch: all ranks must be on one host");
    const auto rendezvous = make_prefix_store("bench/torch", std::move(store));
    if (rank_info.rank == 0) {
      folder_.emplace();
      rendezvous->set("folder", folder_->path());
    }
    const std::string init_method = "file://" + rendezvous->get("folder") + "/store";
    child_ = std::make_shared<Child>(std::vector<std::string>{python, "-c", kTorchPeer, std::to_string(rank_info.rank),
                                                              std::to_string(rank_info.size), init_method});
    child_->receive(timeout_);  // "ready"
    store_barrier(*rendezvous, "ready", rank_info.size);
  }

  std::string name() const override { return "torch"; }
  int size() const override { return size_; }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }
  std::string absent(const Case& what) const override {
    return what.op == "send_recv" && size() < 2 ? "needs two ranks" : "";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    const Sizes sizes = sizes_of(what, size_);
    const int id = ++prepared_;
    ask(*child_,
        "prepare " + std::to_string(id) + " " + what.op + " " + std::to_string(sizes.whole) + " " +
            std::to_string(sizes.part),
        timeout_);
    return std::make_unique<TorchTrial>(child_, id, timeout_);
  }

 private:
  int size_;
  Seconds timeout_;
  int prepared_ = 0;
  std::optional<TemporaryFolder> folder_;  // holds the file by which the processes meet; set on rank 0
  ChildPtr child_;
};

}  // namespace

std::unique_ptr<Subject> make_torch_subject(const std::string& python, const RankInfo& rank_info, StorePtr store,
                                            Seconds timeout) {
  return std::make_unique<TorchSubject>(python, rank_info, std::move(store), timeout);
}

}  // namespace phalanx::bench
