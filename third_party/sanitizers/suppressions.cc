// SPDX-License-Identifier: Apache-2.0
// What the sanitizers would report of the code of others. Compiled into every program of a sanitizer build.

// Open MPI keeps its tables until exit, allocated through a libc without frame pointers, so that no stack would name
// Open MPI to a suppression. A process that has started it is therefore not asked for leaks; all others are.
extern "C" int MPI_Initialized(int* flag) __attribute__((weak));
extern "C" int __lsan_is_turned_off();

int __lsan_is_turned_off() {
  int started = 0;
  return MPI_Initialized != nullptr && MPI_Initialized(&started) == 0 && started != 0;
}

// oneDNN, in LibTorch, is compiled without the thread sanitizer, which so sees its locks but not what orders them.
// std::regex keeps what narrow() answered without a lock; all threads write the same.
extern "C" const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() { return "race:dnnl::impl\nrace:std::ctype<char>::narrow\n"; }
