"""The adapters, each driven as its harness drives it, beside a stand-in of that harness's interface."""
import abc
import asyncio
import contextlib
import dataclasses
import importlib
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

import glovebox


@contextlib.contextmanager
def harness(adapter, **modules):
    """The module of ADAPTER, with stand-ins for the MODULES of its harness ("__" stands for a dot)."""
    made = {}
    for name, members in modules.items():
        name = name.replace("__", ".")
        for end in range(1, name.count(".") + 2):
            above = ".".join(name.split(".")[:end])
            made.setdefault(above, types.ModuleType(above))
        vars(made[name]).update(members)
    whole = "glovebox.adapters." + adapter
    with mock.patch.dict(sys.modules, made):
        sys.modules.pop(whole, None)
        yield importlib.import_module(whole)
    sys.modules.pop(whole, None)


def record(name, **defaults):
    """A class whose objects hold what they are made with, in this order."""
    def init(self, *values, **named):
        vars(self).update(defaults)
        vars(self).update(zip(defaults, values))
        vars(self).update(named)
    return type(name, (), {"__init__": init, "__bool__": lambda self: vars(self).get("is_alive", True)})


class Missing(unittest.TestCase):
    def test_a_missing_harness_is_named_with_its_release(self):
        for name, words in (("inspect_ai", "inspect_ai"), ("swerex", "swe-rex .tried with 1.4"), ("deepagents", "deepagents"),
                            ("openai_agents", "openai-agents"), ("harbor", "harbor")):
            with self.subTest(name), mock.patch.dict(sys.modules, {
                    module: None for module in ("inspect_ai", "swerex", "deepagents", "agents", "harbor")}):
                with self.assertRaisesRegex(ImportError, words):
                    importlib.import_module("glovebox.adapters." + name)

    def test_other_users_and_images_are_understood(self):
        from glovebox import adapters
        adapters.check_user("root")
        with self.assertRaisesRegex(glovebox.Usage, 'this cell has one user; "joe" needs another base'):
            adapters.check_user("joe")
        self.assertEqual([adapters.base_of(image) for image in (None, "python:3.12", "rootfs:/x")],
                         [None, "image:python:3.12", "rootfs:/x"])


