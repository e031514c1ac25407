// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace phalanx {

/// Does several things of which each has to be done even if another one has failed, and keeps the first error. Not
/// thread-safe.
class FirstError {
 public:
  /// Calls `body`. Keeps what it throws, unless an earlier one has thrown.
  template <class Body>
  void of(const Body& body) {
    try {
      body();
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }

  /// Throws the first error, if there was one.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

}  // namespace phalanx
