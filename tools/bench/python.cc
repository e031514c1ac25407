// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/python.h"

#include <filesystem>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/bench/child.h"
#include "tools/bench/install.h"

namespace phalanx::bench {
namespace {

namespace fs = std::filesystem;

// A library that an interpreter needs, and how to install it with pip.
struct Library {
  const char* name;         // name in messages
  const char* requirement;  // requirement for pip
  const char* folder;       // folder of the environment in the cache
  const char* proof;        // Python program that succeeds if the library is there
  const char* flag;         // flag that names an interpreter
};

constexpr Library kTorch{.name = "PyTorch with gloo",
                         .requirement = "torch==2.13.0",
                         .folder = "torch-2.13.0",
                         .proof = "import torch.distributed as d, sys; sys.exit(not d.is_gloo_available())",
                         .flag = "--python"};

constexpr Library kJax{.name = "JAX",
                       .requirement = "jax==0.10.2",
                       .folder = "jax-0.10.2",
                       .proof = "import jax.numpy",
                       .flag = "--jax_python"};

constexpr const char* kInterpreter = "bin/python";

// A launcher of the system's Python that adds the packages next to it to PYTHONPATH.
constexpr const char* kPython = R"(#!/bin/sh
export PYTHONPATH="${0%/*}/../packages${PYTHONPATH:+:$PYTHONPATH}"
exec python3 "$@"
)";

// Returns an interpreter with its own packages. It is not a virtual environment: Debian's Python needs another package
// to make one.
std::string make_environment(const Library& library, const std::string& flag) {
  const Installation installation{.folder = library.folder,
                                  .what = library.requirement,
                                  .flag = flag,
                                  .remedy = std::string("; name an interpreter with ") + library.flag};
  const fs::path folder = install_once(installation, [&](const fs::path& place) {
    const fs::path python = place / kInterpreter, packages = place / "packages";
    fs::create_directories(python.parent_path());
    if (run_program({"python3", "-m", "pip", "install", "-q", "--target", packages, library.requirement, "numpy"}) !=
        0) {
      throw ConfigError(flag + ": python3 -m pip install " + library.requirement +
                        " failed, as printed above; name an interpreter that has " + library.name + " with " +
                        library.flag);
    }
    write_atomically(python, kPython);
    fs::permissions(python, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add);
  });
  return folder / kInterpreter;
}

std::string python_with(const Library& library, const std::string& wanted, const std::string& flag) {
  const std::string python = wanted.empty() ? make_environment(library, flag) : wanted;
  const int status = run_program({python, "-c", library.proof});
  if (status == 0) return python;
  const std::string what = status == 127 ? " cannot be started" : std::string(" has no ") + library.name;
  throw ConfigError(flag + ": " + python + what + "; name an interpreter that has it with " + library.flag);
}

}  // namespace

std::string python_with_torch(const std::string& wanted, const std::string& flag) {
  return python_with(kTorch, wanted, flag);
}

std::string python_with_jax(const std::string& wanted, const std::string& flag) {
  return python_with(kJax, wanted, flag);
}

}  // namespace phalanx::bench
