// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/authentication.h"

/// The messages between a StoreServer and its clients. Numbers are little-endian.
///
/// The greeting has a fixed size and comes first. Each end proves that it knows the job's secret:
///
///     client   kClientOpening and its nonce
///     server   kServerOpening and its nonce
///     client   proof(secret, Role::kClient, client's nonce, server's nonce, kStoreIdentity)
///     server   proof(secret, Role::kServer, ...), or kRefusal, after which it closes the connection
///
/// Requests follow, each of them a RequestHeader, the key, and the value if the verb is kSet. The server carries them
/// out in order and answers each with a ReplyHeader, followed by the value if the reply to kGet is kDone.
namespace phalanx {

/// The openings differ so that a client which by chance is connected to itself does not take its own words for a reply.
inline constexpr std::string_view kClientOpening = "phalanx store 1?";
inline constexpr std::string_view kServerOpening = "phalanx store 1!";
inline constexpr std::size_t kHelloBytes = kClientOpening.size() + kProofBytes;
static_assert(kClientOpening.size() == kServerOpening.size());

inline const std::string kStoreIdentity = "phalanx store 1";

/// Says that the client's proof is wrong. No proof looks like it, since a proof has digits only.
inline const std::string kRefusal(kProofBytes, '-');

/// The length limit of keys. The keys of the backends have less than 200 bytes.
inline constexpr std::size_t kMaxKeyBytes = 4096;

/// The length limit of values. The longest value in use is the list of addresses that Gloo writes for each rank, with
/// about 200 bytes per peer: 2 MB for 10,000 ranks.
inline constexpr std::size_t kMaxValueBytes = 16 << 20;

enum class StoreVerb : std::uint32_t {
  kSet = 1,
  kGet,
  kAdd,  // values that are sums are decimal numbers, as in c10d's stores
};

struct RequestHeader {
  StoreVerb verb{};
  std::uint32_t key_bytes = 0;
  std::int64_t argument = 0;  // kSet: the bytes of the value; kAdd: the amount
};
static_assert(sizeof(RequestHeader) == 16);

enum class StoreStatus : std::uint32_t {
  kDone = 1,
  kAbsent,     // kGet: the key is not set
  kNotANumber  // kAdd: the key's value is not a number; nothing was changed
};

struct ReplyHeader {
  StoreStatus status{};
  std::uint32_t unused = 0;
  std::int64_t result = 0;  // kGet: the bytes of the value; kAdd: the sum
};
static_assert(sizeof(ReplyHeader) == 16);

}  // namespace phalanx
