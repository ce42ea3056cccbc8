/*
 * store_s3: a store in a bucket of a service that speaks S3, by libcurl (model/http.h). Objects
 * are created with `If-None-Match: *`, which the service has to honour (fleet_store_open tries it).
 * An answer that was lost, and the statuses by which a service asks for patience, are tried
 * again for about a minute.
 *
 * Requests are signed here (Signature Version 4, "Authenticating Requests: Using the
 * Authorization Header" of the S3 documentation), not by libcurl: 7.88.1 was seen to sign no
 * x-amz-content-sha256 and no session token, without which S3 refuses. The hash of the body is
 * always signed: that of a blob is its name. A key is in no message and in no argument.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "fleet/store_kind.h"
#include "fleet/store_xml.h"
#include "model/http.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#define S3_SCHEME         "s3://"
#define S3_DEFAULT_REGION "us-east-1"
#define S3_WRITER         "x-amz-meta-writer"

enum {
	/* Connections that are kept for the next call. */
	S3_IDLE_MAX = 32,
	/* One lost answer must not cost an hour of work: together about a minute. */
	S3_ATTEMPTS = 12,
	/* Before anything has run, a wrong address is told within a few seconds. */
	S3_ATTEMPTS_AT_OPENING = 5,
	S3_WAIT_FIRST_MS = 100,
	S3_WAIT_MAX_MS = 10000,
	S3_CONNECT_S = 10,
	S3_IDLE_S = 60,
	S3_BUCKET_MIN = 3,
	S3_BUCKET_MAX = 63,
	S3_TEXT = 256,      /* a short text of an answer */
	S3_LINE_MAX = 8192, /* a header; session tokens have 1 to 4 KiB */
	S3_URL_MAX = 16384,
	S3_WRITER_DIGITS = 32,
	S3_GONE_TRIES = 3, /* of an object that is refused as being there, and is not */
	S3_TIME = 17,      /* 20260329T140509Z */
	S3_DAY = 8,
	S3_PAGE = 1000,
	S3_PAGES_MAX = 100000,
};

struct store_s3 {
	char *where;           /* as a person wrote it */
	char *url;             /* of the bucket, with a slash at its end */
	char *host;            /* with the port, as the request names it */
	char *path;            /* of URL, with both slashes */
	char *bucket, *prefix; /* PREFIX ends with a slash, or is empty */
	char *region, *key_id, *secret, *token;
	_Atomic int attempts; /* few until the service has answered once */
	pthread_mutex_t lock; /* of what follows */
	struct http *idle[S3_IDLE_MAX];
	size_t idle_count;
};

/* One call: what is asked, and what was answered. */
struct s3_call {
	const char *method;
	const char *name;  /* of an object, or NULL: the bucket itself */
	const char *query; /* sorted and encoded, as it is signed; or NULL */
	const struct store_source *source; /* of a PUT */
	const char *writer;                /* of a PUT that creates: who has done it */
	/* The bytes of an object go here; NULL: to BODY. */
	bool (*take)(void *context, struct str piece, struct err *err);
	void *context;

	long status;
	struct buf body;
	uint64_t taken;  /* bytes that TAKE got, also from earlier attempts */
	uint64_t begin;  /* where this attempt begins */
	uint64_t length; /* of an object, said by HEAD */
	char etag[S3_TEXT], found_writer[S3_TEXT];
	/* Of an error. */
	char code[S3_TEXT], message[S3_TEXT], region[S3_TEXT], server_time[S3_TEXT];
	bool refused; /* TAKE said no */
};

static void call_fini(struct s3_call *call)
{
	buf_fini(&call->body);
}

/* Signing. */

struct s3_signing {
	char time[S3_TIME], payload[HASH_HEX + 1];
	struct buf headers; /* the signed ones, one a line */
	struct buf names;   /* their names, with semicolons */
	struct buf value;   /* of the header Authorization */
};

static void signing_init(struct s3_signing *signing)
{
	const time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm parts;

	*signing = (struct s3_signing){.time = ""};
	if (gmtime_r(&now, &parts) != NULL)
		(void)strftime(signing->time, sizeof(signing->time), "%Y%m%dT%H%M%SZ",
			       &parts);
	buf_init(&signing->headers, S3_LINE_MAX);
	buf_init(&signing->names, S3_LINE_MAX);
	buf_init(&signing->value, S3_LINE_MAX);
}

static void signing_fini(struct s3_signing *signing)
{
	explicit_bzero(signing->headers.data, signing->headers.size);
	explicit_bzero(signing->value.data, signing->value.size);
	buf_fini(&signing->headers);
	buf_fini(&signing->names);
	buf_fini(&signing->value);
}

/* Add a header that is signed; they come in the order of their names, in small letters. */
static void sign_header(struct s3_signing *signing, const char *name, const char *value)
{
	(void)buf_addf(&signing->headers, "%s:%s\n", name, value);
	(void)buf_addf(&signing->names, "%s%s", signing->names.size > 0 ? ";" : "", name);
}

