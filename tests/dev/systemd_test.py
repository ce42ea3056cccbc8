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
def systemd_takes_them():
    if not shutil.which("systemd-analyze"):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            with open(os.path.join(UNITS, name), encoding="utf-8") as file:
                text = file.read()
            program = shlex.split(parsed(NAMES[0])["Service"]["ExecStart"])[0]
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                # Its program is not installed yet, and a manual is not either.
                file.write(text.replace(program, PROGRAM).replace("Documentation=man:", "# "))
        environment = dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":", HOME=folder,
                           XDG_RUNTIME_DIR=folder)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no",
             *(os.path.join(folder, name) for name in NAMES)],
            env=environment, capture_output=True, text=True, check=False)
        told = [line for line in done.stderr.splitlines() if "glovebox" in line]
        assert done.returncode == 0 and not told, done.stderr


tap.play()
