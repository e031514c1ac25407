// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "framework/base/config/locate.h"
#include "launch/job/started_rank.h"

// The exception that ends a rank, on its way to the person.
namespace phalanx {

/// Logs an exception and returns it. A ConfigError gets its place.
std::exception_ptr log_exception(const std::exception_ptr& error, const config::Sources& sources);

/// Returns the text of an exception for the person.
std::string message_of(const std::exception_ptr& error);

/// Returns the error that ended a wait with `sentence`, which explains the wait, and other errors as they are.
std::exception_ptr explain(const std::exception_ptr& error, const std::string& sentence);

/// Records the exception that has ended a rank, which has a folder, for the process that reports it
/// (record_exception()). If no launcher of ours supervises the job (`supervised`), reports it, once for all ranks.
/// Returns the exit status of the rank.
int record_end(const std::exception_ptr& error, const StartedRank& rank, bool supervised);

/// Returns true if the other ranks of this host need not report the exception, since all ranks have the same one.
bool is_known_to_all_ranks(const std::exception_ptr& error);

}  // namespace phalanx