static void sign_headers(const struct store_s3 *s3, const struct s3_call *call,
			 struct s3_signing *signing)
{
	sign_header(signing, "host", s3->host);
	if (call->writer != NULL)
		sign_header(signing, "if-none-match", "*");
	sign_header(signing, "x-amz-content-sha256", signing->payload);
	sign_header(signing, "x-amz-date", signing->time);
	if (call->writer != NULL)
		sign_header(signing, S3_WRITER, call->writer);
	if (s3->token != NULL)
		sign_header(signing, "x-amz-security-token", s3->token);
}

/* The key for this day, region and service, from the secret. */
static void signing_key(const struct store_s3 *s3, struct str day, uint8_t key[HASH_BYTES])
{
	const struct str steps[] = {day, str_of(s3->region), STR("s3"), STR("aws4_request")};
	struct str at;
	struct buf secret;

	buf_init(&secret, S3_LINE_MAX);
	(void)buf_addf(&secret, "AWS4%s", s3->secret);
	at = buf_str(&secret);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		hash_hmac(at, steps[i], key);
		at = (struct str){(const char *)key, HASH_BYTES};
	}
	explicit_bzero(secret.data, secret.size);
	buf_fini(&secret);
}

/* Fill SIGNING for CALL, whose object has the PATH. */
static void sign(const struct store_s3 *s3, const struct s3_call *call, const char *path,
		 struct s3_signing *signing)
{
	const struct str day = str_part(str_of(signing->time), 0, S3_DAY);
	char hex[HASH_HEX + 1];
	uint8_t key[HASH_BYTES], digest[HASH_BYTES];
	struct buf text;

	if (call->source != NULL && call->source->fd >= 0)
		(void)snprintf(signing->payload, sizeof(signing->payload), "%s",
			       call->source->hash);
	else
		hash_text(call->source != NULL ? call->source->text : STR(""),
			  signing->payload);
	sign_headers(s3, call, signing);
	buf_init(&text, S3_URL_MAX + S3_LINE_MAX);
	(void)buf_addf(&text, "%s\n%s\n%s\n%s\n%s\n%s", call->method, path,
		       call->query != NULL ? call->query : "", signing->headers.data,
		       signing->names.data, signing->payload);
	hash_text(buf_str(&text), hex);
	explicit_bzero(text.data, text.size);
	buf_clear(&text);
	(void)buf_addf(&text, "AWS4-HMAC-SHA256\n%s\n%.*s/%s/s3/aws4_request\n%s",
		       signing->time, S3_DAY, day.data, s3->region, hex);
	signing_key(s3, day, key);
	hash_hmac((struct str){(const char *)key, sizeof(key)}, buf_str(&text), digest);
	explicit_bzero(key, sizeof(key));
	(void)buf_addf(&signing->value,
		       "AWS4-HMAC-SHA256 Credential=%s/%.*s/%s/s3/aws4_request, "
		       "SignedHeaders=%s, Signature=",
		       s3->key_id, S3_DAY, day.data, s3->region, signing->names.data);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)buf_addf(&signing->value, "%02x", digest[i]);
	buf_fini(&text);
}

/* One exchange. */

static void keep_text(char text[S3_TEXT], struct str value)
{
	(void)snprintf(text, S3_TEXT, "%.*s",
		       value.size < S3_TEXT ? (int)value.size : S3_TEXT - 1, value.data);
}

static void on_header(void *context, struct str name, struct str value)
{
	struct s3_call *call = context;
	char number[32];

	if (str_is_caseless(name, "etag"))
		keep_text(call->etag, value);
	else if (str_is_caseless(name, S3_WRITER))
		keep_text(call->found_writer, value);
	else if (str_is_caseless(name, "x-amz-bucket-region"))
		keep_text(call->region, value);
	else if (str_is_caseless(name, "date") && call->server_time[0] == '\0')
		keep_text(call->server_time, value);
	else if (str_is_caseless(name, "content-length") && value.size < sizeof(number)) {
		memcpy(number, value.data, value.size);
		number[value.size] = '\0';
		call->length = strtoull(number, NULL, 10);
	}
}

static enum http_more on_bytes(void *context, const struct http_answer *answer,
			       struct str bytes, struct err *err)
{
	struct s3_call *call = context;

	if (call->take == NULL || (answer->status != 200 && answer->status != 206)) {
		/* An answer that is too long is no XML, and is told as that. */
		(void)buf_addstr(&call->body, bytes);
		return call->body.overflowed ? HTTP_ENOUGH : HTTP_MORE;
	}
	/* A service that does not know ranges sends all of it again. */
	if (answer->status == 200 && call->begin > 0)
		call->refused =
			!err_set(err, EPROTO,
				 "the connection broke, and the service does not send "
				 "the rest of an object");
	else
		call->refused = !call->take(call->context, bytes, err);
	if (call->refused)
		return HTTP_GIVE_UP;
	call->taken += bytes.size;
	return HTTP_MORE;
}

