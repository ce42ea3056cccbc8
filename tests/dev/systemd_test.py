#!/usr/bin/env python3
"""systemd_test PROGRAM UNITS: the units that are shipped, as systemd reads them (TAP).

Where systemd-analyze is, it verifies them; everywhere their lines are read, and what the
documentation promises of them is looked up.
"""
import configparser
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import tap

PROGRAM, UNITS = map(os.path.abspath, sys.argv[1:3])
NAMES = ["glovebox-schedule.service", "glovebox-schedule.timer"]
SERVICE, SOCKET = "glovebox-mcp.service", "glovebox-mcp.socket"
# What a cell is built of is forbidden by these; tests/mcp/service_test.py shows it of namespaces.
FORBIDS_CELLS = [
    "DynamicUser", "ProtectSystem", "ProtectHome", "ProtectProc", "ProcSubset", "ProtectKernelTunables",
    "ProtectKernelLogs", "ProtectControlGroups", "PrivateUsers", "PrivateDevices", "RestrictNamespaces",
    "RestrictSUIDSGID", "SystemCallFilter", "MemoryDenyWriteExecute", "NoNewPrivileges", "RestrictAddressFamilies"]


def parsed(name):
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    with open(os.path.join(UNITS, name), encoding="utf-8") as file:
        unit.read_file(file)
    return unit


@tap.case
def the_service_works_on_what_is_due():
    unit = parsed(NAMES[0])
    assert unit["Service"]["Type"] == "oneshot"
    words = shlex.split(unit["Service"]["ExecStart"])
    assert os.path.isabs(words[0]) and os.path.basename(words[0]) == "glovebox", words
    assert words[1:] == ["schedule", "run"], words
    done = tap.run([PROGRAM, *words[1:], "--help"])
    assert done.returncode == 0
    # One that is missing is no error.
    assert unit["Service"]["EnvironmentFile"].startswith("-")


@tap.case
def the_timer_looks_each_minute():
    unit = parsed(NAMES[1])
    assert unit["Timer"]["OnCalendar"] == "*-*-* *:*:00"
    assert unit["Install"]["WantedBy"] == "timers.target"
    assert NAMES[1].replace(".timer", ".service") == NAMES[0]


@tap.case
def the_service_for_other_agents_can_build_cells():
    unit = parsed(SERVICE)["Service"]
    assert unit["Type"] == "notify" and unit["Delegate"] == "yes" and unit["WatchdogSec"] == "30"
    words = shlex.split(unit["ExecStart"])
    assert os.path.isabs(words[0]) and words[1:3] == ["mcp", "--http"], words
    # systemd is no place to begin again in a scope.
    assert words[words.index("--scope") + 1] == "never", words
    assert words[3] == parsed(SOCKET)["Socket"]["ListenStream"]
    with open(os.path.join(UNITS, SERVICE), encoding="utf-8") as file:
        comment = " ".join(line for line in file if line.startswith("#"))
    for key in FORBIDS_CELLS:
        assert key not in unit, key
        assert key in comment or key in ("NoNewPrivileges", "RestrictAddressFamilies"), key
    # The calls under way have their time before systemd ends it.
    assert int(unit["TimeoutStopSec"]) > 30


def verify(names, *words):
    if not shutil.which("systemd-analyze"):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with open(os.path.join(UNITS, name), encoding="utf-8") as file:
                text = file.read()
            program = shlex.split(parsed(names[0])["Service"]["ExecStart"])[0]
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                # Its program is not installed yet, and a manual is not either.
                file.write(text.replace(program, PROGRAM).replace("Documentation=man:", "# "))
        environment = dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":", HOME=folder,
                           XDG_RUNTIME_DIR=folder)
        done = subprocess.run(
            ["systemd-analyze", "verify", *words, "--man=no",
             *(os.path.join(folder, name) for name in names)],
            env=environment, capture_output=True, text=True, check=False)
        told = [line for line in done.stderr.splitlines() if "glovebox" in line]
        assert done.returncode == 0 and not told, done.stderr


@tap.case
def systemd_takes_them():
    verify(NAMES, "--user")
    verify([SERVICE, SOCKET])


tap.play()
