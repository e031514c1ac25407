#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a C++ library with another name for its namespace, so that the copy and the original, or another version of
it, can be part of one process.

    private_copy.py /usr/lib/libgloo.so FOLDER gloo Gloo

writes FOLDER/libGloo.so.0, whose symbols and type names are in the namespace Gloo, and prints the name of the file.
Code that uses it is compiled with -Dgloo=Gloo. Both names must have the same length, since they are replaced in place.
The dynamic linker finds symbols by a hash of their names, so the copy gets a new hash table, in the place of the old
one.
"""

import pathlib
import struct
import sys

_LOAD, _DYNAMIC = 1, 2  # kinds of segments
_END, _HASH, _STRTAB, _SYMTAB, _SONAME, _GNU_HASH = 0, 4, 5, 6, 14, 0x6FFFFEF5  # kinds of entries of the dynamic section
_SYMBOL = 24  # bytes of a symbol


class Library:
    """A 64-bit, little-endian ELF file with a GNU hash table. Throws ValueError for anything else."""

    def __init__(self, data):
        self.data = bytearray(data)
        if self.data[:6] != b"\x7fELF\2\1":
            raise ValueError("not a 64-bit, little-endian ELF file")
        begin, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        self._segments = [struct.unpack_from("<IIQQQQ", self.data, begin + size * i) for i in range(count)]
        self._entries = {tag: (at, value) for at, tag, value in self._dynamic()}
        if _GNU_HASH not in self._entries or _HASH in self._entries:
            raise ValueError("its only hash table must be a GNU one (--hash-style=gnu)")

    def _dynamic(self):
        for kind, _, offset, _, _, length in self._segments:
            for at in range(offset, offset + length, 16) if kind == _DYNAMIC else ():
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag == _END:
                    return
                yield at, tag, value

    def _offset(self, tag):
        """Returns where the file has the table to which an entry of the dynamic section points."""
        address = self._entries[tag][1]
        return next(offset + address - begin for kind, _, offset, begin, _, length in self._segments
                    if kind == _LOAD and begin <= address < begin + length)

    def rename(self, old, new):
        """Replaces a namespace in all symbols and type names, and the name of the library after it."""
        if len(old) != len(new):
            raise ValueError(f"{old} and {new} differ in length")
        for before, after in ((f"{len(old)}{old}", f"{len(new)}{new}"), (f"lib{old.lower()}", f"lib{new}")):
            self.data = self.data.replace(before.encode(), after.encode())

    def soname(self):
        return self._string(self._entries[_SONAME][1]).decode()

    def _string(self, at):
        begin = self._offset(_STRTAB) + at
        return self.data[begin:self.data.index(b"\0", begin)]

    def rehash(self):
        """Replaces the GNU hash table, which prescribes an order of the symbols, by a System V one, which does not."""
        table, symbols = self._offset(_GNU_HASH), self._offset(_SYMTAB)
        count, room = self._count(table), (self._table_end(table) - table) // 4
        buckets = [0] * min(count, room - count - 2)
        if not buckets:
            raise ValueError("its hash table is too small")
        chains = [0] * count
        for symbol in range(1, count):
            name, = struct.unpack_from("<I", self.data, symbols + _SYMBOL * symbol)
            at = _hash(self._string(name)) % len(buckets)
            chains[symbol], buckets[at] = buckets[at], symbol
        words = [len(buckets), count, *buckets, *chains]
        struct.pack_into(f"<{len(words)}I", self.data, table, *words)
        struct.pack_into("<Q", self.data, self._entries[_GNU_HASH][0], _HASH)

    def _count(self, table):
        """Returns the number of symbols, which only the end of the last chain of the hash table says."""
        buckets, first, blooms, _ = struct.unpack_from("<4I", self.data, table)
        begin = table + 16 + 8 * blooms
        last = max(struct.unpack_from(f"<{buckets}I", self.data, begin))
        chain = begin + 4 * buckets - 4 * first
        while not struct.unpack_from("<I", self.data, chain + 4 * last)[0] & 1:
            last += 1
        return last + 1

    def _table_end(self, table):
        buckets, first, blooms, _ = struct.unpack_from("<4I", self.data, table)
        return table + 16 + 8 * blooms + 4 * buckets + 4 * (self._count(table) - first)


def _hash(name):
    """Returns the hash of the System V ABI."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def main():
    source, folder, old, new = sys.argv[1:]
    library = Library(pathlib.Path(source).read_bytes())
    library.rename(old, new)
    library.rehash()
    pathlib.Path(folder, library.soname()).write_bytes(library.data)
    print(library.soname())


if __name__ == "__main__":
    main()