static bool error_leaf(void *context, const char *path, const char *text, struct err *err)
{
	struct s3_call *call = context;

	(void)err;
	if (strcmp(path, "Error/Code") == 0)
		keep_text(call->code, str_of(text));
	else if (strcmp(path, "Error/Message") == 0)
		keep_text(call->message, str_of(text));
	else if (strcmp(path, "Error/Region") == 0)
		keep_text(call->region, str_of(text));
	else if (strcmp(path, "Error/ServerTime") == 0)
		keep_text(call->server_time, str_of(text));
	return true;
}

static struct http *take_http(struct store_s3 *s3, struct err *err)
{
	struct http *http = NULL;

	(void)pthread_mutex_lock(&s3->lock);
	if (s3->idle_count > 0)
		http = s3->idle[--s3->idle_count];
	else if (!http_open(&http, err))
		http = NULL;
	(void)pthread_mutex_unlock(&s3->lock);
	return http;
}

static void give_http(struct store_s3 *s3, struct http *http)
{
	(void)pthread_mutex_lock(&s3->lock);
	if (s3->idle_count < S3_IDLE_MAX) {
		s3->idle[s3->idle_count++] = http;
		http = NULL;
	}
	(void)pthread_mutex_unlock(&s3->lock);
	http_close(http);
}

/* The lines of a request, which http.h wants as an array. */
struct s3_lines {
	struct buf text[8];
	const char *list[9];
	size_t count;
};

static void add_line(struct s3_lines *lines, const char *name, const char *value)
{
	struct buf *line = &lines->text[lines->count];

	buf_init(line, S3_LINE_MAX);
	(void)buf_addf(line, "%s: %s", name, value);
	lines->list[lines->count++] = line->data;
}

static void add_lines(const struct store_s3 *s3, const struct s3_call *call,
		      const struct s3_signing *signing, struct s3_lines *lines)
{
	char range[64];

	*lines = (struct s3_lines){.count = 0};
	add_line(lines, "Host", s3->host);
	add_line(lines, "x-amz-content-sha256", signing->payload);
	add_line(lines, "x-amz-date", signing->time);
	if (s3->token != NULL)
		add_line(lines, "x-amz-security-token", s3->token);
	if (call->source != NULL)
		add_line(lines, "Content-Type", "application/octet-stream");
	if (call->writer != NULL) {
		add_line(lines, "If-None-Match", "*");
		add_line(lines, S3_WRITER, call->writer);
	}
	/* The rest of an object whose begin is there, as long as it is the same object. */
	if (call->taken > 0) {
		(void)snprintf(range, sizeof(range), "bytes=%llu-",
			       (unsigned long long)call->taken);
		add_line(lines, "Range", range);
		if (call->etag[0] != '\0')
			add_line(lines, "If-Match", call->etag);
	}
}

static void drop_lines(struct s3_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		explicit_bzero(lines->text[i].data, lines->text[i].size);
		buf_fini(&lines->text[i]);
	}
}

/* Send CALL once. False: no answer came, or TAKE did not want it. */
static bool exchange(struct store_s3 *s3, struct s3_call *call,
		     struct http_answer *answer, struct err *err)
{
	struct http *http = take_http(s3, err);
	struct http_file file;
	struct s3_signing signing;
	struct s3_lines lines;
	struct buf path, url;
	bool sent;

	if (http == NULL)
		return false;
	buf_init(&path, S3_URL_MAX);
	buf_init(&url, S3_URL_MAX);
	(void)buf_addf(&path, "%s%s%s", s3->path, call->name != NULL ? s3->prefix : "",
		       call->name != NULL ? call->name : "");
	(void)buf_addf(&url, "%s%s%s%s%s", s3->url, call->name != NULL ? s3->prefix : "",
		       call->name != NULL ? call->name : "", call->query != NULL ? "?" : "",
		       call->query != NULL ? call->query : "");
	call->begin = call->taken;
	signing_init(&signing);
	sign(s3, call, path.data, &signing);
	add_lines(s3, call, &signing, &lines);
	struct http_request request = {
		.method = call->method,
		.url = url.data,
		.key = signing.value.data,
		.key_header = "Authorization: ",
		.headers = lines.list,
		.body = call->source != NULL && call->source->fd < 0 ? call->source->text
								     : STR(""),
		.stop_fd = -1,
		.connect_timeout_s = S3_CONNECT_S,
		.idle_timeout_s = S3_IDLE_S,
		.header = on_header,
	};

