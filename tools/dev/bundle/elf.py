# SPDX-License-Identifier: Apache-2.0
"""Reads and changes what a shared library or program tells the dynamic linker."""

import struct

_LOAD, _DYNAMIC = 1, 2  # kinds of segments
_END, _NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 0, 1, 5, 14, 15, 29  # kinds of entries


class Elf:
    """A 64-bit, little-endian ELF file. Throws ValueError for anything else."""

    def __init__(self, data):
        self.data = bytearray(data)
        if self.data[:6] != b"\x7fELF\2\1":
            raise ValueError("not a 64-bit, little-endian ELF file")
        self._segments = []
        begin, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        for at in range(begin, begin + size * count, size):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, at)
            self._segments.append((kind, offset, address, length))
        self._entries = list(self._dynamic())
        self._strings = next((self._offset_of(value) for _, tag, value in self._entries if tag == _STRTAB), None)
        if self._strings is None:
            raise ValueError("not linked with any shared library")

    def _dynamic(self):
        for kind, offset, _, length in self._segments:
            for at in range(offset, offset + length, 16) if kind == _DYNAMIC else ():
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag == _END:
                    return
                yield at, tag, value

    def _offset_of(self, address):
        for kind, offset, begin, length in self._segments:
            if kind == _LOAD and begin <= address < begin + length:
                return offset + address - begin
        raise ValueError(f"address {address:#x} is not in any segment")

    def _string(self, value):
        begin = self._strings + value
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def needed(self):
        """Returns the names of the libraries that the file is linked with."""
        return [self._string(value) for _, tag, value in self._entries if tag == _NEEDED]

    def soname(self):
        """Returns the name under which programs that are linked with the file look for it, or None."""
        return next((self._string(value) for _, tag, value in self._entries if tag == _SONAME), None)

    def run_paths(self):
        """Returns [(applies to the libraries' own needs too, path)]: true for DT_RPATH, false for DT_RUNPATH."""
        return [(tag == _RPATH, self._string(value)) for _, tag, value in self._entries if tag in (_RPATH, _RUNPATH)]

    def set_run_path(self, path):
        """Replaces the present run paths with one that applies to the libraries' own needs too. Does nothing if there
        is none.

        Unlike LD_LIBRARY_PATH, a run path is not inherited by other programs. Throws ValueError if the old one is
        shorter.
        """
        present = [entry for entry in self._entries if entry[1] in (_RPATH, _RUNPATH)]
        for at, _, value in present:
            old = self._string(value)
            if len(old) < len(path):
                raise ValueError(f"its run path {old} is too short for {path}")
            # The end of a string may be another string, so only as many bytes as needed are overwritten.
            self.data[self._strings + value:self._strings + value + len(path) + 1] = path.encode() + b"\0"
            struct.pack_into("<Q", self.data, at, _RPATH)
        self._entries = list(self._dynamic())
