// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

class KeyValueCache;  // models/key_value_cache.h

/// A language model that can continue sequences token by token, with the keys and values of earlier tokens in a cache.
class IncrementalDecoding {
 public:
  virtual ~IncrementalDecoding() = default;

  /// From now on, in evaluation, inputs are the tokens that follow the tokens in `cache`, to which they are added, and
  /// outputs are those tokens' outputs. With null, inputs are whole sequences again. The cache must live until then.
  virtual void use_kv_cache(KeyValueCache* cache) = 0;
};

}  // namespace phalanx
