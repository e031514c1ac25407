// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/observe/metrics/appended_file.h"

namespace phalanx {

/// A value with its tag, such as "train/loss".
struct TaggedValue {
  std::string tag;
  double value = 0;
};

/// An event file of TensorBoard. Events have the format of protocol buffers (tensorflow/core/util/event.proto and
/// framework/summary.proto; only scalars). They are framed as in TFRecord files, where length and content of each
/// record carry a masked CRC-32C. Events are on disk as soon as they are added.
class EventFile {
 public:
  /// Creates a file in `folder`, and the folder if necessary. `first_step`: events of older files from this step on
  /// become invalid. Throws DataError.
  EventFile(const std::string& folder, std::int64_t first_step);

  /// Adds the values of a step with the current time. Throws DataError if they cannot be written yet: see AppendedFile.
  void add(std::int64_t step, const std::vector<TaggedValue>& values);

  /// Writes what could not be written before, as AppendedFile does.
  void retry() { file_.add(""); }

  const std::string& path() const { return file_.path(); }

 private:
  AppendedFile file_;
  std::string begin_;  // the first records, written with the first values
};

}  // namespace phalanx
