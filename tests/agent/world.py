"""world: what surrounds a session of a case: its workspace before and after, its git, what the
model was sent, the processes it left. Each check raises Unfit with what is wrong."""

import base64
import ctypes
import fnmatch
import json
import os
import re
import shutil
import stat
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECTS = os.path.join(HERE, "workspaces")
PR_SET_CHILD_SUBREAPER = 36
# What a session may leave in .git when it only looks: the index is refreshed by `git status`.
GIT_OWN = ("index",)
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


class Unfit(Exception):
    """What came is not what the case wants."""


def text_of(value):
    """A text, or a list of lines, as text."""
    return "\n".join(value) + "\n" if isinstance(value, list) else value


def fits(wanted, got):
    """Subset match: objects by their members, lists item by item, "~…" as a regex."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and all(
            k in got and fits(v, got[k]) for k, v in wanted.items())
    if isinstance(wanted, list):
        return (isinstance(got, list) and len(wanted) == len(got)
                and all(fits(w, g) for w, g in zip(wanted, got)))
    if isinstance(wanted, str) and wanted.startswith("~"):
        return isinstance(got, str) and re.search(wanted[1:], got, re.S) is not None
    return type(wanted) is type(got) and wanted == got


def short(value):
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) < 600 else shown[:600] + "…"


# The workspace.

def content_of(value):
    """(bytes, mode or None) of a file as a case writes it: a text, lines, or an object of these."""
    if not isinstance(value, dict):
        return text_of(value).encode(), None
    if "base64" in value:
        content = base64.b64decode(value["base64"])
    else:
        content = text_of(value.get("text", "")).encode() * value.get("times", 1)
    return content, int(value["mode"], 8) if "mode" in value else None


def write_file(root, name, value):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(value, dict) and "link" in value:
        os.symlink(value["link"], path)
        return
    if isinstance(value, dict) and "socket" in value:
        os.mknod(path, stat.S_IFSOCK | 0o666)
        return
    content, mode = content_of(value)
    with open(path, "wb") as file:
        file.write(content)
    if mode is not None:
        os.chmod(path, mode)


def git(root, *words):
    done = subprocess.run(["git", "-C", root, *words], env={**os.environ, **GIT_ENVIRONMENT},
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unfit(f"git {' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def make(case, root):
    """The workspace at ROOT, which is there and empty."""
    if "project" in case:
        shutil.copytree(os.path.join(PROJECTS, case["project"]), root, dirs_exist_ok=True)
    for name, value in case.get("files", {}).items():
        write_file(root, name, value)
    if "git" in case:
        git(root, "init", "-q", "-b", "main")
        git(root, "config", "user.name", "Anna")
        git(root, "config", "user.email", "anna@example.com")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Begin")
        # What the person is at work on, and has not committed.
        for name, value in case["git"].get("uncommitted", {}).items():
            write_file(root, name, value)


def snapshot(root):
    """path -> (kind, mode, bytes or where a link leads), of all but what is git's own."""
    found = {}
    for folder, folders, files in os.walk(root):
        at = os.path.relpath(folder, root)
        if at == ".":
            folders[:] = [name for name in folders if name != ".git"]
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = b""
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path).encode()
            elif stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[os.path.normpath(os.path.join(at, name))] = (info.st_mode, content)
    return found


def git_snapshot(root):
    """.git without what looking at it changes."""
    return {name: entry for name, entry in snapshot(os.path.join(root, ".git")).items()
            if name not in GIT_OWN}


def git_differs(before, after):
    """Paths in .git that are not as they were; objects only count when one is lost."""
    names = {name for name in before if before[name] != after.get(name)}
    names |= {name for name in after if name not in before and not name.startswith("objects")}
    return sorted(names)


def check_whole(case, root, before):
    """Nothing but what `tree` names differs from what was there BEFORE, modes included; what
    fits a pattern of `whole_tree` may be there besides."""
    wanted = dict(before)
    for name, value in case.get("tree", {}).items():
        if value is None:
            wanted.pop(name, None)
            continue
        content, mode = content_of(value)
        old = before.get(name, (stat.S_IFREG | 0o644, b""))[0]
        wanted[name] = (stat.S_IFREG | mode if mode is not None else old, content)
        while os.path.dirname(name):
            name = os.path.dirname(name)
            wanted.setdefault(name, (stat.S_IFDIR | 0o755, b""))
    got = snapshot(root)
    for name in sorted(set(wanted) | set(got)):
        if name not in got:
            raise Unfit(f"{name} is gone")
        if name not in wanted:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in case["whole_tree"]):
                continue
            raise Unfit(f"{name} is there and should not be: {short(repr(got[name][1]))}")
        if got[name][0] != wanted[name][0]:
            raise Unfit(f"{name} has mode {got[name][0]:o}, not {wanted[name][0]:o}")
        if got[name][1] != wanted[name][1]:
            raise Unfit(f"{name} holds {short(repr(got[name][1]))}")


def check_git(case, root, before):
    """The repository is whole; `status`, `log` and what differs in .git are what the case says."""
    wish = case["git"]
    git(root, "fsck", "--full", "--strict")
    got = {
        "status": git(root, "status", "--porcelain", "-uall").splitlines(),
        "log": git(root, "log", "--format=%an: %s").splitlines(),
    }
    for name, unless in (("status", []), ("log", ["Anna: Begin"])):
        if got[name] != wish.get(name, unless):
            raise Unfit(f"git {name}: {got[name]}")
    differs = git_differs(before, git_snapshot(root))
    if differs and "log" not in wish:
        raise Unfit(f"changed in .git: {differs}")
    if [name for name in differs if name.split("/")[0] in ("hooks", "config", "info")]:
        raise Unfit(f"changed in .git: {differs}")


