"""
Stand-ins of the harnesses for which there are adapters: the modules, base classes and values that an adapter needs, with
the interface of the release that it names, and nothing that a harness does besides. `enter(NAME)` puts one into
sys.modules; with $GLOVEBOX_HARNESS, the folder of `pip install --target`, it is the real package instead.
"""
import abc
import asyncio
import dataclasses
import enum
import importlib
import json
import logging
import os
import shlex
import sys
import types
import unittest
from pathlib import Path

REAL = os.environ.get("GLOVEBOX_HARNESS", "")
entered = set()


def enter(name):
    """The adapter NAME, with its harness; skips where the real package does not import."""
    if REAL:
        if REAL not in sys.path:
            sys.path.insert(0, REAL)
        try:
            return importlib.import_module(f"glovebox.adapters.{name}")
        except ImportError as error:
            raise unittest.SkipTest(f"{REAL} has no such package: {error}") from error
    if name not in entered:  # a second time its classes would be others
        entered.add(name)
        STAND_INS[name]()
    return importlib.import_module(f"glovebox.adapters.{name}")


def module(name, **members):
    """A module of the name NAME with MEMBERS, and the packages above it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            sys.modules[path].__path__ = []
            if end > 1:
                setattr(sys.modules[".".join(parts[:end - 1])], parts[end - 1], sys.modules[path])
    vars(sys.modules[name]).update(members)
    return sys.modules[name]


class Model:
    """What adapters use of pydantic's BaseModel: members with defaults, of the class and of those above it."""

    model_config = {}

    def __init_subclass__(cls):
        cls.model_fields = {name: types.SimpleNamespace(default=getattr(cls, name, None))
                            for above in reversed(cls.__mro__) for name in vars(above).get("__annotations__", {})}

    def __init__(self, **members):
        if unknown := members.keys() - self.model_fields.keys():
            raise ValueError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        for name, field in self.model_fields.items():
            setattr(self, name, members.get(name, field.default))

    def __iter__(self):
        return iter((name, getattr(self, name)) for name in self.model_fields)

    def model_dump(self, mode="python"):
        return dict(self)

    def model_dump_json(self):
        return json.dumps(self.model_dump(), default=str)

    def model_copy(self, update, deep=False):
        return type(self)(**{**dict(self), **update})


def inspect_ai():
    class SandboxEnvironment(abc.ABC):
        @classmethod
        async def task_init(cls, task_name, config):
            pass

        @classmethod
        async def sample_init(cls, task_name, config, metadata):
            return {}

        @classmethod
        @abc.abstractmethod
        async def sample_cleanup(cls, task_name, config, environments, interrupted):
            ...

        @abc.abstractmethod
        async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, timeout_retry=True,
                       concurrency=True):
            ...

        @abc.abstractmethod
        async def write_file(self, file, contents):
            ...

        @abc.abstractmethod
        async def read_file(self, file, text=True):
            ...

    @dataclasses.dataclass
    class ExecResult:
        success: bool
        returncode: int
        stdout: str
        stderr: str

    class SandboxEnvironmentLimits:
        MAX_EXEC_OUTPUT_SIZE = 10 << 20
        MAX_EXEC_OUTPUT_SIZE_STR = "10 MiB"
        MAX_READ_FILE_SIZE = 100 << 20
        MAX_READ_FILE_SIZE_STR = "100 MiB"

    class OutputLimitExceededError(Exception):
        def __init__(self, limit_str, truncated_output):
            self.limit_str, self.truncated_output = limit_str, truncated_output
            super().__init__(f"the output limit of {limit_str} was exceeded")

    registry = {}

    def sandboxenv(name):
        def register(kind):
            registry[name] = kind
            return kind
        return register

    class Resources(Model):
        cpus: str = None
        memory: str = None

    def parse_compose_yaml(file, *, multiple_services=True):
        with open(file, encoding="utf-8") as text:
            services = json.load(text)["services"]  # JSON is YAML
        if not multiple_services and len(services) > 1:
            raise ValueError("the provider does not support multiple services")
        for service in services.values():
            limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
            if limits:
                service["deploy"] = types.SimpleNamespace(resources=types.SimpleNamespace(limits=Resources(**limits)))
        return types.SimpleNamespace(services=services)

    module("pydantic", BaseModel=Model)
    module("inspect_ai.util", SandboxEnvironment=SandboxEnvironment, ExecResult=ExecResult, sandboxenv=sandboxenv,
           SandboxEnvironmentLimits=SandboxEnvironmentLimits, OutputLimitExceededError=OutputLimitExceededError,
           parse_compose_yaml=parse_compose_yaml, registry=registry)