	if (request.body.data == NULL)
		request.body = STR("");
	if (call->source != NULL && call->source->fd >= 0) {
		file = (struct http_file){call->source->fd, call->source->size};
		request.file = &file;
	}
	sent = http_send(http, &request, answer, on_bytes, call, err);
	call->status = answer->status;
	drop_lines(&lines);
	signing_fini(&signing);
	buf_fini(&path);
	buf_fini(&url);
	if (sent)
		give_http(s3, http);
	else
		http_close(http);
	return sent;
}

/* Trying again. */

/* Does the service ask for patience? */
static bool is_busy(const struct s3_call *call)
{
	switch (call->status) {
	case 429:
	case 500:
	case 502:
	case 503:
	case 504:
		return true;
	case 409: /* two creations at the same time: one of them is asked again */
		return call->writer != NULL &&
		       (call->code[0] == '\0' ||
			strcmp(call->code, "ConditionalRequestConflict") == 0 ||
			strcmp(call->code, "OperationAborted") == 0);
	case 400:
		return strcmp(call->code, "RequestTimeout") == 0;
	default:
		return false;
	}
}

/* Was no whole answer given, for a reason that may be over soon? */
static bool is_lost(int code)
{
	return code == ECONNREFUSED || code == EHOSTUNREACH || code == ETIMEDOUT ||
	       code == EPROTO;
}

/* Wait before attempt N + 1; the waits of many are spread. */
static void wait_for(int n, double retry_after_s)
{
	int64_t wait = S3_WAIT_FIRST_MS;
	uint32_t random = 0;

	for (int i = 1; i < n && wait < S3_WAIT_MAX_MS; i++)
		wait *= 2;
	if (retry_after_s * 1000 > (double)wait)
		wait = retry_after_s * 1000 < S3_WAIT_MAX_MS
			       ? (int64_t)(retry_after_s * 1000)
			       : S3_WAIT_MAX_MS;
	if (wait > S3_WAIT_MAX_MS)
		wait = S3_WAIT_MAX_MS;
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	wait = wait / 2 + (int64_t)(random % (uint32_t)(wait + 1)) / 2;
	(void)poll(NULL, 0, (int)wait);
}

/*
 * Send CALL until it is answered, at most so often. True: there is a status, which says what
 * has become of it.
 */
static bool perform(struct store_s3 *s3, struct s3_call *call, struct err *err)
{
	for (int n = 1;; n++) {
		struct http_answer answer = {.retry_after_s = -1};
		struct err why = {.code = 0};
		bool answered;

		buf_clear(&call->body);
		call->code[0] = call->message[0] = call->server_time[0] = '\0';
		answered = exchange(s3, call, &answer, &why);
		if (answered && call->status < 500)
			s3->attempts = S3_ATTEMPTS;
		if (answered && call->status >= 300)
			(void)store_xml_read(buf_str(&call->body), error_leaf, call, NULL);
		if (answered && (!is_busy(call) || n == s3->attempts))
			return true;
		if (!answered && (call->refused || !is_lost(why.code) || n == s3->attempts))
			return call->refused ? err_set(err, why.code, "%s", why.text)
					     : err_set(err, why.code,
						       "%s: no answer from %s: %s",
						       s3->where, s3->host, why.text);
		wait_for(n, answer.retry_after_s);
	}
}

/* Sentences. */

/* The meaning of a code of S3, and what to do. */
static const struct {
	const char *code;
	int error;
	const char *sentence;
} s3_codes[] = {
	{"NoSuchBucket", ENOENT,
	 "there is no such bucket; is its name right? It has to be made before (aws s3 mb)"},
	{"InvalidAccessKeyId", EACCES,
	 "the service does not know the key in AWS_ACCESS_KEY_ID"},
	{"SignatureDoesNotMatch", EACCES,
	 "AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID"},
	{"ExpiredToken", EACCES,
	 "AWS_SESSION_TOKEN has expired; get new keys and a new token, then do the same again"},
	{"TokenRefreshRequired", EACCES,
	 "AWS_SESSION_TOKEN has expired; get new keys and a new token, then do the same again"},
	{"InvalidToken", EACCES,
	 "AWS_SESSION_TOKEN does not belong to the keys; set all three of them together"},
	{"AccessDenied", EACCES,
	 "this key may not do that; it needs s3:GetObject, s3:PutObject and s3:DeleteObject for "
	 "the objects, and s3:ListBucket for the bucket"},
	{"AccountProblem", EACCES, "the account is not in order"},
	{"NotImplemented", ENOTSUP,
	 "the service does not know what a store needs (If-None-Match); take one that honours "
	 "conditional writes"},
	{"QuotaExceeded", ENOSPC, "the quota is used up; nothing was replaced"},
	{"XMinioStorageFull", ENOSPC, "its disk is full; nothing was replaced"},
	{"EntityTooLarge", EFBIG, "the service takes no object of this size"},
	{"XAmzContentSHA256Mismatch", EAGAIN,
	 "the bytes have changed while they were sent; do it again when nobody writes the file"},
	{"BadDigest", EAGAIN,
	 "the bytes have changed while they were sent; do it again when nobody writes the file"},
	{"RequestTimeTooSkewed", EINVAL, NULL},
	{"AuthorizationHeaderMalformed", EINVAL, NULL},
	{"PermanentRedirect", EINVAL, NULL},
	{"IllegalLocationConstraintException", EINVAL, NULL},
};

