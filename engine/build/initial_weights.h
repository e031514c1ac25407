// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/init_config.h"
#include "engine/config/lora_config.h"
#include "framework/base/storage/weights_file.h"
#include "models/model.h"

namespace phalanx {

/// The match between the tensors of a file and the tensors of a model. `file` and `model` must outlive it.
struct WeightsFit {
  /// Copies the values of the file, or its first rows, into the model's tensors, and converts them to the model's
  /// dtypes.
  void load(const WeightsFile& file) const;

  std::vector<std::pair<at::Tensor, const WeightsFile::Entry*>> fitting;  // tensor of the model, entry of the file
  std::vector<std::string> missing;         // names of the model that the file does not have
  std::vector<std::string> unexpected;      // names of the file that the model does not have
  std::vector<std::string> different;       // differ in shape, or only one has integers; with details
  std::vector<std::string> contradictions;  // config.json next to the file describes another model

  bool exact() const { return missing.empty() && unexpected.empty() && different.empty() && contradictions.empty(); }

  /// Returns a text such as "2 missing (fc.weight, fc.bias), 1 unexpected (head.weight)", with at most five names each.
  std::string text() const;
};

/// Matches the tensors of a file with the model's parameters and buffers by name, shape and dtype, and compares the
/// model with the config.json next to the file (published_config.h). Uses `rename` and `truncate` of `init`.
///
/// Prefixes that PyTorch's wrappers give to all names ("module.", "_orig_mod.") are ignored. Names of other versions of
/// Hugging Face's library (Published) are mapped to the model's names. A tensor with the same bits as a matching one is
/// not unexpected: it is a tied weight under its second name. Elements are read only for this comparison.
///
/// Throws ConfigError for an invalid regular expression, for a rename that gives two tensors the same name, and for a
/// `truncate` that matches no parameter.
WeightsFit fit_weights(const WeightsFile& file, const InitConfig& init, const Model& model);

/// Gives a whole model, before ranks divide it, the values of init.from in the model's dtypes, and freezes the
/// parameters that init.freeze matches. Every rank reads the file. If the model has adapters, only these and the
/// parameters that lora.also_train matches are trained; adapters that the file does not have keep their initial values.
///
/// Returns a text with the tensors that did not fit; empty if everything fits. Throws ConfigError if nothing fits or
/// init.strict does not allow the difference, and DataError for a file that cannot be read.
std::string load_initial_weights(const InitConfig& init, const LoraConfig& lora, Model& model);

}  // namespace phalanx
