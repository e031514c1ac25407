#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that download resumes after an interruption, verifies checksums, and tries mirrors in their order."""

import hashlib
import http.server
import random
import re
import resource
import socket
import signal
import ssl
import subprocess
import threading
import unittest

from program import ROOT, ProgramTest, free_port

DOWNLOAD = str(ROOT / "tools/download/download")
CONTENT = random.Random(1).randbytes(300_000)
SUM = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT as /file.bin; other paths simulate servers that behave differently."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(asked[1]) if asked else 0
        self.server.requests.append((self.path, begin))
        self.path = self.path.removeprefix("http://no.such.host.invalid")
        body = CONTENT[::-1] if self.path.startswith("/wrong") else CONTENT
        if self.path.startswith("/missing"):
            return self.reply(404, {"Content-Length": "0"}, b"")
        if self.path.startswith("/moved"):
            return self.reply(302, {"Location": "/file.bin", "Content-Length": "0"}, b"")
        if self.path.startswith("/round"):
            return self.reply(302, {"Location": self.path, "Content-Length": "0"}, b"")
        if self.path.startswith("/outside"):
            return self.reply(302, {"Location": "file:///etc/passwd", "Content-Length": "0"}, b"")
        if self.path.startswith("/silent"):
            self.server.end.wait(60)
            return None
        if self.path.startswith("/endless"):
            return self.reply(200, {"Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n0\r\n\r\n")
        if self.path.startswith("/whole"):
            begin = 0  # a server that does not support ranges
        if begin >= len(body):
            return self.reply(416, {"Content-Range": f"bytes */{len(body)}", "Content-Length": "0"}, b"")
        part = body[begin:]
        headers = {"Content-Length": str(len(part))}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(body) - 1}/{len(body)}"
        if self.path.startswith("/cut"):
            part = part[:70_000]
        if self.path.startswith("/stops") and not begin:
            part = part[:70_000]
        elif self.path.startswith("/stops"):
            return self.reply(503, {"Content-Length": "0"}, b"")
        return self.reply(206 if begin else 200, headers, part)

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *arguments):
        pass


class SixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


