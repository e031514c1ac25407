#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

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

  /// Values of a step, as of now. Throws DataError.
  void add(std::int64_t step, const std::vector<TaggedValue>& values);

  const std::string& path() const { return path_; }

 private:
  void write(const std::string& event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace phalanx
