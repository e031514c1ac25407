// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/connect.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"

namespace phalanx::bench {
namespace {

constexpr Seconds kTimeout{120};

std::string backend_of_mpi() {
  const auto names = Backends::global().names_where([](const BackendTraits& traits) { return traits.mpi; });
  if (names.empty()) throw ConfigError("openmpi: no backend of this program starts MPI");
  return names.front();
}

class Connector {
 public:
  Connector(const Options& options, const RankInfo& rank_info, StorePtr store)
      : options_(options), rank_info_(rank_info), store_(std::move(store)) {}

  void add(const std::string& name) {
    if (name == "openmpi") {
      if (!mpi_) connect(backend_of_mpi());  // starts MPI
      connected_.subjects.push_back(make_openmpi_subject());
    } else {
      auto world = connect(name);
      connected_.subjects.push_back(make_backend_subject(name, on_device(world, name), options_.algorithms, device_));
    }
  }

  void add_peer(const std::string& name) {
    if (name == "openmpi") return add(name);
    if (name == "servers") {
      connected_.subjects.push_back(make_servers_subject(connected_.all.front()));
      return;
    }
    connected_.subjects.push_back(make_peer(name));
  }

  Connected finish() {
    connected_.world = connected_.all.front();
    connected_.world->barrier().wait();
    return std::move(connected_);
  }

 private:
  std::unique_ptr<Subject> make_peer(const std::string& name) const {
    if (name == "torch") return make_torch_subject(options_.python, rank_info_, store(name), kTimeout);
    if (name == "gloo") return make_gloo_subject(rank_info_, store(name), kTimeout);
    if (name == "flags") return make_flags_subject(rank_info_, store(name));
    return make_launched_subject(*find_peer_library(name), rank_info_, store(name), kTimeout);
  }

  StorePtr store(const std::string& user) const {
    if (!store_)
      throw ConfigError(user + ": the launcher provides no rendezvous for these ranks; measure only mpi and openmpi");
    return make_prefix_store("bench/" + user, store_);
  }

  CommunicatorPtr on_device(CommunicatorPtr world, const std::string& backend) {
    if (options_.device == "cpu") return world;
    const auto kind = DeviceKinds::Choice(options_.device).make();
    if (const auto missing = kind->missing(); !missing.empty()) {
      throw ConfigError("--device " + options_.device + ": " + missing);
    }
    device_ = c10::Device(kind->type(), static_cast<c10::DeviceIndex>(rank_info_.local_rank % kind->count()));
    c10::impl::VirtualGuardImpl(kind->type()).setDevice(device_);
    if (connects_devices(backend, kind->type())) return world;
    return kind->connect(std::move(world), device_, kTimeout);
  }

  CommunicatorPtr connect(const std::string& name) {
    const bool by_mpi = backend_traits(name).mpi;
    if (by_mpi && mpi_) return mpi_;
    const bool alone = by_mpi && !store_;
    auto world = Backends::Choice(name).make({.rank_info = rank_info_,
                                              .store = alone ? nullptr : store("backend/" + name),
                                              .timeout = kTimeout,
                                              .progress_thread = options_.progress});
    if (by_mpi) mpi_ = world;
    connected_.all.push_back(world);
    return world;
  }

  const Options& options_;
  RankInfo rank_info_;
  c10::Device device_{c10::kCPU};
  StorePtr store_;
  CommunicatorPtr mpi_;
  Connected connected_;
};

}  // namespace

Connected connect_subjects(const Options& options, const RankInfo& rank_info, const StorePtr& store) {
  Connector connector(options, rank_info, store);
  for (const auto& name : options.backends) connector.add(name);
  for (const auto& name : options.against) connector.add_peer(name);
  return connector.finish();
}

}  // namespace phalanx::bench