class Download(ProgramTest):
    def setUp(self):
        super().setUp()
        self.more_environment = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.requests, self.server.end = [], threading.Event()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        thread = threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.end.set)

    def download(self, *paths, status=0, checksum=SUM, more=()):
        urls = " ".join(path if "://" in path else self.base + path for path in paths)
        process = self.start(f"--url={urls}", f"--sha256={checksum}", "--to=to", *more, command=[DOWNLOAD],
                             environment=self.more_environment)
        self.assert_status(status, process)
        return process

    def test_downloads_once(self):
        self.assertRegex(self.download("/file.bin").out, r"^\S*to/file.bin: downloaded, the checksum is right\n$")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())
        self.assertIn("already downloaded", self.download("/file.bin").out)
        self.assertEqual([("/file.bin", 0)], self.server.requests)
        self.assertEqual(["file.bin"], [path.name for path in (self.folder / "to").iterdir()])

    def test_continues_after_a_broken_connection(self):
        self.download("/cut/file.bin")
        self.assertEqual([0, 70_000, 140_000, 210_000, 280_000], [begin for _, begin in self.server.requests])

    def test_continues_the_file_of_an_earlier_run(self):
        error = self.download("/stops/file.bin", status=1).err
        self.assertIn("status 503", error)
        self.assertIn("The part that was downloaded is kept", error)
        self.assertEqual(70_000, (self.folder / "to/file.bin.part").stat().st_size)
        self.download("/file.bin")
        self.assertEqual(("/file.bin", 70_000), self.server.requests[-1])
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())

    def test_starts_again_if_the_server_cannot_continue(self):
        (self.folder / "to").mkdir()
        (self.folder / "to/file.bin.part").write_bytes(CONTENT[:5000])
        self.download("/whole/file.bin")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())

    def test_starts_again_if_the_part_belongs_to_another_file(self):
        for part in (b"x" * 5000, CONTENT[::-1], CONTENT + b"more"):
            (self.folder / "to").mkdir(exist_ok=True)
            (self.folder / "to/file.bin").unlink(missing_ok=True)
            (self.folder / "to/file.bin.part").write_bytes(part)
            self.download("/file.bin")
            self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())

    def test_takes_the_next_mirror(self):
        dead = f"http://127.0.0.1:{free_port()}/file.bin"
        self.download(dead, "http://no.such.host.invalid/file.bin", "/missing/file.bin", "/wrong/file.bin", "/file.bin")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())
        self.assertEqual(["/missing/file.bin", "/wrong/file.bin", "/file.bin"],
                         [path for path, _ in self.server.requests])

    def test_follows_redirections(self):
        self.download("/moved/file.bin")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())
        self.assertEqual(["/moved/file.bin", "/file.bin"], [path for path, _ in self.server.requests])

    def test_refuses_endless_redirections_and_other_protocols(self):
        error = self.download("/round/file.bin", "/outside/file.bin", status=1).err
        self.assertRegex(error, r"round/file.bin: .*redirects")
        self.assertRegex(error, r"outside/file.bin: .*file")

    def test_uses_a_proxy(self):
        self.more_environment = {"http_proxy": self.base}
        self.download("http://no.such.host.invalid/file.bin")
        self.assertEqual([("http://no.such.host.invalid/file.bin", 0)], self.server.requests)
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())

    def test_uses_ipv6(self):
        try:
            server = SixServer(("::1", 0), Handler)
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        server.requests = []
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        self.download(f"http://[::1]:{server.server_address[1]}/file.bin")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())

    def test_reports_how_each_mirror_failed(self):
        dead = f"http://127.0.0.1:{free_port()}/file.bin"
        error = self.download(dead, "/missing/file.bin", "/wrong/file.bin", "/endless/file.bin",
                              "ftp://host/file.bin", status=1).err
        for why in ("no mirror has provided it", f"{dead}: ", "missing/file.bin: the server answers with status 404",
                    "wrong/file.bin: the SHA-256 of the downloaded file is ",
                    "does not say how large", "ftp://host/file.bin: is not an address"):
            self.assertIn(why, error)
        self.assertFalse((self.folder / "to/file.bin").exists())

    def test_refuses_a_file_above_the_limit(self):
        error = self.download("/file.bin", status=1, more=["--max_size=100KB"]).err
        self.assertRegex(error, r"/file.bin: the file has 293 KB, more than the limit of 100 KB .*--max_size")
        self.assertEqual(0, (self.folder / "to/file.bin.part").stat().st_size)
        self.download("/file.bin", more=["--max_size=293KB"])

    def test_gives_up_a_silent_server(self):
        self.assertIn("nothing was received for 1 seconds",
                      self.download("/silent/file.bin", status=1, more=["--timeout=1"]).err)

    def test_accepts_only_valid_certificates(self):
        certificate = str(self.folder / "certificate.pem")
        subprocess.run([ROOT / "tools/download/make_certificate", certificate], check=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        port = self.server.server_address[1]
        unknown = self.download(f"https://localhost:{port}/file.bin", status=1).err
        self.assertIn("self-signed certificate", unknown)
        self.more_environment = {"SSL_CERT_FILE": certificate}
        other = self.download(f"https://127.0.0.1:{port}/file.bin", status=1).err
        self.assertRegex(other, "certificate.* does not match|no alternative certificate subject name matches")
        self.assertEqual([], self.server.requests)
        self.download(f"https://localhost:{port}/cut/file.bin")
        self.assertEqual(CONTENT, (self.folder / "to/file.bin").read_bytes())
        self.assertEqual(5, len(self.server.requests))

    def test_reports_a_full_disk(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        ended = subprocess.run([DOWNLOAD, f"--url={self.base}/file.bin", f"--sha256={SUM}", f"--to={self.folder}/to"],
                               preexec_fn=small_files, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn("to/file.bin.part: File too large, after 100000 bytes, which are kept; make room", ended.stderr)
        self.download("/file.bin")
        self.assertEqual(("/file.bin", 100_000), self.server.requests[-1])

    def test_does_not_replace_a_file_with_other_content(self):
        (self.folder / "to").mkdir()
        (self.folder / "to/file.bin").write_bytes(b"mine")
        self.assertIn("move it elsewhere", self.download("/file.bin", status=1).err)
        self.assertEqual(b"mine", (self.folder / "to/file.bin").read_bytes())

    def test_refuses_what_it_does_not_know(self):
        for arguments, why in (([], "name one dataset: cifar10, cifar100, emnist, fashion_mnist, mnist, tinyshakespeare"),
                               (["imagenet"], 'unknown dataset "imagenet"'),
                               (["--url=http://host/x"], "--sha256"),
                               (["--url=http://host/x", f"--sha256={SUM}"], "--to"),
                               (["--url=http://host/", f"--sha256={SUM}", "--to=x"], "name of a file"),
                               (["--url=http://host/..", f"--sha256={SUM}", "--to=x"], "name of a file"),
                               (["mnist", "--timeout=0"], "--timeout")):
            process = self.start(*arguments, command=[DOWNLOAD])
            self.assert_status(2, process)
            self.assertIn(why, process.err)


if __name__ == "__main__":
    unittest.main()