def minisweagent():
    class Submitted(Exception):
        def __init__(self, *messages):
            self.messages = messages
            super().__init__()

    module("minisweagent.exceptions", Submitted=Submitted)


def swerex():
    class IsAliveResponse(Model):
        is_alive: bool = False
        message: str = ""

        def __bool__(self):
            return self.is_alive

    class CreateBashSessionRequest(Model):
        startup_source: list = []
        session: str = "default"
        session_type: str = "bash"
        startup_timeout: float = 1.0

    class BashAction(Model):
        command: str = ""
        session: str = "default"
        timeout: float = None
        is_interactive_command: bool = False
        is_interactive_quit: bool = False
        check: str = "raise"
        error_msg: str = ""
        expect: list = []

    class BashInterruptAction(Model):
        session: str = "default"
        timeout: float = 0.2
        n_retry: int = 3
        expect: list = []

    class BashObservation(Model):
        output: str = ""
        exit_code: int = None
        failure_reason: str = ""
        expect_string: str = ""

    class Command(Model):
        command: object = ""
        timeout: float = None
        shell: bool = False
        check: bool = False
        error_msg: str = ""
        env: dict = None
        cwd: str = None
        merge_output_streams: bool = False

    class CommandResponse(Model):
        stdout: str = ""
        stderr: str = ""
        exit_code: int = None

    class ReadFileRequest(Model):
        path: str = ""
        encoding: str = None
        errors: str = None

    class WriteFileRequest(Model):
        content: str = ""
        path: str = ""

    class UploadRequest(Model):
        source_path: str = ""
        target_path: str = ""

    class CreateBashSessionResponse(Model):
        output: str = ""

    class CloseBashSessionRequest(Model):
        session: str = "default"

    class ReadFileResponse(Model):
        content: str = ""

    class AbstractRuntime(abc.ABC):
        @abc.abstractmethod
        async def is_alive(self, *, timeout=None): ...

        @abc.abstractmethod
        async def create_session(self, request): ...

        @abc.abstractmethod
        async def run_in_session(self, action): ...

        @abc.abstractmethod
        async def close_session(self, request): ...

        @abc.abstractmethod
        async def execute(self, command): ...

        @abc.abstractmethod
        async def read_file(self, request): ...

        @abc.abstractmethod
        async def write_file(self, request): ...

        @abc.abstractmethod
        async def upload(self, request): ...

        @abc.abstractmethod
        async def close(self): ...

    class AbstractDeployment(abc.ABC):
        @abc.abstractmethod
        def add_hook(self, hook): ...

        @abc.abstractmethod
        async def is_alive(self, *, timeout=None): ...

        @abc.abstractmethod
        async def start(self, *args, **kwargs): ...

        @abc.abstractmethod
        async def stop(self, *args, **kwargs): ...

        @property
        @abc.abstractmethod
        def runtime(self): ...

    class BashIncorrectSyntaxError(RuntimeError):
        def __init__(self, message, *, extra_info=None):
            super().__init__(message)
            self.extra_info = extra_info or {}

    answers = {name: type(name, (Model,), {}) for name in ("CloseBashSessionResponse", "WriteFileResponse",
                                                           "UploadResponse", "CloseResponse")}
    errors = {name: type(name, above, {}) for name, above in (
        ("CommandTimeoutError", (RuntimeError, TimeoutError)), ("DeploymentNotStartedError", (RuntimeError,)),
        ("NonZeroExitCodeError", (RuntimeError,)), ("SessionDoesNotExistError", (ValueError,)),
        ("SessionExistsError", (ValueError,)))}
    module("swerex.deployment.abstract", AbstractDeployment=AbstractDeployment)
    module("swerex.exceptions", BashIncorrectSyntaxError=BashIncorrectSyntaxError, **errors)
    kinds = (IsAliveResponse, CreateBashSessionRequest, BashAction, BashInterruptAction, BashObservation, Command,
             CommandResponse, ReadFileRequest, WriteFileRequest, UploadRequest, CreateBashSessionResponse,
             CloseBashSessionRequest, ReadFileResponse, AbstractRuntime)
    module("swerex.runtime.abstract", **{kind.__name__: kind for kind in kinds}, **answers)


