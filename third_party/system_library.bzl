# SPDX-License-Identifier: Apache-2.0
"""A library that the operating system's packages provide."""

_BUILD = """\
exports_files(["found.bzl"])

cc_library(
    name = "{name}",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = {linkopts},
    defines = {defines},
    visibility = ["//visibility:public"],
)

# What depends on it links the static library, if there is one.
cc_library(
    name = "static",
    linkopts = {static_linkopts},
    visibility = ["//visibility:public"],
    deps = [":{name}"],
)
"""

# Folders of headers below a prefix. Debian keeps headers that differ between processors in separate folders.
_INCLUDES = ["include", "include/x86_64-linux-gnu", "include/aarch64-linux-gnu"]

# Folders of shared libraries below a prefix.
_LIBRARIES = ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"]

def _prefixes(repository_ctx):
    """Returns the prefixes that are searched, in order."""
    given = repository_ctx.os.environ.get("PHALANX_PREFIX_PATH", "").split(":")
    return [prefix for prefix in given if prefix] + ["/usr/local", "/usr"]

def _first_prefix(repository_ctx, paths):
    """Returns the first prefix under which every one of `paths` exists, or None."""
    for prefix in _prefixes(repository_ctx):
        if all([repository_ctx.path(prefix + "/" + path).exists for path in paths]):
            return prefix
    return None

def find_prefix(repository_ctx, paths):
    """Returns the first prefix under which every one of `paths` exists, or fails naming what to install."""
    found = _first_prefix(repository_ctx, paths)
    if found:
        return found
    fail("\n".join([
        "",
        "%s is not installed." % repository_ctx.attr.library,
        "  looked for: " + ", ".join(paths),
        "  under:      " + ", ".join(_prefixes(repository_ctx)),
        "  to do:      ./bazelw installs it on Debian and Ubuntu (package %s);" % repository_ctx.attr.debian,
        "              elsewhere install it and name its prefix in PHALANX_PREFIX_PATH (colon-separated).",
    ]))

def _write_build(repository_ctx, linkopts = [], defines = [], static_linkopts = []):
    repository_ctx.file("BUILD.bazel", _BUILD.format(
        name = repository_ctx.attr.library,
        linkopts = linkopts,
        defines = defines,
        static_linkopts = static_linkopts,
    ))

def _link_statically(repository_ctx, prefix):
    """Returns the options with which the linker finds only the static libraries; none if one of them is absent."""
    if not repository_ctx.attr.static:
        return []
    for library in repository_ctx.attr.libraries:
        name = "lib%s.a" % library
        found = [repository_ctx.path("%s/%s/%s" % (prefix, folder, name)) for folder in _LIBRARIES]
        found = [path for path in found if path.exists]
        if not found:
            return []
        repository_ctx.symlink(found[0], "static/" + name)
    return ["-L%s" % repository_ctx.path("static")]

def _system_library(repository_ctx):
    name = repository_ctx.attr.library
    headers = repository_ctx.attr.headers
    unwanted = repository_ctx.os.environ.get("PHALANX_WITHOUT", "").split(":") if repository_ctx.attr.optional else []
    prefix, include = None, None
    for folder in _INCLUDES if name not in unwanted else []:
        prefix, include = _first_prefix(repository_ctx, [folder + "/" + header for header in headers]), folder
        if prefix:
            break
    repository_ctx.file("found.bzl", "FOUND = %s\n" % bool(prefix))
    if not prefix and repository_ctx.attr.optional:
        absent = ["PHALANX_WITHOUT_" + name.upper()]
        _write_build(repository_ctx, defines = absent)
        return
    if not prefix:
        find_prefix(repository_ctx, ["include/" + header for header in headers])  # says what is missing
    libraries = list(repository_ctx.attr.libraries)
    defines = []
    for header in headers:
        path = repository_ctx.path("%s/%s/%s" % (prefix, include, header))
        repository_ctx.symlink(path, "include/" + header)
        for included, library in repository_ctx.attr.libraries_of_includes.items():
            if header.endswith(".h") and "#include <%s>" % included in repository_ctx.read(path):
                libraries.append(library)
    linkopts = [] if prefix == "/usr" else ["-L%s/lib" % prefix, "-Wl,-rpath,%s/lib" % prefix]
    linkopts += ["-l" + library for library in libraries]
    if repository_ctx.attr.namespace:
        linkopts = _copy_with_namespace(repository_ctx, prefix)
        defines = ["%s=%s" % (repository_ctx.attr.namespace, repository_ctx.attr.namespace_of_copy)]
    _write_build(repository_ctx, linkopts, defines, _link_statically(repository_ctx, prefix))

def _copy_with_namespace(repository_ctx, prefix):
    """Makes a copy of the library in a separate namespace (private_copy.py) and returns the options that link it."""
    library = repository_ctx.attr.libraries[0]
    paths = ["%s/%s/lib%s.so" % (prefix, folder, library) for folder in _LIBRARIES]
    found = [path for path in paths if repository_ctx.path(path).exists]
    if not found:
        fail("\n%s has no library; looked for %s.\nInstall %s." % (prefix, ", ".join(paths), repository_ctx.attr.debian))
    folder = str(repository_ctx.path("lib"))
    repository_ctx.file("lib/README", "A copy of %s with another namespace: private_copy.py\n" % found[0])
    names = [repository_ctx.attr.namespace, repository_ctx.attr.namespace_of_copy]
    script = str(repository_ctx.path(Label("//third_party:private_copy.py")))
    result = repository_ctx.execute(["python3", script, found[0], folder] + names)
    if result.return_code != 0:
        fail("\nprivate_copy.py %s: %s" % (found[0], result.stderr.strip()))
    return ["-L" + folder, "-Wl,-rpath," + folder, "-l:" + result.stdout.strip()]

_system_library_rule = repository_rule(
    implementation = _system_library,
    attrs = {
        "library": attr.string(mandatory = True, doc = "the name of the target; that of the repository may be longer"),
        "headers": attr.string_list(mandatory = True, doc = "files or folders under include/ that make up its interface"),
        "libraries": attr.string_list(doc = "names for -l"),
        "libraries_of_includes": attr.string_dict(
            doc = "names for -l that are needed where one of `headers` includes the key",
        ),
        "namespace": attr.string(
            doc = "the namespace of the only library; if given, what is linked is a copy of the library in which it is " +
                  "called namespace_of_copy, so that programs can contain another version of the library as well",
        ),
        "namespace_of_copy": attr.string(doc = "has as many letters as namespace"),
        "static": attr.bool(doc = "the target @NAME//:static links the static library"),
        "debian": attr.string(mandatory = True, doc = "the Debian package that has it"),
        "optional": attr.bool(doc = "where it is absent or named in PHALANX_WITHOUT (colon-separated), found.bzl has " +
                                    "FOUND = False, and the library nothing but the macro PHALANX_WITHOUT_NAME"),
    },
    environ = ["PHALANX_PREFIX_PATH", "PHALANX_WITHOUT"],
    local = True,
)

def system_library(name, libraries = None, **kwargs):
    _system_library_rule(name = name, library = name, libraries = [name] if libraries == None else libraries, **kwargs)
