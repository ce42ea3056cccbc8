#!/usr/bin/env python3
"""sessions export --html: a page that shows all of a session, that nothing in the session can break out of, and
that a real browser reads, with scripts and without."""
import html.parser
import json
import os
import re
import shutil
import sqlite3
import sys

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
from place import Home, sanitizers  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])
BROWSER_S = 120
PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
# What would run, load or send something if it were taken for HTML.
HOSTILE = ("<script>document.title='taken'</script>", "</script><script>document.title='taken'</script>",
           "</pre></details><img src=x onerror=\"document.title='taken'\">", "<!--", "]]>", "</main>",
           "<style>body{display:none}</style>", "</style><link rel=stylesheet href=http://127.0.0.1:9/x.css>",
           "\"><iframe src=http://127.0.0.1:9/></iframe>", "' onmouseover='x", "<base href=http://127.0.0.1:9/>",
           "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>", "&lt;b&gt; &#60;b&#62;")
ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "div", "input", "output", "button", "main",
           "dl", "dt", "dd", "section", "p", "pre", "details", "summary", "b", "code", "span", "ins", "del", "img",
           "script"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "role", "hidden", "type", "placeholder",
              "aria-label", "id", "open", "alt", "src"}
EMPTY = {"meta", "input", "img"}


class Page(html.parser.HTMLParser):
    """The elements of a page, checked as they come, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.tags, self.pictures = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.tags.append(tag)
        for name, value in attrs:
            if name == "src":
                assert tag == "img" and re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", value)
                self.pictures.append(value)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def text(self):
        return "".join(self.words)


class Person(Home):
    """Somebody with one session, made of EVENTS when they are given."""

    def __init__(self, events=None, script=None):
        super().__init__("glovebox-page-")
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8", **sanitizers()}
        with open(os.path.join(self.folder, "r.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "page", "turns": script or [{"text": "Yes.", "repeat": True}]}, file)
        done = self.run("run", "--model", "replay:../r.json", "Do <it>.")
        assert done.returncode == 0, done.stderr
        if events is not None:
            self.replace(events)

    def run(self, *words):
        return tap.run([GLOVEBOX, *words], cwd=self.work, env=self.environment, timeout=BROWSER_S)

    def replace(self, events):
        """Between the session's first event and its end stand EVENTS."""
        path = os.path.join(self.home, ".local", "state", "glovebox", "sessions.db")
        database = sqlite3.connect(path)
        key, = database.execute("SELECT max(key) FROM session").fetchone()
        database.execute("DELETE FROM event WHERE session = ? AND number > 1", (key,))
        for number, event in enumerate(events, 2):
            text = event if isinstance(event, str) else json.dumps({"n": number, "time_ms": 1, **event})
            kind = "notice" if isinstance(event, str) else event["event"]
            database.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", (key, number, kind, 1, text))
        database.commit()
        database.close()

    def page(self):
        done = self.run("sessions", "export", "last", "--html")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout

    def browse(self, page, find=None, scripts=True):
        """The page as the browser has it, after its script."""
        assert shutil.which("chromium"), "chromium is not installed: dev/bootstrap test"
        path = os.path.join(self.folder, "page.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
        profile = os.path.join(self.folder, "browser", "Default")
        os.makedirs(profile, exist_ok=True)
        with open(os.path.join(profile, "Preferences"), "w", encoding="utf-8") as file:
            json.dump({"profile": {"default_content_setting_values": {"javascript": 1 if scripts else 2}}}, file)
        done = tap.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                        "--no-first-run", "--disable-background-networking", "--enable-logging=stderr",
                        f"--user-data-dir={self.folder}/browser", "--dump-dom",
                        f"file://{path}" + (f"#find={find}" if find else "")],
                       env={"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8"}, timeout=BROWSER_S)
        assert done.returncode == 0, done.stderr[-2000:]
        assert "Content Security Policy" not in done.stderr, done.stderr
        return done.stdout


def ended(call, text, **more):
    return {"event": "tool_ended", "call": call, "tool": "bash", "status": "done", "text": text, "exit_code": 0,
            "seconds": 0.1, "level": 3, "details": {}, **more}


def began(call, command):
    return {"event": "tool_began", "call": call, "tool": "bash", "arguments": {"command": command}}


SAYS = [{"text": "I look.", "calls": [{"tool": "bash", "arguments": {"command": "echo seen; false"}}]},
        {"calls": [{"tool": "write_file", "arguments": {"path": "new.txt", "content": "one\ntwo\n"}}]},
        {"text": "All is done.", "repeat": True}]


@tap.case
def a_session_is_a_page():
    with Person(script=SAYS) as person:
        page = person.page()
        read = Page(page)
        text = read.text()
        for words in ("Do <it>.", "I look.", "echo seen; false", "exit 1", "\nseen\n", "+one\n", "All is done.",
                      "The change: 1 file", "workspace", person.work, "L3"):
            assert words in text or words.strip() in text, (words, text)
        assert read.tags.count("ins") == 4 and "http:" not in page and "https:" not in page
        # Results are folded, changes are open.
        assert re.search(r'<details class="item call bad"><summary><b>bash</b>', page)
        assert re.search(r'<details class="item call good" open><summary><b>write_file</b>', page)


