// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/watch/appended_file.h"

namespace phalanx {

/// A value by its tag: "train/loss".
struct TaggedValue {
  std::string tag;
  double value = 0;
};

/// A file of TensorBoard's: events in the format of protocol buffers (tensorflow/core/util/event.proto and
/// framework/summary.proto; only scalars), in the framing of TFRecord files, where length and content of each record
/// carry a masked CRC-32C. Events are on disk as soon as they are added.
class EventFile {
 public:
  /// A new file in `folder`, which is made if needed. `first_step`: events of older files from this step on no longer
  /// count. Throws DataError.
  EventFile(const std::string& folder, std::int64_t first_step);

  /// Adds values of a step, as of now. Throws DataError where they cannot be written yet: see AppendedFile.
  void add(std::int64_t step, const std::vector<TaggedValue>& values);

  const std::string& path() const { return file_.path(); }

 private:
  AppendedFile file_;
  std::string begin_;  // the first records, which come with the first values
};

}  // namespace phalanx