def deepagents():
    def answer(name, *members):
        return dataclasses.make_dataclass(name, [(member, object, None) for member in members])

    @dataclasses.dataclass
    class ReadResult:
        error: str = None
        file_data: dict = None
        total_lines: int = None
        start_line: int = None
        end_line: int = None
        next_offset: int = None
        no_lines_requested: bool = False

        def __post_init__(self):
            if (self.start_line is None) != (self.end_line is None):
                raise ValueError("start_line and end_line go together")
            if self.next_offset not in (None, self.end_line):
                raise ValueError("next_offset is the line behind end_line")

    class SandboxBackendProtocol:
        async def aexecute(self, command, *, timeout=None):
            return await asyncio.to_thread(self.execute, command, timeout=timeout)

        async def aread(self, file_path, offset=0, limit=2000):
            return await asyncio.to_thread(self.read, file_path, offset, limit)

    kinds = [answer("LsResult", "error", "entries"), answer("WriteResult", "error", "path"),
             answer("EditResult", "error", "path", "occurrences"), answer("DeleteResult", "error", "path"),
             answer("GrepResult", "error", "matches", "truncated"), answer("GlobResult", "error", "matches", "truncated"),
             answer("ExecuteResponse", "output", "exit_code", "truncated"), answer("FileUploadResponse", "path", "error"),
             answer("FileDownloadResponse", "path", "content", "error"), ReadResult, SandboxBackendProtocol]
    module("deepagents.backends.protocol", **{kind.__name__: kind for kind in kinds})


def openai_agents():
    class Environment:
        def __init__(self, **values):
            self.values = values

        async def resolve(self):
            return dict(self.values)

    class Manifest(Model):
        root: str = "/workspace"
        environment: object = Environment()

    class ExecResult:
        def __init__(self, *, stdout, stderr, exit_code):
            self.stdout, self.stderr, self.exit_code = stdout, stderr, exit_code

        def ok(self):
            return self.exit_code == 0

    class SandboxSessionState(Model):
        type: str = ""
        session_id: object = None
        snapshot: object = None
        manifest: object = None
        exposed_ports: tuple = ()

        def assert_path_grants_rebound(self):
            pass

    class BaseSandboxClientOptions(Model):
        type: str = ""

    class BaseSandboxSession(abc.ABC):
        async def start(self):
            await self._ensure_backend_started()

        async def shutdown(self):
            await self.pty_terminate_all()
            await self._shutdown_backend()

        async def exec(self, *command, timeout=None, shell=True, user=None):
            return await self._exec_internal(*self._prepare_exec_command(*command, shell=shell, user=user), timeout=timeout)

        def _prepare_exec_command(self, *command, shell, user):
            words = [str(word) for word in command]
            if shell:
                joined = words[0] if len(words) == 1 else shlex.join(words)
                words = [*(shell if isinstance(shell, list) else ["sh", "-lc"]), joined]
            return ["sudo", "-u", user, "--", *words] if user else words

        def normalize_path(self, path, *, for_write=False):
            return Path(self.state.manifest.root) / path

        def _persist_workspace_skip_relpaths(self):
            return {Path("skipped")}

        def _resolve_pty_session_entry(self, *, pty_processes, session_id):
            return pty_processes[session_id]

        @abc.abstractmethod
        async def _exec_internal(self, *command, timeout=None): ...

        @abc.abstractmethod
        async def read(self, path, *, user=None): ...

        @abc.abstractmethod
        async def write(self, path, data, *, user=None): ...

        @abc.abstractmethod
        async def running(self): ...

        @abc.abstractmethod
        async def persist_workspace(self): ...

        @abc.abstractmethod
        async def hydrate_workspace(self, data): ...

    class SandboxSession:
        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

    class BaseSandboxClient(abc.ABC):
        def __class_getitem__(cls, options):
            return cls

        def _wrap_session(self, inner, *, instrumentation=None):
            return SandboxSession(inner)

        def _validate_manifest_for_create(self, manifest):
            return manifest

        @staticmethod
        def _deserialize_session_state_payload(payload, state_class):
            return state_class(**payload)

        def serialize_session_state(self, state):
            return state.model_dump()

        @abc.abstractmethod
        async def create(self, *, snapshot=None, manifest=None, options): ...

        @abc.abstractmethod
        async def delete(self, session): ...

        @abc.abstractmethod
        async def resume(self, state): ...

    class SandboxError(Exception):
        def __init__(self, *, cause=None, **context):
            self.context = context
            super().__init__(f"{type(self).__name__}: {context}: {cause}")

    errors = {name: type(name, (SandboxError,), {}) for name in (
        "ExecTimeoutError", "ExecTransportError", "WorkspaceArchiveReadError", "WorkspaceArchiveWriteError",
        "WorkspaceReadNotFoundError")}

    @dataclasses.dataclass
    class ShellCallOutcome:
        type: str
        exit_code: int = None

    @dataclasses.dataclass
    class ShellCommandOutput:
        stdout: str = ""
        stderr: str = ""
        outcome: object = None
        command: str = None

    @dataclasses.dataclass
    class ShellResult:
        output: list
        max_output_length: int = None

    @dataclasses.dataclass(frozen=True)
    class PtyExecUpdate:
        process_id: int
        output: bytes
        exit_code: int
        original_token_count: int

    module("agents", ShellCallOutcome=ShellCallOutcome, ShellCommandOutput=ShellCommandOutput, ShellResult=ShellResult)
    module("agents.sandbox.errors", **errors)
    module("agents.sandbox.manifest", Manifest=Manifest, Environment=Environment)
    module("agents.sandbox.session.base_sandbox_session", BaseSandboxSession=BaseSandboxSession)
    module("agents.sandbox.session.pty_types", PtyExecUpdate=PtyExecUpdate,
           allocate_pty_process_id=lambda used: max(used, default=999) + 1,
           clamp_pty_yield_time_ms=lambda yield_time_ms: max(250, min(30_000, yield_time_ms)),
           resolve_pty_write_yield_time_ms=lambda *, yield_time_ms, input_empty: max(250, yield_time_ms),
           truncate_text_by_tokens=lambda text, most: (text, None))
    module("agents.sandbox.session.sandbox_client", BaseSandboxClient=BaseSandboxClient,
           BaseSandboxClientOptions=BaseSandboxClientOptions)
    module("agents.sandbox.session.sandbox_session", SandboxSession=SandboxSession)
    module("agents.sandbox.session.sandbox_session_state", SandboxSessionState=SandboxSessionState)
    module("agents.sandbox.snapshot", resolve_snapshot=lambda snapshot, name: snapshot or name)
    module("agents.sandbox.types", ExecResult=ExecResult)


