// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

namespace phalanx {

class ActivationCheckpointing;  // models/activation_checkpointing.h
class BlockChain;               // models/block_chain.h
class ContextParallel;          // models/context_parallel.h
class ExpertParallel;           // models/expert_parallel.h
class Generative;               // models/generative.h
class IncrementalDecoding;      // models/incremental_decoding.h
class SequenceParallel;         // models/sequence_parallel.h

/// The optional interfaces that the class of a model implements, which are known before a model is made.
struct ModelTraits {
  bool activation_checkpointing = false;
  bool block_chain = false;
  bool context_parallel = false;
  bool expert_parallel = false;
  bool generative = false;
  bool incremental_decoding = false;
  bool sequence_parallel = false;

  bool operator==(const ModelTraits&) const = default;

  /// Returns the names of the traits that hold: "block_chain", "generative".
  std::vector<std::string> names() const;

  /// Returns the traits of the class `M`, the model's own class.
  template <class M>
  static constexpr ModelTraits of() {
    static_assert(!std::is_abstract_v<M>, "a factory must return a pointer to the model's own class, not to Model");
    return {.activation_checkpointing = std::derived_from<M, ActivationCheckpointing>,
            .block_chain = std::derived_from<M, BlockChain>,
            .context_parallel = std::derived_from<M, ContextParallel>,
            .expert_parallel = std::derived_from<M, ExpertParallel>,
            .generative = std::derived_from<M, Generative>,
            .incremental_decoding = std::derived_from<M, IncrementalDecoding>,
            .sequence_parallel = std::derived_from<M, SequenceParallel>};
  }
};

/// Returns the names of the registered models that have a trait, for messages: "gpt, llama, moe_gpt".
std::string models_with(bool ModelTraits::* trait);

}  // namespace phalanx
