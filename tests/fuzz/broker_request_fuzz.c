/*
 * broker_request_fuzz: any bytes as a request to the broker. A second reader, which takes
 * everything that some server takes, reads the head that goes to the service: the secret
 * stands there once or not at all, the host is the credential's, no other key is in it,
 * where `allow` bounds the paths, the path stays within it however often it is decoded, as
 * does one that goes without a key within `keyless`, and the key of a forge goes with paths
 * of its repository only.
 */
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "broker/request.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "the-secret-of-this-cell"
/* git:SECRET */
#define SECRET_BASE64 "Z2l0OnRoZS1zZWNyZXQtb2YtdGhpcy1jZWxs"

static const char *const entries[] = {
	"{\"from\":[\"env:A\"],\"hosts\":[\"a.example\"],\"place\":\"header: "
	"x-api-key\",\"keyless\":[\"GET /list/**\"]}",
	"{\"from\":[\"env:A\"],\"hosts\":[\"b.example:8443\"],\"place\":[\"bearer\",\"query: "
	"k\"],\"websocket\":true,\"anonymous\":true}",
	"{\"from\":[\"env:A\"],\"hosts\":[\"c.example\"],\"place\":\"basic:git\",\"allow\":[\"* "
	"/items/**\"]}",
	"{\"from\":[\"env:A\"],\"hosts\":[\"d.example\"],\"place\":[\"bearer\",\"basic:"
	"git\"],\"repositories\":\"github\"}",
	"{\"from\":[\"env:A\"],\"hosts\":[\"e.example\"],\"place\":\"header: "
	"Private-Token\",\"repositories\":\"gitlab\",\"allow\":[\"push\",\"* "
	"/api/v4/projects/*/**\"]}",
};
static const char *const names[] = {"a", "b", "c", "d", "e"};
static const char *const hosts[] = {"a.example", "b.example:8443", "c.example",
				    "d.example", "e.example"};
static const char *const phantoms[] = {"phantom-a", "phantom-b", "phantom-c", "phantom-d",
				       "phantom-e"};
static const char *const repositories[] = {"d.example/me/own", "e.example/me/own", NULL};
enum { KEYS = 5 };

/* Where the key goes, by the credential; NULL: anywhere. */
static const char *const *const places[KEYS] = {
	[2] = (const char *const[]){"/items", NULL},
	[3] = (const char *const[]){"/me/own", "/me/own.git", "/api/v3/repos/me/own",
				    "/api/v3/repos/me/own.git", NULL},
	[4] = (const char *const[]){"/me/own", "/me/own.git", "/api/v4/projects/me/own",
				    "/api/v4/projects/me/own.git", NULL},
};

/* Where a request goes that has no key for the first credential. */
static const char *const keyless[] = {"/list", NULL};

static size_t count_of(struct str text, struct str part)
{
	size_t count = 0;

	for (size_t at = 0; (at = str_find(text, part, at)) != (size_t)-1; at++)
		count++;
	return count;
}

/* A lenient reader of heads: lines end with LF, names have any blanks around them. */

static bool lenient_named(struct str name, const char *wanted)
{
	name = str_trim(name);
	for (size_t i = 0; i < name.size; i++) {
		char c = name.data[i] == '_' ? '-' : name.data[i];

		if (wanted[i] == '\0' || tolower((unsigned char)c) != wanted[i])
			return false;
	}
	return wanted[name.size] == '\0';
}

/* Is VALUE one that may go to the service under the credential AT? */
static bool is_ours(struct str value, size_t at)
{
	return value.size == 0 || str_find(value, STR(SECRET), 0) != (size_t)-1 ||
	       str_find(value, STR(SECRET_BASE64), 0) != (size_t)-1 ||
	       str_find(value, str_of(phantoms[at]), 0) != (size_t)-1;
}

static void read_fields(struct str rest, const struct request *request, size_t at)
{
	static const char *const keys[] = {"authorization",  "proxy-authorization",
					   "x-api-key",      "api-key",
					   "x-goog-api-key", "x-auth-token",
					   "private-token",  "job-token",
					   "deploy-token",   "cookie"};
	size_t named = 0, lengths = 0, codings = 0, encodings = 0;
	struct str line;

	while (str_next_line(&rest, &line) && str_trim(line).size > 0) {
		size_t colon = str_find(line, STR(":"), 0);
		struct str name = str_part(line, 0, colon);
		struct str value = str_trim(str_part(line, colon + 1, line.size));

		assert(colon != (size_t)-1);
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			assert(!lenient_named(name, keys[i]) || is_ours(value, at));
		named += lenient_named(name, "host");
		assert(!lenient_named(name, "host") || str_is(value, hosts[at]));
		lengths += str_is_caseless(name, "content-length");
		codings += str_is_caseless(name, "transfer-encoding");
		encodings += lenient_named(name, "accept-encoding");
		assert(!lenient_named(name, "range"));
		assert(!lenient_named(name, "x-http-method-override"));
		assert(request->upgrades || !lenient_named(name, "upgrade"));
		assert(!lenient_named(name, "sec-websocket-extensions") ||
		       !request->upgrades);
	}
	assert(named == 1 && encodings == 1);
	assert(lengths == (request->head.body == BODY_COUNTED));
	assert(codings == (request->head.body == BODY_CHUNKED));
}

