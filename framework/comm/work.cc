#include "framework/comm/work.h"

#include <exception>

#include "framework/base/log.h"

namespace phalanx {

void Work::finish() noexcept {
  if (!state_) return;
  try {
    wait();
  } catch (const std::exception& error) {
    log_error() << "an operation that nobody waited for failed: " << error.what();
  } catch (...) {
    log_error() << "an operation that nobody waited for failed";
  }
}

}  // namespace phalanx
