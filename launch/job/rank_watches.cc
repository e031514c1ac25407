// SPDX-License-Identifier: Apache-2.0
#include "launch/job/rank_watches.h"

#include <unistd.h>

#include <exception>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "launch/job/rank_failure.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

// Ends the process of a rank whose loader gives no batch. The thread of the rank may hang for good, so nothing is
// destroyed.
[[noreturn]] void end_without_batch(const std::string& reason, const StartedRank& rank, bool supervised) {
  log_error() << reason;
  ::_exit(record_end(std::make_exception_ptr(DataError(reason)), rank, supervised));
}

}  // namespace

std::unique_ptr<StallWatch> watch_for_stalls(const ExperimentConfig& config, const Communicator& world,
                                             const RunFolder& folder, const RankPresence& presence,
                                             std::string& sentence) {
  const Seconds warn_after(config.framework.warn_after);
  if (warn_after.count() <= 0 || world.size() == 1) return nullptr;
  return std::make_unique<StallWatch>(
      world, StallWatch::Options{.log_folder = folder.logs(),
                                 .warn_after = warn_after,
                                 .print = print_to_console,
                                 .timeout = Seconds(config.framework.timeout),
                                 .dataset = config.dataset.selected(),
                                 .page = presence.page(),
                                 .names = presence.names(),
                                 .explained = [&sentence](const std::string& text) { sentence = text; }});
}

std::unique_ptr<LoaderDeadline> limit_loader(const ExperimentConfig& config, const StartedRank& rank,
                                             const RankPresence& presence, bool supervised) {
  const Seconds timeout(config.loader.timeout);
  if (timeout.count() <= 0 || presence.page() == nullptr) return nullptr;
  return std::make_unique<LoaderDeadline>(LoaderDeadline::Options{
      .page = presence.page(),
      .rank = rank.rank(),
      .dataset = config.dataset.selected(),
      .deadline = timeout,
      .end = [&rank, supervised](const std::string& reason) { end_without_batch(reason, rank, supervised); }});
}

}  // namespace phalanx
