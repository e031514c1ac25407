# SPDX-License-Identifier: Apache-2.0
"""The documents for users and contributors, with the commands and code that they show."""

import dataclasses
import pathlib
import re
import shlex

PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md", "docs/design/*.md"]

_FENCE = re.compile(r"```(\w*)\s*$")
_NOT_RUN = re.compile(r"<!-- not run:(.*)-->\s*$")


@dataclasses.dataclass
class Block:
    """A block between two lines of three backquotes."""
    page: str
    line: int  # line number of its first line
    language: str
    text: str
    not_run: object = None  # the reason, if a comment <!-- not run: REASON --> precedes the block

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    def right_below(self, other):
        """Returns true if only the two fences, and perhaps an empty line, are between this block and `other`."""
        return 0 < self.line - other.line - other.text.count("\n") <= 3

    def commands(self):
        """Returns the words of each command. Lines that end with a backslash are joined; comments are ignored."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def pages(root):
    return [path.relative_to(root).as_posix() for pattern in PAGES for path in sorted(root.glob(pattern))]


def blocks(root, page):
    """Returns all fenced blocks of a page."""
    found, block, not_run = [], None, None
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if block is None and fence:
            block = Block(page, number + 1, fence[1], "", not_run)
        elif block is not None and fence:
            found.append(block)
            block = not_run = None
        elif block is not None:
            block.text += line + "\n"
        elif line.strip():
            comment = _NOT_RUN.match(line)
            not_run = comment[1].strip() if comment else None
    assert block is None, f"{block.where}: the block has no end"
    return found


def shell_blocks(root, page):
    return [block for block in blocks(root, page) if block.language == "sh"]


def section(root, page, title):
    """Returns the text below a heading, up to the next heading of the same level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", (root / page).read_text(), re.M | re.S)
    assert found, f"{page} has no section {title}"
    return found[1]


def table(root, page, head):
    """Returns the rows of the table whose first column is called `head`, as lists of cells."""
    found = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", (root / page).read_text(), re.M)
    assert found, f"{page} has no table of {head}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines()]


def prose(root, page):
    """Yields the lines outside of blocks, with their numbers."""
    inside = False
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def rule(build, name):
    """Returns the text of the target `name` in a BUILD file, or an empty string if it is missing."""
    for text in re.findall(r"^\w+\(\n(?:    .*\n|\n)*\)\n", pathlib.Path(build).read_text(), re.M):
        if f'    name = "{name}",\n' in text:
            return text
    return ""
