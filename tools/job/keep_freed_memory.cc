#include "tools/job/keep_freed_memory.h"

#include <malloc.h>

namespace phalanx {

void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace phalanx
