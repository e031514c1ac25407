// SPDX-License-Identifier: Apache-2.0
#include "framework/base/secret_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"

namespace phalanx {
namespace {

std::string without_space(const std::string& text) {
  constexpr const char* kSpace = " \t";
  const auto begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

std::string read_secret(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw ConfigError("secret file " + path + ": " + std::strerror(errno));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw ConfigError("secret file " + path + " can be accessed by users other than its owner; run chmod 600 " + path);
  }
  std::string text;
  try {
    text = read_file(path);
  } catch (const DataError& error) {
    throw ConfigError(std::string("secret file ") + error.what());
  }
  text = without_space(text.substr(0, text.find_first_of("\r\n")));
  if (text.size() < kMinSecretBytes) {
    throw ConfigError("secret file " + path + (text.empty() ? " is empty" : " has a secret that is too short") +
                      ": its first line needs at least " + std::to_string(kMinSecretBytes) +
                      " characters; openssl rand -hex 32 > " + path + " creates one");
  }
  return text;
}

}  // namespace phalanx
