// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

using Json = nlohmann::ordered_json;

Json machine(const Machine& m) {
  return {{"host", m.host},
          {"kernel", m.kernel},
          {"distribution", m.distribution},
          {"compiler", m.compiler},
          {"cpu", m.cpu},
          {"cores", m.cores},
          {"allowed_cores", m.allowed_cores},
          {"quota_cores", m.quota_cores},
          {"numa_nodes", m.numa_nodes},
          {"virtual_machine", m.virtual_machine},
          {"memory", m.memory},
          {"available_memory", m.available_memory},
          {"dev_shm", m.dev_shm},
          {"open_files", m.open_files},
          {"locked_memory", m.locked_memory},
          {"malloc", m.malloc},
          {"devices", m.devices}};
}

Json capabilities(const Diagnosis& found) {
  return {{"cuda", found.cuda_devices >= 0},
          {"nccl", found.works("nccl")},
          {"gloo", found.works("gloo")},
          {"mpi", found.works("mpi")},
          {"cuda_aware_mpi", found.cuda_aware_mpi},
          {"host", found.machine.host},
          {"nodes", found.nodes},
          {"launched", found.launched},
          {"address", found.rank_address}};
}

Json automatic(const Diagnosis& found) {
  Json all = Json::array();
  for (const auto& row : found.automatic) {
    all.push_back({{"ranks", row.ranks},
                   {"backend", row.backend},
                   {"reason", row.reason},
                   {"here", row.ranks == found.automatic_here}});
  }
  return all;
}

Json libraries(const Diagnosis& found) {
  Json all = Json::array();
  for (const auto& one : found.libraries) {
    all.push_back({{"name", one.name}, {"linked", one.linked}, {"loaded", one.loaded}, {"path", one.path}});
  }
  return all;
}

Json operations(const Diagnosis& found) {
  Json all = Json::array();
  for (const auto& backend : found.backends) {
    for (const auto& operation : found.operations) {
      all.push_back({{"operation", operation},
                     {"backend", backend.name},
                     {"device", backend.device},
                     {"status", backend.operations.at(operation)}});
    }
  }
  return all;
}

Json kernels(const Diagnosis& found) {
  Json table = Json::array();
  for (const auto& row : found.kernels) {
    table.push_back(
        {{"operators", row.operators}, {"tensors", row.tensors}, {"code", row.code}, {"reason", row.reason}});
  }
  return {{"vectors", found.vectors}, {"matrix_peak", found.matrix_peak}, {"table", table}};
}

Json links(const Diagnosis& found) {
  Json cores = Json::array(), backends = Json::array();
  for (const auto& link : found.cores) {
    cores.push_back({{"first", link.first}, {"second", link.second}, {"round_trip_ns", link.round_trip_ns}});
  }
  for (const auto& backend : found.backends) {
    if (backend.round_trip_us <= 0) continue;
    backends.push_back({{"backend", backend.name},
                        {"round_trip_us", backend.round_trip_us},
                        {"message_gb_s", backend.message_gb_s},
                        {"all_reduce_gb_s", backend.all_reduce_gb_s}});
  }
  return {{"cores", cores}, {"copy_gb_s", found.copy_gb_s}, {"backends", backends}};
}

Json algorithms(const Diagnosis& found) {
  Json all = Json::object();
  for (const auto& [operation, list] : found.algorithms) {
    for (const auto& one : list) all[operation].push_back({{"name", one.name}, {"about", one.about}});
  }
  return all;
}

}  // namespace

std::string to_json(const Diagnosis& found) {
  const Json all{{"machine", machine(found.machine)},
                 {"capabilities", capabilities(found)},
                 {"automatic", automatic(found)},
                 {"libraries", libraries(found)},
                 {"torch_build", found.torch_build},
                 {"operations", operations(found)},
                 {"links", links(found)},
                 {"kernels", kernels(found)},
                 {"algorithms", algorithms(found)},
                 {"notes", found.notes}};
  return all.dump(2) + "\n";
}

}  // namespace phalanx::doctor
