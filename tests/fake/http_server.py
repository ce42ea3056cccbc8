"""http_server: an MCP server over HTTP in this process, and the server of its tokens, for tests.

A Server has a port of the loopback and notes each request in `log`. What it does wrong is said by its
members, which a test sets before or while it is asked:

  era       "modern", "legacy" or "both"
  streams   answers to calls come as streams of events
  lose      so many calls whose connection is closed before their answer
  ...       as the members of Server.__init__ say
"""
import base64
import hashlib
import http.server
import json
import secrets
import socket
import ssl
import threading
import time
import urllib.parse

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
NONE = {"type": "object"}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "annotations": {"readOnlyHint": True},
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "add", "description": "Count one more.", "inputSchema": NONE},
    {"name": "region", "description": "Say where.", "inputSchema": {
        "type": "object", "properties": {"where": {"type": "string", "x-mcp-header": "Region"},
                                         "deep": {"type": "object", "properties": {
                                             "n": {"type": "integer", "x-mcp-header": "Deep"}}}}}},
    {"name": "wrong", "description": "Marked wrongly.", "inputSchema": {
        "type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}},
    {"name": "ask", "description": "Ask for a name.", "inputSchema": NONE},
    {"name": "slow", "description": "Take a while.", "inputSchema": NONE},
]


class Server:
    """One server; `close` ends it."""

    def __init__(self, era="both", certificate=None):
        """CERTIFICATE: a file with a key and its certificate; then the server speaks TLS."""
        self.era = era
        self.streams = True
        self.json_pretty = False
        self.lose = 0              # calls that lose their connection
        self.lose_after_event = False  # ... behind an event with an id
        self.lie_in_calls = False  # answers to calls have the id of another request
        self.tools = TOOLS
        self.steps = 10**6         # of the call "slow", each 0.02 s
        self.silent_steps = False  # it says nothing of its progress
        self.broken = 0            # streams that a client has closed
        self.big = 0               # bytes of the text of an answer
        self.silent = False        # no answer at all
        self.status = None         # each request is answered with it
        self.location = None
        self.forget = False        # the session is forgotten before the next call
        self.count = 0
        self.sessions = set()
        self.log = []
        self.streams_open = []
        self.asked = {}
        self.samples = None        # the tool ask wants a model to be asked this, and not a form
        self.closed = threading.Event()
        self.auth = None           # an Authority that protects it
        self.scope = None          # calls need this scope
        self.lock = threading.Lock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                server.answer(self, "POST")

            def do_GET(self):
                server.answer(self, "GET")

            def do_DELETE(self):
                server.answer(self, "DELETE")

        class Listener(http.server.ThreadingHTTPServer):
            """Says nothing of connections that break."""
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.httpd = Listener(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.httpd.socket = context.wrap_socket(self.httpd.socket, server_side=True)
        self.port = self.httpd.server_address[1]
        self.origin = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        self.url = self.origin + "/mcp"
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed.set()
        self.httpd.shutdown()
        self.httpd.server_close()

    def methods(self):
        """The methods that were asked for, and those of HTTP that have none."""
        return [entry["method"] for entry in self.log]

    def find(self, method):
        return [entry for entry in self.log if entry["method"] == method]

    # Answers of HTTP.

    @staticmethod
    def reply(handler, status, body=None, headers=None, kind="application/json"):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        if body is not None:
            handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    @staticmethod
    def begin_stream(handler, headers=None):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.close_connection = True

    def event(self, handler, message, event_id=None, retry=None):
        text = json.dumps(message, indent=1 if self.json_pretty else None) if message else ""
        lines = [f"id: {event_id}"] if event_id else []
        lines += [f"retry: {retry}"] if retry is not None else []
        lines += ["data: " + line for line in text.split("\n")]
        handler.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        handler.wfile.flush()

    @staticmethod
    def cut(handler):
        """Break the connection."""
        handler.close_connection = True
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, handler, verb):
        path = handler.path.split("?")[0]
        size = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(size)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if path != "/mcp":
            if self.auth is None or not self.auth.answer(self, handler, verb, body, headers):
                self.reply(handler, 404, {})
            return
        message = json.loads(body) if body and verb == "POST" else {}
        entry = {"method": message.get("method", verb if not message else "answer"),
                 "headers": headers, "message": message, "at": time.monotonic()}
        with self.lock:
            self.log.append(entry)
        if self.auth is not None and not self.auth.lets_in(self, handler, headers, message):
            return
        if self.status:
            self.reply(handler, self.status, {"words": "not today"},
                       {"Location": self.location} if self.location else {})
        elif self.silent:
            self.closed.wait(30)
        elif verb == "GET":
            self.get(handler, headers)
        elif verb == "DELETE":
            self.sessions.discard(headers.get("mcp-session-id"))
            self.reply(handler, 204)
        else:
            self.post(handler, headers, message)

    # Streams of notices.

    def get(self, handler, headers):
        if self.era == "modern":
            self.reply(handler, 405, {})
            return
        last = headers.get("last-event-id")
        self.begin_stream(handler)
        if last and last in self.asked:
            self.event(handler, self.asked.pop(last), last + "x")
            return
        self.notices(handler)

    def notices(self, handler):
        self.streams_open.append(handler)
        while not self.closed.wait(0.02) and handler in self.streams_open:
            pass

    def tell(self, method):
        for handler in list(self.streams_open):
            self.event(handler, {"jsonrpc": "2.0", "method": method, "params": {
                "_meta": {"io.modelcontextprotocol/subscriptionId": "s"}}})

    def drop_streams(self):
        self.streams_open.clear()

    # Messages.

    @staticmethod
    def error(message, code, text):
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}

    def post(self, handler, headers, message):
        method = message.get("method", "")
        meta = message.get("params", {}).get("_meta", {})
        modern = "io.modelcontextprotocol/protocolVersion" in meta
        if modern and self.era == "legacy":
            self.reply(handler, 400, {"error": "no session"})
        elif modern:
            self.post_modern(handler, headers, message)
        elif self.era == "modern":
            self.reply(handler, 400, self.error(message, -32022, "only " + MODERN))
        elif method == "initialize":
            session = secrets.token_hex(8)
            self.sessions.add(session)
            self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {
                "protocolVersion": LEGACY, "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fake", "version": "1"}}}, {"Mcp-Session-Id": session})
        elif headers.get("mcp-session-id") not in self.sessions:
            self.reply(handler, 404, self.error(message, -32001, "no such session"))
        elif self.forget and method == "tools/call":
            self.forget = False
            self.sessions.clear()
            self.reply(handler, 404, {})
        elif "id" not in message or "result" in message:
            if "result" in message:
                self.asked[message["id"]] = message["result"]
            self.reply(handler, 202)
        elif headers.get("mcp-protocol-version") != LEGACY:
            self.reply(handler, 400, self.error(message, -32600, "no version"))
        else:
            self.serve(handler, message, False)

    def post_modern(self, handler, headers, message):
        method, params = message["method"], message.get("params", {})
        name = params.get("name") if method in ("tools/call", "prompts/get") else None
        if headers.get("mcp-protocol-version") != MODERN or headers.get("mcp-method") != method \
                or headers.get("mcp-name") != name or "mcp-session-id" in headers:
            self.reply(handler, 400, self.error(message, -32020, "headers"))
        elif method == "server/discover":
            self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {
                "resultType": "complete", "supportedVersions": [MODERN], "ttlMs": 0,
                "cacheScope": "private", "capabilities": {"tools": {"listChanged": True}}}})
        elif method == "subscriptions/listen":
            self.begin_stream(handler)
            self.event(handler, {"jsonrpc": "2.0",
                                 "method": "notifications/subscriptions/acknowledged", "params": {}})
            self.notices(handler)
        else:
            self.serve(handler, message, True)

    def serve(self, handler, message, modern):
        method = message["method"]
        result = {"resultType": "complete"} if modern else {}
        if method == "tools/list":
            self.finish(handler, message, {**result, "tools": self.tools, "ttlMs": 0,
                                           "cacheScope": "private"}, False)
        elif method == "tools/call":
            self.call(handler, message, result, modern)
        elif modern:
            self.reply(handler, 404, self.error(message, -32601, "unknown"))
        else:
            self.finish(handler, message, None, False)

    def finish(self, handler, message, result, streams):
        """The answer to MESSAGE; None: it is not known."""
        lies = self.lie_in_calls and message["method"] == "tools/call"
        answer = {"jsonrpc": "2.0", "id": message["id"] + 1000 if lies else message["id"],
                  "result": result}
        if result is None:
            answer = self.error(message, -32601, "unknown")
        if not streams:
            text = json.dumps(answer, indent=1 if self.json_pretty else None).encode()
            self.reply(handler, 200, text)
            return
        if not handler.close_connection:
            self.begin_stream(handler)
        self.event(handler, answer)

    def call(self, handler, message, result, modern):
        params = message["params"]
        name, arguments = params["name"], params.get("arguments", {})
        if name == "add":
            self.count += 1
        if self.lose > 0:
            self.lose -= 1
            if self.lose_after_event:
                self.begin_stream(handler)
                key = secrets.token_hex(4)
                self.asked[key] = {"jsonrpc": "2.0", "id": message["id"], "result": {
                    "content": [{"type": "text", "text": "from the rest"}]}}
                self.event(handler, None, key, 10)
            self.cut(handler)
            return
        if name == "ask":
            text = self.ask(handler, message, modern)
            if text is None:
                return
        elif name == "slow":
            self.begin_stream(handler)
            token = params["_meta"]["progressToken"]
            try:
                for step in range(self.steps):
                    if self.silent_steps:
                        handler.wfile.write(b": still there\r\n\r\n")
                    else:
                        self.event(handler, {"jsonrpc": "2.0", "method": "notifications/progress",
                                             "params": {"progressToken": token, "progress": step}})
                    if self.closed.wait(0.02):
                        return
            except OSError:
                self.broken += 1
                return
            text = "done"
        elif name == "echo":
            text = "x" * self.big if self.big else arguments.get("text", "")
        else:
            text = f"{name} {json.dumps(arguments, sort_keys=True)}"
        self.finish(handler, message, {**result, "content": [{"type": "text", "text": text}]},
                    self.streams)

    def ask(self, handler, message, modern):
        """The name that a person gives; None: the answer to the call is out already."""
        form = {"message": "Who are you?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
        params, method = message["params"], "elicitation/create"
        if self.samples:
            form, method = self.samples, "sampling/createMessage"
        if modern:
            answers = params.get("inputResponses")
            if answers is None:
                self.finish(handler, message, {
                    "resultType": "input_required", "requestState": "a state",
                    "inputRequests": {"who": {"method": method, "params": form}}},
                    self.streams)
                return None
            if params.get("requestState") != "a state":
                return "the state was lost"
            if self.samples:
                return json.dumps(answers["who"])
            return answers["who"].get("content", {}).get("name", answers["who"]["action"])
        self.begin_stream(handler)
        self.event(handler, {"jsonrpc": "2.0", "id": "q", "method": method,
                             "params": form})
        while "q" not in self.asked:
            if self.closed.wait(0.02):
                return None
        answer = self.asked.pop("q")
        if self.samples:
            return json.dumps(answer)
        return answer.get("content", {}).get("name", answer["action"])


class Authority:
    """The server of the tokens. Without an origin of its own it is at that of the MCP server."""

    def __init__(self):
        self.resource = None       # what the metadata of the MCP server says; None: the truth
        self.issuer = None         # what the metadata of this server says
        self.pkce = ["S256"]
        self.iss = None            # what answers to logins say; "": nothing
        self.promises_iss = True
        self.state = None          # what answers to logins say; None: the truth
        self.registers = True
        self.documents = False     # a client's id may be the address of a document
        self.methods = ["none", "client_secret_basic"]
        self.life_s = 3600
        self.rotates = True
        self.takes_access = True   # access tokens that it gave are taken
        self.secret = None         # of the client "ours"
        self.slow_s = 0            # before it answers a renewal
        self.denies = False
        self.url = None            # of the server that it protects
        self.other = None          # another origin for this server
        self.access, self.refresh, self.used = {}, {}, set()
        self.codes, self.clients, self.devices = {}, {}, {}
        self.revoked_families = set()
        self.renewals = self.logins = 0
        self.log = []
        self.lock = threading.Lock()

    def origin(self, server):
        return self.other or server.origin

    def lets_in(self, server, handler, headers, message):
        """Is the request's token one of ours? If not, it is refused here."""
        token = headers.get("authorization", "")[len("Bearer "):]
        with self.lock:
            known = self.access.get(token)
        place = f'resource_metadata="{server.origin}/.well-known/oauth-protected-resource/mcp"'
        if not self.takes_access or known is None or known["end"] < time.time():
            server.reply(handler, 401, {"error": "token"}, {
                "WWW-Authenticate": f'Basic realm="x", Bearer scope="read", {place}'})
            return False
        if server.scope and message.get("method") == "tools/call" \
                and server.scope not in known["scope"].split():
            server.reply(handler, 403, {}, {
                "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="read {server.scope}"'})
            return False
        return True

    def answer(self, server, handler, verb, body, headers):
        """True: the request was for this server."""
        place = urllib.parse.urlsplit(handler.path)
        form = dict(urllib.parse.parse_qsl(body.decode("utf-8", "replace"))) if verb == "POST" else {}
        query = dict(urllib.parse.parse_qsl(place.query))
        origin = self.origin(server)
        self.log.append((verb, place.path, form or query, headers))
        if place.path == "/.well-known/oauth-protected-resource/mcp":
            server.reply(handler, 200, {"resource": self.resource or self.url,
                                        "authorization_servers": [origin],
                                        "scopes_supported": ["read", "write"]})
        elif place.path == "/.well-known/oauth-authorization-server":
            server.reply(handler, 200, self.metadata(origin))
        elif place.path == "/register" and self.registers:
            client = {"client_id": secrets.token_hex(4), **json.loads(body)}
            self.clients[client["client_id"]] = client
            server.reply(handler, 201, client)
        elif place.path == "/authorize":
            self.authorize(server, handler, query, origin)
        elif place.path == "/token":
            self.token(server, handler, form, headers)
        elif place.path == "/device":
            self.devices["d"] = {"polls": 0, **form}
            server.reply(handler, 200, {"device_code": "d", "user_code": "ABCD-1234", "interval": 0,
                                        "expires_in": 60, "verification_uri": origin + "/enter"})
        elif place.path == "/revoke":
            self.refresh.pop(form["token"], None)
            self.access.pop(form["token"], None)
            server.reply(handler, 200)
        else:
            return False
        return True

    def metadata(self, origin):
        found = {"issuer": self.issuer or origin, "authorization_endpoint": origin + "/authorize",
                 "token_endpoint": origin + "/token", "revocation_endpoint": origin + "/revoke",
                 "device_authorization_endpoint": origin + "/device",
                 "code_challenge_methods_supported": self.pkce,
                 "token_endpoint_auth_methods_supported": self.methods,
                 "authorization_response_iss_parameter_supported": self.promises_iss}
        if self.registers:
            found["registration_endpoint"] = origin + "/register"
        if self.documents:
            found["client_id_metadata_document_supported"] = True
        return found

    def authorize(self, server, handler, query, origin):
        """The person says yes at once: the browser is sent back."""
        self.logins += 1
        code = secrets.token_hex(8)
        self.codes[code] = query
        back = {"code": code, "state": self.state or query["state"], "iss": origin}
        if self.iss is not None:
            back["iss"] = self.iss
        if self.iss == "":
            del back["iss"]
        if self.denies:
            back = {"error": "access_denied", "error_description": "not you",
                    "state": query["state"], "iss": origin}
        server.reply(handler, 302, {}, {
            "Location": query["redirect_uri"] + "?" + urllib.parse.urlencode(back)})

    def give(self, scope, resource, family=None, renews=True):
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.access[access] = {"end": time.time() + self.life_s, "scope": scope or "",
                               "resource": resource}
        given = {"access_token": access, "token_type": "Bearer", "expires_in": self.life_s,
                 "scope": scope or ""}
        if renews:
            self.refresh[refresh] = {"scope": scope, "resource": resource, "family": family or refresh}
            given["refresh_token"] = refresh
        return given

    def token(self, server, handler, form, headers):
        grant = form.get("grant_type")
        with self.lock:
            basic = headers.get("authorization", "")
            if basic.startswith("Basic "):
                client, secret = base64.b64decode(basic[6:]).decode().split(":")
                form = {**form, "client_id": urllib.parse.unquote(client),
                        "client_secret": urllib.parse.unquote(secret)}
            if form.get("resource") != self.url or (
                    self.secret and form.get("client_secret") != self.secret):
                found = None
            elif grant == "authorization_code":
                found = self.by_code(form)
            elif grant == "refresh_token":
                found = self.by_refresh(form)
            elif grant == "client_credentials" and self.secret:
                found = self.give(form.get("scope"), form["resource"], renews=False)
            elif grant and grant.endswith("device_code"):
                self.devices["d"]["polls"] += 1
                if self.devices["d"]["polls"] < 2:
                    server.reply(handler, 400, {"error": "authorization_pending"})
                    return
                found = self.give(self.devices["d"].get("scope"), form["resource"])
            else:
                found = None
        if grant == "refresh_token":
            time.sleep(self.slow_s)
        if found is None:
            server.reply(handler, 400, {"error": "invalid_grant"})
        else:
            server.reply(handler, 200, found)

    def by_code(self, form):
        query = self.codes.pop(form.get("code"), None)
        proof = base64.urlsafe_b64encode(
            hashlib.sha256(form.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if query is None or proof != query["code_challenge"] or query["code_challenge_method"] != "S256" \
                or form["redirect_uri"] != query["redirect_uri"] \
                or form["client_id"] != query["client_id"] or query["resource"] != form["resource"]:
            return None
        return self.give(query.get("scope"), form["resource"])

    def by_refresh(self, form):
        """A token that is used twice revokes all that came from its login."""
        self.renewals += 1
        token = form["refresh_token"]
        kept = self.refresh.get(token)
        if token in self.used or kept is None or kept["family"] in self.revoked_families:
            if kept is not None:
                self.revoked_families.add(kept["family"])
            return None
        if self.rotates:
            self.used.add(token)
        given = self.give(kept["scope"], kept["resource"], kept["family"])
        if not self.rotates:
            del given["refresh_token"]
        return given
