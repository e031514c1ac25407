// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/record_exception.h"

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/reason.h"
#include "framework/comm/launch/host_lease.h"
#include "framework/ps/server_lost.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"

namespace phalanx {

int record_exception(const std::exception_ptr& error, int rank, const std::string& log_folder, const std::string& log) {
  end_without_lease();  // the job may have been started again by now, with another rank of this number
  const auto leave = [&](const std::string& message, ExitStatus status, bool secondary = false) {
    write_failure(log_folder, {.rank = rank,
                               .host = host_name(),
                               .log = log,
                               .message = message,
                               .secondary = secondary,
                               .time = failure_time(),
                               .status = status});
    return status;
  };
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& config_error) {
    return leave(config_error.what(), kUsage);
  } catch (const ps::ServerLost& lost) {
    return leave(lost.what(), kRankDied);
  } catch (const ExpectationError& expectation_error) {
    return leave(expectation_error.what(), kExpectationFailed);
  } catch (const TooFewRanks& too_few) {
    return leave(too_few.what(), kTooFewRanks);
  } catch (const CommError& comm_error) {
    return leave(comm_error.what(), kFailed, comm_error.secondary());
  } catch (const std::exception& other) {
    return leave(reason(other), kFailed);
  } catch (...) {
    return leave("an exception that is not a std::exception", kFailed);
  }
}

}  // namespace phalanx