/* The code that a status means where nothing else was said. */
static const char *code_of_status(const struct s3_call *call)
{
	if (call->code[0] != '\0')
		return call->code;
	switch (call->status) {
	case 301:
	case 307:
		return "PermanentRedirect";
	case 401:
	case 403:
		return "AccessDenied";
	case 501:
		return "NotImplemented";
	case 507:
		return "QuotaExceeded";
	default:
		/* HEAD is answered without a body: another region is seen by its header. */
		return call->status == 400 && call->region[0] != '\0' ? "PermanentRedirect"
								      : "";
	}
}

static bool say_clock(const struct store_s3 *s3, const struct s3_call *call,
		      const char *doing, struct err *err)
{
	const time_t now = (time_t)(clock_wall_ms() / 1000);
	char here[S3_TIME + 8] = "";
	struct tm parts;

	if (gmtime_r(&now, &parts) != NULL)
		(void)strftime(here, sizeof(here), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return err_set(err, EINVAL,
		       "%s: %s: the clocks differ too much: here it is %s, for the service "
		       "%s; set the clock of this machine (timedatectl set-ntp true)",
		       s3->where, doing, here,
		       call->server_time[0] != '\0' ? call->server_time : "another time");
}

/* Always false: what the status of CALL means. DOING: "writing jobs/J/job.json". */
static bool say_status(const struct store_s3 *s3, const struct s3_call *call,
		       const char *doing, struct err *err)
{
	const char *code = code_of_status(call);

	for (size_t i = 0; i < sizeof(s3_codes) / sizeof(s3_codes[0]); i++) {
		if (strcmp(code, s3_codes[i].code) != 0)
			continue;
		if (strcmp(code, "RequestTimeTooSkewed") == 0)
			return say_clock(s3, call, doing, err);
		if (s3_codes[i].sentence != NULL)
			return err_set(err, s3_codes[i].error, "%s: %s: %s (%s)",
				       s3->where, doing, s3_codes[i].sentence, code);
		return err_set(err, s3_codes[i].error,
			       "%s: %s: the bucket is not in the region %s; set AWS_REGION to "
			       "%s",
			       s3->where, doing, s3->region,
			       call->region[0] != '\0' ? call->region
						       : "that of the bucket");
	}
	if (is_busy(call))
		return err_set(err, EBUSY,
			       "%s: %s: the service was busy %d times (%ld %s); do the same "
			       "again later",
			       s3->where, doing, s3->attempts, call->status, code);
	return err_set(err, EIO, "%s: %s: the service at %s answered %ld %s%s%s",
		       s3->where, doing, s3->host, call->status, code,
		       call->message[0] != '\0' ? ": " : "", call->message);
}

static bool say(const struct store_s3 *s3, const struct s3_call *call, const char *verb,
		const char *name, struct err *err)
{
	char doing[FLEET_NAME_BYTES + 16];

	(void)snprintf(doing, sizeof(doing), "%s %s", verb, name);
	return say_status(s3, call, doing, err);
}

/* Objects. */

static bool s3_head(struct store_s3 *s3, const char *name, struct s3_call *call,
		    struct err *err)
{
	*call = (struct s3_call){.method = "HEAD", .name = name};
	buf_init(&call->body, STORE_XML_MAX);
	return perform(s3, call, err);
}

/*
 * The service says that NAME is there. When the answer to an earlier attempt was lost (libcurl
 * makes attempts of its own, when a connection that it uses again breaks), it may be the
 * object that WRITER has written. *GONE: somebody has removed it since, so that it may be written.
 */
static enum fleet_put look_whose(struct store_s3 *s3, const char *name,
				 const char *writer, bool *gone, struct err *err)
{
	struct s3_call call;
	enum fleet_put put = FLEET_PUT_FAILED;

	if (s3_head(s3, name, &call, err)) {
		*gone = call.status == 404;
		if (call.status == 200)
			put = strcmp(call.found_writer, writer) == 0 ? FLEET_PUT_DONE
								     : FLEET_PUT_THERE;
		else if (*gone)
			(void)err_set(err, EAGAIN,
				      "%s: %s is refused as being there and is not: somebody "
				      "removes it, or the service is not consistent; do this again",
				      s3->where, name);
		else
			(void)say(s3, &call, "looking for", name, err);
	}
	call_fini(&call);
	return put;
}

/* Put once, as the object of WRITER. *GONE: it was there, and is no more. */
static enum fleet_put put_once(struct store_s3 *s3, const char *name,
			       const struct store_source *source, enum fleet_put_how how,
			       const char *writer, bool *gone, struct err *err)
{
	struct s3_call call = {.method = "PUT", .name = name, .source = source};
	enum fleet_put put = FLEET_PUT_FAILED;

	if (how == FLEET_IF_NEW)
		call.writer = writer;
	buf_init(&call.body, STORE_XML_MAX);
	if (perform(s3, &call, err)) {
		if (call.status == 200 || call.status == 201 || call.status == 204)
			put = FLEET_PUT_DONE;
		else if (call.status == 412 && how == FLEET_IF_NEW)
			put = look_whose(s3, name, writer, gone, err);
		else
			(void)say(s3, &call, "writing", name, err);
	}
	call_fini(&call);
	return put;
}

static enum fleet_put s3_put(void *self, const char *name, const struct store_source *source,
			     enum fleet_put_how how, struct err *err)
{
	struct store_s3 *s3 = self;
	char writer[S3_WRITER_DIGITS + 1];
	enum fleet_put put = FLEET_PUT_FAILED;
	bool gone = true;

	if (!text_random_hex(writer, S3_WRITER_DIGITS)) {
		(void)err_set(err, errno, "%s: no random bytes: %s", s3->where,
			      strerror(errno));
		return FLEET_PUT_FAILED;
	}
	for (int tries = 0; gone && tries < S3_GONE_TRIES; tries++) {
		gone = false;
		put = put_once(s3, name, source, how, writer, &gone, err);
	}
	return put;
}

static bool s3_has(void *self, const char *name, uint64_t size, bool *has, struct err *err)
{
	struct store_s3 *s3 = self;
	struct s3_call call;
	bool ok = s3_head(s3, name, &call, err);

	*has = ok && call.status == 200 && call.length == size;
	ok = ok && (call.status == 200 || call.status == 404 ||
		    say(s3, &call, "looking for", name, err));
	call_fini(&call);
	return ok;
}

static bool s3_read(void *self, const char *name,
		    bool (*take)(void *context, struct str piece, struct err *err),
		    void *context, struct err *err)
{
	struct store_s3 *s3 = self;
	struct s3_call call = {.method = "GET", .name = name, .take = take, .context = context};
	bool read;

	buf_init(&call.body, STORE_XML_MAX);
	read = perform(s3, &call, err);
	if (read && call.status == 404 && strcmp(call.code, "NoSuchBucket") != 0)
		read = err_set(err, ENOENT, "%s does not have it", s3->where);
	else if (read && call.status == 412)
		read = err_set(err, EAGAIN,
			       "%s: %s was replaced while it was read; read it again",
			       s3->where, name);
	else if (read && call.status != 200 && call.status != 206)
		read = say(s3, &call, "reading", name, err);
	call_fini(&call);
	return read;
}

static bool s3_remove(void *self, const char *name, struct err *err)
{
	struct store_s3 *s3 = self;
	struct s3_call call = {.method = "DELETE", .name = name};
	bool removed;

	buf_init(&call.body, STORE_XML_MAX);
	removed = perform(s3, &call, err);
	if (removed && call.status != 200 && call.status != 204 &&
	    (call.status != 404 || strcmp(call.code, "NoSuchBucket") == 0))
		removed = say(s3, &call, "removing", name, err);
	call_fini(&call);
	return removed;
}

/* Lists. */

struct s3_page {
	const char *folder; /* with the prefix of the store */
	bool (*take)(void *context, const char *name);
	void *context;
	bool more, ended;
	struct buf next; /* the token of the next page */
};

/* Tell the part of KEY below the folder; keys that no store has are left out. */
static bool tell_key(struct s3_page *page, const char *key)
{
	const size_t above = strlen(page->folder);
	char name[FLEET_NAME_BYTES];
	size_t size;

	if (strncmp(key, page->folder, above) != 0 || strlen(key) >= sizeof(name))
		return true;
	(void)snprintf(name, sizeof(name), "%s", key + above);
	size = strlen(name);
	if (size > 0 && name[size - 1] == '/')
		name[size - 1] = '\0';
	if (strchr(name, '/') != NULL || !fleet_store_name_check(name, NULL))
		return true;
	return page->take(page->context, key + above);
}

static bool page_leaf(void *context, const char *path, const char *text, struct err *err)
{
	struct s3_page *page = context;

	if (strcmp(path, "ListBucketResult/Contents/Key") == 0 ||
	    strcmp(path, "ListBucketResult/CommonPrefixes/Prefix") == 0)
		page->ended = !tell_key(page, text);
	else if (strcmp(path, "ListBucketResult/IsTruncated") == 0)
		page->more = strcmp(text, "true") == 0;
	else if (strcmp(path, "ListBucketResult/NextContinuationToken") == 0)
		(void)buf_adds(&page->next, text);
	return !page->ended || err_set(err, ECANCELED, "ended");
}

/* Append "NAME=VALUE", encoded as the signature wants it (RFC 3986, unreserved ones stay). */
static void add_parameter(struct buf *query, const char *name, const char *value)
{
	(void)buf_addf(query, "%s%s=", query->size > 0 ? "&" : "", name);
	for (const char *at = value; *at != '\0'; at++) {
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			   "0123456789-_.~",
			   *at) != NULL)
			(void)buf_addc(query, *at);
		else
			(void)buf_addf(query, "%%%02X", (unsigned char)*at);
	}
}

