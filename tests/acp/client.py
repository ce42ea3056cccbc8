"""client: an editor, as far as the Agent Client Protocol knows one.

Every message of the agent is held against the schema and against the rules of order below; a breach is kept in
`faults`, which a case asks for at its end (`close`). What the agent asks is answered by `answers`: method -> a
function of the params, which returns a result, raises Refused, or returns LATER.
"""
import json
import os
import queue
import signal
import subprocess
import threading
import time

from schema import Schema

WAIT_SECONDS = float(os.environ.get("ACP_WAIT", "120"))  # sanitizers on a busy machine
SCHEMA = Schema()
LATER = object()
ENDED = object()
# Updates that may come while no prompt is under way.
BETWEEN = {"available_commands_update", "config_option_update", "current_mode_update", "session_info_update",
           "usage_update", "notice"}
OVER = ("completed", "failed")
KINDS = ["allow_once", "allow_always", "reject_once"]
ONCE = ["allow_once", "reject_once"]  # what a server wants the model to be asked


class Refused(Exception):
    """The client answers with an error."""


class Failure(Exception):
    """The agent answered with an error, or not at all."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = error.get("code") if isinstance(error, dict) else None
        self.text = error.get("message") if isinstance(error, dict) else error


class Order:
    """The rules of order: what may follow what."""

    def __init__(self):
        self.faults = []
        self.sessions = {}  # id -> the calls: id -> status
        self.waits = {}     # the client's requests that have no answer: id -> (method, params)

    def fault(self, text):
        self.faults.append(text)

    def is_prompted(self, session):
        return any(method in ("session/prompt", "session/load") and params.get("sessionId") == session
                   for method, params in self.waits.values())

    def update(self, session, update):
        kind = update["sessionUpdate"]
        calls = self.sessions.setdefault(session, {})
        if kind not in BETWEEN and not self.is_prompted(session):
            self.fault(f"{kind} while no prompt is under way")
        if kind.endswith("_chunk") and not update.get("messageId"):
            self.fault(f"words of no message: {update}")
        if kind == "plan" and not update["entries"]:
            self.fault("a plan of nothing")
        if kind == "tool_call":
            if update["toolCallId"] in calls:
                self.fault(f"the call {update['toolCallId']} is announced twice")
            if not update.get("name") or not update.get("title") or not update.get("kind") or update.get("status") != "pending":
                self.fault(f"a call without title, kind or status: {update}")
            calls[update["toolCallId"]] = update["status"]
        elif kind == "tool_call_update":
            before = calls.get(update["toolCallId"])
            if before is None:
                self.fault(f"an update of a call that was not announced: {update['toolCallId']}")
            if before in OVER:
                self.fault(f"the call {update['toolCallId']} changes after its end")
            calls[update["toolCallId"]] = update.get("status", before)
        for place in update.get("locations") or []:
            if not os.path.isabs(place["path"]) or place.get("line", 1) < 1:
                self.fault(f"a place that is none: {place}")
        for part in update.get("content") or [] if kind.startswith("tool_call") else []:
            if part["type"] == "diff" and not os.path.isabs(part["path"]):
                self.fault(f"a diff of {part['path']}")

    def permission(self, params):
        call = params["toolCall"]
        if self.sessions.get(params["sessionId"], {}).get(call["toolCallId"]) in (None, *OVER):
            self.fault(f"a question about a call that is not there: {call['toolCallId']}")
        if not call.get("title") or not call.get("content") or not call.get("kind") or "rawInput" not in call:
            self.fault(f"a question that shows nothing: {call}")
        if sorted(option["kind"] for option in params["options"]) not in (sorted(KINDS), ONCE):
            self.fault(f"other options: {params['options']}")

    def elicitation(self, params):
        if self.sessions.get(params["sessionId"], {}).get(params.get("toolCallId")) in (None, *OVER):
            self.fault(f"a question of a call that is not there: {params}")
        if not params["message"]:
            self.fault(f"a question that says nothing: {params}")

    def answer(self, number, is_error):
        if number not in self.waits:
            self.fault(f"an answer to no request: {number}")
            return None
        method, params = self.waits.pop(number)
        if method == "session/prompt" and not is_error:
            for call, status in self.sessions.get(params.get("sessionId"), {}).items():
                if status not in OVER:
                    self.fault(f"the prompt ends before the call {call}")
        return method


class Client:
    def __init__(self, command, answers=None, capabilities=None, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        self.answers, self.capabilities = answers or {}, capabilities or {}
        self.order, self.number = Order(), 0
        self.messages = []  # all that came, in their order
        self.inbox = queue.Queue()
        self.asked = []     # ids of the agent's requests that wait for LATER
        self.log = b""
        self.reads = threading.Event()
        self.reads.set()
        for work in self.read, self.read_log:
            threading.Thread(target=work, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.reads.wait()
            self.inbox.put(line)
        self.inbox.put(ENDED)

    def read_log(self):
        for line in self.process.stderr:
            self.log += line

    def write(self, data):
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, method, params, notification=False):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notification:
            self.number += 1
            message["id"] = self.number
            self.order.waits[self.number] = (method, params)
            if method == "session/load":
                self.order.sessions.pop(params.get("sessionId"), None)
        self.write(json.dumps(message).encode())
        return self.number

    def notify(self, method, **params):
        self.send(method, params, notification=True)

    def reply(self, number, result=None, error=None):
        message = {"jsonrpc": "2.0", "id": number}
        message.update({"error": error} if error else {"result": result})
        self.write(json.dumps(message).encode())

    def fault(self, text):
        self.order.fault(text)

    def take_request(self, message):
        method, params = message["method"], message["params"]
        for fault in SCHEMA.params(method, params):
            self.fault(fault)
        if method == "session/request_permission":
            self.order.permission(params)
        if method == "elicitation/create":
            self.order.elicitation(params)
        if method not in self.answers:
            self.reply(message["id"], error={"code": -32601, "message": "not here"})
            return
        try:
            result = self.answers[method](params)
        except Refused as refusal:
            self.reply(message["id"], error={"code": -32000, "message": str(refusal)})
            return
        if result is LATER:
            self.asked.append(message["id"])
        else:
            for fault in SCHEMA.result(method, result):
                self.fault(f"of the client: {fault}")
            self.reply(message["id"], result)

    def take(self, line):
        """Take one message of the agent."""
        try:
            message = json.loads(line)
        except ValueError:
            self.fault(f"no JSON: {line[:200]}")
            return
        self.messages.append(message)
        if message.get("jsonrpc") != "2.0":
            self.fault(f"no JSON-RPC: {line[:200]}")
        if "method" not in message:
            if "error" in message:
                for fault in SCHEMA.error(message["error"]):
                    self.fault(fault)
                if message["id"] is not None:
                    self.order.answer(message["id"], True)
            else:
                method = self.order.answer(message["id"], False)
                if method is not None:
                    for fault in SCHEMA.result(method, message["result"]):
                        self.fault(fault)
        elif "id" in message:
            self.take_request(message)
        elif message["method"] == "session/update":
            for fault in SCHEMA.params("session/update", message["params"]):
                self.fault(fault)
            self.order.update(message["params"]["sessionId"], message["params"]["update"])
        elif message["method"] != "$/cancel_request":
            self.fault(f"an unknown notification: {message['method']}")

    def until(self, wanted, seconds=WAIT_SECONDS):
        """Take messages until WANTED is true of one, and return it."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.inbox.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise Failure("it did not come") from None
            if line is ENDED:
                self.inbox.put(ENDED)
                raise Failure("the agent has ended")
            self.take(line)
            if self.messages and wanted(self.messages[-1]):
                return self.messages[-1]

    def wait(self, number):
        """The result of the request NUMBER."""
        message = self.until(lambda m: "method" not in m and m.get("id") == number)
        if "error" in message:
            raise Failure(message["error"])
        return message["result"]

    def ask(self, method, **params):
        return self.wait(self.send(method, params))

    def refuses(self, code, method, *words, **params):
        """METHOD is refused with CODE, and WORDS are in the sentence."""
        try:
            result = self.ask(method, **params)
        except Failure as failure:
            assert failure.code == code, (code, str(failure))
            for word in words:
                assert word in failure.text, failure.text
            return
        raise AssertionError(f"{method} was not refused: {result}")

    def refuses_line(self, code, data):
        """The line DATA, which may have no id, is refused."""
        since = len(self.messages)
        self.write(data)
        message = self.until(lambda m: "error" in m)
        assert message["error"]["code"] == code, message
        assert len(self.messages) == since + 1, self.messages[since:]

    def until_update(self, kind, wanted=lambda update: True):
        return self.until(lambda m: m.get("method") == "session/update"
                          and m["params"]["update"]["sessionUpdate"] == kind
                          and wanted(m["params"]["update"]))["params"]["update"]

    # What editors do.

    def initialize(self, version=1):
        return self.ask("initialize", protocolVersion=version, clientCapabilities=self.capabilities,
                        clientInfo={"name": "test", "version": "1"})

    def new(self, folder, **more):
        result = self.ask("session/new", **{"cwd": folder, "mcpServers": [], **more})
        self.until_update("available_commands_update")
        return result["sessionId"]

    def send_prompt(self, session, *blocks):
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        return self.send("session/prompt", {"sessionId": session, "prompt": blocks})

    def prompt(self, session, *blocks):
        """The stop reason, and the updates of the turn."""
        since = len(self.messages)
        reason = self.wait(self.send_prompt(session, *blocks))["stopReason"]
        return reason, self.updates(session, since)

    def updates(self, session, since=0):
        return [m["params"]["update"] for m in self.messages[since:] if m.get("method") == "session/update"
                and m["params"]["sessionId"] == session]

    def close(self, code=0):
        """The end of the input ends the agent, and nothing was amiss."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.reads.set()
        ended = self.process.wait(WAIT_SECONDS)
        assert ended == code, (ended, self.log.decode(errors="replace"))
        while True:
            line = self.inbox.get(timeout=WAIT_SECONDS)
            if line is ENDED:
                break
            self.take(line)
        assert not self.order.faults, "\n".join(self.order.faults[:10])

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(WAIT_SECONDS)


def said(updates):
    """The words of the agent."""
    return "".join(update["content"]["text"] for update in updates
                   if update["sessionUpdate"] == "agent_message_chunk")


def results(updates):
    """The last update of each call, by its id."""
    found = {}
    for update in updates:
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            found.setdefault(update["toolCallId"], {}).update(update)
    return found


def text_of(call):
    """The text of a call's content."""
    return "\n".join(part["content"]["text"] for part in call.get("content", [])
                     if part["type"] == "content" and part["content"]["type"] == "text")
