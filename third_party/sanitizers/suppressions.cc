// SPDX-License-Identifier: Apache-2.0
// Suppresses reports of the sanitizers about code of other projects. Compiled into every program of a sanitizer build.

#include <dlfcn.h>

// MPI keeps its tables until exit. They are allocated through a libc without frame pointers, so no stack names MPI and
// a suppression would not match. A process that has started MPI is therefore not checked for leaks; all others are.
extern "C" int MPI_Initialized(int* flag) __attribute__((weak));
extern "C" int __lsan_is_turned_off();

static bool is_started(int (*initialized)(int*)) {
  int started = 0;
  return initialized != nullptr && initialized(&started) == 0 && started != 0;
}

int __lsan_is_turned_off() {
  if (is_started(&MPI_Initialized)) return 1;
  void* const opened = ::dlopen("libmpi_abi.so.1", RTLD_LAZY | RTLD_NOLOAD);  // framework/backends/mpi/abi
  return opened != nullptr && is_started(reinterpret_cast<int (*)(int*)>(::dlsym(opened, "MPI_Initialized")));
}

// LibTorch's store leaks the buffer of a read that is pending when its connection ends.
extern "C" const char* __lsan_default_suppressions();

const char* __lsan_default_suppressions() { return "leak:c10d::detail::UvTcpSocket::alloc_buffer\n"; }

// oneDNN and the engine of autograd in LibTorch, and the counts of references to exceptions in the standard library,
// are compiled without the thread sanitizer, which therefore does not see the order that they establish. A pattern
// matches any frame of a stack, so the functions of autograd that call nodes must not be named: this would hide races
// of this project's code in backward. std::regex caches results of narrow() without a lock; all threads write the same
// values.
extern "C" const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return "race:dnnl::impl\nrace:torch::autograd::Engine::thread_main\nrace:torch::autograd::Engine::execute\n"
         "race:std::_Sp_counted_ptr_inplace<torch::autograd::GraphTask\n"
         "race:std::__exception_ptr::\nrace:std::ctype<char>::narrow\n";
}