class MiniSweAgent(unittest.TestCase):
    def test_commands_end_in_results_and_the_last_one_submits(self):
        class Submitted(Exception):
            pass
        with harness("minisweagent", minisweagent__exceptions={"Submitted": Submitted}) as adapter:
            environment = adapter.GloveboxEnvironment(env={"A": "b"}, forward_env=["LANG"], timeout=60)
            try:
                output = environment.execute({"command": "echo $A $LANG; echo err >&2; exit 3"})
                self.assertEqual((output["output"], output["returncode"], output["exception_info"]),
                                 ("b C.UTF-8\nerr\n", 3, ""))
                output = environment.execute({"command": "echo begun; sleep 1000"}, timeout=1)
                self.assertEqual((output["output"], output["returncode"]), ("begun\n", -1))
                self.assertIn("time", output["exception_info"])
                self.assertEqual(environment.execute({"command": "true"}, "/no/such")["returncode"], -1)
                with self.assertRaises(Submitted) as caught:
                    environment.execute({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch"})
                self.assertEqual(caught.exception.args[0]["content"], "patch\n")
                self.assertEqual(environment.execute("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")["returncode"], 0)
                with self.assertRaises(subprocess.TimeoutExpired):
                    environment.execute("sleep 1000", timeout=1)
                self.assertEqual(environment.get_template_vars(x=1)["x"], 1)
                self.assertIn("GloveboxEnvironment", environment.serialize()["info"]["config"]["environment_type"])
            finally:
                environment.cleanup()


class InspectAi(unittest.TestCase):
    def test_a_sample_has_a_sandbox(self):
        names = []

        def sandboxenv(name):
            def decorate(cls):
                names.append(name)
                return cls
            return decorate

        class OutputLimitExceededError(Exception):
            pass
        util = {"SandboxEnvironment": type("SandboxEnvironment", (abc.ABC,), {}), "sandboxenv": sandboxenv,
                "ExecResult": record("ExecResult", success=None, returncode=None, stdout=None, stderr=None),
                "OutputLimitExceededError": OutputLimitExceededError}

        async def sample(kind):
            sandboxes = await kind.sample_init("task", {"env": {"A": "b"}}, {})
            try:
                await self.use(sandboxes["default"], OutputLimitExceededError)
            finally:
                await kind.sample_cleanup("task", None, sandboxes, False)
            with self.assertRaises(glovebox.Closed):
                await sandboxes["default"].exec(["true"])
        with harness("inspect_ai", inspect_ai__util=util) as adapter:
            self.assertEqual(names, ["glovebox"])
            asyncio.run(sample(adapter.GloveboxSandboxEnvironment))
            self.assertEqual(adapter._of_compose({"services": {"main": {
                "image": "python:3.12", "working_dir": "/w", "environment": ["A=b"], "mem_limit": "512mb", "cpus": 2}}}),
                {"base": "image:python:3.12", "cwd": "/w", "env": {"A": "b"}, "memory": "512M", "cpus": 2.0})
            for wrong in ({"services": {"a": {}, "b": {}}}, {"services": {"a": {"ports": []}}}):
                with self.assertRaises(glovebox.Usage):
                    adapter._of_compose(wrong)

    async def use(self, sandbox, too_much):
        result = await sandbox.exec(["sh", "-c", "cat; echo $A $B; exit 4"], input="in ", env={"B": "c"})
        self.assertEqual((result.success, result.returncode, result.stdout), (False, 4, "in b c\n"))
        await sandbox.write_file("deep/er/file", "text\r\n")
        self.assertEqual(await sandbox.read_file("deep/er/file"), "text\r\n")
        await sandbox.write_file("bytes", b"\xff")
        self.assertEqual(await sandbox.read_file("bytes", text=False), b"\xff")
        for error, call in ((UnicodeDecodeError, lambda: sandbox.read_file("bytes")),
                            (FileNotFoundError, lambda: sandbox.read_file("none")),
                            (IsADirectoryError, lambda: sandbox.read_file("deep")),
                            (IsADirectoryError, lambda: sandbox.write_file("deep", "x")),
                            (PermissionError, lambda: sandbox.write_file("/etc/x", "x")),
                            (TimeoutError, lambda: sandbox.exec(["sleep", "1000"], timeout=1)),
                            (too_much, lambda: sandbox.exec(["head", "-c", "11000000", "/dev/zero"])),
                            (glovebox.Usage, lambda: sandbox.exec(["true"], user="joe"))):
            with self.assertRaises(error):
                await call()


class SweRex(unittest.TestCase):
    def test_sessions_commands_and_files(self):
        runtime = {name: record(name, **fields) for name, fields in {
            "IsAliveResponse": {"is_alive": True, "message": ""}, "CreateBashSessionResponse": {"output": ""},
            "BashObservation": {"output": "", "exit_code": None}, "CloseBashSessionResponse": {}, "UploadResponse": {},
            "CommandResponse": {"stdout": "", "stderr": "", "exit_code": None}, "ReadFileResponse": {"content": ""},
            "WriteFileResponse": {}, "CloseResponse": {}}.items()}
        runtime["AbstractRuntime"] = abc.ABC
        errors = {name: type(name, (Exception,), {}) for name in (
            "SessionExistsError", "SessionDoesNotExistError", "CommandTimeoutError", "NonZeroExitCodeError",
            "BashIncorrectSyntaxError", "DeploymentNotStartedError")}

        def action(command="", **more):
            return types.SimpleNamespace(**{
                "command": command, "session": "default", "timeout": 60, "is_interactive_command": False,
                "is_interactive_quit": False, "check": "raise", "error_msg": "", "expect": [], "action_type": "bash", **more})

        def command(words, **more):
            return types.SimpleNamespace(**{"command": words, "timeout": None, "shell": False, "check": False, "error_msg": "",
                                            "env": None, "cwd": None, **more})

        async def play(adapter):
            deployment = adapter.GloveboxDeployment()
            self.assertFalse(await deployment.is_alive())
            with self.assertRaises(errors["DeploymentNotStartedError"]):
                deployment.runtime  # noqa: B018, pylint: disable=pointless-statement
            await deployment.start()
            live = deployment.runtime
            self.assertTrue(await deployment.is_alive())
            request = types.SimpleNamespace(session="default", startup_source=[], startup_timeout=10)
            await live.create_session(request)
            with self.assertRaises(errors["SessionExistsError"]):
                await live.create_session(request)
            await live.run_in_session(action("x=5\ncd /tmp"))
            said = await live.run_in_session(action("echo $x; pwd"))
            self.assertEqual((said.output, said.exit_code), ("5\n/tmp\n", 0))
            for error, wrong in (("NonZeroExitCodeError", action("false")), ("CommandTimeoutError", action("sleep 1000", timeout=1)),
                                 ("BashIncorrectSyntaxError", action("(")),
                                 ("SessionDoesNotExistError", action("true", session="other"))):
                with self.assertRaises(errors[error]):
                    await live.run_in_session(wrong)
            self.assertEqual((await live.run_in_session(action("false", check="silent"))).exit_code, 1)
            self.assertEqual((await live.run_in_session(action("echo $x"))).output, "5\n")
            with self.assertRaises(NotImplementedError):
                await live.run_in_session(action("gdb", is_interactive_command=True))
            done = await live.execute(command(["sh", "-c", "echo a; echo b >&2; exit 3"]))
            self.assertEqual((done.stdout, done.stderr, done.exit_code), ("a\n", "b\n", 3))
            self.assertEqual((await live.execute(command("echo a | cat", shell=True))).stdout, "a\n")
            with self.assertRaises(errors["NonZeroExitCodeError"]):
                await live.execute(command("false", check=True))
            with self.assertRaises(errors["CommandTimeoutError"]):
                await live.execute(command(["sleep", "1000"], timeout=1))
            await live.write_file(types.SimpleNamespace(path="a/b", content="text"))
            self.assertEqual((await live.read_file(types.SimpleNamespace(path="a/b"))).content, "text")
            folder = os.path.join(os.environ["TMPDIR"], "rex")
            os.makedirs(folder)
            with open(os.path.join(folder, "f"), "w", encoding="ascii") as file:
                file.write("up")
            await live.upload(types.SimpleNamespace(source_path=folder, target_path="up"))
            await live.upload(types.SimpleNamespace(source_path=os.path.join(folder, "f"), target_path="new/f"))
            self.assertEqual((await live.execute(command(["cat", "up/f", "new/f"]))).stdout, "upup")
            await live.close_session(types.SimpleNamespace(session="default"))
            await deployment.stop()
            self.assertFalse(await deployment.is_alive())
        with harness("swerex", swerex__runtime__abstract=runtime, swerex__exceptions=errors,
                     swerex__deployment__abstract={"AbstractDeployment": abc.ABC}) as adapter:
            asyncio.run(play(adapter))


class DeepAgents(unittest.TestCase):
    def test_files_searches_and_commands(self):
        fields = {"ExecuteResponse": {"output": "", "exit_code": None, "truncated": False}, "LsResult": {"error": None, "entries": None},
                  "ReadResult": {"error": None, "file_data": None, "next_offset": None, "start_line": None},
                  "WriteResult": {"error": None, "path": None}, "EditResult": {"error": None, "occurrences": None},
                  "DeleteResult": {"error": None}, "GrepResult": {"error": None, "matches": None, "truncated": False},
                  "GlobResult": {"error": None, "matches": None}, "FileUploadResponse": {"path": None, "error": None},
                  "FileDownloadResponse": {"path": None, "content": None, "error": None}}
        protocol = {name: record(name, **members) for name, members in fields.items()}
        protocol["SandboxBackendProtocol"] = type("SandboxBackendProtocol", (abc.ABC,), {})
        with harness("deepagents", deepagents__backends__protocol=protocol) as adapter, glovebox.Cell() as cell:
            backend, top = adapter.GloveboxBackend(cell), cell.workspace
            self.assertEqual(backend.id, cell.name)
            said = backend.execute("echo a; echo b >&2; exit 3")
            self.assertEqual((said.output, said.exit_code, said.truncated), ("a\nb\n", 3, False))
            self.assertEqual(backend.execute("sleep 1000", timeout=1).exit_code, 124)
            self.assertTrue(backend.execute("head -c 3000000 /dev/zero").truncated)
            self.assertIsNone(backend.write(f"{top}/d/a.py", "one\ntwo(\nthree\n").error)
            read = backend.read(f"{top}/d/a.py", offset=1, limit=1)
            self.assertEqual((read.file_data["content"], read.start_line, read.next_offset), ("two(\n", 2, 2))
            self.assertIsNotNone(backend.read(f"{top}/none").error)
            self.assertEqual(backend.edit(f"{top}/d/a.py", "two(", "2").occurrences, 1)
            self.assertIsNotNone(backend.edit(f"{top}/d/a.py", "e", "x").error)
            self.assertEqual([(row["line"], row["text"]) for row in backend.grep("thr", top, "*.py").matches], [(3, "three")])
            self.assertEqual(backend.grep("nothing").matches, [])
            self.assertEqual(backend.glob("**/*.py", top).matches, [{"path": f"{top}/d/a.py"}])
            self.assertEqual(backend.ls(top).entries, [{"path": f"{top}/d", "is_dir": True, "size": mock.ANY}])
            self.assertEqual([one.error for one in backend.upload_files([(f"{top}/b", b"\xff"), ("/etc/x", b"")])],
                             [None, "permission_denied"])
            got = backend.download_files([f"{top}/b", f"{top}/none", top])
            self.assertEqual([(one.content, one.error) for one in got[:2]], [(b"\xff", None), (None, "file_not_found")])
            self.assertIsNotNone(got[2].error)
            self.assertIsNone(backend.delete(f"{top}/d").error)
            self.assertIsNotNone(backend.delete(f"{top}/d").error)


class OpenaiAgents(unittest.TestCase):
    def test_a_shell_call_has_an_outcome_for_each_command(self):
        agents = {"ShellCommandOutput": record("ShellCommandOutput", stdout="", stderr=""),
                  "ShellCallOutcome": record("ShellCallOutcome", type=None, exit_code=None),
                  "ShellResult": record("ShellResult", output=None, max_output_length=None)}

        @dataclasses.dataclass
        class Action:
            commands: list
            timeout_ms: int = 60000
            max_output_length: int = 100

        async def play(adapter):
            async with glovebox.aio.Cell() as cell:
                execute = adapter.GloveboxExecutor(cell)
                call = types.SimpleNamespace(data=types.SimpleNamespace(action=Action(["echo a; exit 3", "echo b"])))
                said = await execute(call)
                self.assertEqual([(one.stdout, one.outcome.exit_code) for one in said.output], [("a\n", 3), ("b\n", 0)])
                call.data.action = Action(["sleep 1000", "echo never"], 500)
                self.assertEqual([one.outcome.type for one in (await execute(call)).output], ["timeout"])
        with harness("openai_agents", agents=agents) as adapter:
            asyncio.run(play(adapter))


class Harbor(unittest.TestCase):
    def test_an_environment_starts_runs_copies_and_stops(self):
        class BaseEnvironment(abc.ABC):
            def __init__(self, environment_dir, task_env_config):
                self.environment_dir, self.task_env_config = environment_dir, task_env_config
                self._validate_definition()

            def _merge_env(self, env):
                return {"ALWAYS": "there", **(env or {})}
        base = {"BaseEnvironment": BaseEnvironment,
                "ExecResult": record("ExecResult", stdout=None, stderr=None, return_code=None)}
        folder = os.path.join(os.environ["TMPDIR"], "harbor")
        os.makedirs(os.path.join(folder, "tests"))
        with open(os.path.join(folder, "tests", "run.sh"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho ran\n")
        os.chmod(os.path.join(folder, "tests", "run.sh"), 0o755)

        async def play(adapter):
            environment = adapter.GloveboxEnvironment(folder, types.SimpleNamespace(docker_image=None, memory_mb=256))
            self.assertEqual((environment.type().value, environment.is_mounted), ("glovebox", False))
            with self.assertRaises(RuntimeError):
                await environment.exec("true")
            await environment.start(force_build=False)
            said = await environment.exec("echo $ALWAYS $A; echo err >&2; exit 3", env={"A": "b"})
            self.assertEqual((said.stdout, said.stderr, said.return_code), ("there b\n", "err\n", 3))
            self.assertEqual((await environment.exec("sleep 1000", timeout_sec=1)).return_code, 124)
            with self.assertRaisesRegex(glovebox.Usage, "one user"):
                await environment.exec("true", user="agent")
            await environment.upload_dir(os.path.join(folder, "tests"), "tests")
            await environment.upload_file(os.path.join(folder, "tests", "run.sh"), "one/run.sh")
            self.assertEqual((await environment.exec("tests/run.sh && one/run.sh")).stdout, "ran\nran\n")
            await environment.download_dir("tests", os.path.join(folder, "back"))
            await environment.download_file("one/run.sh", os.path.join(folder, "new", "run.sh"))
            self.assertEqual(os.listdir(os.path.join(folder, "back")), ["run.sh"])
            self.assertTrue(os.path.exists(os.path.join(folder, "new", "run.sh")))
            await environment.stop(delete=True)
        with harness("harbor", harbor__environments__base=base) as adapter:
            asyncio.run(play(adapter))
            with open(os.path.join(folder, "Dockerfile"), "w", encoding="ascii"):
                pass
            with self.assertRaisesRegex(FileNotFoundError, "docker_image"):
                adapter.GloveboxEnvironment(folder, types.SimpleNamespace(docker_image=None))
