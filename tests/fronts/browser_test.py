#!/usr/bin/env python3
"""Programs of a cell ask the person: an address for the browser, and a login that comes back."""
import json
import os
import re
import signal
import socket
import sys
import time

sys.path.insert(0, sys.argv[1])
from place import unused_port  # noqa: E402
import tap  # noqa: E402
import terminal  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
PATIENCE_S = terminal.PATIENCE_S
DEAF_S = terminal.DEAF_S

# What the person's browser does: it notes the address, and follows a redirect to the callback.
BROWSER = """#!/usr/bin/env python3
import os, sys, urllib.parse, urllib.request
about = (os.getsid(0) == os.getsid(os.getppid()), os.path.realpath("/proc/self/fd/0"),
         sorted(map(int, os.listdir("/proc/self/fd")))[:-1], os.environ.get("PERSONS"))
with open(os.environ["HOME"] + "/about", "w") as file:
    file.write(repr(about))
with open(os.environ["HOME"] + "/opened", "a") as file:
    file.write(repr(sys.argv[1:]) + "\\n")
query = urllib.parse.parse_qs(urllib.parse.urlsplit(sys.argv[1]).query)
if "redirect_uri" in query:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(query["redirect_uri"][0] + "?code=c0de&state=" + query["state"][0], timeout=60) as answer:
        text = answer.read().decode()
    with open(os.environ["HOME"] + "/came", "w") as file:
        file.write(text)
"""

# What `claude auth login` does.
LOGIN = """
import http.server, os, subprocess, sys, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("code")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"signed in" * SIZE)
        self.server.code = code
    def log_message(self, *args):
        pass
SIZE = int(sys.argv[2])
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
server.code = None
back = "http://localhost:%d/callback" % server.server_port
address = sys.argv[1] + "?state=s&redirect_uri=" + urllib.parse.quote(back, safe="")
print("port", server.server_port, flush=True)
done = subprocess.run(["xdg-open", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
print("exit", done.returncode, done.stderr.decode().partition("\\n")[0], flush=True)
while done.returncode == 0 and server.code is None:
    server.handle_request()
print("code", server.code, flush=True)
sys.stdin.readline() if len(sys.argv) > 3 else None
"""

PROFILE = {"description": "a test", "open": ["login.example.org", "other.example.org:8443"]}


class Person(terminal.Person):
    """A person with a browser, who runs ARGV wrapped (PROFILE) or, with `verb`, by exec."""

    def __init__(self, *argv, options=(), verb=None, profile=None, environment=None, config=None,
                 answers=True):
        self.words = list(argv)
        super().__init__(environment=environment, answers=answers)
        self.browser = self.write("browser", BROWSER, 0o755)
        self.write(".config/glovebox/wrap/agent.json", json.dumps(profile or PROFILE))
        if config is not None:
            self.write(".config/glovebox/config.json", json.dumps(config))
        self.variables.setdefault("BROWSER", self.browser)
        head = [GLOVEBOX, "exec", "--tty"] if verb == "exec" else [GLOVEBOX, "wrap"]
        if verb is None:
            self.trust(GLOVEBOX, "agent", self.variables)
        self.start(*head, *options, *(["agent"] if verb is None else []), "--", *argv)


def shell(script, **more):
    return Person("sh", "-c", script, **more)


def opens(address, **more):
    return shell(f"xdg-open '{address}'; echo ex''it $?", **more)


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@tap.case
def a_login_comes_back():
    for size in 1, 100000:
        with Person("python3", "-c", LOGIN, "https://login.example.org/authorize", str(size)) as tty:
            tty.wait_for(b"port ")
            tty.wait_for(b"Host: login.example.org:443")
            tty.answer()
            tty.wait_for(b"exit 0")
            tty.wait_for(b"code ['c0de']")
            assert tty.end() == 0
            tty.wait_until(lambda: tty.has("came") and len(tty.read("came")) == 9 * size, "answered")


