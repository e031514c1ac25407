// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gloo's headers of its TCP transport include this one, which Debian's package leaves out. Only what they use of it, in
// the layout that the library was compiled with.

#include <memory>
#include <thread>
#include <utility>

namespace gloo {

template <class T>
class ShareableNonOwningPtr;

/// Names an object that may end meanwhile.
template <class T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() = default;
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& object) : pointer_(object.pointer_) {}

  std::shared_ptr<T> lock() const { return pointer_.lock(); }

 private:
  std::weak_ptr<T> pointer_;
};

/// Keeps a named object from ending, for the short time that this lives; null when it has ended.
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

/// A member of the object that is named. Its destructor waits until nobody keeps the object any more.
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
