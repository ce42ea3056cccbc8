#!/usr/bin/env python3
"""dev/nats-server against a package archive of the test's own, on the loopback: what it fetches, and what it says."""
import contextlib
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import tap

SCRIPT = os.path.join(os.path.abspath(sys.argv[1]), "dev", "nats-server")
RELEASE = "trixie"
PROGRAM = "#!/bin/sh\necho of the archive\n"


def need_tools():
    for name in ("apt-get", "dpkg-deb"):
        if shutil.which(name) is None:
            raise tap.Skip(f"{name} is not installed")


def release_name():
    with open("/etc/os-release", encoding="utf-8") as file:
        words = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
    return words.get("VERSION_CODENAME", "").strip('"')


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Archive(http.server.SimpleHTTPRequestHandler):
    asked = []

    def log_message(self, *_words):
        Archive.asked.append(self.path)


class Place:
    """A folder with an archive, and an apt-get that names its address as the machine's source."""

    def __init__(self, folder):
        self.folder, self.target = folder, os.path.join(folder, "out", "nats")
        self.root = os.path.join(folder, "archive")
        os.mkdir(self.root)

    def make_archive(self):
        architecture = tap.run(["dpkg", "--print-architecture"]).stdout.strip()
        tree, name = os.path.join(self.folder, "tree"), f"pool/nats-server_99.0_{architecture}.deb"
        control = f"Package: nats-server\nVersion: 99.0\nArchitecture: {architecture}\nMaintainer: test <t@example.org>\nDescription: test\n"
        write(os.path.join(tree, "DEBIAN", "control"), control)
        write(os.path.join(tree, "usr", "sbin", "nats-server"), PROGRAM, 0o755)
        os.mkdir(os.path.join(self.root, "pool"))
        package = os.path.join(self.root, name)
        made = tap.run(["dpkg-deb", "--root-owner-group", "--build", tree, package])
        assert made.returncode == 0, made.stderr
        with open(package, "rb") as file:
            bytes_ = file.read()
        listed = f"{control}Filename: {name}\nSize: {len(bytes_)}\nSHA256: {hashlib.sha256(bytes_).hexdigest()}\n"
        index = f"main/binary-{architecture}/Packages"
        write(os.path.join(self.root, "dists", RELEASE, index), listed)
        write(os.path.join(self.root, "dists", RELEASE, "Release"),
              f"Origin: test\nSuite: {RELEASE}\nCodename: {RELEASE}\nArchitectures: {architecture}\nComponents: main\n"
              f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
              f" {hashlib.sha256(listed.encode()).hexdigest()} {len(listed)} {index}\n")
        return package

    def run(self, site):
        """The script, where apt knows SITE only. The archive has no signature, which apt is told to do without."""
        write(os.path.join(self.folder, "apt.conf"),
              'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\nAcquire::http::Proxy "DIRECT";\n')
        write(os.path.join(self.folder, "bin", "apt-get"),
              f'#!/bin/sh\n[ "$1" != indextargets ] || {{ echo "{site} {release_name()} main"; exit 0; }}\n'
              f'exec {shutil.which("apt-get")} "$@"\n', 0o755)
        env = {**os.environ, "PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"],
               "APT_CONFIG": os.path.join(self.folder, "apt.conf"), "TMPDIR": self.folder}
        return tap.run([SCRIPT, self.target], env=env, stdin=subprocess.DEVNULL)

    def left(self):
        return sorted(os.listdir(os.path.dirname(self.target)))


@contextlib.contextmanager
def place():
    need_tools()
    with tempfile.TemporaryDirectory(prefix="glovebox-nats-test-") as folder:
        yield Place(folder)


@contextlib.contextmanager
def served(root):
    Archive.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Archive, directory=root))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@tap.case
def it_fetches_once_and_then_does_nothing():
    with place() as at:
        at.make_archive()
        with served(at.root) as site:
            done = at.run(site)
            program = os.path.join(at.target, "usr", "sbin", "nats-server")
            assert done.returncode == 0 and done.stdout == program + "\n", (done.returncode, done.stdout, done.stderr)
            assert tap.run([program]).stdout == "of the archive\n" and at.left() == ["nats"], at.left()
            asked = len(Archive.asked)
            again = at.run(site)
            assert again.returncode == 0 and again.stdout == program + "\n" and len(Archive.asked) == asked, again


@tap.case
def what_is_there_needs_neither_apt_nor_a_network():
    with place() as at:
        program = os.path.join(at.target, "usr", "sbin", "nats-server")
        write(program, PROGRAM, 0o755)
        done = tap.run(["/bin/sh", SCRIPT, at.target], env={"PATH": "/nowhere"})
        assert done.returncode == 0 and done.stdout == program + "\n" and done.stderr == "", done


@tap.case
def a_package_with_a_wrong_checksum_is_refused():
    with place() as at:
        package = at.make_archive()
        with open(package, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        with served(at.root) as site:
            done = at.run(site)
        assert done.returncode == 1 and done.stdout == "", (done.returncode, done.stdout, done.stderr)
        assert f"{site} sent a package with another checksum" in done.stderr, done.stderr
        assert at.left() == [], at.left()


@tap.case
def without_a_network_it_says_so_and_what_to_do():
    with place() as at:
        # A port that nobody listens at: that of a server which has ended.
        with served(at.root) as site:
            pass
        done = at.run(site)
        assert done.returncode == 75 and done.stdout == "", (done.returncode, done.stdout, done.stderr)
        last = done.stderr.splitlines()[-1]
        assert "could not be fetched" in last and "is there a network?" in last and at.target in last, done.stderr
        assert at.left() == [], at.left()


@tap.case
def without_a_source_or_tools_it_says_what_to_put_there():
    with place() as at:
        done = at.run("")
        assert done.returncode == 75 and "no source with this machine" in done.stderr and at.target in done.stderr, done
        tools = os.path.join(at.folder, "tools")
        write(os.path.join(tools, "dpkg-deb"), "#!/bin/sh\n", 0o755)
        done = tap.run(["/bin/sh", SCRIPT, at.target], env={"PATH": tools})
        assert done.returncode == 75 and "no apt-get here" in done.stderr, done
        tap.refused("/bin/sh", [SCRIPT], "usage: nats-server FOLDER")


tap.play()
