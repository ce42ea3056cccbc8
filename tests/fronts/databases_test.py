#!/usr/bin/env python3
"""database_schema beside files of SQLite and real servers that this test starts and stops.

databases_test.py TAP_FOLDER GLOVEBOX"""
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])
from place import unused_port  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[2]
PASSWORD = "pa:ss@w%rd/?#"
QUOTED = "pa%3Ass%40w%25rd%2F%3F%23"
START_SECONDS = 300
TABLES_MAX = 1000

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL,
    mail VARCHAR(80) UNIQUE, since DATE DEFAULT '2020-01-01');
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL,
    amount NUMERIC(10, 2) DEFAULT 0,
    CONSTRAINT of_customer FOREIGN KEY (customer) REFERENCES customers (id));
CREATE INDEX by_amount ON orders (amount);
CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 100;
"""


class Place:
    """A workspace, and a configuration of one agent outside."""

    def __init__(self, root):
        self.root = root
        self.workspace = os.path.join(root, "work")
        os.mkdir(self.workspace)
        self.config = os.path.join(root, "config.json")
        self.configure()

    def configure(self, **more):
        agent = {"tools": ["database_schema"], **more}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"agents": {"reader": agent}}, file)
        os.chmod(self.config, 0o600)

    def path(self, name):
        return os.path.join(self.workspace, name)

    def database(self, name, script):
        connection = sqlite3.connect(self.path(name))
        connection.executescript(script)
        connection.close()

    def ask(self, action, dsn=None, table=None, variables=()):
        arguments = {"action": action}
        if dsn is not None:
            arguments["dsn"] = dsn
        if table is not None:
            arguments["table"] = table
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.root, **dict(variables),
               **{name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}}
        return subprocess.run(
            [PROGRAM, "tool", "call", "--json", "--config", self.config, "-C", self.workspace,
             "--agent", "reader", "database_schema", json.dumps(arguments)],
            env=env, capture_output=True, text=True, check=False, timeout=100)

    def result(self, *words, **options):
        done = self.ask(*words, **options)
        return json.loads(done.stdout)

    def done(self, *words, **options):
        result = self.result(*words, **options)
        assert result["status"] == "done", result["text"]
        return result

    def failed(self, *words, **options):
        result = self.result(*words, **options)
        assert result["status"] in ("failed", "denied"), result["text"]
        return result["text"]


def place(function):
    """The case FUNCTION with a place of its own."""
    def play():
        with tempfile.TemporaryDirectory() as root:
            function(Place(root))
    play.__name__ = function.__name__
    return tap.case(play)


def rows(result, name):
    return {row[0]: row[1:] for row in result["details"][name]}


@place
def a_file_tells_its_tables_columns_and_indexes(here):
    here.database("app.db", SCHEMA)
    tables = rows(here.done("list_tables", "app.db"), "tables")
    assert {name: row[0] for name, row in tables.items()} == {
        "customers": "table", "orders": "table", "large": "view"}, tables
    result = here.done("describe", "sqlite:app.db", "customers")
    columns = rows(result, "columns")
    assert columns["id"][:2] == ["INTEGER", "yes"] and "primary key" in columns["id"][3], columns
    assert columns["name"][:2] == ["VARCHAR(80)", "no"], columns
    assert columns["since"][2] == "'2020-01-01'", columns
    result = here.done("describe", here.path("app.db"), "orders")
    assert "customer -> customers(id)" in result["text"], result["text"]
    indexes = rows(here.done("indexes", "app.db", "orders"), "indexes")
    assert "ON orders (amount)" in indexes["by_amount"][1], indexes
    assert "is it \"orders\"?" in here.failed("describe", "app.db", "order")
    assert "list_tables" in here.failed("indexes", "app.db", "nothing like it")
    assert "Name the `table`" in here.failed("describe", "app.db")


@place
def names_and_texts_that_are_meant_to_deceive_are_shown(here):
    here.database("app.db", 'CREATE TABLE "a\x1b[31m\nb\u202e\'\'; DROP" (x DEFAULT (1\n+\t2));')
    result = here.done("list_tables", "app.db")
    assert "\x1b" not in result["text"] and "\u202e" not in result["text"], result["text"]
    assert result["text"].count("\n") == 3, result["text"]
    name = result["details"]["tables"][0][0]
    assert here.failed("describe", "app.db", "x' OR 1=1 --") != "", name


@place
def many_tables_are_counted_and_a_long_definition_is_cut(here):
    here.database("app.db", "".join(f"CREATE TABLE t{n:05} (a);" for n in range(TABLES_MAX + 5)) +
                  "CREATE VIEW v AS SELECT '" + "x" * 10000 + "' AS a;")
    result = here.done("list_tables", "app.db")
    assert len(result["details"]["tables"]) == TABLES_MAX, len(result["details"]["tables"])
    assert "more rows" in result["text"] and len(result["text"]) < 64 << 10, result["text"][-80:]
    result = here.done("describe", "app.db", "v")
    assert len(result["text"]) < 2000, len(result["text"])


@place
def what_is_no_database_is_refused(here):
    with open(here.path("text"), "w", encoding="ascii") as file:
        file.write("hello")
    os.mkfifo(here.path("fifo"))
    os.symlink(os.path.join(here.root, "outside.db"), here.path("link"))
    sqlite3.connect(os.path.join(here.root, "outside.db")).executescript(SCHEMA)
    here.database("torn", SCHEMA)
    with open(here.path("torn"), "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)
    assert "no database" in here.failed("list_tables", "text")
    for name in ("fifo", "link", "missing.db", "..", "../outside.db"):
        here.failed("list_tables", name)
    assert "SQLite" in here.failed("list_tables", "torn")
    assert "is no kind of database" in here.failed("list_tables", "oracle://a:secret@b/c")
    assert "secret" not in here.failed("list_tables", "oracle://a:secret@b/c")
    for dsn in ("postgresql://", "postgresql://h:0/x", "postgresql://h:70000/x",
                "mariadb://[::1/x", "postgresql://u:%zz@h/x", "sqlite:", "sqlite:///a.db",
                "postgresql://a b/x", "postgresql://u:%00@h/x"):
        text = here.failed("list_tables", dsn)
        assert text.startswith("dsn: "), f"{dsn}: {text}"


@place
def blocked_files_stay_hidden(here):
    here.database("app.db", SCHEMA)
    here.configure(blocked=["app.db"])
    here.failed("list_tables", "app.db")


@place
def a_write_ahead_log_needs_no_right_to_write(here):
    writer = sqlite3.connect(here.path("app.db"))
    writer.execute("PRAGMA journal_mode=WAL")
    writer.executescript(SCHEMA)
    assert "customers" in here.done("list_tables", "app.db")["text"]
    writer.close()
    before = sorted(os.listdir(here.workspace))
    assert "customers" in here.done("list_tables", "app.db")["text"]
    assert sorted(os.listdir(here.workspace)) == before, os.listdir(here.workspace)


@place
def a_variable_names_the_database(here):
    here.database("app.db", SCHEMA)
    here.configure(env=["DATABASE_URL", "OTHER=sqlite:app.db"])
    variables = {"DATABASE_URL": "sqlite:app.db"}
    assert "orders" in here.done("list_tables", variables=variables)["text"]
    assert "orders" in here.done("list_tables", "$OTHER")["text"]
    assert "DATABASE_URL" in here.failed("list_tables")
    assert "NOT_THERE" in here.failed("list_tables", "$NOT_THERE")


class Server:
    """A server of its own, as a user who may run one, in a folder that goes with it."""

    def __init__(self):
        self.root = tempfile.mkdtemp()
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user:
            os.chown(self.root, self.user.pw_uid, self.user.pw_gid)
        self.port = unused_port()
        self.process = None

    def options(self):
        more = {"user": self.user.pw_uid, "group": self.user.pw_gid,
                "extra_groups": []} if self.user else {}
        return {"cwd": self.root, "env": {"PATH": os.environ["PATH"], "HOME": self.root,
                                          "LC_ALL": "C.UTF-8"},
                "stdin": subprocess.DEVNULL, **more}

    def write(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        return path

    def prepare(self, *command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=START_SECONDS, **self.options())
        assert done.returncode == 0, done.stdout

    def start(self, *command):
        with open(os.path.join(self.root, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self.options())

    def await_it(self, is_there):
        until = time.monotonic() + START_SECONDS
        while not is_there():
            if self.process.poll() is not None or time.monotonic() > until:
                with open(os.path.join(self.root, "log"), encoding="utf-8") as log:
                    raise AssertionError(log.read()[-2000:])
            time.sleep(0.05)

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.root)

    def begin(self):
        raise NotImplementedError


class Postgres(Server):
    scheme = "postgresql"

    def begin(self):
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:] or [""]
        data = os.path.join(self.root, "data")
        self.prepare(os.path.join(bins[0], "initdb"), "-D", data, "-U", "owner", "--auth=scram-sha-256",
                     "--no-sync", "--pwfile", self.write("password", PASSWORD))
        self.start(os.path.join(bins[0], "postgres"), "-D", data, "-p", str(self.port), "-c",
                   "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
        self.await_it(lambda: self.query("SELECT 1").returncode == 0)
        done = self.query(SCHEMA + "CREATE SCHEMA other; CREATE TABLE other.things (a serial);"
                          "COMMENT ON TABLE orders IS 'What was bought';")
        assert done.returncode == 0, done.stderr

    def query(self, text):
        return subprocess.run(
            ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "owner", "-v", "ON_ERROR_STOP=1",
             "-d", "postgres", "-c", text], capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], "PGPASSWORD": PASSWORD}, timeout=START_SECONDS)


class MariaDB(Server):
    scheme = "mariadb"

    def begin(self):
        data = os.path.join(self.root, "data")
        self.prepare("mariadb-install-db", "--no-defaults", f"--datadir={data}",
                     "--auth-root-authentication-method=normal", "--skip-test-db")
        script = self.write("begin.sql", f"""CREATE DATABASE postgres; CREATE DATABASE other;
