// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/init_config.h"
#include "engine/experiment/lora_config.h"
#include "framework/base/storage/weights_file.h"
#include "models/model.h"

namespace phalanx {

/// Which tensors of a file go to which ones of a model, and what is left over. `file` and `model` must outlive it.
struct WeightsFit {
  /// Gives the model's tensors the values of the file, or of its first rows, in the model's dtypes.
  void load(const WeightsFile& file) const;

  std::vector<std::pair<at::Tensor, const WeightsFile::Entry*>> fitting;  // of the model, of the file
  std::vector<std::string> missing;                                       // the model's that the file does not have
  std::vector<std::string> unexpected;                                    // the file's that the model does not have
  std::vector<std::string> different;       // of another shape, or integers where the other has none; says which
  std::vector<std::string> contradictions;  // what the config.json beside the file says of another model

  bool exact() const { return missing.empty() && unexpected.empty() && different.empty() && contradictions.empty(); }

  /// "2 missing (fc.weight, fc.bias), 1 unexpected (head.weight)"; at most five names of each.
  std::string text() const;
};

/// Compares names, shapes and dtypes of the model's parameters and buffers, and the config.json next to the file
/// (published_config.h). Prefixes that PyTorch's wrappers give to all names ("module.", "_orig_mod.") do not count, and
/// neither does a tensor that repeats a fitting one bit for bit, as a tied weight under its other name: elements are
/// read only to find that out. Names of other versions of Hugging Face's library (Published) count as the model's. Of
/// `init`, `rename` and `truncate` are used. Throws ConfigError for what is no regular expression, for a rename that
/// gives two tensors the same name, and for `truncate` if it matches no parameter.
WeightsFit fit_weights(const WeightsFile& file, const InitConfig& init, const Model& model);

/// Gives a whole model, before ranks divide it, the values of init.from, in the model's dtypes, and freezes what
/// init.freeze matches. Every rank reads the file. Returns what was left over, for people: empty where everything fits.
/// Throws ConfigError where strict does not allow it or nothing fits, and DataError for a file that cannot be read.
/// A model with adapters begins with those in the file, or with new ones; of the others then those are trained that
/// lora.also_train matches.
std::string load_initial_weights(const InitConfig& init, const LoraConfig& lora, Model& model);

}  // namespace phalanx
