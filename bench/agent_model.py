"""The model that the agents of bench/agent.py ask: on loopback, by each of the three APIs, with a
command that does nothing again and again, then words. It reads no more of a request than it must,
so that what is measured is the agent.
"""
import json
import socket
import threading
import time

CHUNK = 1 << 18
ENOUGH = "All is done."


def chat(number, tool, arguments, words):
    def chunk(delta, finish=None):
        return {"id": "x", "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    deltas = [{"content": word} for word in words] or [
        {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function",
                         "function": {"name": tool, "arguments": arguments}}]}]
    return [chunk({"role": "assistant", **deltas[0]}), *map(chunk, deltas[1:]),
            chunk({}, "stop" if words else "tool_calls"),
            {"id": "x", "object": "chat.completion.chunk", "choices": [],
             "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}]


def responses(number, tool, arguments, words):
    item = ({"type": "message", "role": "assistant", "id": f"msg_{number}", "status": "completed",
             "content": [{"type": "output_text", "text": "".join(words), "annotations": []}]}
            if words else
            {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
             "name": tool, "arguments": arguments, "status": "completed"})
    whole = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item],
             "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
                       "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0},
                       "total_tokens": 15}}
    begun = {**whole, "status": "in_progress", "output": []}
    return [{"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            *({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0,
               "content_index": 0, "delta": word} for word in words[1:]),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole}]


def messages(number, tool, arguments, words):
    block = ({"type": "text", "text": ""} if words else
             {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}})
    deltas = [{"type": "text_delta", "text": word} for word in words] or [
        {"type": "input_json_delta", "partial_json": arguments}]
    return [{"type": "message_start", "message": {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "mock",
                "content": [], "stop_reason": None, "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "usage": {"output_tokens": 5},
             "delta": {"stop_reason": "end_turn" if words else "tool_use", "stop_sequence": None}},
            {"type": "message_stop"}]


APIS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}
# What a shell is called, and what it wants to be given: an agent has one of these.
SHELLS = {
    "bash": lambda text: {"command": text},
    "Bash": lambda text: {"command": text},
    "exec_command": lambda text: {"cmd": text},
    "shell_command": lambda text: {"command": text},
    "shell": lambda text: {"command": ["bash", "-c", text]},
}


def shell_of(body):
    """The name of the shell among the tools of a request."""
    names = [tool.get("name") or tool.get("function", {}).get("name")
             for tool in json.loads(body).get("tools", [])]
    return next((name for name in SHELLS if name in names), None)


class Model:
    """
    Serves one run of TURNS commands; AT_LAST is called when the last one has been answered, and
    what it is told then comes in PIECES.
    """

    def __init__(self, turns, at_last=None, pieces=1):
        self.turns = turns
        self.last_words = [ENOUGH, *["word "] * (pieces - 1)]
        self.at_last = at_last
        self.arrived = []  # when each request that counts came, in seconds
        self.shell = None
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.listen, daemon=True).start()

    def close(self):
        self.listener.close()

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        data = b""
        try:
            with client:
                while True:
                    while (end := data.find(b"\r\n\r\n")) < 0:
                        more = client.recv(CHUNK)
                        if not more:
                            return
                        data += more
                    head = data[:end].lower()
                    at = head.find(b"content-length:")
                    size = int(head[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
                    parts, have = [data[end + 4:]], len(data) - end - 4
                    while have < size:
                        more = client.recv(CHUNK)
                        if not more:
                            return
                        parts.append(more)
                        have += len(more)
                    body = b"".join(parts)
                    data = body[size:]
                    client.sendall(self.answer(head, body[:size]))
        except OSError:
            return  # it has what it wanted

    def answer(self, head, body):
        path = head.split(b" ", 2)[1].decode().partition("?")[0]
        api = next((api for end, api in APIS.items() if path.endswith(end)), None)
        if api is None or not head.startswith(b"post"):
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"
        shell = self.shell or shell_of(body)
        if shell is None:  # a question of its own: a title, a summary
            return self.stream(api(0, None, None, ["Well."]), api)
        self.shell = shell
        self.arrived.append(time.perf_counter())
        number = len(self.arrived)
        if number > self.turns:
            if self.at_last:
                self.at_last()
            return self.stream(api(number, None, None, self.last_words), api)
        # No two the same: who calls the same again and again is stopped.
        arguments = json.dumps(SHELLS[shell](f"true {number}"))
        return self.stream(api(number, shell, arguments, []), api)

    @staticmethod
    def stream(events, api):
        named = api is not chat
        text = "".join((f"event: {event['type']}\n" if named else "") +
                       f"data: {json.dumps(event)}\n\n" for event in events)
        if not named:
            text += "data: [DONE]\n\n"
        return ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                f"content-length: {len(text.encode())}\r\n\r\n{text}").encode()
