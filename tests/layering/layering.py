# SPDX-License-Identifier: Apache-2.0
"""Defines which layer may include and depend on which, and checks the tree for violations."""

import ast
import os
import pathlib
import re

# The layers directly below each layer. A layer may use itself and everything below it. Siblings, neither of which is
# below the other, must not use each other.
BELOW = {
    "tests": ["tools", "examples", "framework/testing"],
    "tools": ["phalanx"],
    "examples": ["phalanx"],
    "phalanx": ["launch"],
    "launch": ["engine", "framework/backends"],
    "engine": ["models", "datasets"],
    "models": ["framework/parallel", "framework/ps"],
    "datasets": ["framework/parallel", "framework/ps"],
    "framework/testing": [
        "framework/backends", "framework/collectives", "framework/observe", "framework/kernels"
    ],
    "framework/parallel": [
        "framework/collectives", "framework/observe", "framework/kernels", "framework/partition"
    ],
    "framework/partition": ["framework/comm"],
    "framework/ps": ["framework/collectives", "framework/observe"],
    "framework/collectives": ["framework/comm"],
    "framework/backends": ["framework/collectives"],
    "framework/observe": ["framework/comm"],
    "framework/comm": ["framework/base"],
    "framework/kernels": ["framework/base"],
    "framework/base": ["third_party"],
    "third_party": [],
}

# Unit tests and other testonly code of every layer may also use this layer.
FOR_TESTS = "framework/testing"

FOLDERS = sorted({layer.split("/")[0] for layer in BELOW})
SOURCES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def layer_of(path):
    """Returns the layer of a path under the root, or None if the architecture does not cover it."""
    return next((layer for layer in BELOW if f"{path}/".startswith(layer + "/")), None)


def allowed(layer, is_test=False):
    """Returns the layers that code of `layer` may use."""
    result = {layer} | ({FOR_TESTS} if is_test else set())
    for below in BELOW[layer]:
        result |= allowed(below)
    return result


def check(root):
    """Returns one line for each violation under `root`, a pathlib.Path."""
    rules = [rule for folder in FOLDERS for build in sorted((root / folder).rglob("BUILD*")) for rule in _rules(root, build)]
    errors = [error for rule in rules for error in _check_rule(rule)]
    test_sources = {source for rule in rules if rule["is_test"] for source in rule["sources"]}
    for folder in FOLDERS:
        for source in sorted((root / folder).rglob("*")):
            if source.suffix in SOURCES:
                path = source.relative_to(root).as_posix()
                errors += _check_source(root, path, path in test_sources or path.endswith("_test.cc"))
    return errors


def _rules(root, build):
    """Yields the targets of a BUILD file, which is close enough to Python to be parsed as such."""
    package = build.parent.relative_to(root).as_posix()
    calls = [node for node in ast.walk(ast.parse(build.read_text())) if isinstance(node, ast.Call)]
    keywords = [({k.arg: k.value for k in call.keywords}, getattr(call.func, "id", "")) for call in calls]
    all_testonly = any(_is_true(arguments.get("default_testonly")) for arguments, _ in keywords)
    for arguments, kind in keywords:
        if "name" in arguments:
            sources = _strings(arguments.get("srcs")) + _strings(arguments.get("hdrs"))
            yield {
                "file": build.relative_to(root).as_posix(),
                "package": package,
                "is_test": all_testonly or kind.endswith("_test") or _is_true(arguments.get("testonly")),
                "sources": [f"{package}/{source}" for source, _ in sources],
                "deps": _strings(arguments.get("deps")) + _strings(arguments.get("actual")),
            }


def _strings(node):
    """Returns the strings of an expression with their lines: of a list, a select, or a sum of these."""
    nodes = ast.walk(node) if node else []
    return [(n.value, n.lineno) for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _is_true(node):
    return isinstance(node, ast.Constant) and node.value in (True, 1)


def _check_rule(rule):
    for label, line in rule["deps"]:
        where = f"{rule['file']}:{line}"
        if label.startswith("//"):
            yield from _check_use(where, rule["package"], "depends on", label, label[2:].split(":")[0], rule["is_test"])
        elif label.startswith("@") and layer_of(rule["package"]) != "third_party":
            yield f"{where}: depends on {label}; allowed: //third_party, which has an alias for each repository"


def _check_source(root, path, is_test):
    for line, text in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(text)
        if match:
            sibling = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
            target = sibling if (root / sibling).exists() else match[1]
            yield from _check_use(f"{path}:{line}", path, "includes", match[1], target, is_test)


def _check_use(where, user, verb, name, target, is_test):
    layer, used = layer_of(user), layer_of(target)
    if layer is None:
        yield f"{where}: {user} is not in any layer; add one to BELOW in tests/layering/layering.py"
    elif used is not None and used not in allowed(layer, is_test):
        names = ", ".join(sorted(allowed(layer, is_test)))
        yield f"{where}: {layer} {verb} {name}, which belongs to {used}; allowed: {names}"