@tap.case
def the_port_is_closed_after_the_request_and_at_the_end():
    with Person("python3", "-c", LOGIN, "https://login.example.org/authorize", "1", "stay") as tty:
        tty.wait_for(b"port ")
        tty.wait_for(b"\r\n")
        tty.answer()
        tty.wait_for(b"code ['c0de']")
        tty.wait_until(lambda: tty.has("came"), "answered")
        port = int(tty.read("opened").partition("localhost%3A")[2].partition("%2F")[0])
        tty.wait_until(lambda: not listens(port), "closed")
        tty.type(b"\r")
        assert tty.end() == 0
    # Nobody comes: the end of the run closes it.
    with Person("python3", "-c", LOGIN, "https://login.example.org/authorize", "1",
                environment={"BROWSER": "true"}) as tty:
        tty.wait_for(b"port ")
        tty.wait_until(lambda: b"\r\n" in tty.printed, "a port")
        port = int(tty.printed.partition(b"\r\n")[0])
        assert not listens(port)
        tty.answer()
        tty.wait_for(b"exit 0")
        assert listens(port)
        tty.process.send_signal(signal.SIGTERM)
        tty.end()
        assert not listens(port)


@tap.case
def a_taken_port_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        with opens(f"https://login.example.org/?redirect_uri=http://127.0.0.1:{port}/") as tty:
            tty.answer()
            tty.wait_for(b"xdg-open: port %d: it is in use here. Open it yourself:" % port)
            tty.wait_for(b"exit 4")
            assert tty.end() == 0 and not tty.has("opened")


@tap.case
def a_yes_opens_it_outside_by_itself():
    address = "https://login.example.org/a?b=$(id)&c='d;e"
    with opens(address.replace("'", "'\\''"), environment={"PERSONS": "own"}) as tty:
        tty.wait_for(address.encode())
        tty.answer()
        tty.wait_for(b"exit 0")
        assert tty.end() == 0
        tty.wait_until(lambda: tty.has("opened"), "opened")
        assert tty.read("opened") == repr([address]) + "\n"
        assert tty.read("about") == repr((False, "/dev/null", [0, 1, 2], "own")), tty.read("about")
        assert tty.is_as_before()


@tap.case
def a_browser_may_be_a_command_with_a_place():
    with opens("https://login.example.org/a", environment={"BROWSER": "sh -c true %s x:nothing"}) as tty:
        tty.answer()
        tty.wait_for(b"exit 0")
    with opens("https://login.example.org/a", environment={"BROWSER": "not-there"}) as tty:
        tty.answer()
        tty.wait_for(b"not-there cannot be started")
        tty.wait_for(b"exit 4")


@tap.case
def everything_else_is_a_no():
    for keys in (b"\r", b"n\r", b"yn\r", b"yy\r", b"\x03", b"\x04", b"\x1b", b"ye\r",
                 b"\x1b[200~y\r\x1b[201~\r", b"\x1b[<0;1;1My\x1b[200~\x1b[201~\r", b"y\x01\r"):
        with opens("https://login.example.org/a") as tty:
            tty.answer(keys)
            tty.wait_for(b"the person did not agree")
            tty.wait_for(b"exit 4")
            assert tty.end() == 0 and not tty.has("opened"), keys


@tap.case
def a_yes_may_be_corrected_and_answers_of_the_terminal_are_none():
    for keys in b"n\x7fy\r", b"\x1b[?62;1cy\x1b]11;rgb:0/0/0\x1b\\\r", b"yes\r", b"Y\r", b"\x1bOPy\n":
        with opens("https://login.example.org/a", environment={"BROWSER": "true"}) as tty:
            tty.answer(keys)
            tty.wait_for(b"exit 0")


