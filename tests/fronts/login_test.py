#!/usr/bin/env python3
"""glovebox login and logout: where a key is kept, who holds, where it is sent, and where it never is.

login_test.py TAP_FOLDER GLOVEBOX MODEL_SERVER"""
import json
import os
import stat
import sys

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
import terminal  # noqa: E402
from service import GLOVEBOX, Person, service  # noqa: E402

KEY = "sk-kept-0123456789abcdef"
HOME_OF_ANTHROPIC = "https://api.anthropic.com"


class Owner(Person):
    def __init__(self):
        super().__init__()
        self.file = os.path.join(self.home, ".config/glovebox/login.json")

    def login(self, *words, key=KEY, **variables):
        done = self.run("login", *words, typed=key + "\n", **variables)
        assert done.returncode == 0 and key not in done.stdout + done.stderr, done
        return done

    def kept(self):
        with open(self.file, encoding="utf-8") as file:
            return json.load(file)


def keys(asked):
    return [one["headers"].get("authorization") for one in asked() if "chat" in one["path"]]


@tap.case
def a_key_comes_from_standard_input_and_goes():
    with Owner() as person:
        done = person.login("--provider", "anthropic")
        assert HOME_OF_ANTHROPIC in done.stdout and person.file in done.stdout, done
        assert person.kept() == {"keys": {HOME_OF_ANTHROPIC: KEY}}
        assert stat.S_IMODE(os.stat(person.file).st_mode) == 0o600
        assert os.listdir(os.path.dirname(person.file)) == ["login.json"]
        person.login("--provider", "openai", key="sk-second")
        assert sorted(person.kept()["keys"].values()) == [KEY, "sk-second"]
        done = person.run("models")
        assert "ANTHROPIC_API_KEY    kept by glovebox login" in done.stdout and KEY not in done.stdout, done
        done = person.run("models", "--json", ANTHROPIC_API_KEY="x")
        rows = {row["variable"]: row for row in json.loads(done.stdout)["keys"]}
        assert rows["ANTHROPIC_API_KEY"] == {"variable": "ANTHROPIC_API_KEY", "set": True, "kept": True}, rows
        assert rows["OPENAI_API_KEY"]["kept"] and not rows["OPENAI_API_KEY"]["set"], rows
        assert person.run("logout", "--provider", "anthropic").stdout == "1 key is forgotten.\n"
        assert list(person.kept()["keys"].values()) == ["sk-second"]
        done = person.run("logout", OPENAI_API_KEY="x")
        assert done.stdout == "1 key is forgotten.\nOPENAI_API_KEY is still set in the environment.\n", done
        assert not os.path.exists(person.file)
        assert person.run("logout").stdout == "No key was kept.\n"


@tap.case
def the_environment_holds():
    with Owner() as person, service() as (url, asked):
        at = {"GLOVEBOX_BASE_URL": f"{url}/normal/v1"}
        person.login("--model", "some", **at)
        assert person.kept() == {"keys": {url: KEY}, "model": "some"}, person.kept()
        done = person.run("run", "hi", **at)
        assert done.returncode == 0 and keys(asked) == [f"Bearer {KEY}"], (done, keys(asked))
        assert KEY not in done.stdout + done.stderr
        done = person.login(OPENAI_API_KEY="sk-mine", **at)
        assert "OPENAI_API_KEY is set in the environment, and holds" in done.stdout, done
        assert person.kept()["model"] == "some"
        person.run("run", "hi", OPENAI_API_KEY="sk-mine", **at)
        assert keys(asked)[1:] == ["Bearer sk-mine"], keys(asked)
        done = person.run("run", "hi", GLOVEBOX_BASE_URL=f"{url}/401-echo/v1")
        assert "check the key in the file of glovebox login" in done.stdout, done
        assert KEY not in done.stdout + done.stderr, done


@tap.case
def a_key_goes_to_its_own_server_only():
    with Owner() as person, service() as (url, asked):
        person.login("--provider", "openai")
        done = person.run("run", "--model", "some", "hi", GLOVEBOX_BASE_URL=f"{url}/normal/v1")
        assert done.returncode == 0 and keys(asked) == [None], (done, keys(asked))
        done = person.run("run", "hi")
        assert done.returncode == 1 and "A key of glovebox login is set, but no model is named" in done.stderr, done
        done = person.run("run", "--model", "anthropic:claude-opus-5", "hi")
        assert done.returncode == 1 and "glovebox login keeps a key" in done.stderr, done


