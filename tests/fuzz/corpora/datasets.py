# SPDX-License-Identifier: Apache-2.0
"""Files of datasets: images, arrays, archives and tables."""

import io
import json
import struct
import tarfile
import zipfile
import zlib

from corpora.inputs import stored, write


def idx(shape, values, magic=b"\0\0\x08"):
    return magic + bytes([len(shape)]) + b"".join(struct.pack(">I", size) for size in shape) + values


def make_idx():
    import gzip
    write("idx", good=idx([2, 2, 3], bytes(range(12))), good_gzip=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0),
          rank=idx([2], b"ab"), type=idx([1, 1, 1], b"a", b"\0\0\x09"), magic=idx([1, 1, 1], b"a", b"\1\0\x08"),
          zero=idx([0, 1, 1], b""), short=idx([2, 2, 2], b"a"), long=idx([1, 1, 1], b"ab"), header=b"\0\0\x08\3\0",
          huge=idx([0xffffffff] * 3, b"a"), empty=b"",
          gzip_cut=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0)[:-6],
          gzip_damaged=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0)[:-8] + bytes(8))


def npy(descr="'<f4'", order="False", shape="(2, 3)", numbers=bytes(24), version=1):
    header = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + \
        header.encode() + numbers


def make_numpy():
    packed = stored({"x.npy": npy(numbers=bytes(24))}, zipfile.ZIP_DEFLATED)
    plain = stored({"y.npy": npy(), "x.npy": npy()})
    central = packed.index(b"PK\x01\x02")
    write("numpy", good=npy(), good_2=npy(version=2), good_fortran=npy(order="True"), good_half=npy("'>f2'", numbers=bytes(12)),
          good_bytes=npy("'|u1'", shape="(5,)", numbers=b"abcde"), good_scalar=npy("'<i8'", shape="()", numbers=bytes(8)),
          good_none=npy(shape="(0, 3)", numbers=b""), good_archive=plain, good_packed=packed,
          magic=b"NUMPY", header=npy()[:20], no_descr=npy().replace(b"descr", b"xescr"), fields=npy("[('a', '<f4')]"),
          type=npy("'<c8'"), object=npy("'|O'"), shape=npy(shape="(x)"), negative=npy(shape="(-1,)"),
          huge=npy(shape="(%d, 4)" % (1 << 62)), short=npy(numbers=b""), long=npy(numbers=bytes(25)),
          no_array=stored({"y.npy": npy()}), archive_cut=plain[:-8], checksum=plain.replace(bytes(24), b"\1" * 24),
          method=packed[:central + 10] + b"\x0c" + packed[central + 11:],
          claims=packed[:central + 24] + struct.pack("<I", 0xfffffffe) + packed[central + 28:],
          stream=packed.replace(packed[60:70], bytes(10)))


