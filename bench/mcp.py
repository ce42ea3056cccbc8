"""The groups of the MCP server: glovebox over stdio beside two servers from npm, all of them
started once and asked in turns by one client (mcp_client.c), as is the floor, bare_mcp.c: what
this machine takes for the essential work alone.

The peers (peers/package.json names their versions) have no sandbox. Each gets the same files in a
folder of its own, since all of them edit.
"""
import json
import os
import subprocess
import time

import tree
import warm

HERE = os.path.dirname(os.path.abspath(__file__))
LINE = "x" * 63 + "\n"
SMALL = 4 << 10
LARGE = 1 << 20
IN_FOLDER = 25
SEARCHED_FILES = 100_000
WARM_UP = 3
ROUNDS = 15
FEW_ROUNDS = 5  # a search takes a peer seconds
SETTLE_S = 1.0  # after the first answers: what a server does at its start is done
OURS, FILESYSTEM, COMMANDER = "glovebox", "server-filesystem", "desktop-commander"
FLOOR, FLOOR_SYNCED = "bare server", "bare server with fsync"
PEERS = (FILESYSTEM, COMMANDER)
END_S = 2.0
IDLE_MIB = 6
DEFINITIONS_KB = 13
MANY_CALLS = 100_000
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {},
         "clientInfo": {"name": "bench", "version": "1"}}


def program(build, name):
    """The peer NAME (a file of npm's .bin), installed beside the build; None when it cannot be."""
    folder = os.path.join(build, "peers")
    subprocess.run([os.path.join(HERE, os.pardir, "dev", "npm"), os.path.join(HERE, "peers"),
                    folder], check=False)
    path = os.path.join(folder, "node_modules", ".bin", name)
    return path if os.path.exists(path) else None


class Server:
    """One of the servers: how it is started in FOLDER, and how it is asked for the same."""

    def __init__(self, name, argv, folder):
        self.name = name
        self.argv = argv
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name) if self.name in PEERS else name

    def read(self, name):
        tool = {FILESYSTEM: "read_text_file"}.get(self.name, "read_file")
        return tool, {"path": self.path(name)}

    def edit(self):
        # The mark stays, so that every round finds it; the file grows by a byte.
        if self.name not in PEERS:
            return "edit_file", {"path": "edited", "edits": [{"old": "here", "new": "here."}]}
        if self.name == FILESYSTEM:
            return "edit_file", {"path": self.path("edited"),
                                 "edits": [{"oldText": "here", "newText": "here."}]}
        return "edit_block", {"file_path": self.path("edited"), "old_string": "here",
                              "new_string": "here."}

    def list(self):
        tool = {OURS: "list_files"}.get(self.name, "list_directory")
        return tool, {"path": self.path("folder")}

    def run(self):
        if self.name not in PEERS:
            return "bash", {"command": "true"}
        return "start_process", {"command": "true", "timeout_ms": 1000}

    def find(self, pattern):
        if self.name == OURS:
            return "glob", {"pattern": pattern}
        return "search_files", {"path": self.folder, "pattern": pattern}


def servers(build, workspace, names):
    """Those of NAMES that are there, each with a folder below WORKSPACE."""
    node = {FILESYSTEM: "mcp-server-filesystem", COMMANDER: "desktop-commander"}
    found = []
    for name in names:
        folder = os.path.join(workspace, name)
        os.makedirs(folder, exist_ok=True)
        if name == OURS:
            argv = [os.path.join(build, "glovebox"), "mcp", "-C", folder]
        elif name in (FLOOR, FLOOR_SYNCED):
            argv = [os.path.join(build, "bench", "bare_mcp"), folder,
                    *(["--sync"] if name == FLOOR_SYNCED else [])]
        else:
            argv = [program(build, node[name]), *([folder] if name == FILESYSTEM else [])]
        if argv[0] is not None:
            found.append(Server(name, argv, folder))
    return found