/* One page of a list. */
static bool list_page(struct store_s3 *s3, struct s3_page *page, struct err *err)
{
	struct s3_call call = {.method = "GET"};
	struct err why = {.code = 0};
	struct buf query;
	char count[16];
	bool listed;

	(void)snprintf(count, sizeof(count), "%d", S3_PAGE);
	buf_init(&query, S3_URL_MAX);
	/* In the order of their names, as they are signed. */
	if (page->next.size > 0)
		add_parameter(&query, "continuation-token", page->next.data);
	add_parameter(&query, "delimiter", "/");
	add_parameter(&query, "list-type", "2");
	add_parameter(&query, "max-keys", count);
	add_parameter(&query, "prefix", page->folder);
	call.query = query.data;
	buf_init(&call.body, STORE_XML_MAX);
	page->more = false;
	buf_clear(&page->next);
	listed = perform(s3, &call, err);
	if (listed && call.status != 200)
		listed = say(s3, &call, "listing", page->folder, err);
	else if (listed && !store_xml_read(buf_str(&call.body), page_leaf, page, &why) &&
		 !page->ended)
		listed = err_set(err, why.code, "%s: listing %s: %s", s3->where,
				 page->folder, why.text);
	if (listed && page->more && page->next.size == 0)
		listed = err_set(err, EBADMSG,
				 "%s: listing %s: there is more, but the service does not say "
				 "where; it has to know ListObjectsV2",
				 s3->where, page->folder);
	call_fini(&call);
	buf_fini(&query);
	return listed;
}

