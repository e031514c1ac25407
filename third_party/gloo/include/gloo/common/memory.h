// SPDX-License-Identifier: Apache-2.0
#pragma once

// The headers of Gloo's TCP transport include this one, which is not in Debian's package. It has only the parts that
// they use, in the layout with which the library was compiled.

#include <memory>
#include <thread>
#include <utility>

namespace gloo {

template <class T>
class ShareableNonOwningPtr;

/// References an object that may be destroyed in the meantime.
template <class T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() = default;
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& object) : pointer_(object.pointer_) {}

  std::shared_ptr<T> lock() const { return pointer_.lock(); }

 private:
  std::weak_ptr<T> pointer_;
};

/// Keeps a referenced object alive for the short lifetime of this pointer; null if the object was destroyed.
template <class T>
class NonOwningPtr final {
 public:
  NonOwningPtr() = default;
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& name) : pointer_(name.lock()) {}

  T* operator->() const noexcept { return pointer_.get(); }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }

 private:
  std::shared_ptr<T> pointer_;
};

/// A member of the referenced object. Its destructor waits until no one keeps the object alive any more.
template <class T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* object) : pointer_(object, [](T*) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;

  ~ShareableNonOwningPtr() {
    const std::weak_ptr<T> kept = std::exchange(pointer_, nullptr);
    while (!kept.expired()) std::this_thread::yield();
  }

 private:
  friend class WeakNonOwningPtr<T>;
  std::shared_ptr<T> pointer_;
};

}  // namespace gloo