@tap.case
def keys_before_the_question_are_no_answer():
    # They wait in the terminal when it comes, and more come while it appears.
    with shell("echo rea''dy; sleep 0.3; xdg-open https://login.example.org/a; echo ex''it $?") as tty:
        tty.wait_for(b"ready")
        tty.type(b"y\ry\r")
        tty.wait_for(b"anything else: no. ")
        tty.type(b"y\ry\r")
        time.sleep(DEAF_S)
        tty.type(b"\r")
        tty.wait_for(b"exit 4")
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def a_yes_needs_that_the_terminal_has_drawn_the_question():
    # The terminal is far behind: the program keeps it busy, then asks.
    script = r"""(while :; do printf '\033[m\033[5n\033[6n'; done) &
        sleep 1; xdg-open https://login.example.org/a; kill $!; echo ex''it $?"""
    with shell(script, answers=False) as tty:
        time.sleep(4)
        os.write(tty.master, b"y\r")
        time.sleep(0.5)
        assert not tty.has("opened")
        tty.wait_for(b"anything else: no. ")
        # What the program could have asked before is no sign.
        os.write(tty.master, b"\033[0n\033[1;1R\033[0n")
        time.sleep(DEAF_S)
        tty.type(b"y\r")
        tty.wait_for(b"whether it has shown this. ")
        code = re.match(rb"[0-9a-f]{4}", tty.printed)
        assert code and not tty.has("opened"), tty.printed
        # A yes alone is not enough for such a terminal.
        tty.type(b"y\r")
        tty.wait_for(b"did not agree")
        assert not tty.has("opened")
        tty.process.kill()


@tap.case
def a_terminal_that_does_not_tell_what_it_shows_has_a_code():
    with opens("https://login.example.org/a", answers=False) as tty:
        tty.wait_for(b"whether it has shown this. ")
        tty.wait_until(lambda: b"anything else: no. " in tty.printed, "a code")
        tty.type(tty.printed[:4] + b"\r")
        tty.wait_for(b"exit 0")
        assert tty.end() == 0
        tty.wait_until(lambda: tty.has("opened"), "opened")


@tap.case
def another_host_is_shown_to_be_copied():
    for address, host in (("https://evil.example.org/login.example.org", b"evil.example.org:443"),
                          ("http://login.example.org/", b"login.example.org:80"),
                          ("http://login.example.org:443/", b"login.example.org:443"),
                          ("https://login.example.org.evil.net/", b"login.example.org.evil.net:443"),
                          ("https://xn--lgin-vqa.example.org/", b"xn--lgin-vqa.example.org:443"),
                          ("https://login.example.org:8443/", b"login.example.org:8443")):
        with opens(address) as tty:
            tty.wait_for(address.encode())
            tty.wait_for(b"Host: " + host)
            tty.wait_for(b"Nothing in the profile agent lists this host")
            tty.answer()
            tty.wait_for(b"exit 0")
            assert tty.end() == 0 and not tty.has("opened"), address


@tap.case
def a_login_by_a_copied_address_comes_back_too():
    with Person("python3", "-c", LOGIN, "https://other.example.org/authorize", "1") as tty:
        tty.wait_for(b"port ")
        tty.wait_until(lambda: b"\r\n" in tty.printed, "a port")
        port = int(tty.printed.partition(b"\r\n")[0])
        tty.wait_for(b"Open the port?")
        tty.answer()
        tty.wait_for(b"exit 0")
        with socket.create_connection(("127.0.0.1", port)) as idle, \
                socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /callback?code=c0de HTTP/1.0\r\n\r\n")
            assert b"signed in" in b"".join(iter(lambda: client.recv(4096), b""))
            idle.close()
        tty.wait_for(b"code ['c0de']")
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def a_hostile_end_of_the_callback_holds_nobody_up():
    """Connections that are too many, say too much before the browser does, or end at once."""
    port = unused_port()
    script = "import socket, sys\n" \
             "def ask(line):\n" \
             "    one = socket.socket(socket.AF_UNIX)\n" \
             "    one.connect('/run/glovebox/ask')\n" \
             "    one.sendall(line)\n" \
             "    return one\n" \
             "answer = ask(b'open https://login.example.org/?redirect_uri=http://localhost:%s/\\n'\n" \
             "             % sys.argv[1].encode()).recv(4096).split()\n" \
             "print('an' + 'swer', answer[:2], flush=True)\n" \
             "kept = []\n" \
             "for number in range(60):\n" \
             "    one = ask(b'back ' + answer[2] + b'\\n')\n" \
             "    try:\n        one.sendall(b'early' * (number % 3))\n    except OSError:\n        pass\n" \
             "    if number % 4:\n        one.close()\n    else:\n        kept.append(one)\n" \
             "print('rea' + 'dy', flush=True)\n" \
             "sys.stdin.readline()"
    with Person("python3", "-c", script, str(port), environment={"BROWSER": "true"}) as tty:
        tty.answer()
        tty.wait_for(b"answer [b'yes', b'%d']" % port)
        tty.wait_for(b"ready")
        for _ in range(20):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    client.recv(4096)
            except OSError:
                pass
        # The terminal still works, and so do further questions.
        tty.type(b"\r")
        assert tty.end() == 0
        assert not listens(port)