def harbor():
    class NetworkMode(enum.Enum):
        PUBLIC = "public"
        NO_NETWORK = "no-network"
        ALLOWLIST = "allowlist"

    @dataclasses.dataclass
    class NetworkPolicy:
        network_mode: NetworkMode = NetworkMode.PUBLIC
        allowed_hosts: list = None

    class EnvironmentCapabilities(Model):
        gpus: bool = False
        disable_internet: bool = False
        network_allowlist: bool = False
        mounted: bool = False

    @dataclasses.dataclass
    class ExecResult:
        return_code: int
        stdout: str = None
        stderr: str = None

    class BaseEnvironment(abc.ABC):
        def __init__(self, environment_dir, environment_name, session_id, trial_paths, task_env_config, logger=None,
                     persistent_env=None, network_policy=None, **kwargs):
            assert not kwargs, kwargs
            self.environment_dir, self.session_id, self.task_env_config = environment_dir, session_id, task_env_config
            self.default_user = None
            self._persistent_env = persistent_env or {}
            self._network_policy = network_policy or NetworkPolicy()
            self.logger = logger or logging.getLogger("harbor")
            assert isinstance(self.capabilities, EnvironmentCapabilities) and self.type()
            self._validate_definition()

        def _resolve_user(self, user):
            return user if user is not None else self.default_user

        def _merge_env(self, env):
            return {**self._persistent_env, **(env or {})} or None

        async def is_dir(self, path, user=None):
            return (await self.exec(f"test -d {shlex.quote(path)}", timeout_sec=10, user=user)).return_code == 0

        @staticmethod
        @abc.abstractmethod
        def type(): ...

        @abc.abstractmethod
        async def start(self, force_build): ...

        @abc.abstractmethod
        async def stop(self, delete): ...

        @abc.abstractmethod
        async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None): ...

        @abc.abstractmethod
        async def upload_dir(self, source_dir, target_dir): ...

        @abc.abstractmethod
        async def download_dir(self, source_dir, target_dir): ...

    module("harbor.environments.base", BaseEnvironment=BaseEnvironment, ExecResult=ExecResult)
    module("harbor.environments.capabilities", EnvironmentCapabilities=EnvironmentCapabilities)
    module("harbor.models.task.config", NetworkMode=NetworkMode, NetworkPolicy=NetworkPolicy)


STAND_INS = {"inspect_ai": inspect_ai, "minisweagent": minisweagent, "swerex": swerex, "deepagents": deepagents,
             "openai_agents": openai_agents, "harbor": harbor}
