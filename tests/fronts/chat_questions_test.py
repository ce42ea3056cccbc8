#!/usr/bin/env python3
"""A conversation behind a real terminal: what its person is asked, and modes."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import terminal  # noqa: E402
from chat import Chat, EDITS, GLOVEBOX, QUESTION, SUMS, asking, made, told  # noqa: E402


PLANS = {"name": "plans", "turns": [
    {"calls": [{"tool": "bash", "arguments": {"command": "echo x > new.txt; cat new.txt"}}]},
    {"calls": [{"tool": "present_plan", "arguments": {"plan": "# The plan\n\n1. Write **new**.txt"}}]},
    {"calls": [{"tool": "write_file", "arguments": {"path": "new.txt", "content": "one\n"}}]},
    {"text": "Written."}, {"text": "You said: ${prompt}.", "repeat": True}]}


@tap.case
def a_plan_is_shown_and_carried_out():
    with Chat(PLANS, options=["--mode", "plan"]) as tty:
        tty.type(b"plan it\r")
        # It looks as the words of the model do.
        tty.shows("\nThe plan\n\n1. Write new.txt\n")
        tty.shows("[p]lan")
        assert "! " not in tty.screen.text() and "**" not in tty.screen.text(), tty.screen.text()
        assert not os.path.exists(os.path.join(tty.work, "new.txt"))
        tty.type(b"w")
        tty.shows("mode auto")
        tty.shows("Written.")
        tty.prompt()
        assert open(os.path.join(tty.work, "new.txt"), encoding="ascii").read() == "one\n"
        tty.leave()


@tap.case
def a_plan_that_is_not_agreed_to_ends_the_turn():
    with Chat(PLANS, options=["--mode", "plan"]) as tty:
        tty.type(b"plan it\r")
        tty.shows("[p]lan")
        tty.type(b"\r")
        tty.prompt()
        assert "mode auto" not in tty.screen.text()
        tty.type(b"/mode\r")
        tty.shows("* plan")
        tty.leave()


class AskedByServer(Chat):
    """A conversation whose model calls a tool of an MCP server that asks something back."""

    def __init__(self, mode, between=(), keys=None, **more):
        fake = os.path.join(os.path.dirname(sys.argv[3]), "mcp_server.py")
        with open(fake, encoding="utf-8") as file:
            server = file.read()
        super().__init__({"name": "asks", "turns": [
            {"calls": [{"tool": "fake_ask", "arguments": {}}]}, *between, {"text": "Asked."}]},
                         config={"mcpServers": {"fake": {"command": "python3",
                                                         "args": ["server.py", mode], **(keys or {})}}},
                         files={"server.py": server}, **more)
        self.type(b"go\r")

    def field(self, shown, key, words=None):
        """Answer the field that has SHOWN by KEY, and type WORDS."""
        self.wait_until(lambda: shown in self.latest("A question of a tool:") and
                        "[d]ecline" in self.latest("A question of a tool:"), f"asked for {shown!r}")
        self.type(key)
        if words:
            self.shows("Escape goes back")
            self.type(words)

    def answer(self):
        self.shows("Asked.")
        self.prompt()
        ended, = told(self, "tool_ended")
        return json.loads(ended["text"])


@tap.case
def a_server_asks_the_person_field_by_field():
    for mode in "forms", "modern-forms":
        with AskedByServer(mode) as tty:
            tty.field("The MCP server fake asks: Who", b"a", b"Ada\r")
            tty.field("Your age", b"a", b"ten\r")
            tty.field("This must be", b"a", b"42\r")
            tty.field("large", b"k")
            tty.field("Letters each week", b"y")
            tty.field("separated by commas", b"a", b"a, c\r")
            assert tty.answer() == {"action": "accept", "content": {
                "name": "Ada", "age": 42, "size": "small", "news": True, "tags": ["a", "c"]}}
            tty.leave()


@tap.case
def a_server_learns_nothing_when_the_person_does_not_want():
    with AskedByServer("forms") as tty:
        tty.field("The MCP server fake asks: Who", b"a", b"Ada\r")
        tty.field("Your age", b"l")
        tty.field("large", b"\x1b")
        assert tty.answer() == {"action": "decline"}
        tty.leave()


@tap.case
def an_address_of_a_server_is_shown_whole():
    for keys, action in ((b"\r", "decline"), (b"y", "accept")):
        with AskedByServer("address") as tty:
            tty.field("https://login.example/x?y=1", keys)
            assert tty.answer() == {"action": action}
            tty.leave()


def ended(tty):
    return "Asked." in tty.screen.text()


@tap.case
def a_server_that_goes_on_asking_is_heard_three_times():
    with AskedByServer("samples-on", [], {"sampling": True}) as tty:
        asked = 0
        while not ended(tty):
            tty.wait_until(lambda: "[d]ecline" in tty.screen.text() or ended(tty), "asked, or answered")
            if ended(tty):
                break
            asked += 1
            tty.type(b"d")
            tty.wait_until(lambda: "[d]ecline" not in tty.screen.text() or ended(tty), "heard")
        assert asked == 3 and len(tty.answer()) == 10 and not told(tty, "sampled"), asked
        tty.leave()


@tap.case
def a_server_that_does_not_answer_holds_no_change_of_the_mode_up():
    fake = os.path.join(os.path.dirname(sys.argv[3]), "mcp_server.py")
    with open(fake, encoding="utf-8") as file:
        server = file.read()
    servers = {"fake": {"command": "python3", "args": ["server.py"]},
               "slow": {"command": "python3", "args": ["server.py", "late"], "start_s": 100}}
    with Chat(config={"mcpServers": servers}, files={"server.py": server, "go": ""},
              options=["--mode", "plan"]) as tty:
        tty.command("/mcp", "slow: echo")
        os.remove(os.path.join(tty.work, "go"))
        tty.command("/mode auto", "slow does not answer; going on without its tools")
        tty.command("/mcp", "slow: no tools for this agent")
        assert "fake: echo" in tty.latest("> /mcp\n"), tty.screen.text()
        # It joins with a prompt, as soon as it has answered.
        with open(os.path.join(tty.work, "go"), "w", encoding="utf-8"):
            pass
        for count in range(100):
            tty.command(f"prompt {count}", "── done")
            tty.command("/mcp", "fake: echo")
            if "slow: echo" in tty.latest("> /mcp\n"):
                break
        assert "slow: echo" in tty.latest("> /mcp\n"), tty.screen.text()
        tty.leave()


@tap.case
def the_person_reads_what_a_server_wants_the_model_to_be_asked():
    for key, between in ((b"y", [{"text": "Some words."}]), (b"\r", [])):
        with AskedByServer("samples", between, {"sampling": True}) as tty:
            tty.field("The MCP server fake wants your model to be asked", b"\x1b[B")
            tty.field("rows 2 to", key)
            heard = tty.answer()
            if between:
                assert heard["content"]["text"] == "Some words." and heard["stopReason"] == "endTurn", heard
                sampled, = told(tty, "sampled")
                assert "Line 0 of" in sampled["asked"] and "Line 39 of" in sampled["asked"], sampled
            else:
                assert heard["code"] == -1 and not told(tty, "sampled"), heard
            tty.leave()


@tap.case
def modes_are_commands():
    with Chat() as tty:
        tty.command("/mode ask", "mode ask")
        tty.command("/mode often", 'There is no mode "often".')
        tty.type(b"/plan look at it\r")
        tty.shows("mode plan")
        tty.shows("> look at it")
        tty.shows("You said:")
        tty.prompt()
        tty.type(b"/tools\r")
        tty.shows("present_plan")
        assert "write_file" not in tty.screen.text()
        tty.type(b"\x1b[Z")
        tty.shows("mode auto")
        tty.leave()


def asked(tty, text="wants to"):
    """A question about TEXT stands in the place of the line, and keys count."""
    def shown():
        question = tty.latest("Agent ")
        return text in " ".join(question.split()) and "[n]o" in question
    tty.wait_until(shown, f"asked about {text!r}")


@tap.case
def what_no_rule_lists_is_asked_for():
    script, config = asking("echo a >a.txt", "echo b >b.txt", "echo c >c.txt")
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        asked(tty, "echo a >a.txt")
        assert not made(tty, "a.txt")
        tty.type(b"o")
        asked(tty, "echo b >b.txt")
        assert made(tty, "a.txt") and not made(tty, "b.txt")
        tty.type(b"\r")
        asked(tty, "echo c >c.txt")
        tty.type(b"n")
        tty.shows("Done.")
        tty.prompt()
        assert not made(tty, "b.txt") and not made(tty, "c.txt")
        tty.leave()


def hooked(moment, command):
    return {"hooks": {moment: [{"hooks": [{"type": "command", "command": command}]}]},
            "agents": {"default": {"write": ["."]}}}


@tap.case
def a_hook_leaves_a_call_to_the_person():
    script = {"name": "hooked", "turns": [
        {"calls": [{"tool": "write_file", "arguments": {"path": name, "content": "x"}}]} for name in ("a", "b")]}
    script["turns"].append({"text": "Done.", "repeat": True})
    asks = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
                                              "permissionDecisionReason": "look at it"}})
    with Chat(script, config=hooked("PreToolUse", f"echo '{asks}'")) as tty:
        tty.type(b"go\r")
        tty.shows("[n]o")
        assert "wants to make a call. A hook asks a person: look at it" in " ".join(tty.screen.text().split())
        tty.type(b"o")
        tty.shows("- once")
        tty.shows("[n]o")
        tty.type(b"n")
        tty.shows("Done.")
        tty.prompt()
        assert made(tty, "a") and not made(tty, "b")
        tty.leave()


@tap.case
def a_hook_keeps_a_conversation_from_being_summarised():
    refuses = "grep -q 'manual.*\"custom_instructions\":\"the names\"' && { echo not now >&2; exit 2; }; exit 0"
    with Chat(SUMS, config=hooked("PreCompact", refuses)) as tty:
        for prompt, answer in ((b"first\r", "One."), (b"second\r", "Two.")):
            tty.type(prompt)
            tty.shows(answer)
            tty.prompt()
        tty.type(b"/compact the names\r")
        tty.shows("not now")
        tty.prompt()
        tty.type(b"/compact\r")
        tty.shows("The conversation is summarised: some ")
        tty.prompt()
        tty.leave()


@tap.case
def a_hook_refuses_a_prompt_and_the_next_one_is_sent():
    with Chat(config=hooked("UserPromptSubmit", "grep -q hunter2 && { echo no passwords here >&2; exit 2; }; exit 0")) as tty:
        tty.type(b"it is hunter2\r")
        tty.shows("no passwords here")
        tty.prompt()
        tty.type(b"it is blue\r")
        tty.says("it is blue")
        assert "You said: it is hunter2" not in tty.screen.text()
        tty.leave()


@tap.case
def what_is_answered_with_always_becomes_a_rule():
    script, config = asking("mkdir made", "env mkdir other", "mkdir made/in")
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        asked(tty, "mkdir made")
        tty.type(b"a")
        tty.shows("a again writes it")
        told = " ".join(tty.screen.text().split())
        assert "always, for good: a rule for default in" in told, told
        assert not made(tty, "made")
        tty.type(b"a")
        # What env runs no word tells: there `a` is no answer.
        asked(tty, "env mkdir other")
        assert made(tty, "made")
        tty.type(b"a\r")
        asked(tty, "mkdir made/in")
        assert not made(tty, "other")
        tty.type(b"n")
        tty.shows("Done.")
        tty.prompt()
        tty.leave()
        said = [subprocess.run([GLOVEBOX, *words], cwd=tty.work, env=tty.variables, check=True,
                               stdout=subprocess.PIPE, text=True).stdout for words in (
            ("policy", "rules"),
            ("policy", "explain", "--config", "config.json", "mkdir made there"))]
        assert ": command mkdir made  since 20" in said[0] and said[0].count("\n") == 1, said
        assert 'fits rule "mkdir made" (rules.json)' in said[1], said


@tap.case
def what_destroys_much_is_asked_about_without_a_setting():
    script, _ = asking("touch kept; rm -rf build; ls", "rm -rf ./*", "rm -rf *")
    with Chat(script) as tty:
        tty.type(b"go\r")
        asked(tty, "rm -rf ./*")
        assert made(tty, "kept")
        tty.type(b"n")
        asked(tty, "rm -rf * ")
        assert made(tty, "kept")
        tty.type(b"o")
        tty.shows("Done.")
        tty.prompt()
        assert not made(tty, "kept")
        tty.leave()


@tap.case
def a_no_may_come_with_a_sentence():
    script, config = asking("echo a >a.txt")
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        asked(tty, "echo a >a.txt")
        tty.type(b"t")
        tty.shows("Escape goes back")
        tty.type(b"\x1b")
        asked(tty, "echo a >a.txt")
        tty.type(b"t")
        tty.shows("Escape goes back")
        tty.type(b"put it elsewhere\r")
        tty.shows("Done.")
        tty.prompt()
        assert "The person says: put it elsewhere" in " ".join(
            line.lstrip("│| ") for line in tty.screen.text().splitlines()), tty.screen.text()
        assert not made(tty, "a.txt")
        tty.leave()


@tap.case
def a_question_is_read_in_the_pager_and_answered_afterwards():
    lines = [f"echo {number}" for number in range(60)]
    script, config = asking("\n".join(lines) + "\nprintf 'a\033[8mb'")
    with Chat(script, config=config, environment={"PAGER": "./pager"}) as tty:
        with open(os.path.join(tty.work, "pager"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ncat >seen; read -r answer </dev/tty; echo $answer >answer\n")
        os.chmod(os.path.join(tty.work, "pager"), 0o755)
        tty.type(b"go\r")
        asked(tty, "echo 0 echo 1")
        tty.shows("[v]iew")
        tty.type(b"v")
        tty.wait_until(lambda: made(tty, "seen"), "in the pager")
        # The rows of the question are off the screen, and keys are the pager's.
        tty.wait_until(lambda: "[v]iew" not in tty.screen.text(), "gone")
        tty.type(b"o\n")
        asked(tty, "echo 0 echo 1")
        with open(os.path.join(tty.work, "seen"), encoding="utf-8") as file:
            seen = file.read()
        assert "wants to run a command" in seen.split("\n", 1)[0], seen
        assert "\n" + "\n".join(lines) + "\nprintf 'a\\x1B[8mb'\n" in seen, seen
        with open(os.path.join(tty.work, "answer"), encoding="utf-8") as file:
            assert file.read() == "o\n"
        tty.type(b"n")
        tty.shows("Done.")
        tty.prompt()
        tty.leave()


@tap.case
def a_long_question_is_scrolled():
    lines = [f"echo {number}" for number in range(60)]
    script, config = asking("\n".join(lines))
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        asked(tty, "echo 0 echo 1")
        assert "echo 59" not in tty.screen.text()
        tty.type(b"\x1b[F")
        tty.shows("echo 59")
        tty.type(b"\x1b[A\x1b[A")
        tty.wait_until(lambda: "echo 59" not in tty.screen.text(), "scrolled back")
        tty.resize(12, 60)
        tty.shows("scroll")
        tty.shows("[n]o")
        tty.type(b"n")
        tty.shows("Done.")
        tty.prompt()
        tty.leave()


@tap.case
def the_line_keeps_its_text_behind_a_question():
    script, config = asking("true; echo a >a.txt")
    script["turns"].insert(0, {"text": "Slowly, word by word, one after the other.", "delay_ms": 100,
                               "calls": [{"tool": "bash", "arguments": {"command": "true"}}]})
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        tty.shows("Slowly")
        tty.type(b"and then")
        asked(tty)
        assert "> and then" not in tty.screen.text()
        tty.type(b"o")
        tty.shows("Done.")
        tty.wait_until(lambda: tty.row() == "> and then", "at the line that was begun")
        tty.type(b"\x15")
        tty.leave()


@tap.case
def a_folder_outside_is_asked_for():
    calls = [{"tool": "list_files", "arguments": {"path": "/var/lib", "depth": 1, "limit": limit}}
             for limit in (10, 20, 30)]
    script = {"name": "asking", "turns": [*({"calls": [call]} for call in calls),
                                          {"text": "Done.", "repeat": True}]}
    with Chat(script, config={"agents": {"default": {"ask": ["read"]}}}) as tty:
        tty.type(b"go\r")
        asked(tty, "wants to read a folder")
        assert "reading /var/lib and all below" in "".join(tty.screen.text().splitlines())
        tty.type(b"\x1b")
        tty.wait_until(lambda: "- no" in tty.screen.text(), "refused")
        asked(tty, "wants to read a folder")
        # A block's lines are broken between words, each behind its bar.
        assert "asked and said no" in " ".join(line.lstrip("│| ")
                                               for line in tty.screen.text().splitlines())
        tty.type(b"s")
        tty.shows("Done.")
        tty.prompt()
        assert tty.screen.text().count("wants to read a folder") == 2
        tty.leave()


SAYS = r"""case $1 in
schema) echo '{"id": "visit", "version": "1", "args_mode": "flags", "tools": [{"type": "function",
  "function": {"name": "visit", "parameters": {"type": "object",
  "properties": {"host": {"type": "string"}}, "required": ["host"]}}}]}' ;;
