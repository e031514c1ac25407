// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/ps/protocol/message.h"
#include "framework/ps/replication/replica.h"

/// A ReplicaMessage on the wire is a message of verb kReplica. Its text has the fields for which the header has no
/// place. Its payload is the payload of the request, or all bytes of the state. Both ends must run the same program,
/// since integers are sent as they lie in memory.
namespace phalanx::ps {

Message encoded(const ReplicaMessage& message);

/// Decodes a message. Throws ConnectionError if it is not a valid ReplicaMessage.
ReplicaMessage decoded(Message message);

/// Allocates memory for the payload of a message that another server has begun to send. A server whose shards may have
/// `memory_bytes` of values accepts a few times as much, since a state has more than the values, but never more than
/// this host's memory. Throws ConnectionError if the payload is longer.
at::Tensor room_for_replica(const Message& begun, std::int64_t memory_bytes);

}  // namespace phalanx::ps