def fill(folder):
    for name, size in (("small", SMALL), ("large", LARGE), ("edited", SMALL)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(LINE * (size // len(LINE)))
    with open(os.path.join(folder, "edited"), "r+", encoding="ascii") as file:
        file.write("here")
    os.makedirs(os.path.join(folder, "folder"))
    for number in range(IN_FOLDER):
        with open(os.path.join(folder, "folder", f"file{number}"), "w", encoding="ascii") as file:
            file.write(LINE)


def play_columns(columns, rest_ms=0):
    """PLAY of a group whose commands are columns: .what is (server, calls, window, tool, …). Before each
    column the servers rest for REST_MS."""
    def play(build, running, rounds, workspace):
        there = {}
        for server in columns.values():
            there.setdefault(server[0].name, server[0])
        order = list(there)
        argv = [os.path.join(build, "bench", "mcp_client"), str(rounds), str(WARM_UP),
                str(rest_ms)]
        for server in there.values():
            argv += ["--server", *server.argv]
        for one in running:
            server, calls, window, (tool, arguments) = columns[one.name]
            argv += ["--column", str(order.index(server.name)), str(calls), str(window),
                     json.dumps({"name": tool, "arguments": arguments})]
        with subprocess.Popen(argv, cwd=workspace, env=environment(workspace),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True) as process:
            for line in process.stdout:
                yield [int(us) for us in line.split("\t")]
        if process.returncode != 0:
            raise SystemExit("bench: the measurement broke off")
    return play


def environment(workspace, has_home=True):
    if not has_home:
        return {"PATH": os.environ["PATH"]}
    home = os.path.join(workspace, ".home-of-servers")
    os.makedirs(home, exist_ok=True)
    return dict(os.environ, HOME=home)


class Conversation:
    """A server that is asked by hand."""

    def __init__(self, server, workspace, has_home=True):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            server.argv, cwd=workspace, env=environment(workspace, has_home), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.asked = 0
        self.ask("initialize", HELLO)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """(the answer, its bytes)"""
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.asked and "method" not in message:
                return message, len(line)
        raise SystemExit("bench: an MCP server has ended")

    def memory(self):
        return warm.memory_of(self.process.pid)[0] / warm.MIB

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()  # not every peer ends with its input
            self.process.wait()


def figures(build, workspace):
    for server in servers(build, workspace, (OURS, *PEERS)):
        talk = Conversation(server, workspace)
        _, size = talk.ask("tools/list", {})
        time.sleep(SETTLE_S)
        ours = server.name == OURS
        idle = round(talk.memory(), 1)
        yield {"of": f"{server.name}, idle, all its processes", "figure": idle, "unit": "MiB",
               "asked": f"≤ {IDLE_MIB} MiB" if ours else "",
               "met": idle <= IDLE_MIB if ours else None}
        yield {"of": f"{server.name}, definitions of its tools",
               "figure": round(size / 1000, 1), "unit": "kB",
               "asked": f"≤ {DEFINITIONS_KB} kB" if ours else "",
               "met": size <= DEFINITIONS_KB * 1000 if ours else None}
        if ours:
            tool, arguments = server.read("small")
            for _ in range(MANY_CALLS):
                talk.ask("tools/call", {"name": tool, "arguments": arguments})
            yield {"of": f"{server.name}, after {MANY_CALLS:,} calls",
                   "figure": round(talk.memory(), 1), "unit": "MiB", "asked": ""}
        talk.end()


def mcp_group(group, command, build, workspace):
    columns, commands, targets = {}, [], []
    there = servers(build, workspace, (OURS, FLOOR, FLOOR_SYNCED, *PEERS))
    for server in there:
        fill(server.folder)

    def compare(what, ask, calls, window, limit, floor, names=(FLOOR, *PEERS)):
        """LIMIT: milliseconds asked of ours; FLOOR: how often the bare server's time."""
        for name in (OURS, *names):
            title = f"{what}, {name}"
            commands.append(command(title, []))
            server = next((one for one in there if one.name == name), None)
            if server is None:
                commands[-1].missing = "not installed"
                continue
            columns[title] = (server, calls, window, ask(server))
        if limit is not None:
            targets.append((f"{what}, {OURS}", limit))
        for name in names:
            targets.append((f"{what}, {OURS}", f"{what}, {name}",
                            floor if name == FLOOR else None))

    def small(server):
        return server.read("small")

    # The floor's limits are the design's figures over those of its own bare server.
    compare("start to first answer", small, 0, 0, 3.0, 3.3)
    compare("100 × read 4 KiB, one after the other", small, 100, 1, 10.0, 1.6)
    compare("read 4 KiB after a rest", small, 1, 1, None, None)
    compare("100 × read 4 KiB, 10 in flight", small, 100, 10, None, None)
    compare("500 × read 4 KiB, 50 in flight", small, 500, 50, 5.0, 2.3, (FLOOR, FILESYSTEM))
    compare("read 1 MiB", lambda server: server.read("large"), 1, 1, 0.8, 1.7)
    compare("edit", Server.edit, 1, 1, 0.3, 1.8, (FLOOR, FLOOR_SYNCED, *PEERS))
    compare("list 25 files", Server.list, 1, 1, None, None, PEERS)
    compare("bash, true", Server.run, 1, 1, 0.5, 0.47, (FLOOR, COMMANDER))
    return group("mcp", "MCP over stdio", commands, targets, play=play_columns(columns),
                 rounds=ROUNDS, measure=figures)


def search_group(group, command, build, workspace):
    columns, commands, targets = {}, [], []
    for server in servers(build, workspace, (OURS, FILESYSTEM)):
        tree.make(server.folder, SEARCHED_FILES)
        title = f"a name, {server.name}"
        commands.append(command(title, []))
        columns[title] = (server, 1, 1, server.find("**/*_77777.*"))
    targets.append((commands[0].name, 60.0))
    if len(commands) > 1:
        targets.append((commands[0].name, commands[1].name, None))
    return group("mcp-search", f"MCP over stdio: a name among {SEARCHED_FILES:,} files",
                 commands, targets, play=play_columns(columns), rounds=FEW_ROUNDS)


GROUPS = {"mcp": mcp_group, "mcp-search": search_group}
