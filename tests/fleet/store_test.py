#!/usr/bin/env python3
"""The store of a fleet: a folder and a bucket by the same cases, and what is particular to each.

store_test.py TAP_FOLDER STORE_DRIVER"""
import contextlib
import errno
import hashlib
import os
import random
import shutil
import stat
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0:0] = [HERE, os.path.join(HERE, "..", "fake")]
import tap  # noqa: E402, pylint: disable=wrong-import-position
import s3_server  # noqa: E402, pylint: disable=wrong-import-position
import stores  # noqa: E402, pylint: disable=wrong-import-position
from stores import Driver, fails, scratch  # noqa: E402, pylint: disable=wrong-import-position

DRIVER = stores.DRIVER = os.path.abspath(sys.argv[2])
# `make check-all` plays many more kills.
KILLS = int(os.environ.get("GLOVEBOX_TEST_KILLS", "40"))
RACES = 1000


class Folder:
    """A store in a folder, seen from outside."""

    def __init__(self, where):
        self.path = os.path.join(where, "store")
        self.where, self.env = "file:" + self.path, {}

    def bytes_of(self, name):
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read()

    def damage(self, name):
        with open(os.path.join(self.path, name), "r+b") as file:
            file.write(b"?")


class Bucket:
    """A store in a bucket, seen from outside."""

    def __init__(self, server):
        self.server, self.where, self.env = server, "s3://bench/runs/of-ann", server.environment

    def bytes_of(self, name):
        return self.server.objects["bench/runs/of-ann/" + name]

    def damage(self, name):
        self.server.objects["bench/runs/of-ann/" + name] = b"?" + self.bytes_of(name)[1:]


def both(function):
    """Decorator: a case for each kind of store; FUNCTION gets the store and a folder for files."""
    def folder():
        with scratch() as where:
            function(Folder(where), where)

    def bucket():
        with scratch() as where, s3_server.Server() as server:
            function(Bucket(server), where)

    for each in (folder, bucket):
        each.__name__ = f"{each.__name__}_{function.__name__}"
        tap.case(each)
    return function


# Both kinds.

