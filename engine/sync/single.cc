// One process, nothing to agree on.
#include <string>

#include "engine/sync/synchronizer.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

class Single final : public Synchronizer {
 public:
  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    std::vector<Slice> slices;
    for (const auto& bucket : parameters.buckets()) slices.push_back(whole(bucket));
    return slices;
  }
};

const bool registered = Synchronizers::global().add<NoFields>(
    "single", "one rank, no communication", [](const NoFields&, const Replicas& replicas) {
      if (replicas.group->size() != 1) {
        throw ConfigError("strategy single trains on one rank, but there are " +
                          std::to_string(replicas.group->size()) + "; use strategy: all_reduce");
      }
      return std::make_unique<Single>();
    });

}  // namespace
}  // namespace phalanx