@tap.case
def nothing_in_a_session_is_html():
    for hostile in HOSTILE:
        events = [{"event": "instructions", "text": hostile},
                  {"event": "turn_began", "text": hostile},
                  {"event": "message", "parts": [{"kind": "text", "text": hostile},
                                                 {"kind": "thinking", "text": hostile}]},
                  began("c1", hostile),
                  ended("c1", hostile, tool=hostile, status=hostile, details={"diff": "+" + hostile}),
                  ended("c2", "", content=[{"type": "image", "mimeType": "image/png", "data": hostile},
                                           {"type": "image", "mimeType": hostile, "data": PIXEL}]),
                  {"event": "approval_wanted", "call": "c3", "tool": "bash", "effect": hostile, "subject": hostile},
                  {"event": "approval_given", "call": "c3", "tool": "bash", "answer": hostile, "by": hostile},
                  {"event": "check_ended", "check": hostile, "state": hostile, "file": hostile},
                  {"event": "notice", "text": hostile}, {"event": "compacted", "text": hostile},
                  {"event": "turn_ended", "reason": hostile, "patch": hostile, "changed": [{"path": hostile}]}]
        with Person(events) as person:
            read = Page(person.page())
            assert read.text().count(hostile.strip()) >= 15, (hostile, read.text())
            assert not read.pictures


@tap.case
def a_browser_runs_the_pages_own_script_alone():
    events = [{"event": "turn_began", "text": "".join(HOSTILE)}, began("c1", "make all"), ended("c1", "needle here"),
              began("c2", "make test"), ended("c2", "nothing")]
    with Person(events) as person:
        page = person.page()
        seen = person.browse(page)
        assert "<title>Session " in seen and "taken</title>" not in seen
        assert re.search(r'<div class="search" role="search">', seen), seen[:3000]
        # A search opens what it finds, and shows nothing else.
        seen = person.browse(page, find="NEEDLE")
        assert re.search(r'<details class="item call good" open=""><summary><b>bash</b> <code>make all', seen), seen
        assert re.search(r'<details class="item call good apart"><summary><b>bash</b> <code>make test', seen), seen
        # Without scripts there is no field that does nothing, and the text is the same.
        seen = person.browse(page, scripts=False)
        assert re.search(r'<div class="search" role="search" hidden="">', seen), seen[:3000]
        assert "needle here" in seen
        # Somebody's script, even if it came through, is not run.
        forged = page.replace("</main>", "<script>document.title = 'taken'</script></main>")
        assert forged != page
        try:
            seen = person.browse(forged)
        except AssertionError as refused:
            assert "Content Security Policy" in str(refused)
        else:
            raise AssertionError("a stranger's script was not refused")


@tap.case
def pictures_of_results_are_in_the_page():
    with Person([ended("c1", "a.png: PNG", content=[{"type": "image", "mimeType": "image/png", "data": PIXEL}] * 20)]) as person:
        read = Page(person.page())
        assert len(read.pictures) == 16 and PIXEL in read.pictures[0]


@tap.case
def pictures_of_prompts_are_in_the_page():
    picture = {"type": "image", "mimeType": "image/png", "data": PIXEL, "text": "p.png"}
    with Person([{"event": "turn_began", "text": "what is this?", "pictures": [picture]}]) as person:
        assert len(Page(person.page()).pictures) == 1


@tap.case
def what_is_cut_off_or_damaged_is_said():
    events = [{"event": "turn_began", "text": "go"}, began("c1", "sleep 1"), began("c2", "sleep 2"),
              ended("c2", "second"), ended("c9", "of nobody"), "{no JSON", {"event": "turn_began", "text": "again"}]
    with Person(events) as person:
        text = Page(person.page()).text()
        assert "sleep 1 no result: the program was ended" in text, text
        assert "sleep 2 done, exit 0, 0.1 s" in text and "of nobody" in text
        assert "Event 7 (notice) cannot be read." in text
        done = person.run("sessions", "export", "000000", "--html")
        assert done.returncode == 1 and done.stdout == "" and "no session" in done.stderr
        tap.refused(GLOVEBOX, ["sessions", "export", "last", "--html", "--markdown"], "choose one")


@tap.case
def bytes_without_ink_are_seen():
    with Person([began("c1", "echo \u202ecod\u200b; \x1b[8mhidden"), ended("c1", "\x1b[8mplain\x1b[0m \u202eturned")]) as person:
        page = person.page()
        assert "\x1b" not in page and "\u202e" not in page and "\u200b" not in page
        assert "\\x1B[8mhidden" in page


tap.play()