@both
def keeps_the_first_of_two_results(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        assert driver.where == store.where
        assert driver.put("jobs/j/results/a.json", b"one") == "done"
        assert driver.put("jobs/j/results/a.json", b"two") == "there"
        assert driver.get("jobs/j/results/a.json") == b"one" == store.bytes_of("jobs/j/results/a.json")
        assert driver.put("jobs/j/job.json", b"", "replace") == "done"
        assert driver.get("jobs/j/job.json") == b""
        assert driver.put("jobs/j/job.json", b"x" * 3_000_000, "replace") == "done"
        assert driver.get("jobs/j/job.json") == b"x" * 3_000_000


@both
def is_told_where_nothing_is(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        fails(errno.ENOENT, ["jobs/j/none", store.where], driver.get, "jobs/j/none")
        fails(errno.ENOENT, ["blobs/"], driver.ask, "fetch", "0" * 64, os.path.join(where, "out"))
        assert driver.list("jobs/none/results/") == []
        assert driver.ask("remove", "jobs/none/results/a.json") == "done"
        driver.put("jobs/j/a", b"1")
        assert driver.ask("remove", "jobs/j/a") == "done"
        fails(errno.ENOENT, ["jobs/j/a"], driver.get, "jobs/j/a")
        assert driver.put("jobs/j/a", b"2") == "done"


@both
def lists_one_folder_with_its_folders(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        for name in ("jobs/j/job.json", "jobs/j/results/a.json", "jobs/j/results/b.c.json", "jobs/k-1/job.json"):
            driver.put(name, b"1")
        assert driver.list("jobs/j/results/") == ["a.json", "b.c.json"]
        assert driver.list("jobs/j/results") == ["a.json", "b.c.json"]
        assert driver.list("jobs/j/") == ["job.json", "results/"]
        assert driver.list("jobs/") == ["j/", "k-1/"]
        assert driver.list() == ["jobs/", "store.json"]
    with Driver(store.where, where, mode="r", env=store.env) as driver:
        assert driver.list("jobs/") == ["j/", "k-1/"]


@both
def lists_more_than_a_page(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        count = 200
        if isinstance(store, Bucket):
            store.server.page, count = 97, 1200
        assert driver.ask("many", "jobs/j/results/r", count, 1) == f"done {count}"
        assert driver.list("jobs/j/results/") == sorted(f"r-{i}" for i in range(count))


@both
def names_a_blob_by_its_bytes(store, where):
    data = random.Random(1).randbytes(5_000_001)
    name = hashlib.sha256(data).hexdigest()
    out = os.path.join(where, "out")
    with Driver(store.where, where, env=store.env) as driver:
        path = driver.file(data, "blob")
        assert driver.ask("blob", path) == f"done {name} {len(data)}"
        assert store.bytes_of("blobs/" + name) == data
        if isinstance(store, Bucket):
            store.server.requests.clear()
        assert driver.ask("blob", path) == f"done {name} {len(data)}"
        if isinstance(store, Bucket):
            assert [request[0] for request in store.server.requests] == ["HEAD"]
        assert driver.ask("fetch", name, out) == "done"
        with open(out, "rb") as file:
            assert file.read() == data
        empty = driver.file(b"", "empty")
        assert driver.ask("blob", empty) == f"done {hashlib.sha256(b'').hexdigest()} 0"
        store.damage("blobs/" + name)
        fails(errno.EBADMSG, [name, "damaged"], driver.ask, "fetch", name, out)
        fails(errno.EINVAL, ["regular file"], driver.ask, "blob", where)
        fails(errno.EINVAL, ["64"], driver.ask, "fetch", "../store.json", out)


@both
def reaches_no_name_outside(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        for name in ("../a", "/a", "a/../b", "a//b", "a/", ".tmp/a", "a/.b", "a%2fb", "ä", "a\\b", "a:b", "~"):
            fails(errno.EINVAL, ["name"], driver.put, name, b"1")
            fails(errno.EINVAL, ["name"], driver.get, name)
            fails(errno.EINVAL, ["name"], driver.ask, "remove", name)
        fails(errno.ENAMETOOLONG, ["511"], driver.put, "a/" * 255 + "ab", b"1")
        fails(errno.EINVAL, ["255"], driver.put, "a" * 256, b"1")
        fails(errno.EINVAL, ["name"], driver.list, "..")
        assert driver.list() == ["store.json"]


@both
def gives_each_of_many_names_to_one_of_many_threads(store, where):
    with Driver(store.where, where, env=store.env) as driver:
        assert driver.ask("many", "jobs/j/results/r", 100, 16) == "done 100"
        assert len(driver.list("jobs/j/results/")) == 100


@both
def gives_each_of_1000_names_to_one_of_two_processes(store, where):
    with Driver(store.where, where, env=store.env) as one, Driver(store.where, where, env=store.env) as other:
        one.say("race", "jobs/j/results/r", RACES, "one")
        other.say("race", "jobs/j/results/r", RACES, "other")
        won = [int(driver.hear().split(" ")[1]) for driver in (one, other)]
        assert sum(won) == RACES, won
        said = [store.bytes_of(f"jobs/j/results/r-{i}") for i in range(RACES)]
        assert [said.count(b"one"), said.count(b"other")] == won, won


def killed_while_it_turns(store, where, name, contents, kills, rng):
    """Replace NAME by turns, kill at any moment, look what is there, KILLS times."""
    files = []
    for i, data in enumerate(contents):
        files.append(os.path.join(where, f"content{i}"))
        with open(files[-1], "wb") as file:
            file.write(data)
    with Driver(store.where, where, env=store.env) as driver:
        driver.ask("put", "replace", name, files[0])
    seen = set()
    for _ in range(kills):
        driver = Driver(store.where, where, env=store.env)
        driver.say("turn", name, *files)
        for _ in range(rng.randrange(4)):
            assert driver.hear() == "turned"
        # Not a wait for something: the moment of the kill.
        time.sleep(rng.random() * (0.01 if isinstance(store, Folder) else 0.1))
        driver.process.kill()
        driver.process.communicate()
        found = store.bytes_of(name)
        assert found in contents, (len(found), [len(data) for data in contents])
        seen.add(found)
    with Driver(store.where, where, env=store.env) as driver:
        assert driver.get(name) in contents
        assert driver.list("jobs/j/") == [name.rsplit("/", 1)[1]]
    return seen


@both
def holds_the_old_or_the_new_one_after_a_kill(store, where):
    contents = [b"old" * 50_000, b"new" * 90_000]
    kills = KILLS if isinstance(store, Folder) else max(KILLS // 4, 20)
    seen = killed_while_it_turns(store, where, "jobs/j/job.json", contents, kills, random.Random(7))
    assert seen == set(contents), "the kills were all at one moment"
    if isinstance(store, Folder):
        left = os.listdir(os.path.join(store.path, ".tmp"))
        # What dead writers have left goes an hour later.
        for name in left:
            os.utime(os.path.join(store.path, ".tmp", name), (time.time() - 3700,) * 2)
        fresh = os.path.join(store.path, ".tmp", "0" * 32)
        with open(fresh, "wb"):
            pass
        with Driver(store.where, where):
            pass
        assert os.listdir(os.path.join(store.path, ".tmp")) == ["0" * 32], left


@tap.case
def words_that_are_no_store_are_refused():
    with scratch() as where:
        for word, part in (("", "no name"), ("file:", "no name"), ("gs://bucket", "s3://BUCKET"),
                           ("file://host/folder", "two slashes"), ("s3://", "bucket"), ("s3://ab", "3 to 63"),
                           ("s3://key:secret@bucket", "letters"), ("s3://bucket/a/../b", "dot"),
                           ("s3://bucket/a b", "byte 2"), ("s3://bucket/?x", "byte 1")):
            fails(errno.EINVAL, [part], Driver, word, where)


# A folder.

@tap.case
def a_folder_is_made_with_those_above_it():
    with scratch() as where:
        path = os.path.join(where, "a", "b", "store")
        with Driver(path, where) as driver:
            driver.put("jobs/j/job.json", b"1")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        assert os.listdir(os.path.join(path, ".tmp")) == []
        with Driver("file://" + path, where, mode="r") as driver:
            assert driver.get("jobs/j/job.json") == b"1"
        fails(errno.ENOENT, ["none", "mounted"], Driver, os.path.join(where, "none"), where, "r")
        fails(errno.ENOTDIR, ["input"], Driver, os.path.join(where, "input"), where)


@tap.case
def links_in_a_store_are_not_followed():
    with scratch() as where:
        store = Folder(where)
        outside = os.path.join(where, "outside")
        os.mkdir(outside)
        with open(os.path.join(outside, "secret"), "wb") as file:
            file.write(b"secret")
        with Driver(store.where, where) as driver:
            driver.put("jobs/j/job.json", b"1")
            os.symlink(outside, os.path.join(store.path, "jobs", "k"))
            os.symlink(os.path.join(outside, "secret"), os.path.join(store.path, "jobs", "j", "s"))
            os.symlink("/nowhere", os.path.join(store.path, "jobs", "j", "dangling"))
            os.mkfifo(os.path.join(store.path, "jobs", "j", "fifo"))
            fails(errno.ELOOP, ["jobs/k/a", "links"], driver.put, "jobs/k/a", b"1")
            fails(errno.ELOOP, ["jobs/k/a", "links"], driver.put, "jobs/k/a", b"1", "replace")
            fails(errno.ELOOP, ["links"], driver.get, "jobs/k/secret")
            fails(errno.ELOOP, ["links"], driver.get, "jobs/j/s")
            fails(errno.ELOOP, ["links"], driver.put, "jobs/j/dangling", b"1")
            fails(errno.ELOOP, ["links"], driver.ask, "remove", "jobs/k/secret")
            fails(errno.ELOOP, ["links"], driver.list, "jobs/k/")
            fails(errno.EISDIR, ["jobs/j"], driver.get, "jobs/j")
            fails(errno.ELOOP, ["fifo"], driver.get, "jobs/j/fifo")
            assert driver.list("jobs/j/") == ["job.json"]
            assert driver.list("jobs/") == ["j/"]
            # A link that is replaced goes itself.
            assert driver.put("jobs/j/s", b"2", "replace") == "done"
        assert os.listdir(outside) == ["secret"]
        with open(os.path.join(outside, "secret"), "rb") as file:
            assert file.read() == b"secret"


@tap.case
def a_folder_that_vanishes_is_not_an_empty_one():
    with scratch() as where:
        store = Folder(where)
        with Driver(store.where, where) as driver:
            driver.put("jobs/j/job.json", b"1")
            shutil.rmtree(store.path)
            for function, words in ((driver.get, ["jobs/j/job.json"]), (driver.put, ["jobs/j/a", b"1"]),
                                    (driver.list, ["jobs/"]), (driver.ask, ["remove", "jobs/j/job.json"]),
                                    (driver.ask, ["blob", driver.file(b"1")])):
                fails(errno.ESTALE, ["gone", "put it back"], function, *words)


@tap.case
def a_folder_in_a_store_that_vanishes_is_made_again():
    with scratch() as where:
        store = Folder(where)
        with Driver(store.where, where) as driver:
            driver.put("jobs/j/job.json", b"1")
            shutil.rmtree(os.path.join(store.path, "jobs"))
            shutil.rmtree(os.path.join(store.path, ".tmp"))
            assert driver.put("jobs/j/job.json", b"2") == "done"
            assert driver.get("jobs/j/job.json") == b"2"


def mounted(where, options):
    """The words before a driver that has a small file system of its own at WHERE/disk; raises Skip."""
    disk = os.path.join(where, "disk")
    os.makedirs(disk, exist_ok=True)
    script = f'mount -t tmpfs -o {options} none "{disk}" && exec "$@"'
    before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if tap.run([*before, "true"]).returncode != 0:
        raise tap.Skip("this user may not mount in a namespace of their own")
    return before, disk


@tap.case
def a_full_disk_is_told_and_leaves_the_old_one():
    with scratch() as where:
        before, disk = mounted(where, "size=1m")
        with Driver(disk, where, before=before) as driver:
            assert driver.put("jobs/j/job.json", b"old", "replace") == "done"
            for how, name in (("replace", "jobs/j/job.json"), ("new", "jobs/j/a")):
                fails(errno.ENOSPC, [name, "free some space"], driver.put, name, b"x" * (2 << 20), how)
            blob = driver.file(b"x" * (2 << 20), "blob")
            fails(errno.ENOSPC, ["free some space"], driver.ask, "blob", blob)
            assert driver.get("jobs/j/job.json") == b"old"
            assert driver.list("jobs/j/") == ["job.json"]
            # Nothing of it is left to take up space.
            assert driver.put("jobs/j/b", b"x" * (700 << 10)) == "done"


@tap.case
def a_read_only_file_system_is_told_and_may_be_read():
    with scratch() as where:
        store = Folder(where)
        with Driver(store.where, where) as driver:
            driver.put("jobs/j/job.json", b"1")
        script = f'mount --bind "{store.path}" "{store.path}" && mount -o remount,bind,ro "{store.path}" && exec "$@"'
        before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
        if tap.run([*before, "true"]).returncode != 0:
            raise tap.Skip("this user may not mount in a namespace of their own")
        with Driver(store.where, where, mode="r", before=before) as driver:
            assert driver.get("jobs/j/job.json") == b"1"
            fails(errno.EROFS, ["read-only"], driver.put, "jobs/j/a", b"1")
        # The mark of the store is there already; that it cannot be written is known all the same.
        fails(errno.EROFS, ["read-only", store.where], lambda: Driver(store.where, where, before=before))


@tap.case
def a_folder_of_somebody_else_is_told():
    with scratch() as where:
        store = Folder(where)
        with Driver(store.where, where) as driver:
            driver.put("jobs/j/job.json", b"1")
        before = []
        if os.geteuid() == 0:
            before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            os.chmod(where, 0o755)
            os.chmod(store.path, 0o755)
            with open(os.path.join(where, "input"), "wb"):
                pass
            os.chmod(os.path.join(where, "input"), 0o666)
            if tap.run([*before, DRIVER]).returncode != 2:
                raise tap.Skip("nobody may not start the driver")
        else:
            os.chmod(store.path, 0o500)
            os.chmod(os.path.join(store.path, "jobs", "j"), 0o500)
        try:
            with Driver(store.where, where, mode="r", before=before) as driver:
                fails(errno.EACCES, ["jobs/j/a", "owner or the mode"], driver.put, "jobs/j/a", b"1")
                fails(errno.EACCES, ["owner or the mode"], driver.ask, "remove", "jobs/j/job.json")
            if before:
                fails(errno.EACCES, ["owner or the mode"], lambda: Driver(store.where, where, before=before))
        finally:
            os.chmod(store.path, 0o700)
            os.chmod(os.path.join(store.path, "jobs", "j"), 0o700)


# A bucket.

@contextlib.contextmanager
def bucket(**members):
    with scratch() as where, s3_server.Server() as server:
        for name, value in members.items():
            setattr(server, name, value)
        yield Bucket(server), server, where


def counted(server, *faults):
    """The next requests of SERVER meet FAULTS, one each; those behind them none."""
    left = list(faults)
    server.fault = lambda request: left.pop(0) if left else None
    return left


@tap.case
def the_service_of_the_tests_signs_as_the_documentation_does():
    """Two examples of "Authenticating Requests: Using the Authorization Header" in the documentation of S3."""
    class Request:
        command, raw_path, raw_query = "GET", "/test.txt", ""
        headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-date": "20130524T000000Z",
                   "x-amz-content-sha256": hashlib.sha256(b"").hexdigest()}

    secret, scope = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524/us-east-1/s3/aws4_request"
    assert s3_server.signature(secret, Request, scope, "host;range;x-amz-content-sha256;x-amz-date") == \
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    Request.raw_path, Request.raw_query = "/", "max-keys=2&prefix=J"
    assert s3_server.signature(secret, Request, scope, "host;x-amz-content-sha256;x-amz-date") == \
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


@tap.case
def what_a_service_says_about_the_caller_becomes_a_sentence():
    with bucket() as (store, server, where):
        def opened(**change):
            env = {**store.env, **change}
            with Driver(store.where, where, env={name: value for name, value in env.items() if value}):
                pass
        opened()
        fails(errno.EACCES, ["AWS_SECRET_ACCESS_KEY is not set"], lambda: opened(AWS_SECRET_ACCESS_KEY=""))
        fails(errno.EACCES, ["AWS_ACCESS_KEY_ID is not set"], lambda: opened(AWS_ACCESS_KEY_ID=""))
        fails(errno.EINVAL, ["AWS_SECRET_ACCESS_KEY holds"], lambda: opened(AWS_SECRET_ACCESS_KEY="a b"))
        fails(errno.EACCES, ["does not know the key", "InvalidAccessKeyId"],
              lambda: opened(AWS_ACCESS_KEY_ID="AKIAOTHER"))
        fails(errno.EACCES, ["does not belong to AWS_ACCESS_KEY_ID"], lambda: opened(AWS_SECRET_ACCESS_KEY="other"))
        fails(errno.EINVAL, ["not in the region us-east-1", "AWS_REGION to " + s3_server.REGION],
              lambda: opened(AWS_REGION="us-east-1"))
        fails(errno.EINVAL, ["not in the region us-east-1"], lambda: opened(AWS_REGION=""))
        opened(AWS_REGION="", AWS_DEFAULT_REGION=s3_server.REGION)
        fails(errno.EINVAL, ["AWS_REGION is no region"], lambda: opened(AWS_REGION="Ärger"))
        fails(errno.EINVAL, ["AWS_ENDPOINT_URL", "http://"], lambda: opened(AWS_ENDPOINT_URL="minio:9000"))
        opened(AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ENDPOINT_URL_S3=server.url)
        fails(errno.ECONNREFUSED, ["no answer from 127.0.0.1:1"],
              lambda: opened(AWS_ENDPOINT_URL="http://127.0.0.1:1"))
        server.buckets.clear()
        fails(errno.ENOENT, ["no such bucket"], opened)
        server.buckets.add("bench")
        server.ahead_s = 3600
        fails(errno.EINVAL, ["clocks differ", "timedatectl"], opened)
        server.ahead_s = 0
        for status, code, number, part in (
                (403, "AccessDenied", errno.EACCES, "s3:ListBucket"), (400, "ExpiredToken", errno.EACCES, "expired"),
                (301, "PermanentRedirect", errno.EINVAL, "AWS_REGION"), (507, "", errno.ENOSPC, "quota"),
                (418, "Teapot", errno.EIO, "Teapot")):
            server.fault = lambda request, fault=(status, code): fault
            fails(number, [part, store.where], opened)
        server.fault = lambda request: (403, "AccessDenied&lt;\n", "<&>" * 50)
        fails(errno.EIO, ["403"], opened)


@tap.case
def a_session_token_is_signed():
    with bucket(token=s3_server.TOKEN) as (store, server, where):
        fails(errno.EACCES, ["AWS_SESSION_TOKEN does not belong"], Driver, store.where, where, "w", store.env)
        with Driver(store.where, where, env={**store.env, "AWS_SESSION_TOKEN": s3_server.TOKEN}) as driver:
            driver.put("jobs/j/job.json", b"1")
        server.token = "expired"
        fails(errno.EACCES, ["has expired"], Driver, store.where, where, "w",
              {**store.env, "AWS_SESSION_TOKEN": s3_server.TOKEN})


@tap.case
def a_service_that_ignores_conditions_is_refused():
    with bucket(knows_conditions=False) as (store, server, where):
        fails(errno.ENOTSUP, ["twice", "If-None-Match"], Driver, store.where, where, "w", store.env)
        server.fault = lambda request: (501, "NotImplemented")
        fails(errno.ENOTSUP, ["conditional writes"], Driver, store.where, where, "w", store.env)


@tap.case
def a_service_that_asks_for_patience_gets_it():
    with bucket() as (store, server, where):
        with Driver(store.where, where, env=store.env) as driver:
            for fault in ((500, "InternalError"), (503, "SlowDown"), (502, ""), (429, "TooManyRequests"), "cut",
                          (400, "RequestTimeout")):
                left = counted(server, fault, fault)
                assert driver.put("jobs/j/a" + str(len(server.requests)), b"1") == "done", fault
                assert left == [], fault
            left = counted(server, (409, "ConditionalRequestConflict"))
            assert driver.put("jobs/j/b", b"1") == "done" and left == []
            left = counted(server, "cut", (503, ""))
            assert driver.get("jobs/j/b") == b"1" and left == []
            left = counted(server, (503, ""))
            assert "b" in driver.list("jobs/j/") and left == []


@tap.case
def a_service_that_is_never_ready_is_told_at_the_opening():
    with bucket() as (store, server, where):
        server.fault = lambda request: (503, "SlowDown")
        fails(errno.EBUSY, ["busy 5 times", "SlowDown"], Driver, store.where, where, "w", store.env)
        server.fault = lambda request: "cut"
        fails(errno.EPROTO, ["no answer"], Driver, store.where, where, "w", store.env)


@tap.case
def an_object_whose_answer_was_lost_is_ones_own():
    with bucket() as (store, server, where):
        with Driver(store.where, where, env=store.env) as driver:
            left = counted(server, "lost")
            assert driver.put("jobs/j/results/a.json", b"mine") == "done"
            assert left == [] and store.bytes_of("jobs/j/results/a.json") == b"mine"
            # Somebody else was first, and the answer to our attempt was lost.
            server.objects["bench/runs/of-ann/jobs/j/results/b.json"] = b"theirs"
            left = counted(server, "cut")
            assert driver.put("jobs/j/results/b.json", b"mine") == "there"
            assert left == [] and store.bytes_of("jobs/j/results/b.json") == b"theirs"


@tap.case
def an_object_that_is_removed_between_refusal_and_look_is_written_after_all():
    with bucket() as (store, server, where):
        with Driver(store.where, where, env=store.env) as driver:
            refused = (412, "PreconditionFailed")
            left = counted(server, refused)
            server.requests.clear()
            assert driver.put("jobs/j/results/a.json", b"mine") == "done"
            assert left == [] and store.bytes_of("jobs/j/results/a.json") == b"mine"
            assert [request[0] for request in server.requests] == ["PUT", "HEAD", "PUT"]
            # A service that says so each time is told, and nobody takes it for a result.
            server.fault = lambda request: refused if request.command == "PUT" else None
            fails(errno.EAGAIN, ["jobs/j/results/b.json", "do this again"], driver.put, "jobs/j/results/b.json", b"mine")
            server.fault = None


@tap.case
def an_object_that_breaks_off_is_read_on_from_there():
    data = random.Random(3).randbytes(3_000_000)
    name = hashlib.sha256(data).hexdigest()
    with bucket() as (store, server, where):
        with Driver(store.where, where, env=store.env) as driver:
            driver.ask("blob", driver.file(data, "blob"))
            server.requests.clear()
            left = counted(server, "half", "half")
            out = os.path.join(where, "out")
            assert driver.ask("fetch", name, out) == "done" and left == []
            with open(out, "rb") as file:
                assert file.read() == data
            assert len(server.requests) == 3


@tap.case
def answers_that_are_no_xml_are_told():
    class Wrong(s3_server.Handler):
        def list_page(self, query):
            self.answer(200, self.server.owner.page_text.encode(), Content_Type="application/xml")

    with bucket() as (store, server, where):
        server.http.RequestHandlerClass = Wrong
        with Driver(store.where, where, env=store.env) as driver:
            begin = "<ListBucketResult>"
            for text in ("", "{}", begin, begin + "<Contents></ListBucketResult>", begin + "&no;</ListBucketResult>",
                         "<!DOCTYPE x [<!ENTITY a 'b'>]>" + begin + "</ListBucketResult>",
                         begin + "</ListBucketResult>x", begin * 20, "x" * (5 << 20)):
                server.page_text = text
                fails(errno.EBADMSG, ["no XML"], driver.list, "jobs/")
            server.page_text = begin + "<IsTruncated>true</IsTruncated></ListBucketResult>"
            fails(errno.EBADMSG, ["ListObjectsV2"], driver.list, "jobs/")
            server.page_text = (begin + "<Contents><Key>runs/of-ann/jobs/a&#x2f;b</Key></Contents><Contents><Key>"
                                "other</Key></Contents><Contents><Key>runs/of-ann/jobs/..</Key></Contents><Contents>"
                                "<Key>runs/of-ann/jobs/c&amp;d</Key></Contents><Contents><Key>runs/of-ann/jobs/e"
                                "</Key></Contents></ListBucketResult>")
            assert driver.list("jobs/") == ["e"]


@tap.case
def keys_are_in_no_argument_and_no_message():
    with bucket() as (store, server, where):
        driver = Driver(store.where, where, env=store.env)
        with open(f"/proc/{driver.process.pid}/cmdline", "rb") as file:
            assert s3_server.SECRET.encode() not in file.read()
        for status in (400, 403, 404, 405, 418):
            server.fault = lambda request, status=status: (
                status, "Strange", f"you are {request.headers['Authorization']}")
            text = fails(errno.EIO, ["Strange"], driver.put, "jobs/a", b"1")
            assert s3_server.SECRET not in text
        driver.close()


tap.play()
