#!/usr/bin/env python3
"""dev/install: what it puts below DESTDIR, and that --remove takes exactly that away again."""
import os
import subprocess
import sys
import tempfile

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "install")
MESON = """project('small', 'c')
install_data('a.txt', install_dir: get_option('datadir') / 'small' / 'deep')
install_data('b.txt', install_dir: get_option('datadir') / 'shared')
custom_target('pages', output: 'pages', build_by_default: true, install: true,
  command: ['sh', '-c', 'mkdir -p "$1" && echo p >"$1/p.7"', '-', '@OUTPUT@'],
  install_dir: get_option('datadir') / 'small')
shared_library('small', 'small.c', version: '1.2.3', install: true)
"""


def call(root, *words, destination):
    """dev/install with WORDS."""
    return subprocess.run([PROGRAM, *words, os.path.join(root, "build")], check=True,
                          capture_output=True, text=True,
                          env={**os.environ, "DESTDIR": destination}).stdout


def names_of(folder):
    """All that lies below FOLDER."""
    return sorted(os.path.relpath(os.path.join(above, name), folder)
                  for above, folders, files in os.walk(folder) for name in folders + files)


def project(root):
    """A small project that is built with a prefix of its own, in a path with a space."""
    source = os.path.join(root, "a source")
    os.mkdir(source)
    for name, text in (("meson.build", MESON), ("a.txt", "a\n"), ("b.txt", "b\n"),
                       ("small.c", "int small(void);\nint small(void)\n{\n\treturn 1;\n}\n")):
        with open(os.path.join(source, name), "w", encoding="utf-8") as file:
            file.write(text)
    build = os.path.join(root, "build")
    subprocess.run(["meson", "setup", "--prefix=/opt/small", build, source], check=True,
                   capture_output=True)
    subprocess.run(["ninja", "-C", build], check=True, capture_output=True)


@tap.case
def what_was_installed_goes_and_nothing_else():
    with tempfile.TemporaryDirectory() as root:
        project(root)
        stage = os.path.join(root, "the stage")
        shared = os.path.join(stage, "opt/small/share/shared")
        os.makedirs(os.path.join(stage, "opt/small/empty"))
        call(root, destination=stage)
        # Once more: these folders are there already, and are still the installation's.
        call(root, destination=stage)
        installed = names_of(stage)
        assert "opt/small/share/small/deep/a.txt" in installed, installed
        assert "opt/small/share/small/pages/p.7" in installed, installed
        assert any(name.endswith("libsmall.so.1") for name in installed), installed
        with open(os.path.join(shared, "mine"), "w", encoding="utf-8") as file:
            file.write("mine\n")
        said = call(root, "--remove", destination=stage)
        assert said.startswith("Removed "), said
        assert names_of(stage) == ["opt", "opt/small", "opt/small/empty", "opt/small/share",
                                   "opt/small/share/shared", "opt/small/share/shared/mine"], \
            names_of(stage)


@tap.case
def another_destination_is_left_alone():
    with tempfile.TemporaryDirectory() as root:
        project(root)
        one, other = os.path.join(root, "one"), os.path.join(root, "other")
        for stage in (one, other):
            call(root, destination=stage)
        before = names_of(other)
        call(root, "--remove", destination=one)
        assert not os.path.exists(one) and names_of(other) == before
        # Nothing is there any more: that is no error.
        assert call(root, "--remove", destination=one).startswith("Removed 0 files")


tap.play()
