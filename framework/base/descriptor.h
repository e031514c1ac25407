// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace phalanx {

/// Owns an open file descriptor, or none (-1).
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  /// Returns the descriptor, which the caller now owns.
  int release() { return std::exchange(fd_, -1); }

  /// Returns another descriptor of the same open file, which exec closes. Returns an invalid descriptor and sets errno
  /// on failure.
  Descriptor duplicate() const { return Descriptor(::fcntl(fd_, F_DUPFD_CLOEXEC, 0)); }

  void close() {
    if (valid()) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

}  // namespace phalanx