WRONG = {
    "javascript:alert(1)": "only addresses that begin with",
    "file:///etc/passwd": "only addresses that begin with",
    "data:text/html,x": "only addresses that begin with",
    "HTTPS:login.example.org": "only addresses that begin with",
    "": "only addresses that begin with",
    "https:///login.example.org": "the host of the address",
    "https://": "the host of the address",
    "https://me@login.example.org/": "user name",
    "https://login.example.org@evil.net/": "user name",
    "https://login.example.org\\@evil.net/": "characters that do not belong there",
    "https://login.example.org/\x1b[2Ja": "characters that do not belong there",
    "https://login.example.org/\ta": "characters that do not belong there",
    "https://login.example.org/ a": "characters that do not belong there",
    "https://l\u00f6gin.example.org/": "characters that do not belong there",
    "https://login.example.org/\u202e": "characters that do not belong there",
    "https://0x7f.1/": "the host of the address",
    "https://login.example.org:0/": "the host of the address",
    "https://login.example.org/" + "a" * 4096: "more than 4096 bytes",
    "https://login.example.org/" + "a" * 100000: "too long",
    "https://login.example.org/\na": "several lines",
}


@tap.case
def what_is_no_address_of_the_web_is_refused_without_a_question():
    script = "import json, subprocess, sys\n" \
             "for word in json.load(open('wrong')):\n" \
             "    done = subprocess.run(['xdg-open', word], stderr=subprocess.PIPE)\n" \
             "    print(json.dumps([word[:40], done.returncode,\n" \
             "                      done.stderr.decode('utf-8', 'replace')[:150]]), flush=True)\n" \
             "print('a' + 'll')"
    with Person("sh", "-c", "while ! test -e wrong.ready; do sleep 0.1; done; exec python3 -c \"$0\"", script) as tty:
        for name, text in (("wrong", json.dumps(list(WRONG))), ("wrong.ready", "")):
            with open(os.path.join(tty.work, name), "w", encoding="utf-8") as file:
                file.write(text)
        tty.wait_until(lambda: b"all\r\n" in tty.printed, "all refused")
        said = [json.loads(line) for line in tty.printed.decode().replace("\r", "").splitlines()
                if line.startswith("[")]
        assert len(said) == len(WRONG), said
        for (word, words), (told, code, sentence) in zip(WRONG.items(), said):
            assert code == 4 and words in sentence, (word, told, code, sentence)
        assert tty.end() == 0 and not tty.has("opened")
        assert b"anything else" not in tty.printed


