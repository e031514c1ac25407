// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/communicator.h"

namespace phalanx::hybrid {

/// The ranks that are left of a group of a hybrid world: all of them, and those on this host.
struct Survivors {
  CommunicatorPtr all;
  CommunicatorPtr host;
};

/// Lets the ranks that are left of `groups` form new ones, and returns what `combine` makes of them; implements
/// Communicator::shrink().
///
/// Ranks may wait for this one in both groups, and learn only from the group in which they wait that this rank shrinks
/// it. So it shrinks both at the same time, the one of the host in a thread of its own, and calls `leave_others`, which
/// must leave all other groups in which ranks may wait.
///
/// The backend of all ranks decides who is left. The two backends may see the loss of a rank at different times, so
/// that one group has it and the other has not. That rank has ended, or leaves both groups as soon as one has gone on
/// without it. Then `combine`, which must use both groups, fails on some ranks with kPeerLost or std::invalid_argument
/// (link()), and these ranks shrink both groups again, which interrupts those that have succeeded.
///
/// Throws the errors of shrink() of both groups. Then this rank has left both.
CommunicatorPtr shrink_together(Survivors groups, const std::function<void()>& leave_others,
                                const std::function<CommunicatorPtr(const Survivors&)>& combine);

/// Returns why one of these groups cannot shrink; empty: both can.
std::string why_not_together(const Communicator& all, const Communicator& host);

}  // namespace phalanx::hybrid
