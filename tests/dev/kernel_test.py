#!/usr/bin/env python3
"""The words that dev/kernel takes; the machine itself takes root, an emulator and a kernel from the network."""
import fcntl
import os
import sys
import tempfile

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "kernel")


@tap.case
def its_help_names_every_option():
    done = tap.run([PROGRAM, "--help"], stdin=-3)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for word in ("--release", "--user", "--minutes", "--kvm", "--below", "-- COMMAND"):
        assert f"\n  {word}" in done.stdout, word


@tap.case
def a_word_that_it_does_not_know_is_named():
    tap.refused(PROGRAM, ["--usr"], "'--usr'", "--help")


@tap.case
def a_missing_value_or_command_is_told():
    tap.refused(PROGRAM, ["--user"], "--user needs a value")
    tap.refused(PROGRAM, [], "a command must follow")
    tap.refused(PROGRAM, ["--"], "a command must follow")


@tap.case
def values_that_no_machine_can_have_are_refused():
    tap.refused(PROGRAM, ["--user", "a b", "--", "true"], "--user", "'a b'")
    tap.refused(PROGRAM, ["--release", "../x", "--", "true"], "--release", "'../x'")
    tap.refused(PROGRAM, ["--minutes", "0", "--", "true"], "--minutes", "'0'")


# What the machine would do: it ends at once, with the status of the command.
EMULATOR = """#!/bin/sh
for word; do
	case $word in local,*id=told,path=*) echo 7 >"${word#*path=}/status" ;; esac
done
"""


@tap.case
def the_folders_of_killed_runs_are_tidied():
    if os.geteuid() != 0:
        return  # only root may read all files
    with tempfile.TemporaryDirectory() as folder:
        programs, below = os.path.join(folder, "bin"), os.path.join(folder, "below")
        os.makedirs(os.path.join(below, "bookworm", "boot"))
        os.makedirs(os.path.join(below, "bookworm", "lib", "modules", "6.1"))
        open(os.path.join(below, "bookworm", "boot", "vmlinuz-6.1"), "w", encoding="ascii").close()
        os.mkdir(programs)
        for name in ("busybox", "cpio", "depmod", "modprobe", "mke2fs", "apt-get", "qemu-system-x86_64"):
            with open(os.path.join(programs, name), "w", encoding="ascii") as file:
                file.write(EMULATOR if name.startswith("qemu") else "#!/bin/sh\ncat >/dev/null\n")
            os.chmod(os.path.join(programs, name), 0o755)
        for name in ("dead", "used"):
            os.makedirs(os.path.join(below, f"machine.{name}", "told"))
        used = os.open(os.path.join(below, "machine.used"), os.O_RDONLY)
        fcntl.flock(used, fcntl.LOCK_EX)
        done = tap.run([PROGRAM, "--below", below, "--", "true"], stdin=-3,
                       env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
        os.close(used)
        assert done.returncode == 7, (done.returncode, done.stderr)
        assert sorted(os.listdir(below)) == ["bookworm", "machine.used"], os.listdir(below)


tap.play()
