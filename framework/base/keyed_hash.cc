// SPDX-License-Identifier: Apache-2.0
#include "framework/base/keyed_hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "framework/base/error.h"

namespace phalanx {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

std::string random_text() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(std::string("cannot get random numbers: ") + std::strerror(errno));
  }
  return hexadecimal(bytes.data(), bytes.size());
}

// Each part is preceded by its length, so that different lists of parts never give the same text.
std::string keyed_hash(const std::string& secret, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const auto part : parts) {
    text += std::to_string(part.size()) + ":";
    text += part;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (::HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(), &size) == nullptr) {
    throw Error("OpenSSL cannot compute HMAC-SHA-256");
  }
  return hexadecimal(hash.data(), size);
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error("OpenSSL cannot compute SHA-256");
  }
  return hexadecimal(hash.data(), size);
}

bool equal_hashes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace phalanx
