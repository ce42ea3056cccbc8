"""A service that speaks S3, for tests: objects in memory, signatures checked for real, faults on demand.

    with s3_server.Server() as server:
        server.environment          what a client needs: endpoint, region, keys
        server.objects              {"bucket/key": bytes}
        server.fault = function     called with each Request before it is answered; what it returns is done:
                                    None, or (status, code), "cut" (the connection closes without an answer),
                                    "lost" (done, but the connection closes before the answer), "half" (the
                                    answer breaks off in its middle)
        server.requests             what was asked: (method, path, query)
        server.knows_conditions     False: If-None-Match is ignored
"""
import datetime
import hashlib
import hmac
import http.server
import threading
import urllib.parse
import xml.sax.saxutils

KEY, SECRET, TOKEN, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEXAMPLE==", "eu-test-1"
SKEW_S = 900
PAGE = 1000
TIME = "%Y%m%dT%H%M%SZ"


class Refused(Exception):
    """An answer of S3 that is an error."""

    def __init__(self, status, code, message="", **more):
        super().__init__(code)
        self.status, self.code, self.message, self.more = status, code, message, more


def encode(text, safe=""):
    """URI encoding as the documentation of Signature Version 4 has it."""
    return urllib.parse.quote(text, safe="-_.~" + safe)