preview) echo "looks at $3 and goes" ;;
run) curl -s -m 20 "http://$3/" >/dev/null; echo visited ;;
esac
"""


@tap.case
def a_script_says_what_it_is_asked_about():
    script = {"name": "asking", "turns": [
        {"calls": [{"tool": "visit", "arguments": {"host": "one.example"}}]},
        {"text": "Done.", "repeat": True}]}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "visit.bash"), "w", encoding="utf-8") as file:
            file.write(SAYS)
        config = {"plugins": [f"bash:{folder}/visit.bash"],
                  "plugin_policy": {"allow_bash_tools": True},
                  "agents": {"default": {"ask": ["network"]}}}
        with Chat(script, config=config) as tty:
            tty.type(b"go\r")
            asked(tty)
            shown = tty.screen.text()
            assert "one.example:80" in shown, shown
            assert 'visit {"host":"one.example"}' in shown, shown
            assert "visit says of this call: looks at one.example and goes" in shown, shown
            tty.type(b"n")
            tty.shows("Done.")
            tty.prompt()
            tty.leave()


@tap.case
def a_delegate_is_asked_for_by_its_name():
    replays = {"boss": [{"calls": [{"tool": "delegate_agent", "arguments": {
                            "agent": "junior", "task": "Do it."}}]}, {"text": "Done."}],
               "junior": [{"calls": [{"tool": "bash", "arguments": {
                              "command": "echo a >a.txt"}}]}, {"text": "Tried."}]}
    config = {"agents": {
        "boss": {"tools": ["delegate_agent"], "model": "replay:boss.json"},
        "junior": {"tools": ["bash"], "write": ["."], "commands": {"rules": [{"program": "true"}]},
                   "ask": ["commands"], "model": "replay:junior.json"}}}
    files = {f"{name}.json": json.dumps({"name": name, "turns": turns})
             for name, turns in replays.items()}
    files["config.json"] = json.dumps(config)
    with terminal.Terminal(GLOVEBOX, "run", "--agent", "boss", "--config", "config.json", "go",
                           files=files) as tty:
        tty.wait_until(lambda: "[n]o" in tty.screen.text(), "asked")
        assert "Agent junior (a delegate of boss; depth 1)" in tty.screen.text()
        assert not made(tty, "a.txt")
        tty.type(b"o")
        assert tty.end() == 0, tty.screen.text()
        assert made(tty, "a.txt")
        assert tty.is_as_before()


@tap.case
def what_was_typed_before_is_no_answer():
    script, config = asking("true; echo a >a.txt")
    script["turns"].insert(0, {"text": "Slowly, word by word, one after the other.", "delay_ms": 100,
                               "calls": [{"tool": "bash", "arguments": {"command": "true"}}]})
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        tty.shows("Slowly")
        tty.type(b"oooo\r")
        tty.shows("soon: oooo")
        tty.type(b"sss")
        asked(tty)
        tty.type(b"n")
        tty.shows("Done.")
        # What was sent reached the model, and what was not is still being typed.
        tty.wait_until(lambda: tty.row() == "> sss", "at the line that was begun")
        assert "\n> oooo\n" in tty.screen.text(), tty.screen.text()
        assert not made(tty, "a.txt")
        tty.type(b"\x15")
        tty.leave()


@tap.case
def an_interrupt_is_a_no():
    script, config = asking("echo a >a.txt")
    with Chat(script, config=config) as tty:
        tty.type(b"go\r")
        asked(tty)
        tty.type(b"\x03")
        tty.prompt()
        assert not made(tty, "a.txt")
        tty.leave()


@tap.case
def run_asks_at_a_terminal_too():
    script, config = asking("echo a >a.txt")
    files = {"r.json": json.dumps(script), "config.json": json.dumps(config)}
    with terminal.Terminal(GLOVEBOX, "run", "--model", "replay:r.json", "--config", "config.json",
                           "go", files=files) as tty:
        tty.wait_until(lambda: "[n]o" in tty.screen.text(), "asked")
        tty.type(b"s")
        assert tty.end() == 0, tty.screen.text()
        assert made(tty, "a.txt")
        assert tty.is_as_before()


@tap.case
def what_is_no_terminal_is_not_asked():
    for more in (["--json"], []):
        with terminal.Terminal("sh", "-c", '"$@" | cat', "-", GLOVEBOX, "run", "--review", *more,
                               "--model", "replay:r.json", "write",
                               files={"r.json": json.dumps(EDITS)}) as tty:
            assert tty.end() == 0, tty.screen.text()
            assert QUESTION not in tty.screen.text()
            assert "1 file added (8 B)" in tty.screen.text() and not made(tty, "new.txt")


tap.play()