@tap.case
def nothing_inside_or_recorded_has_the_key():
    with Owner() as person, service() as (url, _):
        at = {"GLOVEBOX_BASE_URL": f"{url}/normal/v1"}
        person.login(**at)
        person.run("run", "--model", "some", "hi", **at)
        done = person.run("sessions", "export", "last")
        assert "Hello" in done.stdout and KEY not in done.stdout, done
        look = f"cat {person.file}; env; cat /proc/*/environ"
        for shown in ((), ("--read", os.path.dirname(person.file)), ("--read", os.path.join(person.home, ".config")),
                      ("--write", os.path.dirname(person.file))):
            done = person.run("exec", *shown, "--", "sh", "-c", look, **at)
            assert KEY not in done.stdout + done.stderr and "HOME=" in done.stdout, done
        done = person.run("exec", "--read", person.file, "--", "cat", person.file)
        assert KEY not in done.stdout and "glovebox's own" in done.stderr, done


@tap.case
def what_others_may_read_is_not_used():
    with Owner() as person, service() as (url, asked):
        at = {"GLOVEBOX_BASE_URL": f"{url}/normal/v1"}
        person.login(**at)
        os.chmod(person.file, 0o644)
        done = person.run("run", "--model", "some", "hi", **at)
        assert keys(asked) == [None] and "chmod 600" in done.stderr, (done, keys(asked))
        done = person.run("login", typed="new\n", **at)
        assert done.returncode == 1 and "chmod 600" in done.stderr and person.kept()["keys"] == {url: KEY}, done
        os.chmod(person.file, 0o600)
        with open(person.file, "w", encoding="utf-8") as file:
            file.write("[")
        done = person.run("login", typed="new\n", **at)
        assert done.returncode == 1 and "no JSON object" in done.stderr, done


@tap.case
def a_wrong_word_changes_nothing():
    with Owner() as person:
        for words, typed, code, sentence in (
                (("--provider", "anthropik"), "x\n", 2, "name anthropic, openai-chat or openai"),
                (("--provider", "ollama"), "x\n", 2, "without a key"),
                ((), "x\n", 2, "--provider NAME"),
                (("--provider", "openai"), "", 1, "a key is one line"),
                (("--provider", "openai"), "two words\n", 1, "a key is one line"),
                (("--provider", "openai"), "x" * 10000, 1, "longer than"),
                (("--provider", "openai", "--model", "antropic:x"), "x\n", 1, "did you mean")):
            done = person.run("login", *words, typed=typed)
            assert done.returncode == code and sentence in done.stderr, (words, done)
        assert not os.path.exists(person.file)


@tap.case
def a_terminal_does_not_show_the_key():
    with terminal.Person() as person:
        person.start(GLOVEBOX, "login")
        person.wait_for(b"Service (anthropic, openai-chat or openai): ")
        person.type(b"anthropic\r")
        person.wait_for(b"it is not shown): ")
        person.type(KEY.encode() + b"\r")
        person.wait_for(b"as before): ")
        person.type(b"anthropic:claude-opus-5\r")
        assert person.end() == 0, person.printed
        assert b"is asked where no model is named" in person.printed and KEY.encode() not in person.printed
        assert person.is_as_before()
        kept = json.loads(person.read(".config/glovebox/login.json"))
        assert kept == {"keys": {HOME_OF_ANTHROPIC: KEY}, "model": "anthropic:claude-opus-5"}, kept


@tap.case
def an_editor_logs_in_behind_its_own_options():
    with terminal.Person() as person:
        person.start(GLOVEBOX, "acp", "--ask", "network", "login", "--provider", "openai")
        person.wait_for(b"it is not shown): ")
        person.type(KEY.encode() + b"\r")
        person.wait_for(b"as before): ")
        person.type(b"\r")
        assert person.end() == 0, person.printed
        assert list(json.loads(person.read(".config/glovebox/login.json"))) == ["keys"]


@tap.case
def ctrl_c_keeps_nothing_and_gives_the_terminal_back():
    with terminal.Person() as person:
        person.start(GLOVEBOX, "login", "--provider", "openai")
        person.wait_for(b"it is not shown): ")
        person.type(KEY[:5].encode() + b"\x03")
        assert person.end() == 130, person.printed
        assert person.is_as_before() and not person.has(".config/glovebox/login.json")


tap.play()