def signature(secret, request, scope, signed):
    """The signature of REQUEST, by the documentation, from what came over the wire."""
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed.split(";"))
    pairs = urllib.parse.parse_qsl(request.raw_query, keep_blank_values=True)
    query = "&".join(f"{encode(name)}={encode(value)}" for name, value in sorted(pairs))
    canonical = "\n".join([request.command, encode(urllib.parse.unquote(request.raw_path), "/"), query, headers,
                           signed, request.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def log_message(self, *_):
        pass

    def check(self, body):
        """Raise Refused as S3 would: who asks, when, and is the body what was signed?"""
        server = self.server.owner
        given = self.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            raise Refused(403, "AccessDenied", "no signature")
        parts = dict(part.strip().split("=", 1) for part in given.split(" ", 1)[1].split(","))
        key, scope = parts["Credential"].split("/", 1)
        when = datetime.datetime.strptime(self.headers["x-amz-date"], TIME).replace(tzinfo=datetime.timezone.utc)
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=server.ahead_s)
        if abs((now - when).total_seconds()) > SKEW_S:
            raise Refused(403, "RequestTimeTooSkewed", "The difference is too large.",
                          ServerTime=now.strftime("%Y-%m-%dT%H:%M:%SZ"), RequestTime=self.headers["x-amz-date"])
        if key != KEY:
            raise Refused(403, "InvalidAccessKeyId", "It does not exist in our records.", AWSAccessKeyId=key)
        day, region, service, end = scope.split("/")
        if region != REGION:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region '{region}' is wrong", Region=REGION)
        if (service, end) != ("s3", "aws4_request") or not self.headers["x-amz-date"].startswith(day):
            raise Refused(400, "AuthorizationHeaderMalformed", "scope")
        signed = parts["SignedHeaders"].split(";")
        if signed != sorted(signed) or "host" not in signed:
            raise Refused(403, "SignatureDoesNotMatch", "order of the signed headers")
        for name in self.headers:
            if name.lower().startswith("x-amz-") and name.lower() not in signed:
                raise Refused(403, "AccessDenied", f"{name} is not signed")
        if parts["Signature"] != signature(SECRET, self, scope, parts["SignedHeaders"]):
            raise Refused(403, "SignatureDoesNotMatch", "The signatures differ.", StringToSign="…")
        if server.token is not None and self.headers.get("x-amz-security-token") != server.token:
            raise Refused(400, "ExpiredToken" if server.token == "expired" else "InvalidToken", "token")
        payload = self.headers["x-amz-content-sha256"]
        if payload != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch", "The body differs.")

    def answer(self, status, body=b"", half=False, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:len(body) // 2] if half else body)
        if half:
            self.wfile.flush()
            self.connection.close()
            self.close_connection = True

    def error(self, refused):
        escape = xml.sax.saxutils.escape
        more = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in refused.more.items())
        body = ('<?xml version="1.0" encoding="UTF-8"?>\n'
                f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message>{more}"
                "<RequestId>1</RequestId></Error>").encode()
        headers = {"Content_Type": "application/xml"}
        if "Region" in refused.more:
            headers["x_amz_bucket_region"] = refused.more["Region"]
        self.answer(refused.status, body, **headers)

    def list_page(self, query):
        server = self.server.owner
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        if query.get("list-type") != "2":
            raise Refused(501, "NotImplemented", "ListObjectsV2 only")
        start = query.get("continuation-token", "")
        if start:
            if not start.startswith("to/+ken="):
                raise Refused(400, "InvalidArgument", "continuation-token")
            start = start[len("to/+ken="):]
        found = {}
        for name in server.objects:
            key = name[len(self.bucket) + 1:]
            if not name.startswith(self.bucket + "/") or not key.startswith(prefix):
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                found[prefix + rest.split(delimiter)[0] + delimiter] = "CommonPrefixes"
            else:
                found[key] = "Contents"
        keys = sorted(key for key in found if key > start)
        most = min(int(query.get("max-keys", PAGE)), server.page)
        shown, more = keys[:most], len(keys) > most
        escape = xml.sax.saxutils.escape
        body = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult '
                'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
                f"<Name>{self.bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>",
                f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"]
        if more:
            body.append(f"<NextContinuationToken>to/+ken={escape(shown[-1])}</NextContinuationToken>")
        for key in shown:
            if found[key] == "Contents":
                body.append(f"<Contents><Key>{escape(key)}</Key><ETag>&quot;1&quot;</ETag><Size>1</Size>"
                            "<Owner><ID>1</ID></Owner></Contents>\n")
            else:
                body.append(f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>")
        body.append("</ListBucketResult>")
        self.answer(200, "".join(body).encode(), Content_Type="application/xml")

    def put(self, name, body):
        server = self.server.owner
        with server.lock:
            if self.headers.get("If-None-Match") == "*" and server.knows_conditions and name in server.objects:
                raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions did not hold")
            server.objects[name] = body
            server.writers[name] = self.headers.get("x-amz-meta-writer")

    def get(self, name, half):
        server = self.server.owner
        if name not in server.objects:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        body, status, more = server.objects[name], 200, {}
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        if self.headers.get("If-Match", etag) != etag:
            raise Refused(412, "PreconditionFailed")
        if self.headers.get("Range", "").startswith("bytes="):
            begin = int(self.headers["Range"][6:].rstrip("-"))
            more["Content_Range"] = f"bytes {begin}-{len(body) - 1}/{len(body)}"
            body, status = body[begin:], 206
        if server.writers.get(name):
            more["x_amz_meta_writer"] = server.writers[name]
        if self.command == "HEAD":
            more["Content_Length"] = str(len(body))
        self.answer(status, body, half, ETag=etag, **more)

    def serve(self):
        server = self.server.owner
        self.raw_path, _, self.raw_query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = dict(urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True))
        self.bucket, _, key = urllib.parse.unquote(self.raw_path)[1:].partition("/")
        with server.lock:
            server.requests.append((self.command, self.raw_path, self.raw_query))
            fault = server.fault(self) if server.fault else None
        if fault == "cut":
            self.close_connection = True
            return
        try:
            if isinstance(fault, tuple):
                raise Refused(*fault)
            self.check(body)
            if self.bucket not in server.buckets:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist", BucketName=self.bucket)
            name = f"{self.bucket}/{key}"
            if self.command == "PUT":
                self.put(name, body)
            elif self.command == "DELETE":
                server.objects.pop(name, None)
            elif key:
                self.get(name, fault == "half")
                return
            else:
                self.list_page(query)
                return
            if fault == "lost":
                self.close_connection = True
                return
            self.answer(204 if self.command == "DELETE" else 200)
        except Refused as refused:
            self.error(refused)

    do_GET = do_HEAD = do_PUT = do_DELETE = serve


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class Server:
    def __init__(self, bucket="bench"):
        self.objects, self.writers, self.requests, self.buckets = {}, {}, [], {bucket}
        self.fault, self.token, self.knows_conditions = None, None, True
        self.ahead_s, self.page = 0, PAGE
        self.lock = threading.RLock()
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.owner = self
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