static bool s3_list(void *self, const char *folder,
		    bool (*take)(void *context, const char *name), void *context,
		    struct err *err)
{
	struct store_s3 *s3 = self;
	char full[2 * FLEET_NAME_BYTES];
	struct s3_page page = {.folder = full, .take = take, .context = context};
	bool listed;
	int pages = 0;

	(void)snprintf(full, sizeof(full), "%s%s", s3->prefix, folder);
	buf_init(&page.next, STORE_XML_TEXT_MAX);
	do {
		listed = list_page(s3, &page, err);
	} while (listed && page.more && !page.ended && ++pages < S3_PAGES_MAX);
	buf_fini(&page.next);
	return listed;
}

/* Opening. */

/* The value of the first of NAMES that is set, in the environment; or NULL. */
static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	if ((value == NULL || value[0] == '\0') && otherwise != NULL)
		value = getenv(otherwise);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Copy a key out of the environment; it becomes part of a header. */
static bool take_key(const char *where, const char *name, bool needed, char **key,
		     struct err *err)
{
	const char *value = variable(name, NULL);

	if (value == NULL)
		return !needed ||
		       err_set(err, EACCES,
			       "%s: %s is not set; a store in a bucket takes its keys from "
			       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
			       where, name);
	for (const char *at = value; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~')
			return err_set(err, EINVAL,
				       "%s: %s holds a character that no key has, at byte %zu",
				       where, name, (size_t)(at - value) + 1);
	if (strlen(value) > S3_LINE_MAX / 2)
		return err_set(err, EINVAL, "%s: %s is longer than a key can be", where,
			       name);
	*key = memory_copy(value);
	return true;
}

static bool is_made_of(const char *text, const char *characters, size_t least, size_t most)
{
	const size_t size = strlen(text);

	return size >= least && size <= most && strspn(text, characters) == size;
}

/* Bucket and prefix of WHERE. */
static bool read_where(struct store_s3 *s3, const char *where, struct err *err)
{
	struct str rest = str_of(where + strlen(S3_SCHEME));
	const size_t slash = str_find(rest, STR("/"), 0);
	struct str prefix = {0};
	struct buf text;

	if (slash != (size_t)-1) {
		prefix = str_part(rest, slash + 1, rest.size);
		rest.size = slash;
	}
	while (str_ends(prefix, STR("/")))
		prefix.size--;
	s3->bucket = memory_copy_str(rest);
	buf_init(&text, FLEET_NAME_BYTES);
	(void)buf_addstr(&text, prefix);
	s3->prefix = buf_take(&text);
	if (!is_made_of(s3->bucket,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			S3_BUCKET_MIN, S3_BUCKET_MAX) ||
	    s3->bucket[0] == '.')
		return err_set(err, EINVAL,
			       "%s: the name of a bucket has %d to %d letters, digits, dots and "
			       "'-'; write s3://BUCKET/PREFIX",
			       where, S3_BUCKET_MIN, S3_BUCKET_MAX);
	if (prefix.size == 0)
		return true;
	if (prefix.size >= FLEET_NAME_BYTES - 1 || !fleet_store_name_check(s3->prefix, err))
		return err_while(err, "%s", where);
	buf_init(&text, FLEET_NAME_BYTES);
	(void)buf_addf(&text, "%s/", s3->prefix);
	free(s3->prefix);
	s3->prefix = buf_take(&text);
	return true;
}

/* The port that a scheme means is not named in the header Host. */
static void drop_port(char *host, bool is_https)
{
	char *colon = strrchr(host, ':');

	if (colon != NULL && strcmp(colon, is_https ? ":443" : ":80") == 0)
		*colon = '\0';
}

/* Where the bucket is: behind a service's own address, or at AWS. */
static bool find_endpoint(struct store_s3 *s3, struct err *err)
{
	const char *given = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
	/* A certificate for *.s3… does not hold for a name with dots. */
	const bool is_host = given == NULL && strchr(s3->bucket, '.') == NULL;
	struct buf base, url;
	bool found;

	buf_init(&base, S3_URL_MAX);
	buf_init(&url, S3_URL_MAX);
	(void)buf_addf(&base, "https://%s%ss3.%s.amazonaws.com%s",
		       is_host ? s3->bucket : "", is_host ? "." : "", s3->region,
		       strncmp(s3->region, "cn-", 3) == 0 ? ".cn" : "");
	found = http_url_make(given, base.data, "/", &s3->url, &s3->host, err) ||
		err_while(err, "AWS_ENDPOINT_URL");
	if (found) {
		(void)buf_addf(&url, "%s%s%s", s3->url, is_host ? "" : s3->bucket,
			       is_host ? "" : "/");
		free(s3->url);
		s3->url = buf_take(&url);
		s3->path = memory_copy(strchr(strstr(s3->url, "://") + 3, '/'));
		drop_port(s3->host, strncmp(s3->url, "https:", 6) == 0);
	}
	buf_fini(&base);
	buf_fini(&url);
	return found;
}

static bool find_region(struct store_s3 *s3, struct err *err)
{
	const char *region = variable("AWS_REGION", "AWS_DEFAULT_REGION");

	if (region == NULL)
		region = S3_DEFAULT_REGION;
	if (!is_made_of(region, "abcdefghijklmnopqrstuvwxyz0123456789-", 1, S3_BUCKET_MAX))
		return err_set(err, EINVAL,
			       "%s: AWS_REGION is no region, as us-east-1 is one",
			       s3->where);
	s3->region = memory_copy(region);
	return true;
}

static void wipe(char *key)
{
	if (key != NULL)
		explicit_bzero(key, strlen(key));
	free(key);
}

static void s3_close(void *self)
{
	struct store_s3 *s3 = self;

	while (s3->idle_count > 0)
		http_close(s3->idle[--s3->idle_count]);
	(void)pthread_mutex_destroy(&s3->lock);
	wipe(s3->key_id);
	wipe(s3->secret);
	wipe(s3->token);
	free(s3->where);
	free(s3->url);
	free(s3->host);
	free(s3->path);
	free(s3->bucket);
	free(s3->prefix);
	free(s3->region);
	free(s3);
}

static bool s3_open(const char *where, const char *shown, bool writes, void **self,
		    struct err *err)
{
	struct store_s3 *s3 = memory_alloc(sizeof(*s3));
	struct http *http;

	(void)shown;
	(void)writes;
	(void)pthread_mutex_init(&s3->lock, NULL);
	s3->where = memory_copy(where);
	s3->attempts = S3_ATTEMPTS_AT_OPENING;
	if (!read_where(s3, where, err) || !find_region(s3, err) || !find_endpoint(s3, err) ||
	    !take_key(where, "AWS_ACCESS_KEY_ID", true, &s3->key_id, err) ||
	    !take_key(where, "AWS_SECRET_ACCESS_KEY", true, &s3->secret, err) ||
	    !take_key(where, "AWS_SESSION_TOKEN", false, &s3->token, err))
		goto failed;
	/* Without libcurl nothing is begun. */
	http = take_http(s3, err);
	if (http == NULL) {
		(void)err_while(err, "%s", where);
		goto failed;
	}
	give_http(s3, http);
	*self = s3;
	return true;
failed:
	s3_close(s3);
	return false;
}

const struct store_kind store_s3_kind = {
	.open = s3_open,
	.put = s3_put,
	.has = s3_has,
	.read = s3_read,
	.list = s3_list,
	.remove = s3_remove,
	.close = s3_close,
};
