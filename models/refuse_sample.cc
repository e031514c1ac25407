#include "models/refuse_sample.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

void refuse_sample(const std::string& model, const std::string& needs, const SampleSpec& sample) {
  std::vector<std::string> sizes;
  for (const auto size : sample.input) sizes.push_back(std::to_string(size));
  throw ConfigError("model " + model + " needs " + needs + ", but a sample is [" + join(sizes, ", ") + "]" +
                    (sample.dtype == at::kLong ? " indices" : ""));
}

}  // namespace phalanx
