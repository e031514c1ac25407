# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files by their specifications alone: TFRecord framing (tensorflow.org/tutorials/load_data/
tfrecord), the wire format of protocol buffers, and the fields of event.proto and summary.proto that hold scalars."""

import struct


def _make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _make_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields the contents of the records of a file. Throws ValueError if a checksum is wrong or the file ends early."""
    at = 0
    while at < len(data):
        header = data[at:at + 12]
        length, length_crc = struct.unpack("<QI", header)
        if masked_crc32c(header[:8]) != length_crc:
            raise ValueError(f"the length at byte {at} has another checksum")
        content, crc = data[at + 12:at + 12 + length], data[at + 12 + length:at + 16 + length]
        if masked_crc32c(content) != struct.unpack("<I", crc)[0]:
            raise ValueError(f"the record at byte {at} has another checksum")
        yield content
        at += 16 + length


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message):
    """Yields (number, value) of each field of a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        elif kind == 2:
            length, at = _varint(message, at)
            value, at = message[at:at + length], at + length
        elif kind == 5:
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        yield number, value


def read(data):
    """Returns the file's version, the step that its session starts with, and its scalars as {tag: [(step, value),
    ...]}."""
    version, first, scalars = None, None, {}
    for record in records(data):
        event = dict(fields(record))
        version = version or event.get(3, b"").decode()
        if dict(fields(event.get(7, b""))).get(1) == 1:
            first = event.get(2, 0)
        for _, value in fields(event.get(5, b"")):
            parts = dict(fields(value))
            scalars.setdefault(parts[1].decode(), []).append((event.get(2, 0), parts[2]))
    return version, first, scalars


def merge(files):
    """Merges the scalars of files, in the order in which they were started, as TensorBoard shows them: values of
    earlier files are dropped from the first step of a later session on."""
    merged = {}
    for data in files:
        _, first, scalars = read(data)
        merged = {tag: [(step, value) for step, value in points if step < first] for tag, points in merged.items()}
        for tag, points in scalars.items():
            merged.setdefault(tag, []).extend(points)
    return merged
