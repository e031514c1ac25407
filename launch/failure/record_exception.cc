// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/record_exception.h"

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/reason.h"
#include "framework/ps/server_lost.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"

namespace phalanx {

int record_exception(const std::exception_ptr& error, int rank, const std::string& log_folder, const std::string& log) {
  const auto leave = [&](const std::string& message, bool secondary) {
    write_failure(log_folder, {.rank = rank,
                               .host = host_name(),
                               .log = log,
                               .message = message,
                               .secondary = secondary,
                               .time = failure_time()});
  };
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& config_error) {
    leave(config_error.what(), false);
    return kUsage;
  } catch (const ps::ServerLost& lost) {
    leave(lost.what(), false);
    return kRankDied;
  } catch (const ExpectationError& expectation_error) {
    leave(expectation_error.what(), false);
    return kExpectationFailed;
  } catch (const TooFewRanks& too_few) {
    leave(too_few.what(), false);
    return kTooFewRanks;
  } catch (const CommError& comm_error) {
    leave(comm_error.what(), comm_error.secondary());
  } catch (const std::exception& other) {
    leave(reason(other), false);
  } catch (...) {
    leave("an exception that is not a std::exception", false);
  }
  return kFailed;
}

}  // namespace phalanx
