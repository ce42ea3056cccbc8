#!/usr/bin/env python3
"""The administrator's ceiling, /etc/glovebox/policy.json: what it takes from a policy, from flags and from
what a person would grant. Each case has an /etc of its own, in a mount namespace that ends with it.

usage: ceiling_test.py DEV PROGRAM
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[2])
PATIENCE_S = 120
FILE = "/etc/glovebox/policy.json"
# /etc as it is, with a folder of ours in it that is gone with the last process.
OWN_ETC = r"""set -e
mount --make-rprivate /
mount -t tmpfs glovebox "$1"
mkdir -p "$1/upper/glovebox" "$1/work"
chmod 755 "$1/upper/glovebox"
cat >"$1/upper/glovebox/policy.json"
chmod 644 "$1/upper/glovebox/policy.json"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work,userxattr" glovebox /etc 2>/dev/null ||
	mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" glovebox /etc 2>/dev/null ||
	{ cp -a /etc/. "$1/upper" 2>/dev/null || true; mount --bind "$1/upper" /etc; }
eval "$2"
shift 2
exec "$@"
"""


class Machine:
    """A machine whose administrator has written CEILING, with a workspace of its own."""

    def __init__(self, ceiling, before="true"):
        self.ceiling = ceiling if isinstance(ceiling, str) else json.dumps(ceiling)
        self.before = before
        self.own_user = os.geteuid() != 0  # in a user namespace of its own

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="glovebox-ceiling-")
        for name in ("work", "home", "etc", "outside"):
            os.mkdir(self.path(name))
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def play(self, *argv):
        names = ["--user", "--map-root-user"] if self.own_user else []
        environment = {**os.environ, "HOME": self.path("home"), "XDG_STATE_HOME": self.path("state"),
                       "XDG_CONFIG_HOME": self.path("config")}
        return subprocess.run(["unshare", *names, "--mount", "/bin/bash", "-c", OWN_ETC, "-", self.path("etc"),
                               self.before, *argv], input=self.ceiling, capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, env=environment, cwd=self.path("work"))

    def exec(self, *words):
        return self.play(PROGRAM, "exec", *words)

    def refuses(self, sentence, *words, code=4):
        done = self.exec(*words)
        assert done.returncode == code and sentence in done.stderr, (done.returncode, done.stderr)

    def talk(self, *calls, ask=None):
        """The results of calls over MCP, and what was asked; ASK answers each question."""
        lines = [{"id": 0, "method": "initialize",
                  "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "a test", "version": "1"},
                             "capabilities": {} if ask is None else {"elicitation": {}}}}]
        lines += [{"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
                  for number, (tool, arguments) in enumerate(calls, 1)]
        names = ["--user", "--map-root-user"] if self.own_user else []
        environment = {**os.environ, "HOME": self.path("home"), "XDG_STATE_HOME": self.path("state"),
                       "XDG_CONFIG_HOME": self.path("config")}
        with open(self.path("file"), "w", encoding="utf-8") as file:
            file.write(self.ceiling)
        found, asked = {}, []
        with subprocess.Popen(["unshare", *names, "--mount", "/bin/bash", "-c",
                               OWN_ETC.replace("cat >", f"cat '{self.path('file')}' >"), "-", self.path("etc"),
                               self.before, PROGRAM, "mcp", *(["--ask", "network", "--ask", "read", "--ask", "write"]
                                                             if ask else [])],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment, cwd=self.path("work")) as server:
            for line in lines:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
                server.stdin.flush()
                while True:
                    text = server.stdout.readline()
                    if text == "":
                        raise AssertionError(server.stderr.read())
                    answer = json.loads(text)
                    if answer.get("method") == "elicitation/create":
                        asked.append(answer["params"]["message"])
                        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": answer["id"], "result": ask}) + "\n")
                        server.stdin.flush()
                    elif answer.get("id") == line["id"]:
                        found[line["id"]] = answer["result"]
                        break
            server.stdin.close()
            server.wait(PATIENCE_S)
        return [json.dumps(found[number]) for number in range(1, len(calls) + 1)], asked


def names(key):
    return f"not allowed on this machine ({FILE}, {key})"


@tap.case
def a_machine_without_a_ceiling_or_with_an_empty_one_is_as_before():
    with Machine("{}") as machine:
        done = machine.exec("--", "sh", "-c", "echo x >f; exit 5")
        assert done.returncode == 5 and done.stderr == "", done.stderr
        assert os.path.exists(machine.path("work", "f"))


@tap.case
def no_file_of_a_devcontainer_is_read_where_nothing_is_read():
    with Machine("") as machine:
        machine.ceiling = json.dumps({"deny_read": [machine.path("work", "secret")]})
        os.mkdir(machine.path("work", "secret"))
        for name in ("secret/dev.json", "dev.json"):
            with open(machine.path("work", name), "w", encoding="utf-8") as file:
                file.write('{"image": "none-of-this-name:1", "SECRET": 1}')
        for name in ("dev.json", "none.json"):
            machine.refuses(names("deny_read"), "--base", f"devcontainer:secret/{name}", "--", "true")
        machine.refuses("is known here", "--base", "devcontainer:dev.json", "--", "true", code=125)


@tap.case
def every_verb_ends_when_the_file_is_not_sound():
    for ceiling, before, sentence in (
            ("{", "true", FILE),
            ('{"host": []}', "true", '"hosts"'),
            ('{"hosts": ["http://x"]}', "true", "/hosts/0"),
            ('{"deny_read": ["relative"]}', "true", "a path is absolute"),
            ('{"deny_write": ["/a/../b"]}', "true", "a path is absolute"),
            ('{"publish": true}', "true", "false, or a list"),
            ('{"host_loopback": [0]}', "true", "1 to 65535"),
            ('{"minimum_level": "L1"}', "true", "L0"),
            ('{"wrap": {"claude": "12"}}', "true", "16 digits or more"),
            ('{"limits": {"memory": "lots"}}', "true", "/limits/memory"),
            ("{}", f"chmod 666 {FILE}", "chmod go-w"),
            ("{}", "chmod 777 /etc/glovebox", "chmod go-w /etc/glovebox"),
            ("{}", f"rm {FILE}; mkdir {FILE}", FILE)):
        with Machine(ceiling, before) as machine:
            for verb in (["exec", "true"], ["tool", "list"], ["help"]):
                done = machine.play(PROGRAM, *verb)
                assert done.returncode == 2 and sentence in done.stderr, (ceiling, verb, done.stderr)


@tap.case
def a_file_of_somebody_else_is_refused():
    if os.geteuid() != 0:
        raise tap.Skip("only root can give a file to somebody else")
    with Machine("{}", f"chown 4242 {FILE}") as machine:
        machine.refuses("belongs to user 4242", "true", code=2)


@tap.case
def in_a_cell_the_file_is_still_roots():
    with Machine("{}") as machine:
        done = machine.exec("--", "glovebox", "--version")
        assert done.returncode == 0 and done.stdout.startswith("glovebox "), done.stderr


@tap.case
def a_base_that_holds_or_lies_in_a_denied_folder_is_refused():
    with Machine("{}") as machine:
        os.makedirs(machine.path("outside", "system", "etc"))
        with open(machine.path("outside", "system", "etc", "key"), "w", encoding="ascii") as file:
            file.write("secret")
        for denied in (machine.path("outside"), machine.path("outside", "system"), machine.path("outside", "system", "etc")):
            machine.ceiling = json.dumps({"deny_read": [denied]})
            base = f"rootfs:{machine.path('outside', 'system')}"
            machine.refuses(f"{base}: {names('deny_read')}", "--base", base, "--", "/bin/true")
            done = machine.play(PROGRAM, "tool", "call", "--base", base, "read_file", '{"path": "/etc/key"}')
            assert done.returncode != 0 and "secret" not in done.stdout, done


@tap.case
def a_host_outside_of_the_list_is_refused_as_a_flag_and_taken_from_a_policy():
    with Machine({"hosts": ["good.example", "*.wide.example"], "deny_hosts": ["bad.wide.example"]}) as machine:
        machine.refuses(f"--allow-host evil.example: {names('hosts')}", "--allow-host", "evil.example", "true")
        machine.refuses(names("deny_hosts"), "--allow-host", "bad.wide.example", "true")
        machine.refuses(names("deny_hosts"), "--allow-host", "*.wide.example", "true")
        machine.refuses(names("hosts"), "--allow-host", "good.example:8443", "true")
        machine.refuses(names("hosts"), "--allow-host", "tcp://good.example:443", "true")
        assert machine.exec("--allow-host", "good.example", "true").returncode == 0
        with open(machine.path("p.json"), "w", encoding="ascii") as file:
            json.dump({"write": ["."], "network": ["evil.example", "a.wide.example", "*.example"]}, file)
        done = machine.exec("--policy", machine.path("p.json"), "true")
        assert done.returncode == 0
        assert f"network evil.example: {names('hosts')}" in done.stderr, done.stderr
        assert f"network *.example: {names('deny_hosts')}" in done.stderr, done.stderr
        assert "network a.wide.example" not in done.stderr
        # Without a denied host in it a wide entry becomes the parts that are listed.
        machine.ceiling = json.dumps({"hosts": ["good.example"]})
        told = json.loads(machine.exec("--policy", machine.path("p.json"), "--explain", "--json").stdout)
        assert told["network"] == ["good.example"], told["network"]


@tap.case
def a_credential_that_a_flag_names_is_refused_by_the_list_and_by_its_hosts():
    for ceiling, key in (({"credentials": ["openai"]}, "credentials"), ({"hosts": ["example.org"]}, "hosts"),
                         ({"deny_hosts": ["api.github.com"]}, "deny_hosts")):
        with Machine(ceiling) as machine:
            done = machine.play("env", "GITHUB_TOKEN=ghp_0123456789", PROGRAM, "exec", "--credential", "github", "--",
                                "true")
            assert done.returncode == 4, (done.returncode, done.stderr)
            assert f"--credential github: {names(key)}" in done.stderr, done.stderr


@tap.case
def a_credential_outside_of_the_list_is_taken_from_a_policy():
    with Machine({"credentials": ["anthropic"]}) as machine:
        with open(machine.path("p.json"), "w", encoding="ascii") as file:
            json.dump({"credentials": ["anthropic", "openai"]}, file)
        done = machine.exec("--policy", machine.path("p.json"), "true")
        assert f"credentials openai: {names('credentials')}" in done.stderr, done.stderr
        assert "credentials anthropic" not in done.stderr, done.stderr


@tap.case
def a_denied_host_is_not_reached_and_nobody_is_asked():
    with Machine({"hosts": ["good.example"]}) as machine:
        ask = {"action": "accept", "content": {"answer": "once"}}
        curl = {"command": "curl -sS -m 20 https://evil.example/ 2>&1; true"}
        results, asked = machine.talk(("bash", curl), ask=ask)
        assert asked == [] and "evil.example" in results[0], (asked, results)
        results, asked = machine.talk(("bash", {"command": "curl -sS -m 20 https://good.example/ 2>&1; true"}),
                                      ask={"action": "decline"})
        assert len(asked) == 1 and "good.example" in asked[0], (asked, results)


@tap.case
def ports_are_published_and_reached_only_as_listed():
    with Machine({"publish": [3000], "host_loopback": False}) as machine:
        machine.refuses(f"--publish 3001: {names('publish')}", "--publish", "3001", "true")
        machine.refuses(names("publish"), "--publish", "0:3001", "true")
        assert machine.exec("--publish", "0:3000", "true").returncode == 0
        machine.refuses(f"--host-loopback 5432: {names('host_loopback')}", "--host-loopback", "5432", "true")
        machine.refuses(names("host_loopback"), "--allow-host", "tcp://127.0.0.1:5432", "true")
    with Machine({"publish": False, "host_loopback": [5432], "hosts": []}) as machine:
        machine.refuses(names("publish"), "--publish", "0:3000", "true")
        assert machine.exec("--host-loopback", "5432", "true").returncode == 0


@tap.case
def what_may_not_be_read_is_hidden():
    with Machine({}) as machine:
        for place in ("work", "outside"):
            os.mkdir(machine.path(place, "secret"))
            with open(machine.path(place, "secret", "key"), "w", encoding="ascii") as file:
                file.write("marker\n")
        os.symlink(machine.path("outside", "secret"), machine.path("link"))
        os.symlink(machine.path("outside", "secret"), machine.path("work", "way"))
        bare = machine.exec("-r", machine.path("outside"), "--", "cat", "secret/key",
                            machine.path("outside", "secret", "key"))
        assert bare.stdout == "marker\nmarker\n", bare.stderr
        machine.ceiling = json.dumps({"deny_read": [machine.path("work", "secret"), machine.path("link"),
                                                    "/nothing/there"]})
        done = machine.exec("-r", machine.path("outside"), "--", "cat", "secret/key",
                            machine.path("outside", "secret", "key"))
        assert "marker" not in done.stdout, done.stdout
        # By its real path, by a link to it, and by a link in the workspace.
        for path in (machine.path("outside", "secret"), machine.path("link"), "way"):
            machine.refuses(names("deny_read"), "-r", path, "true")
        with open(machine.path("p.json"), "w", encoding="ascii") as file:
            json.dump({"write": ["."], "read": [machine.path("link")]}, file)
        done = machine.exec("--policy", machine.path("p.json"), "cat", machine.path("outside", "secret", "key"))
        assert "marker" not in done.stdout, done.stdout
        results, _ = machine.talk(("read_file", {"path": "secret/key"}),
                                  ("read_file", {"path": machine.path("outside", "secret", "key")}),
                                  ask={"action": "accept", "content": {"answer": "once"}})
        assert "marker" not in "".join(results), results


@tap.case
def a_workspace_that_may_not_be_read_is_none():
    with Machine({}) as machine:
        machine.ceiling = json.dumps({"deny_read": [machine.path("work")]})
        machine.refuses(names("deny_read"), "true")


@tap.case
def what_may_not_be_written_is_read_only():
    with Machine({}) as machine:
        os.mkdir(machine.path("work", "prod"))
        with open(machine.path("work", "prod", "f"), "w", encoding="ascii") as file:
            file.write("as it was\n")
        os.symlink(machine.path("work"), machine.path("other way"))
        denied = {"deny_write": [machine.path("work", "prod"), machine.path("outside")]}
        break_in = ("--", "sh", "-c", "echo x >prod/f; mv prod away; rm -rf prod; echo x >g")
        done = machine.exec(*break_in)
        assert not os.path.exists(machine.path("work", "prod", "f")), done.stderr
        os.rename(machine.path("work", "away"), machine.path("work", "prod")) \
            if os.path.exists(machine.path("work", "away")) else os.makedirs(machine.path("work", "prod"), exist_ok=True)
        with open(machine.path("work", "prod", "f"), "w", encoding="ascii") as file:
            file.write("as it was\n")
        machine.ceiling = json.dumps(denied)
        machine.exec(*break_in)
        with open(machine.path("work", "prod", "f"), encoding="ascii") as file:
            assert file.read() == "as it was\n"
        assert os.path.exists(machine.path("work", "g"))
        results, _ = machine.talk(("write_file", {"path": "prod/new", "content": "x"}),
                                  ("bash", {"command": "echo x >prod/new"}))
        assert not os.path.exists(machine.path("work", "prod", "new")), results
        machine.refuses(names("deny_write"), "-w", machine.path("outside"), "true")
        # A policy's own entry, named by a link, becomes read-only or nothing runs.
        with open(machine.path("p.json"), "w", encoding="ascii") as file:
            json.dump({"write": [machine.path("other way")]}, file)
        done = machine.exec("--policy", machine.path("p.json"), "--", "sh", "-c", "echo x >prod/f")
        with open(machine.path("work", "prod", "f"), encoding="ascii") as file:
            assert file.read() == "as it was\n", done.stderr


@tap.case
def a_person_grants_no_folder_that_may_not_be_written():
    with Machine({}) as machine:
        yes = {"action": "accept", "content": {"answer": "session"}}
        call = ("write_file", {"path": machine.path("outside", "new"), "content": "x"})
        os.mkdir(machine.path("outside", "deep"))
        machine.ceiling = json.dumps({"deny_write": [machine.path("outside", "deep")]})
        results, asked = machine.talk(call, ask=yes)
        assert asked == [] and not os.path.exists(machine.path("outside", "new")), (asked, results)


@tap.case
def nobody_is_asked_where_a_person_may_grant_nothing():
    with Machine({"ask": False}) as machine:
        done = machine.play(PROGRAM, "mcp", "--ask", "network")
        assert done.returncode == 4 and names("ask") in done.stderr, done.stderr
        machine.refuses(f"--ssh git.example.org: {names('ask')}", "--ssh", "git.example.org", "true")
        os.makedirs(machine.path("config", "glovebox"))
        with open(machine.path("config", "glovebox", "config.json"), "w", encoding="ascii") as file:
            json.dump({"agents": {"default": {"ask": ["write"]}}}, file)
        results, asked = machine.talk(("write_file", {"path": machine.path("outside", "new"), "content": "x"}))
        assert asked == [] and not os.path.exists(machine.path("outside", "new")), results


@tap.case
def no_address_is_opened_where_a_person_may_grant_nothing():
    back = "https://a.org/?redirect_uri=http://localhost:4000/"
    for ceiling, address, words in (({"ask": False}, "https://a.org/", f"not allowed on this machine ({FILE}, ask)"),
                                    ({"publish": False}, back, f"not allowed on this machine ({FILE}, publish)"),
                                    ({"publish": [4000]}, back, "there is no terminal to ask a person on"),
                                    ({"publish": False}, "https://a.org/", "there is no terminal to ask a person on")):
        with Machine(ceiling) as machine:
            done = machine.exec("--tty", "--", "xdg-open", address)
            assert done.returncode == 4 and words in done.stdout, (ceiling, done.stdout, done.stderr)


@tap.case
def a_policy_shows_no_secrets_where_they_are_masked():
    wanted = {"agents": {"default": {"secrets": "show"}, "other": {"secrets": {"show": ["."]}}}}
    for ceiling, shown in (({"secrets": "mask"}, False), ({}, True)):
        with Machine(ceiling) as machine:
            with open(machine.path("work", ".env"), "w", encoding="utf-8") as file:
                file.write("SHOP_PASSWORD=correct-horse\n")
            with open(machine.path("config.json"), "w", encoding="utf-8") as file:
                json.dump(wanted, file)
            for agent in ("default", "other"):
                done = machine.play(PROGRAM, "tool", "call", "--config", machine.path("config.json"), "--agent", agent,
                                    "read_file", '{"path": ".env"}')
                assert done.returncode == 0, done
                assert ("correct-horse" in done.stdout) == shown, (agent, done)
                assert ("‹secret:SHOP_PASSWORD-" in done.stdout) != shown, (agent, done)


@tap.case
def limits_are_at_most_those_of_the_machine():
    with Machine({"limits": {"wall_s": 1, "pids": 30, "memory": "200M", "free_space": "1M"}}) as machine:
        done = machine.exec("--timeout", "60", "sleep", "50")
        assert done.returncode == 124 and f"limits of {FILE}" in done.stderr, done.stderr
        assert machine.exec("sleep", "50").returncode == 124
        results, _ = machine.talk(("bash", {"command": "sleep 50", "timeout_s": 60}))
        # Its program began later than the call.
        assert re.search(r"timed out after [01]\.\d s", results[0]), results
        told = json.loads(machine.exec("--explain", "--json").stdout)["limits"]
        assert told["pids"]["value"] == 30 and told["memory"]["value"] == 200 << 20, told


@tap.case
def denied_commands_are_those_of_every_agent():
    with Machine({"deny_commands": ["git push --force", {"program": "shred"}]}) as machine:
        results, _ = machine.talk(("bash", {"command": "true && $(git push -f)"}), ("bash", {"command": "git status"}),
                                  ("bash", {"command": "echo 'shred --version' >s.sh; bash s.sh; echo $?"}))
        assert "this machine's administrator denies" in results[0] and f"({FILE}, deny_commands)" in results[0], results
        assert "administrator" not in results[1], results
        assert "126" in results[2], results
        machine.refuses(f"exec ({FILE}, deny_commands)", "sh", "-c", "shred x", code=126)
        # An agent's own rule that fits as well is no way out.
        with open(machine.path("own.json"), "w", encoding="utf-8") as file:
            json.dump({"agents": {"own": {"commands": {"profile": "box", "deny": ["git push"]}}}}, file)
        machine.refuses(f"exec ({FILE}, deny_commands)", "--config", machine.path("own.json"), "--agent", "own",
                        "sh", "-c", "git push --force", code=126)
        machine.ceiling = '{"deny_commands": ["--force"]}'
        done = machine.exec("true")
        assert done.returncode == 2 and "begins with a program" in done.stderr, done.stderr


@tap.case
def no_cell_is_made_below_the_level_of_the_machine():
    # Where no namespaces can be made, a cell reaches L2.
    with Machine({}, "echo 0 >/proc/sys/user/max_user_namespaces") as machine:
        machine.own_user = True
        done = machine.exec("--minimum-level", "L2", "true")
        assert done.returncode == 0, done.stderr
        machine.ceiling = '{"minimum_level": "L3"}'
        machine.refuses("L2", "--minimum-level", "L2", "true", code=125)


@tap.case
def only_listed_profiles_are_wrapped():
    for ceiling in ({"wrap": ["codex"]}, {"wrap": {"any": "0" * 64}}):
        with Machine(ceiling) as machine:
            done = machine.play(PROGRAM, "wrap", "any", "--", "true")
            assert done.returncode == 4 and f"wrap: any: {names('wrap')}" in done.stderr, done.stderr


@tap.case
def doctor_says_what_the_ceiling_is():
    with Machine({"hosts": ["good.example"], "ask": False}) as machine:
        said = machine.play(PROGRAM, "doctor").stdout
        assert FILE in said and "good.example" in said, said


tap.play()
