# SPDX-License-Identifier: Apache-2.0
"""What the corpora have in common: where they are, and containers of several formats."""

import io
import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent.parent
ROOT = HERE.parent.parent


def write(target, **inputs):
    """Writes inputs, text or bytes, by name."""
    folder = HERE / "testdata" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in inputs.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def crc32c(data):
    """Returns the CRC-32C of bytes."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def stored(entries, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return buffer.getvalue()
