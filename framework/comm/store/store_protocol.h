// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/handshake.h"

/// The messages between a StoreServer and its clients. Numbers are little-endian.
///
/// The two ends begin with a handshake (framework/base/handshake.h), without a claim.
///
/// Requests follow, each of them a RequestHeader, the key, and the value if the verb is kSet. The server carries them
/// out in order and answers each with a ReplyHeader, followed by the value if the reply to kGet is kDone.
namespace phalanx {

inline constexpr std::string_view kClientOpening = "phalanx store 1?";
inline constexpr std::string_view kServerOpening = "phalanx store 1!";
inline constexpr std::size_t kHelloBytes = kClientOpening.size() + kProofBytes;
inline const std::string kStoreIdentity = "phalanx store 1";
inline const HandshakeProtocol kStoreHandshake{.client_opening = std::string(kClientOpening),
                                               .server_opening = std::string(kServerOpening),
                                               .identity = kStoreIdentity};

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
