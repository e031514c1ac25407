#include <phalanx/phalanx.h>

#include <cstdio>

// The distributed function, which every rank runs.
void run(phalanx::World& world) { std::printf("rank %d of %d\n", world.rank(), world.size()); }

int main() { phalanx::launch(2, run); }
