// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <chrono>

namespace phalanx::testing {

/// From now on, communicators of this process whose rank is `rank` report `result` as their asynchronous error, as
/// after the end of a peer, and their operations do not end before they are aborted. ncclSuccess ends that.
void break_nccl(int rank, ncclResult_t result);

/// The longest time after which a thread of a non-blocking communicator enqueues a call. Most calls take much less.
void delay_nccl(std::chrono::microseconds longest);

/// While `hold` is true, ncclCommAbort() does not return, and operations go on. It ends after 10 seconds all the same.
void hold_nccl_aborts(bool hold);

/// Returns the number of operations of which some memory was free when an abort ended them. They could still write
/// there, unless the stream to which the memory belongs waits for them.
long nccl_freed_early();

/// Returns the number of calls that created a thread, by non-blocking communicators of this process.
long nccl_threads();

/// Returns the number of communicators of this process that were neither destroyed nor aborted.
long nccl_communicators();

/// Returns how often this process has called the function, such as "ncclAllGather".
long nccl_calls(const char* function);

}  // namespace phalanx::testing
