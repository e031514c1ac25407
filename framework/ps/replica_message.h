// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/ps/message.h"
#include "framework/ps/replica.h"

/// A ReplicaMessage on the wire: a message of verb kReplica. Its text has what the header has no place for; its payload
/// is that of the request, or all bytes of the state. Between programs of the same kind: integers as they lie in
/// memory.
namespace phalanx::ps {

Message encoded(const ReplicaMessage& message);

/// Throws ConnectionError for what is none.
ReplicaMessage decoded(Message message);

/// Memory for the payload of a message that another server begins.
at::Tensor room_for_replica(const Message& begun);

}  // namespace phalanx::ps
