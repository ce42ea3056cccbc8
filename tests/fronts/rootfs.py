"""rootfs: makes small root file systems out of programs of this machine, for cells on a base. No network."""
import os
import shutil
import subprocess

PROGRAMS = """bash echo cat chgrp chmod chown cp cut date diff dirname dpkg dpkg-deb dpkg-divert dpkg-query dpkg-split
dpkg-trigger env expr find getent grep groupadd gzip head hostname id install ldconfig ln ls mkdir mkfifo
mknod mktemp mv ps pwd readlink realpath rm rmdir sed seq setpriv sh sleep sort start-stop-daemon stat tail
tar tee test timeout touch tr true false uname useradd wc whoami xargs xz""".split()
APT = "apt-get apt-cache apt-config".split()
# Folders above these are links into /usr, as on every Debian.
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def which(program):
    return shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")


def libraries(paths):
    """The shared libraries of the programs PATHS, with their loader."""
    done = subprocess.run(["ldd", *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return {word for line in done.stdout.split("\n") if not line.endswith(":") for word in line.split()
            if word.startswith("/")}


class Rootfs:
    """A root file system in the folder ROOT."""

    def __init__(self, root):
        self.root = root
        for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "root", "var/tmp", "home", "tmp"):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
        for name, target in LINKS.items():
            os.symlink(target, os.path.join(root, name))
        self.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
        self.write("etc/group", "root:x:0:\nmail:x:8:\nnogroup:x:65534:\n")
        self.write("etc/shadow", "root:*:1::::::\n", 0o640)

    def path(self, name):
        """Where the absolute NAME of the machine lies here."""
        first, _, rest = name.lstrip("/").partition("/")
        return os.path.join(self.root, LINKS.get(first, first), rest) if rest else os.path.join(self.root, first)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def copy(self, name):
        target = self.path(name)
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.realpath(name), target)

    def add_paths(self, paths):
        for path in [*paths, *libraries([path for path in paths if os.access(path, os.X_OK)])]:
            self.copy(path)

    def add(self, *programs):
        self.add_paths([path for path in map(which, programs) if path])

    def add_folder(self, name):
        """The folder NAME of this machine with the libraries of its programs."""
        self.add_paths([os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files])

    def add_git(self):
        self.add("git")
        core = os.path.join(subprocess.run(["git", "--exec-path"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), "")
        self.add_paths([core + name for name in ("git", "git-sh-setup", "git-submodule", "git-sh-i18n")
                        if os.path.exists(core + name)])
        for name in ("git-upload-pack", "git-receive-pack", "git-upload-archive"):
            if not os.path.lexists(self.path("usr/bin/" + name)):
                os.symlink("git", self.path("usr/bin/" + name))


def debian(root):
    """Bash, coreutils, dpkg and, where it is installed here, apt."""
    made = Rootfs(root)
    made.add(*PROGRAMS)
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
                   "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                   "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d", "etc/dpkg/dpkg.cfg.d"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    made.write("var/lib/dpkg/status", "")
    made.write("var/lib/dpkg/available", "")
    if os.path.isdir("/usr/share/dpkg"):
        shutil.copytree("/usr/share/dpkg", os.path.join(root, "usr/share/dpkg"))
    if which("apt-get"):
        made.add(*APT)
        made.add_folder("/usr/lib/apt")
    return made


def package(folder, name, files, scripts=None):
    """The path of a package NAME, made by dpkg-deb, with FILES: {path: (text, mode)}."""
    tree = os.path.join(folder, name)
    control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n" \
              f"Description: a test\n"
    for path, (text, mode) in files.items():
        os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
        with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(tree, path), mode)
    os.makedirs(os.path.join(tree, "DEBIAN"), mode=0o755)
    for path, text in [("control", control), *(scripts or {}).items()]:
        with open(os.path.join(tree, "DEBIAN", path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(tree, "DEBIAN", path), 0o644 if path == "control" else 0o755)
    made = os.path.join(folder, f"{name}_1.0_all.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, made], check=True, stdout=subprocess.DEVNULL)
    return made
