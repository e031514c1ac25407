// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "launch/temporary_folder.h"
#include "tools/bench/child.h"
#include "tools/bench/peer_subject.h"
#include "tools/bench/torch_peer.h"

namespace phalanx::bench {
namespace {

struct TorchProcess {
  std::optional<TemporaryFolder> folder;  // holds the file by which the processes meet; set on rank 0
  std::optional<Child> child;
};

}  // namespace

std::unique_ptr<Subject> make_torch_subject(const std::string& python, const RankInfo& rank_info, StorePtr store,
                                            Seconds timeout) {
  if (!rank_info.one_host()) throw ConfigError("--against torch: all ranks must be on one host");
  const auto rendezvous = make_prefix_store("bench/torch", std::move(store));
  const auto process = std::make_shared<TorchProcess>();
  if (rank_info.rank == 0) rendezvous->set("folder", process->folder.emplace().path());
  const std::string init_method = "file://" + rendezvous->get("folder") + "/store";
  process->child.emplace(std::vector<std::string>{python, "-c", kTorchPeer, std::to_string(rank_info.rank),
                                                  std::to_string(rank_info.size), init_method});
  process->child->receive(timeout);  // "ready"
  store_barrier(*rendezvous, "ready", rank_info.size);
  return std::make_unique<PeerSubject>("torch", rank_info.size,
                                       std::shared_ptr<LineSocket>(process, &process->child->lines()), timeout);
}

}  // namespace phalanx::bench
