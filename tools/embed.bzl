# SPDX-License-Identifier: Apache-2.0
"""Embeds texts as strings in a program."""

def embed(name, srcs, header, namespace, symbol):
    """Generates <name>.cc, which defines `const char* const <symbol>`, declared in `header`: the files joined in
    order."""
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = """
            { echo '#include "%s"'
              echo 'namespace %s {'
              printf 'const char* const %s = R"embedded('
              cat $(SRCS)
              echo ')embedded";'
              echo '}'
            } > $@
        """ % (header, namespace, symbol),
    )
