// SPDX-License-Identifier: Apache-2.0
// The place "local": this machine, whose slots are its cores. A run takes a core for each rank.
#include <algorithm>
#include <memory>

#include "framework/base/config/no_fields.h"
#include "framework/base/cores.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "tools/regress/place.h"
#include "tools/regress/places/local_job.h"

namespace phalanx::regress {
namespace {

class LocalPlace final : public Place {
 public:
  explicit LocalPlace(PlaceOptions options) : options_(std::move(options)) {}

  int slots() const override { return usable_cores(); }
  int slots_of(const Job& job) const override { return std::clamp(job.ranks, 1, slots()); }
  int most_hosts() const override { return 1; }
  std::string description() const override { return host_name(); }
  void end_orphans() override { kill_owned(options_.owner); }

  // A run that shares the machine with others gets a thread for each rank: otherwise each would use all cores.
  std::unique_ptr<RunningJob> start(const Job& job) override {
    const bool shares = slots_of(job) < slots() && !environment("OMP_NUM_THREADS");
    std::vector<std::pair<std::string, std::string>> variables;
    if (shares) variables.emplace_back("OMP_NUM_THREADS", "1");
    return std::make_unique<LocalJob>(job, options_, std::move(variables));
  }

 private:
  PlaceOptions options_;
};

std::unique_ptr<Place> make_local(const NoFields&, const PlaceOptions& options) {
  if (!options.argument.empty()) throw ConfigError("--on local:" + options.argument + ": local has no argument");
  return std::make_unique<LocalPlace>(options);
}

const bool local_registered = Places::global().add<NoFields>("local", "this machine", make_local);

}  // namespace
}  // namespace phalanx::regress
