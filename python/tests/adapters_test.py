"""
Each adapter, called as its harness calls it in a run: the requests in their order, and what the harness expects of each
answer. The harness is a stand-in (harnesses.py), or the real package with `make harness HARNESS=DIR`.
"""
import asyncio
import gc
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
import unittest.mock
import warnings

import glovebox
import harnesses
import support
from glovebox import aio

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LARGE = os.environ.get("GLOVEBOX_TEST_CELLS", "1000") == "1000"  # not with sanitizers
MIB = 1 << 20
SLEEPER = ("sleep", f"2346.{os.getpid()}")
SLEEP = " ".join(SLEEPER)
# One process has left its group and its session. Commands of a cell do not see each other's processes; the machine does.
ESCAPES = f"setsid sh -c '{SLEEP}; true' & {SLEEP}"


def knows(**arguments):
    """Does the engine have these arguments of a cell? Else the sentence by which it refuses them."""
    try:
        glovebox.Cell(**arguments).close()
    except (glovebox.GloveboxError, OSError) as error:
        return str(error)
    return None


class AdapterCase(unittest.TestCase):
    name = ""
    missing = None

    @classmethod
    def setUpClass(cls):
        try:
            cls.adapter = harnesses.enter(cls.name) if cls.name else None
        except unittest.SkipTest as error:
            cls.missing = str(error)

    def setUp(self):
        if self.missing:
            self.skipTest(self.missing)

    def nothing_sleeps(self):
        """All that ESCAPES has started has ended."""
        self.assertTrue(support.until(lambda: not support.processes(*SLEEPER)))

    def host_folder(self):
        """A temporary folder of this machine with one file."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "there.txt"), "w", encoding="utf-8") as file:
            file.write("of the host\n")
        return folder.name


class Shared(AdapterCase):
    def setUp(self):
        super().setUp()
        self.shared = importlib.import_module("glovebox.adapters._shared")

    def test_a_missing_harness_is_told_with_what_to_install(self):
        if harnesses.REAL:
            self.skipTest("the packages are there")
        program = ("import sys, importlib\n"
                   "try:\n    importlib.import_module('glovebox.adapters.' + sys.argv[1])\n"
                   "except ImportError as error:\n    print(error)\n")
        folder = self.host_folder()  # the tree has a folder `agents`, which would be taken for that package
        for name, install in (("inspect_ai", "inspect-ai"), ("minisweagent", "mini-swe-agent"), ("swerex", "swe-rex"),
                              ("deepagents", "deepagents"), ("openai_agents", "openai-agents"), ("harbor", "harbor")):
            done = subprocess.run([sys.executable, "-c", program, name], cwd=folder, capture_output=True, text=True,
                                  check=False)
            self.assertIn(f"pip install {install} (No module named", done.stdout, done.stderr)

    def test_every_adapter_is_in_the_manual(self):
        with open(os.path.join(ROOT, "docs", "adapters.md"), encoding="utf-8") as file:
            manual = file.read()
        for name in harnesses.STAND_INS:
            adapter = harnesses.enter(name) if not harnesses.REAL else types.SimpleNamespace(__all__=[])
            for public in (f"glovebox.adapters.{name}", *adapter.__all__):
                self.assertIn(public, manual)

    def test_images_bases_and_folders_become_arguments_of_a_cell(self):
        arguments = self.shared.cell_arguments
        self.assertEqual(arguments(image="python:3.12", cwd="/testbed", memory="512m", env={"HOME": "/root"}),
                         {"base": "image:python:3.12", "memory": "512M"})
        self.assertEqual(arguments(image="snapshot:a"), {"base": "snapshot:a"})
        self.assertEqual(arguments(cwd="/testbed", env={"HOME": "/root", "USER": "root", "A": "b"}),
                         {"at": "/testbed", "env": {"A": "b"}})
        self.assertEqual(arguments(workspace="/tmp/x", cwd="/tmp/x/sub"), {"workspace": "/tmp/x"})
        self.assertEqual(arguments(image="a", workspace="/tmp/x", cwd="/testbed/"),
                         {"base": "image:a", "workspace": "/tmp/x", "at": "/testbed"})
        for own in ("/", "/root", "/tmp", ""):
            self.assertEqual(arguments(image="a", workspace="/tmp/x", cwd=own), {"base": "image:a", "workspace": "/tmp/x"})
        self.assertEqual(arguments(cwd="/"), {})
        with self.assertRaisesRegex(glovebox.Usage, "image and base exclude each other"):
            arguments(image="a", base="image:b")

    def test_sizes_are_read_as_container_engines_write_them(self):
        for told, taken in (("512m", "512M"), ("1gb", "1G"), ("1.5g", "1610612736"), ("2GiB", "2G"), ("1024", "1024"),
                            ("", None), (None, None)):
            self.assertEqual(self.shared.size(told), taken)
        with self.assertRaisesRegex(glovebox.Usage, "'much' is no size"):
            self.shared.size("much")

    def test_another_user_is_refused_with_the_sentence(self):
        for user in (None, "", "root", 0, "0", "glovebox", os.getuid()):
            self.shared.one_user(user)
        with self.assertRaises(glovebox.Usage) as caught:
            self.shared.one_user("joe")
        self.assertEqual(str(caught.exception), 'this cell has one user; "joe" needs another base')

    def test_an_excerpt_keeps_both_ends(self):
        excerpt = self.shared.Excerpt(10, 10)
        for _ in range(1000):
            excerpt.add(b"0123456789" * 1000)
        self.assertEqual(excerpt.text, f"0123456789\n[{10_000_000 - 20} bytes were left out here]\n0123456789")
        excerpt = self.shared.Excerpt(3, 3)
        excerpt.add("aä".encode() + b"bc")
        self.assertEqual((excerpt.text, excerpt.dropped), ("aäbc", 0))

    def test_folders_go_in_and_come_out_without_what_leaves_them(self):
        async def run(source, target):
            async with aio.Cell() as cell:
                await cell.upload(source, "in/deep")
                await cell.mkdir("bin")
                await cell.write_text("bin/tar", "#!/bin/sh\n: > used\n")
                await cell.exec("chmod +x bin/tar", check=True)
                async with aio.Cell(cell.workspace, env={"PATH": f"{cell.workspace}/bin:/usr/bin:/bin"}) as agent:
                    await self.shared.get_folder(agent, "in/deep", target)
                    await agent.download("in/deep", target)
                    self.assertNotIn("used", await agent.listdir())
                said = await cell.exec("cd in/deep && stat -c '%n %a' run.sh && readlink link && cat sub/a")
                self.assertEqual(said.text, "run.sh 755\nsub/a\ntext\n")
                await cell.exec("cd in/deep && ln -s /etc/passwd out && ln -s ../../.. up && mkfifo pipe && echo new > new")
                await cell.exec("cd in/deep && ln -s sub/sub/../../../etc/hostname far")
                self.assertEqual(await self.shared.get_folder(cell, "in/deep", target), 4)
                with self.assertRaisesRegex(FileNotFoundError, "no/such"):
                    await self.shared.get_folder(cell, "no/such", target)
        source = self.host_folder()
        os.mkdir(os.path.join(source, "sub"))
        for path, text, mode in (("run.sh", "#!/bin/sh\n", 0o755), ("sub/a", "text\n", 0o644)):
            with open(os.path.join(source, path), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(source, path), mode)
        os.symlink("sub/a", os.path.join(source, "link"))
        target = os.path.join(self.host_folder(), "out")
        asyncio.run(run(source, target))
        self.assertEqual(sorted(os.listdir(target)), ["link", "new", "run.sh", "sub", "there.txt"])
        self.assertTrue(os.access(os.path.join(target, "run.sh"), os.X_OK))


class MiniSweAgent(AdapterCase):
    name = "minisweagent"

    def test_an_environment_that_is_dropped_waits_for_nothing(self):
        made = self.adapter.GloveboxEnvironment()
        workspace = made._cell.workspace
        with unittest.mock.patch.object(glovebox.Cell, "close", side_effect=AssertionError("a destructor waits")), \
                unittest.mock.patch.object(sys, "unraisablehook") as failed, warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del made
            gc.collect()
        self.assertFalse(failed.called)
        self.assertTrue(support.until(lambda: not os.path.exists(workspace)))

    def environment(self, **config):
        made = self.adapter.GloveboxEnvironment(**config)
        self.addCleanup(made.cleanup)
        return made

    def test_a_run_of_the_default_agent(self):
        submitted = sys.modules["minisweagent.exceptions"].Submitted
        env = self.environment(env={"PAGER": "cat"}, timeout=60)
        shown = env.get_template_vars(extra=1)
        self.assertEqual((shown["system"], shown["extra"], shown["timeout"]), ("Linux", 1, 60))
        self.assertNotIn("PATH", shown)
        self.assertEqual(env.execute({"command": "echo $PAGER > a.txt; cat a.txt; echo err >&2"}),
                         {"output": "cat\nerr\n", "returncode": 0, "exception_info": ""})
        self.assertEqual(env.execute({"command": "cat a.txt; exit 42"})["returncode"], 42)
        self.assertEqual(env.execute({"command": "mkdir sub; cd sub"})["returncode"], 0)
        self.assertTrue(env.execute({"command": "pwd"}, cwd="sub")["output"].endswith("/sub\n"))
        answer = env.execute({"command": "no-such-program"})
        self.assertEqual(answer["returncode"], 127)
        self.assertIn("no-such-program: command not found", answer["output"])
        with self.assertRaises(submitted) as caught:
            env.execute({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the work; cat a.txt"})
        message = caught.exception.messages[0]
        self.assertEqual((message["role"], message["content"]), ("exit", "the work\ncat\n"))
        self.assertEqual(message["extra"]["exit_status"], "Submitted")
        told = json.loads(json.dumps(env.serialize()))["info"]["config"]
        self.assertEqual(told["environment_type"], "glovebox.adapters.minisweagent.GloveboxEnvironment")
        self.assertEqual(told["environment"]["interpreter"], ["bash", "-lc"])
        env.cleanup()
        env.cleanup()

    def test_a_timeout_is_an_answer_and_ends_grandchildren(self):
        env = self.environment()
        answer = env.execute({"command": f"echo begun; {ESCAPES}"}, timeout=1)
        self.assertEqual((answer["output"], answer["returncode"]), ("begun\n", -1))
        self.assertIn("timed out after 1 seconds", answer["exception_info"])
        self.assertEqual(answer["extra"]["exception_type"], "TimeoutExpired")
        self.nothing_sleeps()

    def test_an_output_of_10_mib_has_its_head_and_its_tail(self):
        env = self.environment()
        output = env.execute({"command": "echo head; head -c 10485760 /dev/zero | tr '\\0' x; echo tail"})["output"]
        self.assertEqual((len(output), output[:5], output[-5:]), (10485760 + 10, "head\n", "tail\n"))
        output = env.execute({"command": "echo head; head -c 20971520 /dev/zero | tr '\\0' x; echo tail"})["output"]
        self.assertEqual((output[:5], output[-5:]), ("head\n", "tail\n"))
        self.assertIn(f"[{20971520 + 10 - 16 * MIB} bytes were left out here]", output)

    def test_a_login_shell_has_the_home_of_the_cell(self):
        env = self.environment(env={"HOME": "/root", "A": "b"})
        output = env.execute({"command": "shopt -q login_shell && echo login; echo $A; touch ~/x && echo written"})["output"]
        self.assertEqual(output, "login\nb\nwritten\n")
        with self.assertRaisesRegex(glovebox.Usage, "HOME is set by the cell"):
            self.environment(env={"HOME": "/elsewhere"})

    def test_a_login_shell_activates_what_the_home_of_a_base_says(self):
        folder = support.rootfs("bash", "env")
        self.addCleanup(shutil.rmtree, folder)
        for name, text in (("root/.profile", "[ -z \"$BASH\" ] || . ~/.bashrc\n"), ("testbed/f", "x"),
                           ("root/.bashrc", "export PATH=/opt/conda/bin:$PATH CONDA_DEFAULT_ENV=testbed\n"),
                           ("opt/conda/bin/tool", "#!/usr/bin/env bash\necho of conda, in $HOME\n")):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        env = self.environment(base=f"rootfs:{folder}", cwd="/testbed", env={"HOME": "/root"})
        answer = env.execute({"command": "tool; echo $CONDA_DEFAULT_ENV; pwd; read x < f; echo $x"})
        self.assertEqual(answer["output"], "of conda, in /root\ntestbed\n/testbed\nx\n")

    def test_a_temporary_folder_of_the_host_is_the_workspace_where_it_is_the_cwd(self):
        folder, other = self.host_folder(), self.host_folder()
        env = self.environment(cwd=folder)
        self.assertEqual(env.execute({"command": "pwd; cat there.txt; echo new > new.txt"})["output"], f"{folder}\nof the host\n")
        self.assertTrue(os.path.exists(os.path.join(folder, "new.txt")))
        answer = env.execute({"command": "cat there.txt"}, cwd=other)
        self.assertNotEqual(answer["returncode"], 0)
        self.assertIn(other, answer["output"] + answer["exception_info"])

    def test_testbed_is_a_fixed_path_where_the_engine_has_places(self):
        refused = knows(at="/testbed")
        if refused is None:
            self.assertEqual(self.environment(cwd="/testbed").execute({"command": "pwd"})["output"], "/testbed\n")
            folder = self.host_folder()
            env = self.environment(workspace=folder, cwd="/testbed")
            self.assertEqual(env.execute({"command": "pwd; cat there.txt; echo new > new.txt"})["output"], "/testbed\nof the host\n")
            self.assertTrue(os.path.exists(os.path.join(folder, "new.txt")))
            with self.assertRaisesRegex(glovebox.Usage, "the cell has /usr there; name a place of its own, as /testbed"):
                self.environment(workspace=folder, cwd="/usr/x")
            return
        with self.assertRaisesRegex(glovebox.Usage, "is at known to glovebox"):
            self.environment(cwd="/testbed")

    def test_an_image_is_handed_on_or_refused_with_the_engines_sentence(self):
        with self.assertRaises((glovebox.GloveboxError, FileNotFoundError)) as caught:
            self.environment(image="no.such.registry/none:1", cwd="/testbed", executable="podman", pull_timeout=9)
        self.assertIn(knows(base="image:no.such.registry/none:1"), str(caught.exception))
        with self.assertRaisesRegex(glovebox.Usage, "a cell has no dockerfile; the keys are base, cpus, cwd"):
            self.environment(dockerfile="x")

    def test_the_interpreter_of_the_host_is_not_that_of_the_cell(self):
        folder = self.host_folder()
        os.symlink(sys.executable, os.path.join(folder, "python"))
        answer = self.environment().execute({"command": f"{folder}/python -c 'print(1)'"})
        self.assertEqual(answer["returncode"], 127)
        self.assertIn(f"{folder}/python: No such file or directory", answer["output"])
        self.assertEqual(self.environment(interpreter=["python3", "-c"]).execute({"command": "print(6 * 7)"})["output"], "42\n")


class InspectAi(AdapterCase):
    name = "inspect_ai"

    def sample(self, function, config=None):
        """Run FUNCTION as a sample is run: task_init, sample_init, its work, sample_cleanup."""
        async def run():
            kind = self.adapter.GloveboxSandboxEnvironment
            await kind.task_init("task", config)
            made = await kind.sample_init("task", config, {})
            try:
                return await function(next(iter(made.values())))
            finally:
                await kind.sample_cleanup("task", config, made, False)
                self.assertTrue(made["default"].cell.closed)
        return asyncio.run(run())

    def util(self):
        return sys.modules["inspect_ai.util"]

    def test_a_sample(self):
        async def work(env):
            await env.write_file("sub/input.txt", "one\r\ntwo\n")
            await env.write_file("/tmp/deep/er/data.bin", b"\xc3\x28")
            self.assertEqual(await env.read_file("sub/input.txt"), "one\r\ntwo\n")
            self.assertEqual(await env.read_file("/tmp/deep/er/data.bin", text=False), b"\xc3\x28")
            done = await env.exec(["bash", "--login", "-c", "cat; echo $A; pwd; exit 3"], input=b"\0typed\n", cwd="sub",
                                  env={"A": "b", "HOME": "/root"})
            self.assertEqual((done.success, done.returncode, done.stderr), (False, 3, ""))
            self.assertEqual(done.stdout, f"\0typed\nb\n{env.cell.workspace}/sub\n")
            self.assertTrue((await env.exec(["cat", "sub/input.txt"])).success)
            done = await env.exec(["no-such-program"])
            self.assertEqual((done.returncode, done.stderr), (127, "no-such-program: command not found."))
            with self.assertRaises(UnicodeDecodeError):
                await env.exec(["cat", "/tmp/deep/er/data.bin"])
        self.sample(work)

    def test_its_errors_are_those_that_the_harness_looks_for(self):
        async def work(env):
            for file, error, words in (("nonexistent", FileNotFoundError, "nonexistent"), ("/etc", IsADirectoryError, "directory"),
                                       ("https:/en.wikipedia.org/wiki/Bart%C5%82omiej", FileNotFoundError, "wikipedia")):
                with self.assertRaisesRegex(error, words):
                    await env.read_file(file)
            await env.write_file("dir/file", "")
            self.assertEqual(await env.read_file("dir/file"), "")
            for contents in ("text", b"\xc3\x28"):
                with self.assertRaisesRegex(IsADirectoryError, "directory"):
                    await env.write_file("dir", contents)
            await env.exec(["chmod", "-w", "dir/file"])
            with self.assertRaisesRegex(PermissionError, "dir/file"):
                await env.write_file("dir/file", "not written")
            with self.assertRaises(PermissionError):
                await env.write_file("/etc/other", "not written")
            with self.assertRaises(PermissionError):
                await env.exec(["/etc/passwd"])
            with self.assertRaises(TimeoutError):
                await env.exec(["sh", "-c", ESCAPES], timeout=1)
            self.nothing_sleeps()
            if os.getuid() != 0:
                await env.write_file("secret", "x")
                await env.exec(["chmod", "-r", "secret"])
                with self.assertRaisesRegex(PermissionError, "secret"):
                    await env.read_file("secret")
        self.sample(work)

    def test_users(self):
        async def work(env):
            self.assertTrue((await env.exec(["true"], user="root")).success)
            done = await env.exec(["whoami"], user="joe")
            self.assertFalse(done.success)
            self.assertIn("unable to find user joe: no matching entries in passwd file", done.stdout)
            self.assertEqual(done.stderr, 'this cell has one user; "joe" needs another base')
        self.sample(work)

    def test_outputs_and_files_have_the_ceilings_of_the_harness(self):
        util = self.util()

        async def work(env):
            for where in ("", " 1>&2"):
                with self.assertRaises(util.OutputLimitExceededError) as caught:
                    await env.exec(["sh", "-c", f"yes | head -c {10 * MIB + 1024}{where}"])
                self.assertIn("limit of 10 MiB was exceeded", str(caught.exception))
                self.assertEqual(len(caught.exception.truncated_output), 10 * MIB)
            data = os.urandom(5_000_000)
            await env.write_file("5mb", data)
            self.assertEqual(await env.read_file("5mb", text=False), data)
            with unittest.mock.patch.object(util.SandboxEnvironmentLimits, "MAX_READ_FILE_SIZE", 1024):
                with self.assertRaisesRegex(util.OutputLimitExceededError, "limit of 100 MiB was exceeded"):
                    await env.read_file("5mb", text=False)
        self.sample(work)

    @unittest.skipUnless(LARGE, "100 MiB take too long with sanitizers")
    def test_a_file_of_100_mib_goes_in_and_out(self):
        async def work(env):
            data = b"\xc3" * (100 * MIB)
            await env.write_file("large", data)
            self.assertTrue(await env.read_file("large", text=False) == data)
            await env.write_file("large", data + b"\n")
            with self.assertRaises(self.util().OutputLimitExceededError):
                await env.read_file("large", text=False)
        self.sample(work)

    def test_a_compose_file_with_one_service_is_a_configuration(self):
        def config(**service):
            path = os.path.join(self.host_folder(), "compose.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"services": {"default": service}}, file)
            return path

        async def work(env):
            self.assertEqual((await env.exec(["sh", "-c", "echo $A $B."])).stdout, "b .\n")
        self.sample(work, config(environment=["A=b", "B"], command="tail -f /dev/null", init=True, network_mode="none",
                                 mem_limit="512m"))
        read = self.adapter.config_of
        told = read(config(image="python:3.12", working_dir="/testbed", cpus=1.5, environment={"A": "b"},
                           deploy={"resources": {"limits": {"memory": "1gb"}}}, **{"x-glovebox": {"network": ["pypi.org"]}},
                           network_mode="bridge"))
        self.assertEqual((told.image, told.working_dir, told.cpus, told.mem_limit, told.network),
                         ("python:3.12", "/testbed", 1.5, "1gb", ["pypi.org"] if not harnesses.REAL else ("pypi.org",)))
        self.assertEqual(hash(told), hash(told))
        for service, words in (({"build": "."}, "a cell has no build; build an image first"),
                               ({"image": "a", "volumes": ["x:/x"], "ports": [80]}, "a cell has no ports, volumes"),
                               ({"network_mode": "bridge"}, "name hosts as x-glovebox"),
                               ({"user": "joe"}, 'this cell has one user; "joe" needs another base')):
            with self.assertRaisesRegex(glovebox.Usage, words):
                read(config(**service))
        with self.assertRaisesRegex(glovebox.Usage, "build an image from a Dockerfile"):
            read("/task/Dockerfile")

    def test_a_base_is_handed_on_or_refused_with_the_engines_sentence(self):
        kind = self.adapter.GloveboxSandboxEnvironment
        config = kind.config_deserialize({"base": "rootfs:/no/such/rootfs"})
        with self.assertRaises((glovebox.GloveboxError, OSError)) as caught:
            self.sample(None, config)
        self.assertEqual(str(caught.exception), knows(base="rootfs:/no/such/rootfs"))

    def test_it_is_registered_by_its_name(self):
        if harnesses.REAL:
            self.skipTest("the registry is the harness's own")
        self.assertIs(self.util().registry["glovebox"], self.adapter.GloveboxSandboxEnvironment)
        self.assertTrue(self.adapter.GloveboxSandboxEnvironment.is_docker_compatible())
        self.assertIn("compose.yaml", self.adapter.GloveboxSandboxEnvironment.config_files())

    @unittest.skipUnless(harnesses.REAL, "the harness's own check is played with make harness HARNESS=DIR")
    def test_the_self_check_of_the_harness(self):
        try:
            check = importlib.import_module("inspect_ai.util._sandbox.self_check").self_check
        except ImportError as error:
            self.skipTest(f"it does not import: {error}")
        for case, said in self.sample(check).items():
            with self.subTest(case):
                self.assertIs(said, True)


class SweRex(AdapterCase):
    name = "swerex"

    def deployed(self, function, **config):
        """Run FUNCTION with the runtime of a deployment, as a run has it."""
        async def run():
            deployment = self.adapter.GloveboxDeployment(**config)
            with self.assertRaises(sys.modules["swerex.exceptions"].DeploymentNotStartedError):
                assert deployment.runtime
            steps = []
            deployment.add_hook(types.SimpleNamespace(on_custom_step=steps.append))
            await deployment.start()
            try:
                self.assertEqual(len(steps), 1)
                self.assertTrue(await deployment.is_alive(timeout=1))
                return await function(deployment.runtime, sys.modules["swerex.runtime.abstract"])
            finally:
                await deployment.stop()
                await deployment.stop()
        return asyncio.run(run())

    def test_a_run(self):
        async def work(runtime, api):
            await runtime.create_session(api.CreateBashSessionRequest(startup_source=["/dev/null"]))

            async def run(command, **more):
                return await runtime.run_in_session(api.BashAction(command=command, **more))
            done = await run("export A=b; cd /tmp; f() { echo in f; }")
            self.assertEqual((done.output, done.exit_code), ("", 0))
            self.assertEqual((await run("echo $A; pwd; f")).output, "b\n/tmp\nin f\n")
            self.assertEqual((await run("false || exit_code_of_a_typo", check="silent")).exit_code, 127)
            self.assertIsNone((await run("false", check="ignore")).exit_code)
            for command, output in (("echo ''", "\n"), ("printf '\\n\\nx\\n\\n'", "\n\nx\n\n"), ("# nothing", ""), ("", ""),
                                    ("\n\n echo 'test1' \n  \n echo 'test2' \n\n", "test1\ntest2\n"),
                                    ("cat <<EOF\none\ntwo\nEOF", "one\ntwo\n"), ("(sleep 10) &", None),
                                    ("for i in {1..3};\n do echo 'x';\n done", "x\nx\nx\n"), ("A=(); echo asdf", "asdf\n"),
                                    ("echo 'hello\nworld'", "hello\nworld\n"), ("[[ $env == $env ]]", ""),
                                    ("echo -e '\\e[31mred\\e[0m'", "red\n")):
                done = await run(command)
                self.assertEqual(done.exit_code, 0, command)
                if output is not None:
                    self.assertEqual(done.output, output, command)
            await runtime.close_session(api.CloseBashSessionRequest())
        self.deployed(work)

    def test_its_errors_are_those_of_the_harness(self):
        errors = sys.modules["swerex.exceptions"]

        async def work(runtime, api):
            with self.assertRaisesRegex(errors.SessionDoesNotExistError, "default"):
                await runtime.run_in_session(api.BashAction(command="true"))
            with self.assertRaises(errors.SessionDoesNotExistError):
                await runtime.close_session(api.CloseBashSessionRequest(session="none"))
            await runtime.create_session(api.CreateBashSessionRequest())
            with self.assertRaises(errors.SessionExistsError):
                await runtime.create_session(api.CreateBashSessionRequest())
            with self.assertRaisesRegex(errors.NonZeroExitCodeError, "mine: Command 'false' failed with exit code 1"):
                await runtime.run_in_session(api.BashAction(command="false", error_msg="mine"))
            with self.assertRaises(errors.BashIncorrectSyntaxError) as caught:
                await runtime.run_in_session(api.BashAction(command="(a"))
            self.assertIn("syntax error", caught.exception.extra_info["bash_stderr"])
            self.assertIn("bash_stdout", caught.exception.extra_info)
            with self.assertRaises(FileNotFoundError):
                await runtime.read_file(api.ReadFileRequest(path="non_existent.txt"))
            with self.assertRaises(errors.CommandTimeoutError):
                await runtime.execute(api.Command(command=["sleep", "10"], timeout=0.1))
            with self.assertRaisesRegex(errors.NonZeroExitCodeError, "exit code 1"):
                await runtime.execute(api.Command(command=["false"], check=True))
        self.deployed(work)

    def test_a_session_goes_on_after_a_timeout_and_an_interrupt(self):
        errors = sys.modules["swerex.exceptions"]

        async def work(runtime, api):
            await runtime.create_session(api.CreateBashSessionRequest())
            await runtime.run_in_session(api.BashAction(command="x=42"))
            with self.assertRaises(errors.CommandTimeoutError):
                await runtime.run_in_session(api.BashAction(command=SLEEP, timeout=0.2))
            await runtime.run_in_session(api.BashInterruptAction())
            self.assertEqual((await runtime.run_in_session(api.BashAction(command="echo $x"))).output, "42\n")
            # What ignores every signal of a terminal ends with its shell.
            with self.assertRaises(errors.CommandTimeoutError):
                await runtime.run_in_session(api.BashAction(
                    command=f"bash -c 'trap \"\" INT QUIT; while :; do {SLEEP}; done'; true", timeout=0.2))
            await runtime.run_in_session(api.BashInterruptAction())
            self.assertIn("asdf\n", (await runtime.run_in_session(api.BashAction(command="echo asdf"))).output)
            self.nothing_sleeps()
        self.deployed(work)

    def test_sessions_do_not_echo_and_do_not_know_each_other(self):
        async def work(runtime, api):
            for name, value in (("one", 42), ("two", 24)):
                await runtime.create_session(api.CreateBashSessionRequest(session=name))
            await asyncio.gather(*(runtime.run_in_session(api.BashAction(command=f"x={value}; sleep 0.1", session=name))
                                   for name, value in (("one", 42), ("two", 24))))
            for name, value in (("one", 42), ("two", 24)):
                done = await runtime.run_in_session(api.BashAction(command="read -r line <<< $x; echo $line; stty -a | grep -o -- '-echo '",
                                                                   session=name))
                self.assertEqual(done.output, f"{value}\n-echo \n")
        self.deployed(work)

    def test_an_interactive_program_is_typed_at(self):
        async def work(runtime, api):
            await runtime.create_session(api.CreateBashSessionRequest())

            async def run(command, **more):
                return await runtime.run_in_session(api.BashAction(command=command, **more))
            prompt = {"is_interactive_command": True, "expect": [">>> "], "timeout": support.PATIENCE_S}
            self.assertEqual((await run("python3 -q", **prompt)).expect_string, ">>> ")
            self.assertEqual((await run("print('hello ' + 'world')", **prompt)).output, "hello world")
            with self.assertRaises(sys.modules["swerex.exceptions"].CommandTimeoutError):
                await run("1 + 1", is_interactive_command=True, expect=["NEVER"], timeout=0.5)
            await run("quit()", is_interactive_quit=True, timeout=support.PATIENCE_S)
            self.assertEqual((await run("echo back")).output, "back\n")
        self.deployed(work)

    def test_programs_and_files_without_a_session(self):
        async def work(runtime, api):
            async def execute(command, **more):
                done = await runtime.execute(api.Command(command=command, **more))
                return done.stdout, done.stderr, done.exit_code
            self.assertEqual(await execute("echo '\n \nhello'", shell=True), ("\n \nhello\n", "", 0))
            self.assertEqual(await execute(["echo", "-n", "hello world"]), ("hello world", "", 0))
            self.assertEqual(await execute("", shell=True, check=True), ("", "", 0))
            self.assertEqual(await execute(["bash", "-lc", "echo out; echo $A >&2; pwd"], env={"A": "b", "HOME": "/root"}, cwd="/tmp"),
                             ("out\n/tmp\n", "b\n", 0))
            self.assertEqual(await execute(["printf", "\\377"]), ("\\xff", "", 0))
            if not harnesses.REAL or "merge_output_streams" in api.Command.model_fields:
                self.assertEqual(await execute(["sh", "-c", "echo out; echo err >&2"], merge_output_streams=True),
                                 ("out\nerr\n", "", 0))
            stdout, stderr, code = await execute(["sh", "-c", f"yes | head -c {10 * MIB + 5}"])
            self.assertEqual((len(stdout), code), (10 * MIB, 0))
            self.assertIn("[5 bytes behind the first", stderr)
            await runtime.write_file(api.WriteFileRequest(path="new/folder/a.txt", content="x" * MIB))
            self.assertEqual(len((await runtime.read_file(api.ReadFileRequest(path="new/folder/a.txt"))).content), MIB)
        self.deployed(work)

    def test_a_temporary_folder_of_the_host_is_uploaded_and_not_shared(self):
        folder = self.host_folder()
        os.mkdir(os.path.join(folder, "source_dir"))
        for name in ("file1.txt", "file2.txt"):
            with open(os.path.join(folder, "source_dir", name), "w", encoding="utf-8") as file:
                file.write(name)

        async def work(runtime, api):
            there, target = os.path.join(folder, "there.txt"), os.path.join(folder, "target.txt")
            with self.assertRaises(FileNotFoundError):
                await runtime.read_file(api.ReadFileRequest(path=there))
            with self.assertRaises((OSError, glovebox.GloveboxError)):
                await runtime.read_file(api.ReadFileRequest(path="/etc/shadow/x"))
            tmp = "/tmp/pytest-of-me/test0"
            await runtime.upload(api.UploadRequest(source_path=there, target_path=f"{tmp}/target.txt"))
            self.assertEqual((await runtime.read_file(api.ReadFileRequest(path=f"{tmp}/target.txt"))).content, "of the host\n")
            await runtime.upload(api.UploadRequest(source_path=f"{folder}/source_dir", target_path=f"{tmp}/target_dir"))
            for name in ("file1.txt", "file2.txt"):
                self.assertEqual((await runtime.read_file(api.ReadFileRequest(path=f"{tmp}/target_dir/{name}"))).content, name)
            self.assertFalse(os.path.exists(target))
            self.assertFalse(os.path.exists(tmp))
        self.deployed(work)

    def test_the_interpreter_of_the_host_is_told_as_missing(self):
        folder = self.host_folder()
        os.symlink(sys.executable, os.path.join(folder, "python"))

        async def work(runtime, api):
            done = await runtime.execute(api.Command(command=[os.path.join(folder, "python"), "-c", "1"]))
            self.assertEqual((done.exit_code, done.stderr), (127, f"{folder}/python: command not found."))
        self.deployed(work)


class DeepAgents(AdapterCase):
    name = "deepagents"

    def setUp(self):
        super().setUp()
        self.backend = self.adapter.GloveboxBackend(timeout=support.PATIENCE_S)
        self.addCleanup(self.backend.close)
        self.top = self.backend.cell.workspace

    def test_the_ten_operations_of_a_run(self):
        backend, top = self.backend, self.top
        self.assertIsNone(backend.write(f"{top}/src/a.py", "one\ntwo x=(1)\nthree\r\n").error)
        self.assertEqual(backend.write(f"{top}/src/b.txt", "other").path, f"{top}/src/b.txt")
        shown = backend.read(f"{top}/src/a.py", offset=1, limit=1)
        self.assertEqual((shown.file_data["content"], shown.start_line, shown.end_line, shown.next_offset, shown.total_lines),
                         ("two x=(1)\n", 2, 2, 2, 3))
        shown = backend.read(f"{top}/src/a.py")
        self.assertEqual((shown.file_data, shown.next_offset), ({"content": "one\ntwo x=(1)\nthree\r\n", "encoding": "utf-8"}, None))
        self.assertEqual([(entry["path"], entry["is_dir"]) for entry in backend.ls(top).entries], [(f"{top}/src", True)])
        self.assertEqual(backend.grep("x=(1)", path=top, glob="*.py").matches,
                         [{"path": f"{top}/src/a.py", "line": 2, "text": "two x=(1)"}])
        self.assertEqual([found["path"] for found in backend.glob("**/*.py", path=top).matches], [f"{top}/src/a.py"])
        changed = backend.edit(f"{top}/src/a.py", "one", "1")
        self.assertEqual((changed.error, changed.occurrences), (None, 1))
        self.assertIsNone(backend.write(f"{top}/src/a.py", "e\ne\ne\n").error)
        self.assertEqual(backend.edit(f"{top}/src/a.py", "e", "E", replace_all=True).occurrences, 3)
        done = asyncio.run(backend.aexecute("cat src/a.py; echo err >&2; exit 3", timeout=support.PATIENCE_S))
        self.assertEqual((done.output, done.exit_code, done.truncated), ("E\nE\nE\nerr\n", 3, False))
        self.assertEqual([answer.error for answer in backend.upload_files([("/tmp/new/c.bin", b"\0\xff"), ("/etc/x", b"")])],
                         [None, "permission_denied"])
        self.assertEqual([(answer.content, answer.error) for answer in
                          backend.download_files(["/tmp/new/c.bin", "/nowhere", "/etc"])],
                         [(b"\0\xff", None), (None, "file_not_found"), (None, "is_directory")])
        self.assertEqual(backend.delete(f"{top}/src").path, f"{top}/src")
        self.assertEqual(backend.ls(top).entries, [])

    def test_what_fails_is_an_answer(self):
        backend, top = self.backend, self.top
        self.assertIn("does not exist", backend.ls(f"{top}/none").error)
        self.assertIn("none", backend.read(f"{top}/none").error)
        self.assertIn("does not exist", backend.edit(f"{top}/none", "a", "b").error)
        self.assertIsNotNone(backend.write("/etc/none", "x").error)
        self.assertIsNotNone(backend.delete(f"{top}/none").error)
        backend.write(f"{top}/a", "e e")
        self.assertIsNotNone(backend.edit(f"{top}/a", "e", "E").error)
        self.assertIn("1 lines", backend.read(f"{top}/a", offset=5).error)
        self.assertTrue(backend.read(f"{top}/a", limit=0).no_lines_requested)
        backend.upload_files([(f"{top}/b", b"\xff\0")])
        self.assertEqual(backend.read(f"{top}/b").file_data, {"content": "/wA=", "encoding": "base64"})

    def test_a_timeout_ends_grandchildren_and_long_outputs_have_both_ends(self):
        done = self.backend.execute(f"echo begun; {ESCAPES}", timeout=1)
        self.assertEqual((done.output, done.exit_code),
                         ("begun\n\n[The command was ended after 1 s, with all that it had started.]", 124))
        self.nothing_sleeps()
        done = self.backend.execute("echo head; head -c 10485760 /dev/zero | tr '\\0' x; echo tail")
        self.assertEqual((done.output[:5], done.output[-5:], done.truncated), ("head\n", "tail\n", True))
        self.assertLess(len(done.output), 110_000)
        self.backend.execute("for i in $(seq 1 20); do echo same > $i.txt; done")
        found = self.backend.grep("same", max_count=5)
        self.assertEqual((len(found.matches), found.truncated), (5, True))


class OpenaiAgents(AdapterCase):
    name = "openai_agents"

    def session(self, function, manifest=None, **options):
        """Run FUNCTION as a runner does: create, start, its work, shutdown, delete."""
        async def run():
            client = self.adapter.GloveboxSandboxClient()
            session = await client.create(manifest=manifest, options=self.adapter.GloveboxSandboxClientOptions(**options))
            try:
                await session.start()
                return await function(session, client)
            finally:
                await session.shutdown()
                await client.delete(session)
        return asyncio.run(run())

    def errors(self):
        return sys.modules["agents.sandbox.errors"]

    def test_a_session(self):
        async def work(session, client):
            self.assertTrue(await session.running())
            root = session._inner.state.manifest.root
            done = await session.exec("echo out; echo err >&2; pwd; exit 3")
            self.assertEqual((done.exit_code, done.stdout, done.stderr), (3, f"out\n{root}\n".encode(), b"err\n"))
            done = await session.exec("echo", "$HOME *", shell=False)
            self.assertEqual(done.stdout, b"$HOME *\n")
            await session.write("new/a.bin", io.BytesIO(b"\0\xff"))
            self.assertEqual((await session.read("new/a.bin")).read(), b"\0\xff")
            for path, error in (("none", "WorkspaceReadNotFoundError"), ("new", "WorkspaceArchiveReadError")):
                with self.assertRaises(getattr(self.errors(), error)):
                    await session.read(path)
            with self.assertRaises(self.errors().ExecTimeoutError):
                await session.exec(ESCAPES, timeout=1)
            self.nothing_sleeps()
            self.assertEqual((await session.exec("no-such-program", shell=False)).exit_code, 127)
            self.assertTrue((await session.exec("true", user="root")).ok())
            with self.assertRaisesRegex(glovebox.Usage, 'this cell has one user; "joe" needs another base'):
                await session.exec("true", user="joe")
            with self.assertRaisesRegex(glovebox.Usage, "joe"):
                await session.read("new/a.bin", user="joe")
            return session._inner.state.workspace
        self.assertFalse(os.path.exists(self.session(work)))

    def test_a_workspace_is_persisted_hydrated_and_resumed(self):
        async def work(session, client):
            await session.exec("mkdir sub skipped; echo text > sub/a; chmod +x sub/a; ln -s sub/a link; touch skipped/x")
            archive = await session.persist_workspace()
            with tarfile.open(fileobj=archive) as tar:
                names = sorted(tar.getnames())
            if not harnesses.REAL:
                self.assertEqual(names, [".", "./link", "./sub", "./sub/a"])
            archive.seek(0)
            other = await client.create(options=None)
            await other.start()
            await other.hydrate_workspace(archive)
            archive.close()
            self.assertEqual((await other.exec("cat link; test -x sub/a && echo x")).stdout, b"text\nx\n")
            payload = client.serialize_session_state(other._inner.state)
            await other.shutdown()
            self.assertFalse(await other.running())
            with self.assertRaisesRegex(Exception, "start it first"):
                await other.exec("true")
            again = await client.resume(client.deserialize_session_state(payload))
            await again.start()
            self.assertEqual((await again.exec("cat sub/a")).stdout, b"text\n")
            await again.shutdown()
            await client.delete(again)
            with self.assertRaises(self.errors().WorkspaceArchiveWriteError):
                await session.hydrate_workspace(io.BytesIO(b"no tar at all" * 1000))
        self.session(work)

    def test_a_folder_of_the_host_is_the_workspace_that_a_manifest_names(self):
        folder = self.host_folder()

        async def work(session, client):
            self.assertEqual((await session.exec("cat there.txt; pwd")).stdout, f"of the host\n{folder}\n".encode())
        self.session(work, sys.modules["agents.sandbox.manifest"].Manifest(root=folder))
        self.assertTrue(os.path.exists(os.path.join(folder, "there.txt")))

    def test_programs_on_a_terminal(self):
        async def work(session, client):
            self.assertTrue(session.supports_pty())
            told = await session.pty_exec_start("stty -echo; echo ready; while read -r line; do echo got $line; done", tty=True,
                                                yield_time_s=1)
            self.assertIsNone(told.exit_code)
            output = told.output
            while b"ready" not in output:
                output += (await session.pty_write_stdin(session_id=told.process_id, chars="")).output
            output = b""
            await session.pty_write_stdin(session_id=told.process_id, chars="one\n")
            told = await session.pty_write_stdin(session_id=told.process_id, chars="\x04", yield_time_s=20)
            self.assertEqual((told.process_id, told.exit_code), (None, 0))
            told = await session.pty_exec_start("echo out; exit 4", yield_time_s=20)
            self.assertEqual((told.output, told.exit_code), (b"out\n", 4))
            told = await session.pty_exec_start(SLEEP, yield_time_s=0.3)
            with self.assertRaises(RuntimeError):
                await session.pty_write_stdin(session_id=told.process_id, chars="x")
            self.assertTrue(support.until(lambda: support.processes(*SLEEPER)))
            await session.pty_terminate_all()
            self.nothing_sleeps()
        self.session(work)

    def test_commands_of_the_shell_tool(self):
        async def run():
            async with aio.Cell() as cell:
                execute = self.adapter.GloveboxExecutor(cell)
                action = types.SimpleNamespace(commands=["echo one; exit 3", f"echo begun; {ESCAPES}", "echo never"],
                                               timeout_ms=1500, max_output_length=9)
                return await execute(types.SimpleNamespace(data=types.SimpleNamespace(action=action)))
        told = asyncio.run(run())
        self.assertEqual([(row.stdout, row.outcome.type, row.outcome.exit_code) for row in told.output],
                         [("one\n", "exit", 3), ("begun\n", "timeout", None)])
        self.assertEqual(told.max_output_length, 9)

    def test_an_image_is_handed_on_or_refused_with_the_engines_sentence(self):
        async def work(session, client):
            self.fail("there is no such image")
        with self.assertRaises(Exception) as caught:
            self.session(work, image="no.such.registry/none:1")
        self.assertRegex(str(caught.exception), "image|base")


class Harbor(AdapterCase):
    name = "harbor"

    def environment(self, folder=None, network_policy=None, persistent_env=None, more=None, **config):
        task = types.SimpleNamespace(**{"docker_image": None, "workdir": None, "memory_mb": None, "cpus": None, **config})
        return self.adapter.GloveboxEnvironment(environment_dir=folder or self.host_folder(), environment_name="task",
                                                session_id="task__1", trial_paths=None, task_env_config=task,
                                                network_policy=network_policy, persistent_env=persistent_env, **(more or {}))

    @classmethod
    def setUpClass(cls):
        if not harnesses.REAL:
            super().setUpClass()
        else:
            cls.missing = "a task of Harbor is needed: harbor run --environment-import-path glovebox.adapters.harbor:GloveboxEnvironment"

    def test_a_trial(self):
        async def run(env, folder):
            with self.assertRaises(glovebox.Closed):
                await env.exec("true")
            await env.start(force_build=False)
            done = await env.exec("mkdir -p logs/agent tests && chmod 777 logs/agent", user="root")
            self.assertEqual(done.return_code, 0)
            await env.upload_dir(folder, "tests/task")
            await env.upload_file(os.path.join(folder, "there.txt"), "/tmp/new/up.txt")
            done = await env.exec("cat there.txt /tmp/new/up.txt; echo $A $B >&2; exit 5", cwd="tests/task", env={"B": "c", "HOME": "/root"},
                                  timeout_sec=support.PATIENCE_S)
            self.assertEqual((done.stdout, done.stderr, done.return_code), ("of the host\n" * 2, "b c\n", 5))
            self.assertTrue(await env.is_dir("logs/agent"))
            await env.exec("echo 1 > logs/reward.txt")
            with self.assertRaisesRegex(RuntimeError, "timed out after 1 s"):
                await env.exec(ESCAPES, timeout_sec=1)
            self.nothing_sleeps()
            await env.download_dir("logs", os.path.join(folder, "out"))
            await env.download_file("logs/reward.txt", os.path.join(folder, "deep", "reward.txt"))
            env.default_user = "joe"
            with self.assertRaisesRegex(glovebox.Usage, 'this cell has one user; "joe" needs another base'):
                await env.exec("true")
            await env.stop(delete=True)
            await env.stop(delete=True)
        folder = self.host_folder()
        asyncio.run(run(self.environment(persistent_env={"A": "b"}), folder))
        with open(os.path.join(folder, "out", "reward.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n")
        self.assertEqual(os.listdir(os.path.join(folder, "deep")), ["reward.txt"])

    def test_a_dockerfile_alone_is_refused_by_name(self):
        folder = self.host_folder()
        with open(os.path.join(folder, "Dockerfile"), "w", encoding="utf-8") as file:
            file.write("FROM scratch\n")
        with self.assertRaisesRegex(glovebox.Usage, "build the image and name it as docker_image"):
            self.environment(folder)
        with self.assertRaises((glovebox.GloveboxError, FileNotFoundError)) as caught:
            asyncio.run(self.environment(folder, docker_image="no.such.registry/none:1", workdir="/testbed").start(False))
        self.assertIn(knows(base="image:no.such.registry/none:1"), str(caught.exception))

    def test_the_network_of_a_task_is_the_hosts_that_are_named(self):
        config = sys.modules["harbor.models.task.config"]

        def hosts(mode, allowed=None):
            policy = config.NetworkPolicy(config.NetworkMode(mode), allowed)
            return self.environment(network_policy=policy, more={"network": ["pypi.org"]})._network()
        self.assertEqual((hosts("public"), hosts("no-network"), hosts("allowlist", ["a.org"])), (["pypi.org"], [], ["a.org"]))
        self.assertEqual(self.environment(allow_internet=False, more={"network": "pypi.org"})._network(), [])
