"""upstream: a service behind TLS for the tests of the broker, with an authority of its own. What it does is
said by the path of a request; it remembers every head that came."""
import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import threading
import time

HOST = "service.test"


class Names:
    """A name server: every name is 127.0.0.1."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            question, sender = self.socket.recvfrom(512)
            kind = question[question.index(b"\0", 12) + 1:][:2]
            answer = b"\xc0\x0c" + kind + b"\0\x01\0\0\0\0\0\x04\x7f\0\0\x01" if kind == b"\0\x01" else b""
            head = question[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if answer else b"\0\0") + b"\0\0\0\0"
            self.socket.sendto(head + question[12:question.index(b"\0", 12) + 5] + answer, sender)


def make_authority(folder):
    """The path of a root; beside it are certificates with their keys: for HOST, for another name, by itself."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test root")
    for name, host in (("good", HOST), ("other", "other.test")):
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")
        with open(os.path.join(folder, f"{name}.ext"), "w", encoding="utf-8") as file:
            file.write(f"subjectAltName=DNS:{host}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    openssl("req", "-x509", *new, "-keyout", "self.key", "-out", "self.pem", "-days", "2", "-subj",
            f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}")
    return os.path.join(folder, "ca.pem")


class Upstream:
    """Serves until the program ends. FOLDER is that of make_authority."""

    def __init__(self, folder, certificate="good", versions=None):
        self.heads = []       # (first line, [(name, value)]) of every request
        self.connections = 0
        self.resumed = 0
        self.ended = []       # paths whose client went away
        self.accepted = 0
        self.late = {}        # number of a connection: seconds before its TLS begins
        self.died = 0         # requests for /die
        self.stored = b""     # what /store has kept
        self.repositories = folder
        self.cut = 1          # so many requests for /cut get no answer
        self.user_key = ""    # "user:key" that /me/… wants
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if versions is not None:
            self.context.maximum_version = versions
            self.context.minimum_version = versions
            self.context.set_ciphers("ALL:@SECLEVEL=0")
        self.context.load_cert_chain(os.path.join(folder, f"{certificate}.pem"),
                                     os.path.join(folder, f"{certificate}.key"))
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(raw, self.late.get(self.accepted, 0)), daemon=True).start()

    def close(self):
        """The end of the service; a second one does nothing."""
        if self.listener.fileno() < 0:
            return
        # Its thread may be about to accept: the next service could have the same descriptor by then.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        self.listener.close()

    def header(self, name):
        """The values of NAME in the last request."""
        return [value for key, value in self.heads[-1][1] if key.lower() == name.lower()]

    def serve(self, raw, late):
        time.sleep(late)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with self.context.wrap_socket(raw, server_side=True) as link:
                self.connections += 1
                self.resumed += link.session_reused
                stream = link.makefile("rb")
                while self.exchange(link, stream):
                    pass
        except (OSError, ValueError):
            pass

    def exchange(self, link, stream):
        """One request; false when the connection ends."""
        first = stream.readline().decode()
        if not first:
            return False
        fields, body = [], b""
        while (line := stream.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            fields.append((name, value.strip()))
        self.heads.append((first.strip(), fields))
        known = {name.lower(): value for name, value in fields}
        if "content-length" in known:
            body = stream.read(int(known["content-length"]))
        elif known.get("transfer-encoding") == "chunked":
            while (size := int(stream.readline(), 16)) > 0:
                body += stream.read(size)
                stream.readline()
            stream.readline()
        path = first.split()[1].partition("?")[0]
        name = path.strip("/").partition("/")[0].replace("-", "_") or "echo"
        return getattr(self, "do_" + name, self.do_echo)(link, stream, first, fields, body)

    def answer(self, link, body, *more, status="200 OK"):
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *more]
        link.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        return True

    def do_echo(self, link, _stream, first, fields, body):
        """All of the request, as JSON, and its fields in a header."""
        told = json.dumps({"first": first.strip(), "fields": fields, "body": body.decode("latin-1")})
        return self.answer(link, told.encode(), "X-Echo: " + json.dumps(fields))

    def do_cut(self, link, *what):
        """The echo, but for the first request."""
        self.cut -= 1
        return self.cut < 0 and self.do_echo(link, *what)

    def do_store(self, link, _stream, _first, fields, _body):
        """It keeps the keys of this request for /last."""
        self.stored = repr(fields).encode()
        self.answer(link, b"kept")

    def do_last(self, link, *_):
        self.answer(link, self.stored)

    def do_heads(self, link, *_):
        """Interim heads without end."""
        with contextlib.suppress(OSError):
            while True:
                link.sendall(b"HTTP/1.1 103 E\r\n\r\n" * 500)
        return True

    def do_die(self, _link, *_):
        """It takes the request, says nothing and goes."""
        self.died += 1
        return False

    def do_slowly(self, link, _stream, _first, fields, _body):
        """The beginning of the key, escaped, byte by byte."""
        key = dict((name.lower(), value) for name, value in fields)["x-api-key"]
        text = "".join(f"\\u00{ord(c):02x}" for c in key[:-1]).encode()
        link.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode())
        for at in range(len(text)):
            link.sendall(text[at:at + 1])

    def do_repositories(self, link, _stream, first, fields, body):
        """git's own server, for those who have signed in."""
        known = {name.lower(): value for name, value in fields}
        if not known.get("authorization", "").startswith("Basic "):
            return self.answer(link, b"", 'WWW-Authenticate: Basic realm="git"', status="401 Unauthorized")
        return self.backend(link, self.repositories, "/repositories", first, fields, body)

    def do_index(self, link, _stream, first, *_):
        """An index of packages without any."""
        if first.split()[1].endswith("/config.json"):
            return self.answer(link, b'{"dl": "https://nowhere.test/dl"}')
        return self.answer(link, b"", status="404 Not Found")

    def do_small(self, link, *_):
        return self.answer(link, b"hello")

    def backend(self, link, root, prefix, first, fields, body):
        """git's own server for the repositories in ROOT, whose paths begin with PREFIX."""
        known = {name.lower(): value for name, value in fields}
        method, target, _ = first.split()
        path, _, query = target.partition("?")
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, check=True, env={
            "PATH": os.environ["PATH"], "HOME": root, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PROJECT_ROOT": root,
            "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": method, "PATH_INFO": path.removeprefix(prefix),
            "QUERY_STRING": query, "REMOTE_USER": "me", "CONTENT_TYPE": known.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": known.get("content-encoding", ""),
            "GIT_PROTOCOL": known.get("git-protocol", "")})
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        more = [line for line in head.decode().split("\r\n") if not line.startswith("Status:")]
        status = next((line[8:] for line in head.decode().split("\r\n") if line.startswith("Status:")), "200 OK")
        return self.answer(link, content, *more, status=status)

    def do_you(self, link, _stream, first, fields, body):
        """git's own server."""
        return self.backend(link, self.repositories, "", first, fields, body)

    def do_me(self, link, stream, first, fields, body):
        """The same, for who has the key."""
        wanted = base64.b64encode(self.user_key.encode()).decode()
        if ("Authorization", "Basic " + wanted) not in fields:
            return self.answer(link, b"", 'WWW-Authenticate: Basic realm="me"', status="401 Unauthorized")
        return self.do_you(link, stream, first, fields, body)

    def do_chunks(self, link, _stream, _first, fields, _body):
        """The echo of the fields in chunks of one byte, and in a trailer."""
        told = json.dumps(fields).encode()
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        link.sendall(b"".join(b"1\r\n%c\r\n" % byte for byte in told))
        link.sendall(b"0\r\nX-Echo: " + told + b"\r\n\r\n")
        return True

    def do_pieces(self, link, _stream, _first, fields, _body):
        """The same in records of TLS of three bytes, until the connection ends."""
        told = json.dumps(fields).encode()
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for at in range(0, len(told), 3):
            link.sendall(told[at:at + 3])
        link.unwrap()
        return False

    def do_events(self, link, *_):
        """Ten events, 50 ms apart."""
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(10):
            event = b"data: %d\n\n" % number
            link.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            time.sleep(0.05)
        link.sendall(b"0\r\n\r\n")
        return True

    def do_endless(self, link, _stream, first, *_):
        """Events until nobody reads any more."""
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                link.sendall(b"1\r\nx\r\n")
                time.sleep(0.02)
        except OSError:
            self.ended.append(first.split()[1])
            raise

    def do_redirect(self, link, *_):
        return self.answer(link, b"", "Location: https://other.test/", "Set-Cookie: a=b", status="302 Found")

    def do_torn_head(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-")
        return False

    def do_torn_body(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        return False

    def do_to_end(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\nonly this")
        link.unwrap()
        return False

    def do_torn_to_end(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\nonly this")
        link.shutdown(socket.SHUT_RDWR)
        return False

    def do_torn_chunks(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        return False

    def do_bad_chunks(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
        return False

    def do_nothing(self, _link, *_):
        return False

    def do_silence(self, _link, stream, *_):
        stream.read(1)
        return False

    def do_no_http(self, link, *_):
        link.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        return False

    def do_two_lengths(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
        return False

    def do_both(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        return False

    def do_long_head(self, link, *_):
        link.sendall(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100000 + b"\r\n\r\n")
        return False

    def do_too_much(self, link, *_):
        """A second answer that nobody asked for."""
        self.answer(link, b"first")
        return self.answer(link, b"second")

    def do_drip(self, link, *_):
        """A head of one byte a second."""
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
            link.sendall(bytes([byte]))
            time.sleep(1)
        return True

    def do_big(self, link, _stream, first, *_):
        """As many MiB as the path says, with the key in each."""
        size = int(first.split()[1].split("/")[2])
        piece = bytes(range(32, 127)) * (2**20 // 95 + 1)
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (size << 20))
        for _ in range(size):
            link.sendall(piece[:2**20])
        return True

    def do_close(self, link, *_):
        self.answer(link, b"bye", "Connection: close")
        link.unwrap()
        return False

    def do_early(self, link, *_):
        """Says no before the body has come."""
        return self.answer(link, b"no", status="413 Payload Too Large")

    def do_interim(self, link, *_):
        link.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        return self.answer(link, b"after")

    def do_empty(self, link, *_):
        link.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True

    def do_gzip(self, link, *_):
        return self.answer(link, b"\x1f\x8b", "Content-Encoding: gzip")

    def do_part(self, link, *_):
        return self.answer(link, b"half", "Content-Range: bytes 0-3/8", status="206 Partial Content")

    def do_socket(self, link, stream, _first, fields, _body):
        """A protocol of its own after the upgrade: says each line back."""
        link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        link.sendall(json.dumps(fields).encode() + b"\n")
        while line := stream.readline():
            link.sendall(b"got " + line)
        return False
