#!/usr/bin/env python3
"""glovebox models, beside servers of tests/fake/local_server.py that are what they say, and beside
strangers.

models_test.py TAP_FOLDER FAKE_FOLDER GLOVEBOX"""
import contextlib
import json
import os
import re
import socket
import sys
import tempfile
import time

sys.path[:0] = sys.argv[1:3]
import tap  # pylint: disable=wrong-import-position
from local_server import Server  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[3]
LIMIT_S = 0.15
# The program's own start, under sanitizers on a busy machine.
START_S = 2.0
TRIES = 5
STRANGERS = ("silent", "endless", "slow", "garbage", "garbled", "failing", "deep", "headers")


def models(*words, home="/nonexistent", **env):
    kept = {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}
    return tap.run([PROGRAM, "models", *words], timeout=60,
                   env={"PATH": "/usr/bin:/bin", "HOME": home, **kept, **env})


def probe(*parts, more=("--wait", "30")):
    """What --json says of servers that play PARTS. They are waited for: this machine may be busy."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(part)) for part in parts]
        words = [word for server in servers for word in ("--probe", server.url)]
        result = models("--json", *more, *words)
    assert result.stderr == "", result.stderr
    rows = json.loads(result.stdout)["servers"]
    assert [row["url"] for row in rows] == [server.url for server in servers]
    return rows, servers, result


@tap.case
def each_server_says_what_it_has():
    rows, _, result = probe("llama.cpp", "ollama", "lm-studio", "vllm", "other")
    assert result.returncode == 0
    assert [row["server"] for row in rows] == [
        "llama.cpp", "Ollama", "LM Studio", "vLLM", "model server"]
    assert rows[0]["models"] == [
        {"name": "qwen3-coder-30b.gguf", "loaded": True, "context": 32768, "tools": True}]
    assert rows[1]["models"] == [
        {"name": "qwen3:8b", "loaded": True, "context": 4096, "context_max": 40960,
         "tools": True, "thinking": True},
        {"name": "old:7b", "loaded": False, "context_max": 8192, "tools": False,
         "thinking": False}]
    assert rows[2]["models"] == [
        {"name": "qwen/qwen3-4b", "loaded": True, "context": 8192, "context_max": 131072,
         "tools": True},
        {"name": "google/gemma-3-4b", "loaded": False, "context_max": 131072, "tools": False}]
    assert rows[3]["models"] == [
        {"name": "Qwen/Qwen3-32B", "loaded": True, "context": 40960}]
    assert [model["name"] for model in rows[4]["models"]] == ["one; echo a", "two\x1b[31m\n"]


@tap.case
def a_server_that_loads_or_is_locked_is_told_from_nobody():
    rows, _, _ = probe("loading", "locked")
    assert rows[0]["server"] == "llama.cpp" and rows[0]["loading"]
    assert not rows[1]["answers"] and rows[1]["wants_key"]


@tap.case
def a_router_is_no_model_of_its_own():
    rows, _, _ = probe("router")
    assert rows[0]["server"] == "llama.cpp"
    assert rows[0]["models"] == [
        {"name": "alpha", "loaded": True, "context": 16384, "context_max": 131072},
        {"name": "beta", "loaded": False, "context_max": 40960}]


@tap.case
def a_server_that_wants_a_key_is_shown_with_the_way_to_give_it():
    with Server("locked") as server:
        result = models("--wait", "30", GLOVEBOX_BASE_URL=server.url + "/v1")
    assert f"{server.url} wants a key" in result.stdout
    assert f"OPENAI_API_KEY=... GLOVEBOX_BASE_URL={server.url}/v1" in result.stdout
    assert "none answers" not in result.stdout


@tap.case
def strangers_do_no_harm_and_cost_no_time():
    for part in STRANGERS:
        # A busy machine makes the best program late: too late is who is too late each time.
        for _ in range(TRIES):
            began = time.monotonic()
            rows, _, result = probe(part, part, more=())
            took = time.monotonic() - began
            assert result.returncode == 1
            assert not any(row["answers"] for row in rows), (part, rows)
            if took < LIMIT_S + START_S:
                break
        assert not tap.is_late(took, LIMIT_S + START_S), (part, took)


@tap.case
def who_never_answers_keeps_nobody_from_being_heard():
    rows, _, result = probe("silent", "vllm", more=("--wait", "3"))
    assert result.returncode == 0
    assert [row["answers"] for row in rows] == [False, True]


@tap.case
def a_redirect_is_not_followed():
    with Server("vllm") as there, Server("redirect", there.url) as here:
        result = models("--json", "--probe", here.url)
        assert not json.loads(result.stdout)["servers"][0]["answers"]
        assert here.seen and not there.seen
    assert result.returncode == 1


@tap.case
def nothing_is_sent_but_questions():
    _, servers, _ = probe("ollama")
    asked = {(method, path) for method, path, _ in servers[0].seen}
    assert asked == {
        ("GET", "/props"), ("GET", "/api/v0/models"), ("GET", "/api/tags"),
        ("GET", "/v1/models"), ("GET", "/api/ps"), ("POST", "/api/show")}, asked


@tap.case
def a_port_without_a_server_is_no_error_but_no_success():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = models("--probe", url + "/v1")
    assert result.returncode == 1 and result.stderr == ""
    assert f"{url} no model server answers" in result.stdout


@tap.case
def urls_that_are_none_are_refused():
    for url, says in (("127.0.0.1:1", "http://"), ("http://u@127.0.0.1", "names a user"),
                      ("http://", "names no host")):
        result = models("--probe", url)
        assert result.returncode == 2 and says in result.stderr, result.stderr
    result = models(*(f"--probe=http://127.0.0.1:{port}" for port in range(1, 20)))
    assert result.returncode == 2 and "at most 16" in result.stderr, result.stderr


@tap.case
def the_screen_is_plain_in_a_pipe_and_names_are_made_safe():
    with Server("other") as other, Server("ollama") as ollama:
        result = models("--wait", "30", "--probe", other.url, "--probe", ollama.url, TERM="xterm",
                        LANG="C.UTF-8")
    assert "\x1b" not in result.stdout
    assert re.search(r"qwen3:8b · context 4096 · 40960 at most · tools · thinks", result.stdout)
    assert re.search(r"old:7b · 8192 at most · no tools", result.stdout)
    assert f"GLOVEBOX_BASE_URL={ollama.url}/v1 glovebox run --model ollama:qwen3:8b" in result.stdout
    # What is offered to be copied runs nothing that a server made up.
    assert "glovebox run --model 'one; echo a' \"PROMPT\"" in result.stdout


@tap.case
def keys_are_named_and_never_shown():
    for words in ((), ("--json",)):
        result = models(*words, OPENAI_API_KEY="sk-very-secret-key-0123456789")
        assert result.returncode == 0 and "OPENAI_API_KEY" in result.stdout
        assert "secret" not in result.stdout and "sk-" not in result.stdout
        assert "gpt-5-mini" in result.stdout
    assert "gpt-5-mini" not in models().stdout


@tap.case
def additions_of_the_configuration_are_in_the_list():
    with tempfile.TemporaryDirectory() as home:
        place = os.path.join(home, "config.json")
        with open(place, "w", encoding="utf-8") as file:
            json.dump({"models": {"gpt-9": {"provider": "openai", "context": 77},
                                  "gpt-5": {"price_input": 123}}}, file)
        os.chmod(place, 0o600)
        result = models("--json", "--config", place, OPENAI_API_KEY="k")
    rows = {row["name"]: row for row in json.loads(result.stdout)["models"]}
    assert rows["gpt-9"]["context"] == 77 and "price_input" not in rows["gpt-9"]
    assert rows["gpt-5"]["price_input"] == 123 and rows["gpt-5"]["price_output"] == 10


@tap.case
def the_server_of_the_environment_is_asked_as_well():
    with Server("llama.cpp") as server:
        result = models("--json", "--wait", "30", GLOVEBOX_BASE_URL=server.url + "/v1")
    rows = [row for row in json.loads(result.stdout)["servers"] if row["url"] == server.url]
    assert rows and rows[0]["server"] == "llama.cpp"


@tap.case
def a_model_without_key_and_server_is_told_how_to_be_had():
    with tempfile.TemporaryDirectory() as home:
        result = tap.run([PROGRAM, "run", "-C", home, "--model", "gpt-5", "hello"],
                         env={"PATH": "/usr/bin:/bin", "HOME": home}, timeout=60)
    assert result.returncode == 1
    for part in ("OPENAI_API_KEY", "GLOVEBOX_BASE_URL", "glovebox models", "on this machine"):
        assert part.lower() in result.stderr.lower(), result.stderr



def run_with(server, model, config=None):
    """The events of a run at SERVER, and what the server was asked by /api/chat."""
    with tempfile.TemporaryDirectory() as home:
        place = os.path.join(home, "config.json")
        with open(place, "w", encoding="utf-8") as file:
            json.dump(config or {}, file)
        os.chmod(place, 0o600)
        work = os.path.join(home, "work")
        os.mkdir(work)
        result = tap.run([PROGRAM, "run", "-C", work, "--config", place, "--json", "--model",
                          model, "hello"], timeout=100,
                         env={"PATH": "/usr/bin:/bin", "HOME": home,
                              "GLOVEBOX_BASE_URL": server.url + "/v1",
                              **{name: value for name, value in os.environ.items()
                                 if "SAN_OPTIONS" in name}})
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0, result.stderr + result.stdout
    return events, [body for _, path, body in server.seen if path == "/api/chat"]


def notices(events):
    return " ".join(event["text"] for event in events if event["event"] == "notice")


@tap.case
def ollama_is_sent_our_size_of_the_context_which_is_told():
    with Server("ollama") as server:
        # So little time is given to the server that a busy machine may need it again.
        for _ in range(100):
            server.seen.clear()
            events, asked = run_with(server, "ollama:qwen3:8b")
            if asked[0]["options"]["num_ctx"] != 65536:
                break
    assert [body["options"]["num_ctx"] for body in asked] == [40960, 40960]
    assert "qwen3:8b is given a context of 40960 tokens" in notices(events)
    assert asked[1]["messages"][-2]["thinking"] == "Hm."
    assert asked[1]["messages"][-2]["tool_calls"][0]["function"]["name"] == "list_files"
    assert asked[1]["messages"][-1]["tool_name"] == "list_files"
    assert events[-1]["usage"]["input"] == 80 and events[-1]["reason"] == "stopped"


@tap.case
def the_configuration_sets_another_context():
    with Server("ollama") as server:
        events, asked = run_with(server, "ollama:old:7b",
                                 {"models": {"old:7b": {"context": 2048}}})
    assert asked[0]["options"]["num_ctx"] == 2048
    assert "a context of 2048 tokens" in notices(events)


tap.play()
