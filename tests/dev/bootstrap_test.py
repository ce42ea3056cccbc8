#!/usr/bin/env python3
"""dev/bootstrap beside programs that only pretend to be dpkg and apt: what would it install?"""
import os
import sys
import tempfile

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "bootstrap")
# The smallest group of the list, and its programs.
PACKAGES = ["bubblewrap", "fd-find", "ugrep"]
TOOLS = ["bwrap", "fdfind", "ugrep"]
SYSTEM_TOOLS = ["sh", "sed", "tr", "sort", "env", "grep"]


def bootstrap(groups, installed=None, tools=(), apt="exit 0", uid=0):
    """(exit code, standard error, the calls of apt-get). INSTALLED None: no Debian."""
    with tempfile.TemporaryDirectory() as root:
        log = os.path.join(root, "log")

        def pretend(name, text):
            path = os.path.join(root, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + text + "\n")
            os.chmod(path, 0o755)

        for name in SYSTEM_TOOLS:
            os.symlink(f"/usr/bin/{name}", os.path.join(root, name))
        for name in tools:
            pretend(name, "exit 0")
        pretend("id", f"echo {uid}")
        if installed is not None:
            lines = "".join(f"installed {name}\\n" for name in installed)
            pretend("dpkg-query", f"printf '{lines}'")
            pretend("apt-get", f'echo "$*" >>"{log}"\n{apt}')
        done = tap.run([PROGRAM, *groups], env={"PATH": root}, stdin=-3)
        calls = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                calls = file.read().splitlines()
        assert done.stdout == "", done.stdout
        return done.returncode, done.stderr, calls


@tap.case
def nothing_is_said_or_done_when_all_is_there():
    assert bootstrap(["bench"], PACKAGES) == (0, "", [])


@tap.case
def what_is_missing_is_said_and_installed():
    code, said, calls = bootstrap(["bench"], [])
    assert code == 0 and "installing from the distribution: bubblewrap" in said, said
    assert calls[-1].endswith("install -y --no-install-recommends " + " ".join(PACKAGES)), calls


@tap.case
def only_missing_packages_are_installed():
    _, said, _ = bootstrap(["lint"], ["clang", "clang-format"])
    assert " clang " not in said and "cppcheck" in said, said


@tap.case
def a_user_who_only_checks_needs_no_second_compiler():
    _, said, _ = bootstrap(["build", "test"], [])
    assert "libcmocka-dev" in said and "clang" not in said and "shellcheck" not in said, said


@tap.case
def an_alternative_will_do():
    _, said, _ = bootstrap(["build"], ["libcurl4-gnutls-dev"])
    assert "libcurl4" not in said and "libjansson-dev" in said, said


@tap.case
def the_list_is_fetched_when_packages_are_unknown():
    code, _, calls = bootstrap(["bench"], [], apt='case "$*" in -s*) exit 100;; esac')
    assert code == 0 and any(call.endswith("update") for call in calls), calls


@tap.case
def the_list_is_not_fetched_when_they_are_known():
    _, _, calls = bootstrap(["bench"], [])
    assert not any(call.endswith("update") for call in calls), calls


@tap.case
def a_stale_list_is_fetched_and_tried_again():
    code, _, calls = bootstrap(["bench"], [], apt='case "$*" in -s*) ;; *update) ;; '
                               '*) grep -q update "${0%/*}/log" ;; esac')
    assert code == 0, calls
    last = PACKAGES[-1]
    assert [call.split()[-1] for call in calls] == [last, last, "update", last], calls


@tap.case
def a_failed_installation_is_forgiven_when_the_tools_are_there():
    code, said, _ = bootstrap(["bench"], [], tools=TOOLS, apt="exit 100")
    assert code == 0 and "could not be installed" in said, said


@tap.case
def a_failed_installation_names_what_is_needed():
    code, said, _ = bootstrap(["bench"], [], apt="exit 100")
    assert code == 1 and "needed and not found" in said and "bubblewrap" in said, said


@tap.case
def who_is_not_root_and_has_no_sudo_is_told():
    code, said, _ = bootstrap(["bench"], [], uid=1000)
    assert code == 1 and "no sudo" in said, said


@tap.case
def elsewhere_than_on_debian_tools_are_enough():
    assert bootstrap(["bench"], None, tools=TOOLS) == (0, "", [])


@tap.case
def elsewhere_than_on_debian_missing_tools_are_named():
    code, said, _ = bootstrap(["bench"], None)
    assert code == 1 and "bubblewrap" in said, said


@tap.case
def an_unknown_group_is_named():
    code, said, _ = bootstrap(["bnech"], [])
    assert code == 2 and "'bnech'" in said, said


tap.play()
