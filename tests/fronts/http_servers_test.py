#!/usr/bin/env python3
"""MCP servers over HTTP as tools, and logins at them: tests/fake/http_server.py, well-behaved and not, with
a bridge in a real cell.

http_servers_test.py TAP_FOLDER GLOVEBOX FAKE_FOLDER"""
import json
import os
import re
import select
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, sys.argv[3])
import tap  # pylint: disable=wrong-import-position
import http_server  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[2]
HI = '{"text": "hi"}'
ERAS = ["modern", "legacy"]
WAIT_S = 60


class Place:
    """A workspace, a home, and a configuration with one server over HTTP."""

    def __init__(self, root):
        self.root = root
        self.workspace = os.path.join(root, "work")
        self.tmp = os.path.join(root, "tmp")
        os.mkdir(self.workspace)
        os.mkdir(self.tmp)
        self.config = os.path.join(root, "config.json")
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": root, "TMPDIR": self.tmp,
                    "SECRET": "s3cret",
                    **{name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}}

    def configure(self, url, **more):
        self.write({"mcpServers": {"web": {"type": "http", "url": url, **more}}})

    def write(self, config):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.chmod(self.config, 0o600)

    def words(self, *words):
        return [PROGRAM, *words[:2], "--config", self.config, "-C", self.workspace, *words[2:]]

    def run(self, *words, **options):
        return subprocess.run(self.words(*words), env=self.env, capture_output=True, text=True,
                              check=False, timeout=100, **options)

    def call(self, tool, arguments="{}", *more):
        return self.run("tool", "call", *more, tool, arguments)

    def start(self, *words):
        return subprocess.Popen(self.words(*words), env=self.env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def token_files(self):
        folder = os.path.join(self.root, ".local/state/glovebox/servers")
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json")]

    def tokens(self):
        [name] = self.token_files()
        with open(name, encoding="utf-8") as file:
            return json.load(file)

    def login(self, *more, paste=False):
        """Log in as a person with a browser does. Returns exit code, output and complaints."""
        process = self.start("servers", "login", "web", "--no-browser", *more)
        said = ""
        for line in process.stdout:
            said += line
            found = re.search(r"http://\S+/authorize\?\S+", line)
            if found:
                back = visit(found.group(0), paste)
                if paste:
                    process.stdin.write(back + "\n")
                    process.stdin.flush()
                break
        out, complaint = process.communicate(timeout=WAIT_S)
        return process.returncode, said + out, complaint


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Shows where a browser would go."""

    def redirect_request(self, *_):
        return None


def visit(url, paste):
    """Go where the person's browser goes; PASTE: only tell where it comes back to."""
    try:
        urllib.request.build_opener(NoRedirect).open(url)
    except urllib.error.HTTPError as answer:
        back = answer.headers["Location"]
    if not paste:
        with urllib.request.urlopen(back) as page:
            assert b"may close this page" in page.read()
    return back


def place(function):
    """The case FUNCTION with a place of its own; nothing may be left of it."""
    def play():
        with tempfile.TemporaryDirectory() as root:
            here = Place(root)
            function(here)
            assert os.listdir(here.tmp) == [], os.listdir(here.tmp)
    play.__name__ = function.__name__
    return tap.case(play)


def wait_until(holds):
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        select.select([], [], [], 0.02)


# Messages.

@place
def both_eras_answer_calls(here):
    for era in ERAS:
        for streams in [True, False]:
            with http_server.Server(era) as server:
                server.streams, server.json_pretty = streams, streams
                here.configure(server.url)
                done = here.call("web_echo", HI)
                assert (done.returncode, done.stdout) == (0, "hi\n"), (era, done)
                assert ("initialize" in server.methods()) == (era == "legacy"), server.methods()


@place
def a_request_of_the_newer_era_repeats_what_it_says(here):
    with http_server.Server("modern") as server:
        here.configure(server.url, headers={"X-Key": "${env:SECRET}", "Authorization": "Bearer t"})
        done = here.call("web_region", json.dumps({"where": "Ä b", "deep": {"n": 7}}))
        assert done.returncode == 0, done
        [call] = server.find("tools/call")
        wanted = {"mcp-method": "tools/call", "mcp-name": "region", "mcp-param-deep": "7",
                  "mcp-param-region": "=?base64?w4QgYg==?=", "mcp-protocol-version": "2026-07-28",
                  "x-key": "s3cret", "authorization": "Bearer t"}
        assert wanted.items() <= call["headers"].items(), call["headers"]
        assert "the tool wrong, which is left out: an x-mcp-header" in done.stderr, done.stderr
        here.call("web_region", "{}")
        assert not any(name.startswith("mcp-param") for name in server.find("tools/call")[1]["headers"])


@place
def the_older_era_has_a_session(here):
    with http_server.Server("legacy") as server:
        here.configure(server.url)
        assert here.call("web_echo", HI).stdout == "hi\n"
        [call], [stream], [end] = (server.find(name) for name in ["tools/call", "GET", "DELETE"])
        session = call["headers"]["mcp-session-id"]
        assert call["headers"]["mcp-protocol-version"] == "2025-11-25", call
        assert stream["headers"]["mcp-session-id"] == session == end["headers"]["mcp-session-id"]
        assert not server.sessions
        server.log.clear()
        server.forget = True
        assert here.call("web_echo", HI).stdout == "hi\n"
        assert len(server.find("initialize")) == 2 and len(server.find("tools/call")) == 2


@place
def only_a_call_that_reads_is_made_twice(here):
    for era in ERAS:
        with http_server.Server(era) as server:
            here.configure(server.url)
            server.lose = 1
            done = here.call("web_echo", HI)
            assert (done.returncode, done.stdout) == (0, "hi\n"), done
            server.lose = 3  # libcurl asks once more itself where it used a connection again
            done = here.call("web_echo", HI)
            assert done.returncode == 1 and "lost the connection" in done.stdout, done
            server.lose = 2
            done = here.call("web_add")
            assert done.returncode == 1 and "may have run: look before you" in done.stdout, done
            assert server.count == 1, server.count


@place
def a_stream_is_taken_up_behind_its_last_event(here):
    with http_server.Server("legacy") as server:
        here.configure(server.url)
        server.lose, server.lose_after_event = 1, True
        done = here.call("web_add")
        assert (done.returncode, done.stdout) == (0, "from the rest\n"), done
        assert server.count == 1 and any("last-event-id" in get["headers"]
                                         for get in server.find("GET")), server.log


@place
def progress_gives_a_call_its_time_again(here):
    with http_server.Server() as server:
        server.steps = 60
        here.configure(server.url, timeout_s=0.5)
        done = here.call("web_slow")
        assert (done.returncode, done.stdout) == (0, "done\n"), done
        server.steps, server.silent_steps = 10**6, True
        done = here.call("web_slow")
        assert done.returncode == 124, done
        server.silent_steps = False
        begun = time.monotonic()
        done = here.call("web_slow")
        assert done.returncode == 124 and time.monotonic() - begun > 4, done


@place
def a_call_that_ends_early_closes_its_stream(here):
    for era in ERAS:
        with http_server.Server(era) as server:
            server.silent_steps = True
            here.configure(server.url, timeout_s=1)
            done = here.call("web_slow")
            assert done.returncode == 124, done
            wait_until(lambda server=server: server.broken == 1)
            assert ("notifications/cancelled" in server.methods()) == (era == "legacy")


class Conversation:
    """A client of `glovebox mcp`, which answers questions with the name Ann."""

    def __init__(self, here):
        self.process = here.start("mcp")
        self.heard, self.last = [], 0
        self.ask("initialize", protocolVersion="2025-11-25",
                 capabilities={"elicitation": {"form": {}}}, clientInfo={"name": "t", "version": "1"})
        self.send(method="notifications/initialized")

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def read(self):
        message = json.loads(self.process.stdout.readline())
        if message.get("method") == "elicitation/create":
            self.send(id=message["id"], result={"action": "accept", "content": {"name": "Ann"}})
        self.heard.append(message)
        return message

    def ask(self, method, **params):
        self.last += 1
        self.send(id=self.last, method=method, params=params)
        while True:
            message = self.read()
            if message.get("id") == self.last and "method" not in message:
                return message["result"]

    def call(self, name, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)["content"][0]["text"]

    def tools(self):
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def end(self):
        self.process.stdin.close()
        self.process.wait(WAIT_S)
        self.process.stdout.close()
        self.process.stderr.close()


@place
def its_questions_reach_who_can_answer_them(here):
    for era in ERAS:
        with http_server.Server(era) as server:
            here.configure(server.url)
            talk = Conversation(here)
            assert talk.call("web_ask") == "Ann", talk.heard
            talk.end()


@place
def its_notices_are_heard_again_after_a_lost_stream(here):
    for era in ERAS:
        with http_server.Server(era) as server:
            here.configure(server.url)
            talk = Conversation(here)
            wait_until(lambda server=server: server.streams_open)
            assert "web_more" not in talk.tools()
            more = {"name": "more", "description": "More.", "inputSchema": {"type": "object"}}
            server.tools = [*http_server.TOOLS, more]
            # Nobody is told of the change; the stream that begins anew makes the client look.
            server.drop_streams()
            wait_until(lambda talk=talk: "web_more" in talk.tools())
            server.tools = http_server.TOOLS
            server.tell("notifications/tools/list_changed")
            wait_until(lambda talk=talk: "web_more" not in talk.tools())
            talk.end()


@place
def a_certificate_must_be_known(here):
    both = os.path.join(here.root, "both.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", both + ".key", "-out", both + ".crt", "-days", "2", "-subj", "/CN=t",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with open(both, "w", encoding="utf-8") as file:
        for part in ".key", ".crt":
            with open(both + part, encoding="utf-8") as read:
                file.write(read.read())
    with http_server.Server(certificate=both) as server:
        here.configure(server.url)
        done = here.run("servers", "test", "web")
        assert done.returncode == 1 and "cannot be reached: SSL certificate problem" in done.stderr, done
        assert not server.log
        here.env["SSL_CERT_FILE"] = both + ".crt"
        assert here.call("web_echo", HI).stdout == "hi\n"


# Servers that do not behave.

@place
def a_server_that_cannot_be_used_says_why(here):
    for change, why in [
            ({"status": 500}, "answers with the HTTP status 500"),
            ({"status": 302, "location": "https://example.org/"}, "sends us to another address"),
            ({"status": 403}, "answers with the HTTP status 403")]:
        with http_server.Server() as server:
            vars(server).update(change)
            here.configure(server.url)
            done = here.run("servers", "test", "web")
            assert done.returncode == 1 and why in done.stderr, (change, done)
    with http_server.Server() as server:
        server.silent = True
        here.configure(server.url, start_s=1)
        done = here.run("servers", "test", "web")
        assert done.returncode == 1 and "does not answer: no greeting within 1 s" in done.stderr, done
    here.configure(server.url)
    done = here.run("servers", "test", "web")
    assert done.returncode == 1 and "cannot be reached" in done.stderr, done


@place
def an_answer_must_be_one(here):
    for era in ERAS:
        with http_server.Server(era) as server:
            here.configure(server.url)
            server.big = 17 << 20
            done = here.call("web_echo", HI)
            assert done.returncode == 1 and "a message over 16 MiB" in done.stdout, done.stdout[:300]
            here.configure(server.url, timeout_s=2)
            server.big, server.lie_in_calls = 0, True
            done = here.call("web_add")
            assert done.returncode == 1 and ("lost the connection" in done.stdout
                                             or "does not answer" in done.stdout), done


@place
def settings_are_checked(here):
    for settings, words in [
            ({"type": "http"}, 'mcpServers.s: a "url" is needed'),
            ({"type": "sse", "url": "https://a.org"}, 'only "stdio" and "http" are served'),
            ({"url": "http://a.org/mcp"}, "mcpServers.s.url: http is for this machine only"),
            ({"url": "ftp://a.org"}, "mcpServers.s.url: only addresses that begin with"),
            ({"url": "https://u@a.org"}, "mcpServers.s.url: the address has a user name"),
            ({"url": "https://a.org/#x"}, 'mcpServers.s.url: an address of a server has no part'),
            ({"url": "https://a.org", "command": "x"}, "mcpServers.s.command: a server over HTTP"),
            ({"command": "x", "headers": {}}, "mcpServers.s.headers: a server that is a program"),
            ({"type": "stdio", "url": "https://a.org"}, "mcpServers.s.url: a server of the type"),
            ({"url": "https://a.org", "headers": {"Mcp-Name": "x"}}, "not those of MCP"),
            ({"url": "https://a.org", "headers": {"A": "b\nc"}}, "mcpServers.s.headers: must be"),
            ({"url": "https://a.org", "headers": {"A": "${env:NOT_SET}"}}, "NOT_SET"),
            ({"url": "https://a.org", "oauth": {"port": 80}}, "must be a port from 1024"),
            ({"url": "https://a.org", "oauth": {"grant": "client_credentials"}}, "client_secret are"),
            ({"url": "https://a.org", "oauth": {}, "headers": {"authorization": "x"}},
             "comes from the login")]:
        here.write({"mcpServers": {"s": settings}})
        done = here.run("tool", "list")
        assert done.returncode == 1 and words in done.stderr, (settings, done)


# Logins.

class Protected:
    """A server with an authority."""

    def __init__(self, **how):
        self.server = http_server.Server()
        self.auth = self.server.auth = http_server.Authority()
        self.auth.url = self.server.url
        vars(self.auth).update(how)

    def __enter__(self):
        return self.server, self.auth

    def __exit__(self, *_):
        self.server.close()


@place
def a_server_of_the_workspace_that_was_let_in_is_known(here):
    with Protected() as (server, _):
        here.write({})
        with open(os.path.join(here.workspace, ".mcp.json"), "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"web": {"type": "http", "url": server.url}}}, file)
        done = here.run("servers", "test", "web")
        assert done.returncode == 2 and 'there is no MCP server "web"' in done.stderr, done
        assert "those of .mcp.json count when you have let them in: glovebox trust" in done.stderr, done
        assert here.run("trust", "add", "--yes").returncode == 0
        done = here.run("servers", "test", "web")
        assert done.returncode == 1 and "wants a login: glovebox servers login web" in done.stderr, done
        code, said, complaint = here.login()
        assert code == 0 and "web: logged in" in said, (said, complaint)
        done = here.run("servers", "test", "web")
        assert done.returncode == 0 and "web_echo" in done.stdout, done
        assert here.run("servers", "logout", "web").stdout == "web: logged out\n"


@place
def a_person_logs_in_and_out(here):
    with Protected() as (server, auth):
        here.configure(server.url)
        done = here.call("web_echo", HI)
        assert "wants a login: glovebox servers login web" in done.stderr, done
        code, said, complaint = here.login()
        assert code == 0 and "web: logged in" in said and server.origin in said, (said, complaint)
        assert here.call("web_echo", HI).stdout == "hi\n"
        [name] = here.token_files()
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(name)).st_mode) == 0o700
        tokens = here.tokens()
        assert (tokens["resource"], tokens["issuer"]) == (server.url, server.origin), tokens
        assert auth.logins == 1
        assert list(auth.clients.values())[0]["application_type"] == "native"
        listed = json.loads(here.run("servers", "list", "--json").stdout)["servers"][0]
        assert listed["login"] == "logged in" and listed["era"] == "modern", listed
        assert here.run("servers", "logout", "web").stdout == "web: logged out\n"
        assert not here.token_files() and not auth.access and not auth.refresh
        assert here.run("servers", "logout", "web").stdout == "web: there was no login\n"


@place
def the_address_that_a_login_comes_back_to_may_be_pasted(here):
    with Protected() as (server, _):
        here.configure(server.url)
        code, said, complaint = here.login(paste=True)
        assert code == 0 and "web: logged in" in said, (said, complaint)


@place
def a_login_that_breaks_a_rule_gives_no_token(here):
    for how, why in [
            ({"resource": "https://other.org/mcp"}, "metadata for another address"),
            ({"issuer": "https://other.org"}, "metadata is that of another issuer"),
            ({"pkce": ["plain"]}, "does not offer PKCE by S256"),
            ({"pkce": None}, "does not offer PKCE by S256"),
            ({"iss": "https://other.org"}, "comes from another authorization server"),
            ({"iss": ""}, "does not name the authorization server"),
            ({"state": "another"}, "its state is not ours"),
            ({"denies": True}, "the login was refused: access_denied, not you"),
            ({"registers": False}, "name it in mcpServers.web.oauth.client_id"),
            ({"other": "http://192.0.2.1"}, "http is taken on the loopback only")]:
        with Protected(**how) as (server, auth):
            here.configure(server.url)
            code, said, complaint = here.login()
            assert code == 1 and why in complaint, (how, said, complaint)
            assert not auth.access and not any(path == "/token" for _, path, _, _ in auth.log)


@place
def a_client_is_who_the_configuration_says(here):
    with Protected(registers=False) as (server, auth):
        here.configure(server.url, oauth={"client_id": "ours", "scope": "write"})
        code, _, complaint = here.login()
        assert code == 0, complaint
        asked = [form for _, path, form, _ in auth.log if path == "/authorize"][0]
        assert asked["client_id"] == "ours" and asked["scope"] == "write", asked
    address = "https://client.example.org/glovebox.json"
    with Protected(documents=True) as (server, auth):
        here.configure(server.url, oauth={"client_metadata_url": address})
        assert here.login()[0] == 0
        assert [form for _, path, form, _ in auth.log if path == "/authorize"][0]["client_id"] == address


@place
def an_authority_elsewhere_is_reached_from_a_cell_made_for_it(here):
    with http_server.Server() as other, Protected(other=other.origin) as (server, auth):
        other.auth = auth
        here.configure(server.url)
        code, said, complaint = here.login()
        assert code == 0 and other.origin in said, (said, complaint)
        auth.access.clear()
        assert here.call("web_echo", HI).stdout == "hi\n"
        assert auth.renewals == 1


@place
def a_token_is_renewed_before_its_end_and_once_it_is_refused(here):
    with Protected(life_s=30) as (server, auth):
        here.configure(server.url)
        assert here.login()[0] == 0
        assert here.call("web_echo", HI).stdout == "hi\n"
        assert auth.renewals == 1
        auth.life_s = 3600
        auth.access.clear()
        assert here.call("web_echo", HI).stdout == "hi\n"
        assert auth.renewals == 2
        auth.takes_access = False
        done = here.call("web_echo", HI)
        assert done.returncode == 1 and auth.renewals == 3, (done, auth.renewals)
        auth.takes_access = True
        auth.refresh.clear()
        auth.access.clear()
        done = here.call("web_echo", HI)
        assert "does not take its login any more: glovebox servers login web" in done.stderr, done


@place
def processes_that_renew_at_the_same_time_do_it_once(here):
    with Protected(slow_s=0.5) as (server, auth):
        here.configure(server.url)
        assert here.login()[0] == 0
        auth.access.clear()
        done = []
        threads = [threading.Thread(target=lambda: done.append(here.call("web_echo", HI)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.stdout for one in done] == 4 * ["hi\n"], done
        assert auth.renewals == 1 and not auth.revoked_families, auth.renewals


@place
def a_code_is_entered_elsewhere(here):
    with Protected() as (server, auth):
        here.configure(server.url)
        done = here.run("servers", "login", "web", "--device")
        assert done.returncode == 0 and "ABCD-1234" in done.stdout, done
        assert here.call("web_echo", HI).stdout == "hi\n" and auth.devices["d"]["polls"] == 2


@place
def a_client_with_a_secret_needs_no_person(here):
    with Protected(secret="s3cret") as (server, auth):
        here.configure(server.url, oauth={"grant": "client_credentials", "client_id": "ours",
                                          "client_secret": "${env:SECRET}"})
        assert here.call("web_echo", HI).stdout == "hi\n"
        assert here.call("web_echo", HI).stdout == "hi\n"
        asked = [(form, headers) for _, path, form, headers in auth.log if path == "/token"]
        assert len(asked) == 1 and asked[0][1]["authorization"] == "Basic b3VyczpzM2NyZXQ=", asked


@place
def a_call_that_needs_more_rights_says_how_to_get_them(here):
    with Protected() as (server, _):
        server.scope = "write"
        here.configure(server.url)
        assert here.login()[0] == 0
        done = here.call("web_echo", HI)
        assert 'glovebox servers login web --scope "read write"' in done.stdout, done
        assert here.login("--scope", "read write")[0] == 0
        assert here.call("web_echo", HI).stdout == "hi\n"


@place
def no_command_sees_a_token(here):
    with Protected() as (server, _):
        here.configure(server.url)
        assert here.login()[0] == 0
        token = here.tokens()["access_token"]
        looks = json.dumps({"command": "env; cat /proc/*/environ /proc/*/cmdline; "
                            "grep -r . ~/.local/state/glovebox/servers; ls -la ~/.local/state; :"})
        for done in [here.call("web_echo", HI, "--json"), here.call("bash", looks)]:
            assert done.returncode == 0 and token not in done.stdout + done.stderr, done


tap.play()