@tap.case
def what_our_own_program_would_not_say_is_refused():
    """Whatever a program of the cell sends, it gets one line, or the end."""
    script = "import json, socket, sys\n" \
             "for text in (b'open https://login.example.org/' + (1 << 20) * b'a', b'open \\x1b[2J\\n',\n" \
             "             b'open https://login.example.org/\\x00\\n', b'back ' + 32 * b'0' + b'\\n',\n" \
             "             b'\\n', b'open\\n', b'shell id\\n', b'open -x\\n'):\n" \
             "    with socket.socket(socket.AF_UNIX) as one:\n" \
             "        one.connect('/run/glovebox/ask')\n" \
             "        try:\n            one.sendall(text)\n        except OSError:\n            pass\n" \
             "        try:\n            print(json.dumps(one.recv(4096).decode()), flush=True)\n" \
             "        except OSError:\n            print('\"\"', flush=True)\n" \
             "print('a' + 'll')"
    with Person("python3", "-c", script) as tty:
        tty.wait_until(lambda: b"all" in tty.printed, "all")
        said = [json.loads(line) for line in tty.printed.decode().replace("\r", "").splitlines()[:-1]]
        assert [line[:3] for line in said] == ["no ", "no ", "no ", "", "", "", "", "no "], said
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def an_option_is_no_address():
    with shell("xdg-open -x; echo ex''it $?; xdg-open; echo ex''it $?; xdg-open a b; echo ex''it $?; "
               "xdg-open --help; echo ex''it $?") as tty:
        for code in 1, 1, 1, 0:
            tty.wait_for(b"exit %d" % code)
        assert tty.end() == 0


@tap.case
def every_name_and_the_variable_are_ours():
    with shell("for n in xdg-open x-www-browser www-browser sensible-browser gnome-open open; do "
               "command -v $n; done; echo $BROWSER; echo 'en''d'") as tty:
        tty.wait_until(lambda: b"end" in tty.printed, "all")
        assert tty.printed.decode().split() == [
            f"/run/glovebox/open/{name}" for name in
            ("xdg-open", "x-www-browser", "www-browser", "sensible-browser", "gnome-open", "open", "xdg-open")
        ] + ["end"], tty.printed


@tap.case
def a_flood_is_bounded_and_told_once():
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do xdg-open https://login.example.org/$i; done; echo al''l"
    with shell(script, environment={"BROWSER": "true"}) as tty:
        for keys in b"\r", b"\r", b"\r", b"y\r", b"\r", b"\r":
            tty.answer(keys)
        tty.wait_until(lambda: b"all" in tty.printed, "the end")
        assert tty.printed.count(b"too many questions") == 4, tty.printed
        assert tty.end() == 0
        assert tty.printed.count(b"4 questions of the cell were not asked") == 1, tty.printed


@tap.case
def questions_come_one_after_the_other():
    script = "xdg-open https://login.example.org/1 2>/dev/null & xdg-open https://login.example.org/2 2>/dev/null & " \
             "wait; echo al''l"
    with shell(script) as tty:
        tty.wait_for(b"https://login.example.org/")
        first = tty.printed[:1]
        assert tty.printed.count(b"anything else") <= 1
        tty.answer()
        tty.wait_for(b"https://login.example.org/")
        assert tty.printed[:1] != first
        tty.answer(b"\r")
        tty.wait_for(b"all")
        assert tty.end() == 0
        tty.wait_until(lambda: tty.has("opened"), "opened")
        assert tty.read("opened") == repr([f"https://login.example.org/{first.decode()}"]) + "\n"


@tap.case
def connections_without_a_line_hold_nobody_up():
    script = "import socket, subprocess\n" \
             "held = [socket.socket(socket.AF_UNIX) for _ in range(60)]\n" \
             "for one in held:\n    one.setblocking(False)\n" \
             "def go(one):\n    try:\n        one.connect('/run/glovebox/ask')\n    except OSError:\n        pass\n" \
             "for one in held:\n    go(one)\n" \
             "code = 4\n" \
             "while code:\n    code = subprocess.run(['xdg-open', 'https://login.example.org/'],\n" \
             "        stderr=subprocess.DEVNULL).returncode\n" \
             "print('co' + 'de', code)"
    with Person("python3", "-c", script, environment={"BROWSER": "true"}) as tty:
        tty.answer()
        tty.wait_for(b"code 0")
        assert tty.end() == 0