# What the model was sent.

def chat_items(body):
    """("call" | "result" | "other", id, text) of all in a request, for Chat Completions."""
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], message["content"]
            continue
        content = message.get("content")
        yield "other", message["role"], json.dumps(content) if isinstance(content, list) else content
        for call in message.get("tool_calls", []):
            yield "call", call["id"], json.dumps(call["function"])


def responses_items(body):
    for item in body["input"]:
        if item["type"] == "function_call_output":
            yield "result", item["call_id"], item["output"]
        elif item["type"] == "function_call":
            yield "call", item["call_id"], item["name"] + item["arguments"]
        else:
            yield "other", item["type"], json.dumps(item)


def messages_items(body):
    for message in body["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block["type"] == "tool_result":
                inner = block["content"]
                text = inner if isinstance(inner, str) else "".join(i["text"] for i in inner)
                yield "result", block["tool_use_id"], text
            elif block["type"] == "tool_use":
                yield "call", block["id"], block["name"] + json.dumps(block["input"])
            else:
                # Where the cache breaks moves from request to request.
                bare = {k: v for k, v in block.items() if k != "cache_control"}
                yield "other", message["role"], json.dumps(bare)


ITEMS = {"completions": chat_items, "responses": responses_items, "messages": messages_items}


def check_answered(items):
    """Each call has its one result, in the order of the calls, before anything else is said."""
    due = []
    for kind, name, text in items:
        if kind == "call":
            due.append(name)
        elif kind == "result":
            if not due or due.pop(0) != name:
                raise Unfit(f"the result of {name} is not in its place")
            if not text.strip():
                raise Unfit(f"the result of {name} is blank")
        elif due:
            raise Unfit(f"no result was sent for {due}")
    if due:
        raise Unfit(f"no result was sent for {due}")


def conversation_of(body, items):
    """What tells conversations apart: who speaks, and what was said first."""
    said = [item for item in items if item[:2] != ("other", "system")]
    who = body.get("instructions") or body.get("system") or items[0][2]
    return json.dumps(who), said[0][2].split("\n")[0] if said else ""


# A refusal says where a path leads that a model wrote with "..", from the workspace that it knows.
REFUSED = re.compile(r'may not (?:read|write) /.*?: agent|ask the user to add \\?"/[^"]*"')


def check_requests(requests, folder, events, resumed=False):
    """What holds for all that a model is sent: calls answered in order and nothing lost from one
    request to the next, no key, no place of the host but the workspace. In a session that was
    RESUMED what came last may have been said anew, with the next prompt."""
    host = [os.path.join(folder, name) for name in ("home", "state", "configuration", "replay")]
    shortened = any(event["event"] in ("compacted", "shortened") for event in events)
    before, known = [], {}  # of the conversation that a request belongs to; delegates have theirs
    for request in requests:
        if "sk-secret" in request["text"]:
            raise Unfit("the key stands in the body of a request")
        told = REFUSED.sub("", request["text"])
        for place in host:
            if place in told:
                raise Unfit(f"the model was told of {place}: {short(request['text'])}")
        if not isinstance(request["body"], dict):
            continue
        items = list(ITEMS[request["path"].rsplit("/", 1)[-1]](request["body"]))
        check_answered(items)
        name = conversation_of(request["body"], items)
        before = known.get(name, [])
        kept = max(0, len(before) - resumed)
        if not shortened and items[:kept] != before[:kept]:
            at = next(i for i, item in enumerate(before) if items[i:i + 1] != [item])
            raise Unfit(f"not as it was sent before: {short(before[at])}\nbut {short(items[at:])}")
        before = known[name] = items
    if shortened or resumed or not requests:
        return
    told = [text for kind, _, text in before if kind == "result"]
    texts = {event["call"]: event["text"] for event in events if event["event"] == "tool_ended"}
    asked = [part["call"] for event in events if event["event"] == "message"
             for part in event["parts"] if part["kind"] == "call"]
    for call, got in zip(asked, told):
        if not got.startswith(texts[call].rstrip()[:2000]):
            raise Unfit(f"of {call} the model was told {short(got)}\nnot {short(texts[call])}")


# Processes.

def adopt_orphans():
    """What a session leaves behind becomes our child, whatever it did to get away."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def children():
    """Process ids of our children, ended ones too."""
    path = f"/proc/{os.getpid()}/task"
    found = set()
    for task in os.listdir(path):
        try:
            with open(f"{path}/{task}/children", encoding="ascii") as file:
                found |= {int(number) for number in file.read().split()}
        except FileNotFoundError:
            continue  # a thread that has just ended
    return found


def check_no_process(others, wait_s):
    """Within WAIT_S no child is left besides OTHERS."""
    until = time.monotonic() + wait_s
    while True:
        left = {number for number in children() - others if not os.waitpid(number, os.WNOHANG)[0]}
        if not left:
            return
        if time.monotonic() > until:
            raise Unfit(f"still running: {[command_of(number) for number in left]}")
        time.sleep(0.01)


def command_of(number):
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return str(number)


def check_tmp(mark):
    """Nothing of this run lies in the machine's own /tmp."""
    left = [name for name in os.listdir("/tmp") if mark in name]
    if left:
        raise Unfit(f"left in /tmp: {left}")
