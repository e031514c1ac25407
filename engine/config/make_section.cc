// SPDX-License-Identifier: Apache-2.0
#include "engine/config/make_section.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/reason.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& yaml, const std::exception& error) {
  log_info() << "cannot make the " << key << ": " << error.what();  // includes the stack trace
  throw Error("cannot make the " + key + ": " + reason(error) + "\nReduce the sizes in this section of the config:\n" +
              yaml.substr(0, yaml.find_last_not_of('\n') + 1));
}

}  // namespace

void with_section(const std::string& key, const std::function<std::string()>& yaml, const std::function<void()>& make) {
  try {
    make();
  } catch (const c10::Error& error) {
    refuse(key, yaml(), error);
  } catch (const std::bad_alloc& error) {
    refuse(key, yaml(), error);
  } catch (const std::length_error& error) {  // thrown by a container before it allocates memory
    refuse(key, yaml(), error);
  }
}

}  // namespace phalanx
