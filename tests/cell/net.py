#!/usr/bin/env python3
"""net.py SERVER…: servers of the cases that need a network, all on loopback, each on a port of its own.

  http   plain HTTP; answers "hello PATH", and /big with 32 MiB
  tls    HTTPS for a.test, git.test and so on, by a certificate authority of its own (./ca.pem); files below ./www, an npm registry
  echo   greets, then sends every line back in capitals
  count  accepts everything and never says a word
  db     PostgreSQL's protocol, as far as `select 42` needs it
  dns    a name server: see Names

Ports go to ./ports as NAME=PORT lines, requests to ../NAME.log. A ./network.json with @NAME@ in the place of
ports becomes the policy of the agent `default`, with the name server as resolver. Then ../ready is made.
Beside them lies ./ask.py, which says to the proxy what it is told to: see there.
"""
import base64
import hashlib
import http.server
import io
import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tarfile
import threading

ADDRESS = os.environ.get("NET_ADDRESS", "127.0.0.1")
PORTS = {}

ASK = r'''"""ask.py [-k] [-w SECONDS] TEXT…: say TEXT to the proxy of this command and print what it answers.

TEXT has Python's escapes; @auth@ is the header with this command's token. Line ends are printed without CR. -k: keep talking, a TEXT after each
answer. Without an answer in SECONDS (60) "silence" is printed; a closed connection prints "closed".
"""
import base64, os, socket, sys, urllib.parse
words = sys.argv[1:]
keep = words[0] == "-k"
words = words[keep:]
seconds = float(words[1]) if words[0] == "-w" else 60
words = words[2:] if words[0] == "-w" else words
proxy = urllib.parse.urlparse(os.environ["HTTP_PROXY"])
word = base64.b64encode(f"{proxy.username}:{os.environ.get('TOKEN', proxy.password)}".encode()).decode()
link = socket.create_connection((proxy.hostname, proxy.port))
link.settimeout(seconds)
texts = [w.encode().decode("unicode_escape").replace("@auth@", f"Proxy-Authorization: Basic {word}\r\n")
         .encode("latin-1") for w in words]
def answer():
    try:
        return link.recv(65536).replace(b"\r", b"")
    except TimeoutError:
        return b"silence\n"
    except OSError:
        return b""
for text in texts:
    try:
        link.sendall(text)
    except OSError:
        break
    if keep:
        sys.stdout.buffer.write(answer())
while not keep and (data := answer()):
    sys.stdout.buffer.write(data)
    if data == b"silence\n":
        break
else:
    print("closed" if not keep else "")
'''


def log(name, text):
    with open(f"../{name}.log", "a", encoding="utf-8") as file:
        file.write(text + "\n")


class Web(http.server.BaseHTTPRequestHandler):
    """Both web servers; what they heard is in their logs, with the Host they heard it for."""
    protocol_version = "HTTP/1.1"
    name = "http"

    def log_message(self, *_):
        pass

    def reply(self, code, body, kind="text/plain"):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        log(self.name, f"{self.command} {self.path} {self.headers['Host']} "
            f"{self.headers.get('Proxy-Authorization', '-')}")
        if self.path == "/big":
            self.reply(200, bytes(32 << 20))
        elif self.path.startswith("/npm/"):
            self.npm()
        elif self.name == "tls" and not self.path.startswith("/hello"):
            self.file()
        else:
            self.reply(200, f"hello {self.path}\n".encode())

    do_HEAD = do_GET

    def do_POST(self):
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        log(self.name, f"POST {self.path} {body.decode()}")
        self.reply(200, body.upper())

    def file(self):
        path = os.path.normpath("www/" + self.path.split("?")[0])
        if not path.startswith("www/") or not os.path.isfile(path):
            self.reply(404, b"no such file\n")
            return
        with open(path, "rb") as file:
            self.reply(200, file.read(), "application/octet-stream")

    def npm(self):
        pack = io.BytesIO()
        with tarfile.open(fileobj=pack, mode="w:gz") as tar:
            for name, text in (("package.json", '{"name": "small", "version": "1.0.0"}'),
                               ("index.js", 'module.exports = "small works";\n')):
                info = tarfile.TarInfo("package/" + name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        if not hasattr(self.server, "pack"):
            self.server.pack = pack.getvalue()
        pack = self.server.pack
        if self.path.endswith(".tgz"):
            self.reply(200, pack)
            return
        digest = base64.b64encode(hashlib.sha512(pack).digest()).decode()
        self.reply(200, json.dumps({
            "name": "small", "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {"name": "small", "version": "1.0.0", "dist": {
                "tarball": f"https://{self.headers['Host']}/npm/small-1.0.0.tgz",
                "integrity": "sha512-" + digest}}}}).encode(), "application/json")


