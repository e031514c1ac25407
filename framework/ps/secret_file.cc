#include "framework/ps/secret_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx::ps {

std::string read_secret(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw ConfigError("secret file " + path + ": " + std::strerror(errno));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw ConfigError("secret file " + path + " can be used by others than its owner; chmod 600 " + path);
  }
  std::string text;
  try {
    text = read_file(path);
  } catch (const DataError& error) {
    throw ConfigError(std::string("secret file ") + error.what());
  }
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.empty()) {
    throw ConfigError("secret file " + path + " is empty; openssl rand -hex 32 > " + path + " makes a secret");
  }
  return text;
}

}  // namespace phalanx::ps