@tap.case
def the_program_cannot_draw_meanwhile_and_its_screen_comes_back():
    script = "xdg-open https://login.example.org/a & sleep 0.2; " \
             "i=0; while kill -0 $! 2>/dev/null; do echo mine; done; echo do''ne"
    with shell(script, environment={"BROWSER": "true"}) as tty:
        tty.wait_for(b"\x1b[?1049h")
        tty.wait_for(b"anything else: no. ")
        until = time.monotonic() + 1
        while time.monotonic() < until:
            tty._read(time.monotonic() + 0.1)
        assert b"mine" not in tty.printed, tty.printed
        time.sleep(DEAF_S)
        tty.type(b"y\r")
        tty.wait_for(b"\x1b[?1049l")
        tty.wait_for(b"mine")
        tty.wait_for(b"done")
        assert tty.end() == 0


@tap.case
def a_full_screen_program_gets_its_modes_and_draws_again():
    # A busy machine may bring both sizes by one signal: the last one counts.
    script = r"""trap 's=$(stty size); echo "$s"; printf "re""drawn"; [ "$s" = "30 100" ] && exit 3' WINCH
        printf '\033[?1049h\033[?1000;1006h\033[>1u\033[?25l\033[?7l\033]11;#000\007scr''een'
        xdg-open https://login.example.org/a &
        while :; do sleep 0.05; done"""
    with Person("bash", "-c", script, environment={"BROWSER": "true"}) as tty:
        tty.wait_for(b"screen")
        tty.wait_for(b"\x1b[?1000l\x1b[?1006l\x1b7\x1b[>0u\x1b]104\x07\x1b]110\x07\x1b]111\x07\x1b[0m")
        tty.answer()
        tty.wait_for(b"\x1b[<u\x1b8\x1b[?1000h\x1b[?1006h\x1b[?7l\x1b[?25l")
        tty.wait_for(b"30 100")
        assert tty.end() == 3


@tap.case
def a_string_that_was_open_does_not_swallow_the_question():
    script = r"printf '\033]0;ti''tle'; xdg-open https://login.example.org/a; printf 'rest\007shown'"
    with shell(script, environment={"BROWSER": "true"}) as tty:
        tty.wait_for(b"\x1b]0;title\x1b\\")
        tty.answer()
        tty.wait_for(b"\x1b[?1049l")
        tty.wait_for(b"shown")
        assert tty.end() == 0


@tap.case
def no_answer_is_wanted_any_more_when_who_asked_is_gone():
    with shell("timeout 1 xdg-open https://login.example.org/a; echo ex''it $?; read line; echo got $line") as tty:
        tty.wait_for(b"anything else: no. ")
        tty.wait_for(b"\x1b[?1049l")
        tty.wait_for(b"exit 124")
        time.sleep(DEAF_S)
        tty.type(b"yes\r")
        tty.wait_for(b"got yes")
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def the_end_of_the_program_ends_the_question():
    for options, code, script in (((), 5, "xdg-open https://login.example.org/a & sleep 1; exit 5"),
                                  (("--timeout", "1.5"), 124, "xdg-open https://login.example.org/a"),
                                  # What it prints meanwhile fills its terminal.
                                  (("--timeout", "1.5"), 124, "xdg-open https://login.example.org/a & yes")):
        with shell(script, options=options) as tty:
            tty.wait_for(b"anything else: no. ")
            began = time.monotonic()
            assert tty.end() == code
            assert time.monotonic() - began < 30
            assert b"\x1b[?1049l" in tty.printed and tty.is_as_before()
            assert not tty.has("opened")


@tap.case
def a_killed_front_leaves_the_terminal_and_nothing_else():
    with opens("https://login.example.org/a") as tty:
        tty.wait_for(b"anything else: no. ")
        tty.process.kill()
        assert tty.end() == -signal.SIGKILL
        assert tty.is_as_before()
        tty.wait_for(b"\x1b[?2004l")
        tty.wait_for(b"\x1b[?1049l")
    with opens("https://login.example.org/a") as tty:
        tty.wait_for(b"anything else: no. ")
        tty.process.send_signal(signal.SIGTERM)
        assert tty.end() == 128 + signal.SIGTERM
        assert b"\x1b[?1049l" in tty.printed and tty.is_as_before()