/* Is PATH one of ALLOWED, or below it? The case of letters does not count. */
static bool is_below(struct str path, const char *const *allowed)
{
	for (; *allowed != NULL; allowed++) {
		const size_t size = strlen(*allowed);

		if (path.size >= size && strncasecmp(path.data, *allowed, size) == 0 &&
		    (path.size == size || path.data[size] == '/' || path.data[size] == ';'))
			return true;
	}
	return false;
}

/* A server that decodes, drops parameters and empty parts, and then follows the dots. */
static void stays_within(struct str path, int decodings, const char *const *allowed)
{
	struct buf once, walked;

	buf_init(&once, REQUEST_HEAD_MAX);
	buf_init(&walked, REQUEST_HEAD_MAX);
	for (size_t i = 0; i < path.size; i++) {
		int high = i + 2 < path.size ? text_hex_digit(path.data[i + 1]) : -1;
		int low = i + 2 < path.size ? text_hex_digit(path.data[i + 2]) : -1;

		if (path.data[i] == '%' && high >= 0 && low >= 0) {
			(void)buf_addc(&once, (char)(high << 4 | low));
			i += 2;
		} else {
			(void)buf_addc(&once, path.data[i]);
		}
	}
	for (size_t i = 0; i < once.size; i++)
		once.data[i] = once.data[i] == '\\' ? '/' : once.data[i];
	struct str rest = buf_str(&once);
	while (rest.size > 0) {
		size_t end = str_find(rest, STR("/"), 0);
		struct str part = str_part(rest, 0, end);

		rest = end == (size_t)-1 ? (struct str){0}
					 : str_part(rest, end + 1, rest.size);
		part = str_part(part, 0, str_find(part, STR(";"), 0));
		if (str_is(part, "..")) {
			while (walked.size > 0 && walked.data[walked.size - 1] != '/')
				buf_truncate(&walked, walked.size - 1);
			if (walked.size > 0)
				buf_truncate(&walked, walked.size - 1);
		} else if (part.size > 0 && !str_is(part, ".")) {
			(void)buf_addc(&walked, '/');
			(void)buf_addstr(&walked, part);
		}
	}
	assert(is_below(buf_str(&walked), allowed));
	if (decodings > 1)
		stays_within(buf_str(&once), decodings - 1, allowed);
	buf_fini(&walked);
	buf_fini(&once);
}

static void check_upstream(const struct request *request, struct str out)
{
	size_t at = 0, secrets;
	struct str line, rest = out;

	while (strcmp(request->key->credential->name, names[at]) != 0)
		at++;
	secrets = count_of(out, STR(SECRET)) + count_of(out, STR(SECRET_BASE64));
	assert(secrets == (request->verdict == REQUEST_KEYED));
	assert(str_find(out, STR("\n\r\n"), 0) + 3 == out.size);
	assert(str_next_line(&rest, &line));
	size_t from = str_find(line, STR(" "), 0) + 1;
	struct str target = str_part(line, from, str_find(line, STR(" "), from) - from);
	assert(str_starts(target, STR("/")));
	assert(str_is(str_part(line, from + target.size, line.size), " HTTP/1.1\r"));
	/* A forge's other paths go without the key. */
	if (places[at] != NULL && (at == 2 || request->verdict == REQUEST_KEYED))
		stays_within(str_part(target, 0, str_find(target, STR("?"), 0)), 2,
			     places[at]);
	if (at == 0 && request->verdict == REQUEST_BARE)
		stays_within(str_part(target, 0, str_find(target, STR("?"), 0)), 2, keyless);
	read_fields(rest, request, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct credential credentials[KEYS];
	static struct request_key keys[KEYS];
	struct str bytes = {(const char *)data, size};
	struct request request, again;
	struct err err = {0};
	struct buf out;

	for (size_t i = 0; i < KEYS && keys[i].credential == NULL; i++) {
		auto_value struct value *entry = NULL;

		if (!value_parse(str_of(entries[i]), 0, &entry, NULL) ||
		    !credential_read(names[i], entry, &credentials[i], NULL))
			return 0;
		keys[i] = (struct request_key){&credentials[i], phantoms[i], repositories};
	}
	/* An input that has the secret tells nothing. */
	if (str_find(bytes, STR(SECRET), 0) != (size_t)-1 ||
	    str_find(bytes, STR(SECRET_BASE64), 0) != (size_t)-1)
		return 0;
	const struct request_door door = {.keys = keys, .count = KEYS, .port = 4000};
	if (request_read(bytes, &door, &request, &err) != REQUEST_READY)
		return 0;
	assert(request.head.size <= size);
	assert(request_read(str_part(bytes, 0, request.head.size), &door, &again, NULL) ==
		       REQUEST_READY &&
	       again.verdict == request.verdict);
	assert(request_read(str_part(bytes, 0, request.head.size - 1), &door, &again,
			    NULL) != REQUEST_READY);
	if (request.verdict == REQUEST_REFUSED) {
		assert(request.status >= 400 && err.text[0] != '\0');
		return 0;
	}
	buf_init(&out, 4 * REQUEST_HEAD_MAX);
	assert(request_print(&request,
			     request.verdict == REQUEST_KEYED ? STR(SECRET)
							      : (struct str){0},
			     &out));
	check_upstream(&request, buf_str(&out));
	buf_fini(&out);
	return 0;
}