def tar_of(entries, kind=tarfile.USTAR_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.LNKTYPE, entries[0][0]
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    return buffer.getvalue().rstrip(b"\0") + bytes(1024)


def tar_block(name, size, kind, content=b"", target=b""):
    block = bytearray(512)
    block[:len(name)] = name
    block[124:124 + len(size)] = size
    block[156:157] = kind
    block[157:157 + len(target)] = target
    block[257:265] = b"ustar\00000"
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    return bytes(block) + content + bytes(-len(content) % 512)


def make_tar():
    def record(key, value):
        body = " %s=%s\n" % (key, value)
        length = len(body) + 2 if len(body) < 98 else len(body) + 3
        return ("%d" % length + body).encode()

    def with_record(key, value):
        text = record(key, value)
        return tar_block(b"p", b"%011o" % len(text), b"x", text) + tar_block(b"a", b"0", b"0") + ending

    plain, long = [("a.jpg", b"x"), ("b.txt", bytes(600))], [("n" * 150, b"x")]
    ending = bytes(1024)
    write("tar", good=tar_of(plain), good_pax=tar_of(long, tarfile.PAX_FORMAT), good_gnu=tar_of(long, tarfile.GNU_FORMAT),
          good_link=tar_of([("a", b"x"), ("b", None)]),
          good_binary_size=tar_block(b"a", b"\x80" + bytes(10) + b"\1", b"0", b"x") + ending,
          cut=tar_of(plain)[:1900], gzip=b"\x1f\x8b\x08" + bytes(600), checksum=tar_of(plain).replace(b"a.jpg", b"b.jpg"),
          size=tar_block(b"a", b"xyz", b"0") + ending, too_long=tar_block(b"a", b"00000077777", b"0") + ending,
          binary_overflow=tar_block(b"a", b"\x80" + b"\xff" * 11, b"0") + ending,
          pax_size=with_record("size", "x"), pax_huge=with_record("size", str(1 << 62)),
          name_cut=tar_block(b"p", b"00000001000", b"L"),
          pax_damaged=tar_block(b"p", b"00000000004", b"x", b"9 ab") + ending,
          name_too_long=tar_block(b"l", b"00077777777", b"L") + ending,
          no_target=tar_block(b"b", b"0", b"1", target=b"a") + ending, empty=b"")


def make_table():
    write("table", good="a,b,c\n1,2,x\n3,4,y\n5,6,x\n", good_quoted='a;b;c\n"1";"2";"x;""y"\n3;4;z\n',
          good_missing="a\tb\n1\t0\n2\t1\n", ragged="a,b\n1,2\n3\n", quote='a,b\n1,2"3\n', open_quote='a,b\n1,"2\n',
          not_utf8=b"a,b\n\xff,1\n", empty="", header_only="a,b\n", infinite="a,b\n1e999,1\n2,3\n",
          mixed="a,b\n1,1\nx,2\n", missing="a,b\n,1\n2,2\n", gzip_cut=b"\x1f\x8b\x08\0\0\0", nul=b"a,b\n\0,1\n1,2\n")


def make_encoding():
    def encoding(target=None, column=None, **changes):
        number = {"name": "age", "type": "number", "missing": "fill", "fill": 2.5, "indicator": True, "mean": 1, "scale": 2}
        text = {"name": "sex", "type": "text", "missing": "drop", "categories": ["f", "m"]}
        return json.dumps({"version": 1, "classes": 2, "unknown": "error", "inputs": [{**number, **(column or {})}, text],
                           "targets": [{**text, "name": "y", **(target or {})}], **changes})

    write("encoding", good=encoding(), empty="", list="[]", truncated=encoding()[:40], version=encoding(version=2),
          classes=encoding(classes=3), negative=encoding(classes=-1), none=encoding(inputs=[]), scale=encoding(column={"scale": 0}),
          type=encoding(column={"type": "x"}), missing=encoding(column={"missing": "x"}), categories=encoding({"categories": [1]}))


def png(width, height, depth=8, color=2, rows=None, chunks=b""):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    data = rows if rows is not None else (b"\0" + bytes(width * channels * depth // 8)) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)) + chunks + \
        chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def make_image():
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
    images = {}
    try:
        from PIL import Image
        for name, kind, options in (("good_jpeg", "JPEG", {"exif": b"Exif\0\0" + exif}), ("good_webp", "WEBP", {}),
                                    ("good_grey_jpeg", "JPEG", {})):
            buffer = io.BytesIO()
            Image.new("L" if "grey" in name else "RGB", (20, 10), 7).save(buffer, kind, **options)
            images[name] = buffer.getvalue()
        images["jpeg_cut"] = images["good_jpeg"][:-40]
        images["webp_cut"] = images["good_webp"][:-4]
    except ImportError:
        pass  # the files that are there stay
    write("image", good=png(3, 2), good_alpha=png(2, 2, color=6), good_16=png(2, 1, 16), good_exif=png(3, 2, chunks=chunk),
          huge=png(60000, 60000, rows=b""), cut=png(3, 2)[:-20], checksum=png(3, 2)[:30] + b"x" + png(3, 2)[31:],
          short=png(3, 2, rows=b"\0"), gif=b"GIF89a" + bytes(20), empty=b"", exif_damaged=png(3, 2, chunks=chunk[:20]),
          found_long_chunk=png(3, 2, chunks=b"\x47\x00\x04\xff" + chunk[4:]), **images)


def make():
    """Writes these corpora."""
    make_idx()
    make_numpy()
    make_tar()
    make_table()
    make_encoding()
    make_image()