@tap.case
def exec_asks_but_has_no_hosts():
    with opens("https://login.example.org/a", verb="exec") as tty:
        tty.wait_for(b"No profile lists this host")
        tty.answer()
        tty.wait_for(b"exit 0")
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def without_a_terminal_it_is_refused_with_a_sentence():
    with opens("https://login.example.org/a") as tty:
        tty.process.kill()
        tty.end()
        done = tap.run(tty.argv, env=tty.variables, cwd=tty.work, input="")
        assert done.stdout == "exit 4\n", (done.stdout, done.stderr)
        assert "xdg-open: there is no terminal to ask a person on. Open it yourself:\n" \
               "https://login.example.org/a\n" in done.stderr, done.stderr
        assert not tty.has("opened")


@tap.case
def a_person_is_asked_whether_questions_without_a_yes_go_on():
    script = "for i in 1 2 3 4 5 6 7; do xdg-open https://login.example.org/$i; done; echo al''l"
    with shell(script) as tty:
        for _ in range(5):
            tty.wait_for(b"Open it?")
            tty.answer(b"\r")
        tty.wait_for(b"got no yes for")
        tty.wait_for(b"Go on?")
        tty.answer(b"\r")
        tty.wait_until(lambda: b"all" in tty.printed, "the end")
        assert tty.printed.count(b"the person wants no more questions of this cell") == 2, tty.printed
        assert tty.end() == 0
        assert tty.printed.count(b"2 questions of the cell were not asked: you wanted no more of them") == 1, tty.printed
    with shell(script.replace(" 7", ""), environment={"BROWSER": "true"}) as tty:
        for keys in b"\r", b"\r", b"\r", b"\r", b"\r", b"y\r", b"y\r":
            tty.answer(keys)
        tty.wait_for(b"all")
        assert tty.end() == 0


@tap.case
def a_question_in_the_place_of_a_withdrawn_one_says_so():
    script = "timeout 2 xdg-open https://login.example.org/a; xdg-open https://login.example.org/b; echo ex''it $?"
    with shell(script, environment={"BROWSER": "true"}) as tty:
        tty.wait_for(b"anything else: no. ")
        tty.wait_for(b"The question before this one was withdrawn.")
        tty.answer()  # too early
        time.sleep(1)
        assert not tty.has("opened")
        time.sleep(1)
        tty.type(b"y\r")
        tty.wait_for(b"exit 0")
        assert tty.end() == 0


@tap.case
def a_small_window_shows_no_question():
    with shell("echo rea''dy; read line; xdg-open https://login.example.org/a; echo ex''it $?") as tty:
        tty.wait_for(b"ready")
        tty.resize(5, 100)
        tty.type(b"\r")
        tty.wait_for(b"the window is too small to show the question; enlarge it")
        tty.wait_for(b"exit 4")
        assert tty.end() == 0 and not tty.has("opened")


@tap.case
def a_question_whose_beginning_would_scroll_away_is_not_asked():
    """The host stands at the beginning, and what a cell appends must not push it off the screen."""
    script = ("echo rea''dy; read line; xdg-open https://login.example.org/$(head -c 1500 /dev/zero | tr '\\0' a); "
              "echo ex''it $?")
    with shell(script) as tty:
        tty.wait_for(b"ready")
        tty.resize(16, 80)
        tty.type(b"\r")
        tty.wait_for(b"too small to show the question")
        tty.wait_for(b"exit 4")
        assert tty.end() == 0 and not tty.has("opened")
    # With as many rows as the question takes it is asked.
    with shell(script) as tty:
        tty.wait_for(b"ready")
        tty.resize(60, 100)
        tty.type(b"\r")
        tty.answer()
        tty.wait_for(b"exit 0")
        tty.wait_until(lambda: tty.has("opened"), "opened")
        assert tty.end() == 0


tap.play()
