// SPDX-License-Identifier: Apache-2.0
#include "launch/job/rank_failure.h"

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/reason.h"
#include "framework/ps/server_lost.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/report_once.h"
#include "launch/rank/same_start.h"

namespace phalanx {

std::exception_ptr log_exception(const std::exception_ptr& error, const config::Sources& sources) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& config_error) {
    const ConfigError with_place = config::located(config_error, sources);
    log_error() << with_place.what();
    return std::make_exception_ptr(with_place);
  } catch (const std::exception& other) {
    log_error() << other.what();
  } catch (...) {
    log_error() << message_of(error);
  }
  return error;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return reason(known);
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

std::exception_ptr explain(const std::exception_ptr& error, const std::string& sentence) {
  if (sentence.empty()) return error;
  try {
    std::rethrow_exception(error);
  } catch (const ps::ServerLost& lost) {
    return std::make_exception_ptr(ps::ServerLost(lost.what() + ("\n" + sentence)));
  } catch (const CommError& comm_error) {
    if (comm_error.kind() == CommError::Kind::kMismatch) return error;
    return std::make_exception_ptr(CommError(comm_error.kind(), comm_error.what() + ("\n" + sentence)));
  } catch (...) {
    return error;
  }
}

int record_end(const std::exception_ptr& error, const StartedRank& rank, bool supervised) {
  const RunFolder& folder = rank.folder.value();
  const int status = record_exception(error, rank.rank(), folder.logs(), folder.log(rank.rank()));
  if (!supervised) report_once(folder.logs(), rank.launched.rank_info.size);
  return status;
}

bool is_known_to_all_ranks(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StartMismatch&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace phalanx