class Tls(Web):
    name = "tls"


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    address_family = socket.AF_INET

    def handle_error(self, *_):
        pass


def run(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificate():
    """A certificate and an authority that has signed it, in ./ca.pem."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", "../ca.key", "-out", "ca.pem", "-subj", "/CN=authority of the cases", "-days", "2")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", "../tls.key", "-out", "../tls.pem", "-subj", "/CN=test", "-days", "2",
        "-CA", "ca.pem", "-CAkey", "../ca.key", "-addext", "basicConstraints=critical,CA:FALSE",
        "-addext", "subjectAltName=" + ",".join(f"DNS:{n}.test" for n in ("a", "b", "git", "node", "npm", "py")))


def web(handler, port=0):
    server = Server((ADDRESS, port), handler)
    if handler is Tls:
        certificate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("../tls.pem", "../tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    return server


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        log("echo", "accepted")
        self.wfile.write(b"welcome\n")
        for line in self.rfile:
            self.wfile.write(line.upper())
        log("echo", "ended")


class Count(socketserver.BaseRequestHandler):
    def handle(self):
        log("count", "accepted")
        while self.request.recv(65536):
            log("count", "heard")


class Db(socketserver.StreamRequestHandler):
    """One user, one table of one number."""

    def say(self, kind, body=b""):
        self.wfile.write(kind + struct.pack(">I", len(body) + 4) + body)

    def handle(self):
        while True:
            size, code = struct.unpack(">II", self.rfile.read(8))
            self.rfile.read(size - 8)
            if code == 196608:
                break
            self.wfile.write(b"N")
        self.say(b"R", struct.pack(">I", 0))
        self.say(b"S", b"server_version\x0015.0\0")
        self.say(b"Z", b"I")
        while (kind := self.rfile.read(1)) not in (b"", b"X"):
            size = struct.unpack(">I", self.rfile.read(4))[0]
            log("db", self.rfile.read(size - 4).rstrip(b"\0").decode())
            if kind == b"Q":
                self.say(b"T", struct.pack(">H", 1) + b"n\0" + struct.pack(">IHIHIH", 0, 0, 23, 4, 0, 0))
                self.say(b"D", struct.pack(">HI", 1, 2) + b"42")
                self.say(b"C", b"SELECT 1\0")
                self.say(b"Z", b"I")


class Names:
    """What the name server answers: a list of A records, or a letter for something else."""
    rebind = 0

    def answer(self, name):
        known = {"private.test": ["10.1.2.3"], "meta.test": ["169.254.169.254"],
                 "shared.test": ["100.64.0.1"], "null.test": ["0.0.0.0"], "many.test": ["10.1.2.3", "127.0.0.1"],
                 "public.test": ["93.184.215.14"], "own.test": ["11.0.0.1"]}
        if name == "rebind.test":
            return ["93.184.215.14"] if self.rebind == 1 else ["127.0.0.1"]
        return known.get(name, [ADDRESS] if name.endswith(".test") else None)

    def reply(self, query, tcp):
        ident, _, _ = struct.unpack(">HHH", query[:6])
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += query[at] + 1
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        question, name = query[12:at + 5], ".".join(labels)
        log("dns", f"{name} {'A' if kind == 1 else kind} {'tcp' if tcp else 'udp'}")
        if name == "silent.test":
            return None
        self.rebind += name == "rebind.test" and kind == 1
        flags, records = 0x8180, []
        if name == "fail.test":
            flags |= 2
        elif name == "big.test" and not tcp:
            flags |= 0x200
        elif self.answer(name) is None or name == "none.test":
            flags |= 3
        elif kind == 1:
            owner = b"\xc0\x0c"
            if name == "alias.test":
                owner = b"\7private\4test\0"
                records.append(b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 60, len(owner)) + owner)
                records += [owner + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("10.1.2.3")]
            else:
                records += [owner + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(a)
                            for a in self.answer(name)]
        elif kind == 28 and name == "six.test":
            records.append(b"\xc0\x0c" + struct.pack(">HHIH", 28, 1, 60, 16) +
                           socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))
        if name == "six.test" and kind == 1:
            records = []
        head = struct.pack(">HHHHHH", ident, flags, 1, len(records), 0, 0)
        return head + question + b"".join(records)

    def udp(self, server):
        while True:
            query, peer = server.recvfrom(4096)
            answer = self.reply(query, False)
            if answer:
                if b"forged" in query:
                    # Somebody else's number first, then a name nobody has asked for.
                    server.sendto(b"\0\0" + answer[2:], peer)
                    server.sendto(answer.replace(b"forged", b"gforde"), peer)
                server.sendto(answer, peer)

    def tcp(self, server):
        while True:
            link, _ = server.accept()
            size = struct.unpack(">H", link.recv(2))[0]
            answer = self.reply(link.recv(size), True)
            # In two pieces, as a slow server would.
            link.sendall(struct.pack(">H", len(answer)) + answer[:5])
            link.sendall(answer[5:])
            link.close()


def names():
    """One port for both, as DNS has it."""
    while True:
        stream = socket.create_server((ADDRESS, int(os.environ.get("NET_DNS", "0"))))
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            datagram.bind(stream.getsockname())
        except OSError:
            stream.close()
            continue
        server = Names()
        for part, link in ((server.udp, datagram), (server.tcp, stream)):
            threading.Thread(target=part, args=(link,), daemon=True).start()
        return stream.getsockname()[1]


def threads(handler):
    class Threads(socketserver.ThreadingTCPServer):
        request_queue_size = 1024
        daemon_threads = True

        def handle_error(self, *_):
            pass

    return Threads((ADDRESS, 0), handler)


def write_policy():
    with open("network.json", encoding="utf-8") as file:
        text = file.read()
    for name, port in PORTS.items():
        text = text.replace(f"@{name}@", str(port))
    config = {"agents": {"default": json.loads(text)}}
    if "dns" in PORTS:
        config["resolver"] = f"{ADDRESS}:{PORTS['dns']}"
    folder = os.path.join(os.environ["HOME"], ".config", "glovebox")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "config.json")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(config, file)


def main():
    makers = {"http": lambda: web(Web, int(os.environ.get("NET_HTTP", "0"))),
              "tls": lambda: web(Tls, int(os.environ.get("NET_TLS", "0"))),
              "echo": lambda: threads(Echo), "count": lambda: threads(Count), "db": lambda: threads(Db)}
    for name in sys.argv[1:]:
        if name == "dns":
            PORTS[name] = names()
            continue
        server = makers[name]()
        PORTS[name] = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with open("ports", "w", encoding="utf-8") as file:
        file.write("".join(f"{name}={port}\n" for name, port in PORTS.items()))
    with open("ask.py", "w", encoding="utf-8") as file:
        file.write(ASK)
    if os.path.exists("network.json"):
        write_policy()
    with open("../ready", "w", encoding="utf-8"):
        pass
    threading.Event().wait()


if __name__ == "__main__":
    main()
