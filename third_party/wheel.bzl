"""C++ libraries that are published as Python wheels."""

_FAILURE = """
{requirement} could not be downloaded.
  tried:  {command}
  {output}
  or:     {instead}"""

# pip takes a wheel for an older glibc only where that is named, too.
_GLIBCS = ["2_%d" % minor for minor in range(28, 16, -1)]

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
        fail(_FAILURE.format(
            requirement = repository_ctx.attr.requirement,
            command = " ".join(command),
            output = (result.stdout + result.stderr).strip().replace("\n", "\n  "),
            instead = repository_ctx.attr.instead,
        ))
    for wheel in repository_ctx.path("wheel").readdir():
        repository_ctx.symlink(wheel, "wheel.zip")  # extract() goes by the name
        repository_ctx.extract("wheel.zip", stripPrefix = repository_ctx.attr.strip_prefix)
    repository_ctx.delete("wheel.zip")
    repository_ctx.delete("wheel")
    repository_ctx.file("BUILD.bazel")

wheel = repository_rule(
    doc = "What a wheel holds under strip_prefix. pip's own configuration (index, certificates, cache) applies.",
    implementation = _wheel,
    attrs = {
        "requirement": attr.string(mandatory = True, doc = "name==version"),
        "strip_prefix": attr.string(mandatory = True),
        "instead": attr.string(mandatory = True, doc = "what a user can do where pip cannot download"),
    },
)