CREATE USER owner@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO owner@'127.0.0.1';
USE postgres; {SCHEMA} ALTER TABLE orders COMMENT 'What was bought';
CREATE TABLE other.things (a int);""".replace("\n", " ").replace("; ", ";\n"))
        self.start(shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin"), "--no-defaults",
                   f"--datadir={data}", f"--port={self.port}", "--bind-address=127.0.0.1",
                   f"--socket={self.root}/s", f"--pid-file={self.root}/pid", "--skip-name-resolve",
                   f"--init-file={script}", "--innodb-flush-log-at-trx-commit=0")
        self.await_it(self.accepts)


def beside(server_class):
    """The case FUNCTION beside a server."""
    def decorate(function):
        def play():
            with tempfile.TemporaryDirectory() as root, server_class() as server:
                function(Place(root), server)
        play.__name__ = function.__name__
        return tap.case(play)
    return decorate


def check_server(here, server, kinds):
    host = f"127.0.0.1:{server.port}"
    dsn = f"{server.scheme}://owner:{QUOTED}@{host}/postgres?x=1"
    text = here.failed("list_tables", dsn)
    assert f'"tcp://{host}"' in text and PASSWORD not in text and QUOTED not in text, text
    here.configure(network=[f"tcp://{host}"], env=["DATABASE_URL"])
    result = here.done("list_tables", dsn)
    tables = rows(result, "tables")
    assert tables["orders"][0] == "table" and tables["orders"][2] == "What was bought", tables
    assert tables["large"][0] == "view" and "other.things" in tables, tables
    assert "Not used of the address: x" in result["text"], result["text"]
    columns = rows(here.done("describe", dsn, "customers"), "columns")
    assert columns["id"][0] in kinds and columns["id"][1] == "no", columns
    assert "primary key" in columns["id"][3], columns
    assert columns["name"][1] == "no" and columns["mail"][1] == "yes", columns
    assert "2020-01-01" in columns["since"][2], columns
    text = here.done("describe", dsn, "orders")["text"]
    assert "of_customer" in text and "customers" in text, text
    text = here.done("describe", dsn, "large")["text"]
    assert "100" in text, text
    assert "a" in rows(here.done("describe", dsn, "other.things"), "columns")
    indexes = rows(here.done("indexes", dsn, "orders"), "indexes")
    assert indexes["by_amount"][0] == "index" and "amount" in indexes["by_amount"][1], indexes
    assert "is it \"orders\"?" in here.failed("describe", dsn, "order")
    here.failed("describe", dsn, "x' OR '1'='1")
    text = here.failed("list_tables", f"{server.scheme}://owner:wrong@{host}/postgres")
    assert "wrong" not in text and "owner" in text, text
    assert "orders" in here.done("list_tables", variables={"DATABASE_URL": dsn})["text"]


@beside(Postgres)
def a_postgresql_server_tells_its_schema(here, server):
    check_server(here, server, ["integer"])


@beside(MariaDB)
def a_mariadb_server_tells_its_schema(here, server):
    check_server(here, server, ["int(11)"])


@place
def a_server_that_says_nothing_is_given_up(here):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        here.configure(network=[f"tcp://{host}"])
        for scheme in ("postgresql", "mariadb"):
            began = time.monotonic()
            here.failed("list_tables", f"{scheme}://u@{host}/x")
            assert time.monotonic() - began < 60, scheme


tap.play()
