#include "tools/launch/run_rank.h"

#include <signal.h>

#include <exception>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "tools/launch/die_with_parent.h"
#include "tools/launch/exit_status.h"
#include "tools/launch/failure.h"

namespace phalanx {

int run_rank(int rank, const std::string& log_folder, const std::string& log, const std::function<int()>& body) {
  // Ranks of Open MPI 5 go on when their daemon is killed.
  if (environment("PHALANX_LAUNCHER") == "mpi") die_with_parent(SIGKILL);
  const auto leave = [&](const std::string& message, bool secondary) {
    leave_failure(log_folder, {.rank = rank,
                               .host = host_name(),
                               .log = log,
                               .message = message,
                               .secondary = secondary,
                               .time = failure_time()});
  };
  try {
    return body();
  } catch (const ConfigError& error) {
    leave(error.what(), false);
    return kUsage;
  } catch (const CommError& error) {
    leave(error.what(), error.secondary());
  } catch (const std::exception& error) {
    leave(error.what(), false);
  } catch (...) {
    leave("an exception that is not a std::exception", false);
  }
  return kFailed;
}

}  // namespace phalanx
