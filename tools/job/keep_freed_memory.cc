#include "tools/job/keep_freed_memory.h"

#include <malloc.h>

namespace phalanx {

void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, kMallocMmapMax);
  ::mallopt(M_TRIM_THRESHOLD, kMallocTrimThreshold);
  ::mallopt(M_TOP_PAD, kMallocTopPad);
}

}  // namespace phalanx
