/* service: the rows of `service` and of a token, their checks, and the structs they fill. */

#include "policy/service/service.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/service/recorded.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_LEAST 0.1
#define YEAR_S        31536000.0
#define DAY_CPU_MAX_S 1e9
#define BYTES_MOST    1e18

enum {
	CELLS = 64,
	CELLS_PER_TOKEN = 8,
	CALLS_PER_TOKEN = 16,
	CALLS_MAX = 1024, /* as many as one server takes (mcp/server/mcp.h) */
	IDLE_S = 900,
	LIFE_S = 28800,
	DRAIN_S = 30,
	CALLS_MINUTE_MAX = 1000000,
	ADDRESS_TEXT_MAX = 64,
	MILLISECONDS = 1000,
	DAY_S = 86400,
	DATE_SIZE = 10,   /* "2026-11-30" */
	MOMENT_SIZE = 20, /* "2026-11-30T12:00:00Z" */
	BASE_MAX = PATH_MAX + 64,
};

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

bool service_is_name(struct str name)
{
	if (name.size == 0 || name.size > SERVICE_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] == '\0' || strchr(plain, name.data[i]) == NULL)
			return false;
	}
	return true;
}

/* Templates: parts with slashes between them, each made of plain bytes and places. */

enum place { PLACE_TOKEN, PLACE_CELL, PLACE_DATE, PLACE_ID, PLACES };

static const char *const places[PLACES] = {"{token}", "{cell}", "{date}", "{id}"};

/* Take a place from the front of REST. */
static bool take_place(struct str *rest, enum place *place)
{
	for (int i = 0; i < PLACES; i++) {
		if (str_starts(*rest, str_of(places[i]))) {
			*rest = str_part(*rest, strlen(places[i]), rest->size);
			*place = (enum place)i;
			return true;
		}
	}
	return false;
}

/* Of a template: has it, or its last part, the place of that name? */
struct template
{
	bool has[PLACES], last[PLACES];
};

/*
 * Is PART, one name of a path, sound? Two names beside each other could be read as two others
 * ("a-b" and "c", "a" and "b-c"), so there is one place only, unless an id keeps it apart.
 */
static bool part_is_sound(struct str part, struct template *template)
{
	bool any = false;
	size_t count = 0;
	enum place place;

	memset(template->last, 0, sizeof(template->last));
	if (part.size > 0 && part.data[0] == '.')
		return false;
	while (part.size > 0) {
		any = true;
		if (take_place(&part, &place)) {
			template->has[place] = template->last[place] = true;
			count++;
			continue;
		}
		if (part.data[0] == '\0' ||
		    (strchr(plain, part.data[0]) == NULL && part.data[0] != '.'))
			return false;
		part = str_part(part, 1, part.size);
	}
	return any && (count <= 1 || template->last[PLACE_ID]);
}

/* Are all parts of TEXT sound? TEMPLATE says which places there are. */
static bool template_is_sound(struct str text, struct template *template)
{
	size_t slash;

	*template = (struct template){0};
	do {
		slash = str_find(text, STR("/"), 0);
		if (!part_is_sound(str_part(text, 0, slash), template))
			return false;
		text = slash == (size_t)-1 ? STR("") : str_part(text, slash + 1, text.size);
	} while (slash != (size_t)-1);
	return true;
}

static bool is_template(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	struct template template;

	(void)row;
	return template_is_sound(value_str(value), &template) ||
	       rows_refuse(problem, NULL,
			   "must be a path below the root, of letters, digits, \"-\", \"_\", "
			   "\".\" and the places {token}, {cell}, {date} and {id}: one of them "
			   "in each part, or more where {id} is one");
}

bool service_fill(const char *template, const struct service_names *names, struct buf *out)
{
	const char *const values[PLACES] = {names->token, names->cell, names->date,
					    names->id};
	struct str rest = str_of(template);
	enum place place;
	bool fits = true;

	while (fits && rest.size > 0) {
		if (take_place(&rest, &place)) {
			fits = buf_adds(out, values[place]);
		} else {
			fits = buf_addc(out, rest.data[0]);
			rest = str_part(rest, 1, rest.size);
		}
	}
	return fits;
}

/* Addresses of proxies. */

static unsigned bits_of(int family)
{
	return family == AF_INET ? 32 : 128;
}

static bool read_address(struct str text, struct service_net *net)
{
	char name[ADDRESS_TEXT_MAX];

	if (text.size >= sizeof(name))
		return false;
	memcpy(name, text.data, text.size);
	name[text.size] = '\0';
	memset(net, 0, sizeof(*net));
	net->family = AF_INET;
	if (inet_pton(AF_INET, name, net->address) != 1) {
		net->family = AF_INET6;
		if (inet_pton(AF_INET6, name, net->address) != 1)
			return false;
	}
	net->bits = bits_of(net->family);
	return true;
}

/* Read "10.0.0.0/8", or an address without a number of bits. */
static bool read_net(struct str text, struct service_net *net)
{
	const size_t slash = str_find(text, STR("/"), 0);
	struct str digits;
	size_t bits;

	if (slash == (size_t)-1)
		return read_address(text, net);
	digits = str_part(text, slash + 1, text.size);
	if (digits.size == 0 || digits.size > 3 ||
	    !read_address(str_part(text, 0, slash), net))
		return false;
	bits = text_take_number(&digits);
	if (digits.size > 0 || bits > net->bits)
		return false;
	net->bits = (unsigned)bits;
	return true;
}

static bool are_nets(const struct row *row, const struct value *value,
		     struct rows_problem *problem)
{
	struct service_net net;

	(void)row;
	if (value_count(value) > SERVICE_PROXIES_MAX)
		return rows_refuse(problem, NULL, "has more than %d entries",
				   SERVICE_PROXIES_MAX);
	for (size_t i = 0; i < value_count(value); i++) {
		if (!read_net(value_str(value_item(value, i)), &net))
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "must be an address, or the first bits of some: "
					   "127.0.0.1, 10.0.0.0/8, ::1");
	}
	return true;
}

/* An IPv4 address in the form of IPv6 (::ffff:127.0.0.1) is the IPv4 address. */
static void unmap(struct service_net *net)
{
	static const unsigned char prefix[12] = {0, 0, 0, 0, 0,    0,
						 0, 0, 0, 0, 0xff, 0xff};

	if (net->family != AF_INET6 || memcmp(net->address, prefix, sizeof(prefix)) != 0)
		return;
	memmove(net->address, net->address + sizeof(prefix), 4);
	memset(net->address + 4, 0, sizeof(prefix));
	net->family = AF_INET;
	net->bits = bits_of(AF_INET);
}

static bool net_has(const struct service_net *net, const struct service_net *one)
{
	const unsigned whole = net->bits / CHAR_BIT, rest = net->bits % CHAR_BIT;

	if (net->family != one->family || memcmp(net->address, one->address, whole) != 0)
		return false;
	return rest == 0 || (net->address[whole] >> (CHAR_BIT - rest)) ==
				    (one->address[whole] >> (CHAR_BIT - rest));
}

static bool trusts(const struct service *service, struct service_net *one)
{
	unmap(one);
	for (size_t i = 0; i < service->proxy_count; i++) {
		if (net_has(&service->proxies[i], one))
			return true;
	}
	return false;
}

bool service_trusts(const struct service *service, const struct sockaddr *address)
{
	struct service_net one = {0};

	if (address == NULL)
		return false;
	one.family = address->sa_family;
	if (one.family == AF_INET)
		memcpy(one.address,
		       &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
	else if (one.family == AF_INET6)
		memcpy(one.address,
		       &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
		       16);
	else
		return false;
	one.bits = bits_of(one.family);
	return trusts(service, &one);
}

bool service_trusts_text(const struct service *service, struct str text)
{
	struct service_net one;

	return read_address(str_trim(text), &one) && trusts(service, &one);
}

/* The rows. */

const struct row service_rows[] = {
	{"cell", ROW_CHOICE, .choices = "session token shared", .initial = "`\"session\"`",
	 .description = "Clients that share a cell: none, those with one token, or all."},
	{"max_cells", ROW_COUNT, .min = 1, .max = SERVICE_CELLS_MAX, .initial = "64",
	 .description = "Cells at the same time; a further one is answered with 503."},
	{"max_cells_per_token", ROW_COUNT, .min = 1, .max = SERVICE_CELLS_MAX, .initial = "8",
	 .description = "Cells of one token; a further one is answered with 429."},
	{"max_calls_per_token", ROW_COUNT, .min = 1, .max = CALLS_MAX, .initial = "16",
	 .description =
		 "Calls of one token at the same time; a further one is answered with 429."},
	{"idle_s", ROW_SECONDS, .min = SECONDS_LEAST, .max = YEAR_S, .initial = "900",
	 .description = "A cell ends after so long without a request."},
	{"life_s", ROW_SECONDS, .min = SECONDS_LEAST, .max = YEAR_S, .initial = "28800",
	 .description = "A cell ends after so long in any case."},
	{"drain_s", ROW_SECONDS, .min = SECONDS_LEAST, .max = YEAR_S, .initial = "30",
	 .description = "What calls under way get when the server is told to end."},
	{"root", ROW_BYTES, .max = PATH_MAX - 1, .initial = "the workspace (`-C`)",
	 .description = "Folder of the workspaces: an absolute path."},
	{"workspace", ROW_BYTES, .max = SERVICE_PLACE_MAX, .check = is_template,
	 .initial = "the root itself",
	 .description = "Workspace of each cell, below the root: `work/{token}/{cell}`; also `{date}` and "
			"`{id}`, which no other cell has. It is made with mode 0700."},
	{"on_close", ROW_CHOICE, .choices = "keep delete archive", .initial = "`\"keep\"`",
	 .description = "What becomes of it when its cell ends; `archive` moves it into `.archive` "
			"below the root."},
	{"cell_base", ROW_BYTES, .max = BASE_MAX, .initial = "that of the agent",
	 .description = "`cell_base` of all cells."},
	{"agent", ROW_BYTES, .max = SERVICE_NAME_MAX, .initial = "`--agent`",
	 .description = "Agent whose tools and rights all cells have."},
	{"policy", ROW_VALUES, .initial = "that of the agent",
	 .description = "A policy in place of the agent's."},
	{"tokens", ROW_BYTES, .max = PATH_MAX - 1, .initial = "none",
	 .description =
		 "File with a token a line ([service.md](service.md#tokens)): an absolute path."},
	{"trusted_proxies", ROW_WORDS, .max = ADDRESS_TEXT_MAX, .check = are_nets,
	 .initial = "none",
	 .description =
		 "Addresses of proxies whose `X-Forwarded-*` are believed: `127.0.0.1`, `10.0.0.0/8`."},
	{"audit", ROW_EITHER, .max = PATH_MAX - 1, .check = recorded_is_folder,
	 .initial = "none",
	 .description = "Lines about all sessions and calls of every verb, tied to each other: "
			"a folder, or an object.",
	 .rows = recorded_audit_rows},
	{"audit_key", ROW_BYTES, .max = PATH_MAX - 1, .check = recorded_is_folder,
	 .initial = "no key", .description = "`key_file` of an `audit` that is a folder."},
	{"otlp", ROW_EITHER, .max = PATH_MAX - 1, .check = recorded_is_collector,
	 .initial = "none",
	 .description = "Spans of every verb for OpenTelemetry: the address of a collector, or "
			"an object.",
	 .rows = recorded_otlp_rows},
	{"metrics", ROW_BYTES, .max = ADDRESS_TEXT_MAX, .initial = "off",
	 .description =
		 "Address on this machine's loopback where `/metrics` is: `127.0.0.1:9464`."},
	{0},
};

bool service_check(const struct row *row, const struct value *value,
		   struct rows_problem *problem)
{
	const struct str closing = value_str(value_member(value, "on_close"));
	const struct value *workspace = value_member(value, "workspace");
	static const char *const paths[] = {"root", "tokens"};
	struct template template = {0};

	(void)row;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct value *path = value_member(value, paths[i]);

		if (path != NULL && !str_starts(value_str(path), STR("/")))
			return rows_refuse(problem, &(struct rows_place){.key = paths[i]},
					   "must be an absolute path");
	}
	if (value_member(value, "audit_key") != NULL &&
	    value_kind(value_member(value, "audit")) != VALUE_STRING)
		return rows_refuse(problem, &(struct rows_place){.key = "audit_key"},
				   "goes with an `audit` that is a folder; an object names its "
				   "key by `key_file`");
	if (workspace != NULL)
		(void)template_is_sound(value_str(workspace), &template);
	if (workspace != NULL && value_member(value, "tokens") != NULL &&
	    !template.has[PLACE_TOKEN] && !template.has[PLACE_ID])
		return rows_refuse(problem, &(struct rows_place){.key = "workspace"},
				   "needs {token} or {id}, because there are `tokens`: else "
				   "two of them would work in one folder");
	if (closing.size == 0 || str_is(closing, "keep") || template.last[PLACE_CELL] ||
	    template.last[PLACE_ID])
		return true;
	return rows_refuse(problem, &(struct rows_place){.key = "on_close"},
			   "needs a `workspace` whose last part has {cell} or {id}: else the "
			   "folder of other cells would go, too");
}

static bool is_hash(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	const struct str text = value_str(value);
	bool fits = text.size == HASH_HEX;

	(void)row;
	/* A text of the file has no NUL. */
	for (size_t i = 0; fits && i < text.size; i++)
		fits = strchr("0123456789abcdef", text.data[i]) != NULL;
	return fits ||
	       rows_refuse(problem, NULL,
			   "must be the SHA-256 of the token: %d digits of 0-9 and a-f",
			   HASH_HEX);
}

static bool is_name(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	(void)row;
	return service_is_name(value_str(value)) ||
	       rows_refuse(problem, NULL, "must be 1 to %d letters, digits, \"-\" and \"_\"",
			   SERVICE_NAME_MAX);
}

/*
 * Read "2026-11-30", which ends with that day (UTC), or "2026-11-30T12:00:00Z". A date that
 * no calendar has is refused.
 */
static bool read_moment(struct str text, int64_t *wall_ms)
{
	const bool is_day = text.size == DATE_SIZE;
	char copy[MOMENT_SIZE + 1], again[MOMENT_SIZE + 1];
	struct tm parts = {0};
	const char *end;
	time_t seconds;

	if (!is_day && text.size != MOMENT_SIZE)
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	end = strptime(copy, is_day ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &parts);
	if (end == NULL || *end != '\0')
		return false;
	seconds = timegm(&parts);
	if (strftime(again, sizeof(again), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0 ||
	    strncmp(again, copy, text.size) != 0)
		return false;
	*wall_ms = ((int64_t)seconds + (is_day ? DAY_S : 0)) * MILLISECONDS;
	return true;
}

static bool is_moment(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	int64_t wall_ms;

	(void)row;
	return read_moment(value_str(value), &wall_ms) ||
	       rows_refuse(problem, NULL,
			   "must be a day or a moment (UTC): 2027-01-31, 2027-01-31T12:00:00Z");
}

static uint64_t bytes_of(const struct value *value)
{
	uint64_t bytes = 0;

	if (value_kind(value) != VALUE_STRING)
		return value_integer(value) > 0 ? (uint64_t)value_integer(value) : 0;
	return text_parse_size(value_text(value), &bytes, NULL) ? bytes : 0;
}

static bool is_size(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	const uint64_t bytes = bytes_of(value);

	return (bytes > 0 && (double)bytes <= row->max) ||
	       rows_refuse(problem, NULL, "must be a size, such as \"512M\" or \"10G\"");
}

static const struct row quota_rows[] = {
	{"cpu_s_day", ROW_SECONDS, .min = SECONDS_LEAST, .max = DAY_CPU_MAX_S},
	{"written_day", ROW_SIZE, .check = is_size, .max = BYTES_MOST},
	{"net_day", ROW_SIZE, .check = is_size, .max = BYTES_MOST},
	{"calls_minute", ROW_COUNT, .min = 1, .max = CALLS_MINUTE_MAX},
	{"cells", ROW_COUNT, .min = 1, .max = SERVICE_CELLS_MAX},
	{0},
};

const struct row service_token_rows[] = {
	{"name", ROW_BYTES, true, .max = SERVICE_NAME_MAX, .check = is_name},
	{"sha256", ROW_BYTES, true, .max = HASH_HEX, .check = is_hash},
	{"expires", ROW_BYTES, .max = MOMENT_SIZE, .check = is_moment},
	{"agent", ROW_BYTES, .max = SERVICE_NAME_MAX},
	{"policy", ROW_VALUES},
	{"quota", ROW_OBJECT, .rows = quota_rows},
	{0},
};

/* Reading. */

static uint64_t count_in(const struct value *value, const char *key, uint64_t unless)
{
	const struct value *found = value_member(value, key);

	return found != NULL ? (uint64_t)value_integer(found) : unless;
}

static double seconds_in(const struct value *value, const char *key, double unless)
{
	const struct value *found = value_member(value, key);

	return found != NULL ? value_number(found) : unless;
}

static char *text_in(const struct value *value, const char *key)
{
	return memory_copy(value_text(value_member(value, key)));
}

/* The place of the text KEY in the choices of its row; 0: it is not there. */
static unsigned choice_in(const struct value *value, const char *key)
{
	struct str choices = str_of(rows_find(service_rows, key)->choices), choice;

	for (unsigned i = 0; str_next_word(&choices, &choice); i++) {
		if (str_equal(value_str(value_member(value, key)), choice))
			return i;
	}
	return 0;
}

/* Has VALUE a key that is about `mcp --http`? */
static bool is_given(const struct value *value)
{
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		if (strcmp(value_key(at), "audit") != 0 &&
		    strcmp(value_key(at), "audit_key") != 0 &&
		    strcmp(value_key(at), "otlp") != 0)
			return true;
	}
	return false;
}

void service_read(const struct value *value, struct service *service)
{
	const struct value *policy = value_member(value, "policy");
	const struct value *proxies = value_member(value, "trusted_proxies");

	*service = (struct service){
		.given = is_given(value),
		.cells = (enum service_cells)choice_in(value, "cell"),
		.max_cells = count_in(value, "max_cells", CELLS),
		.max_cells_per_token =
			count_in(value, "max_cells_per_token", CELLS_PER_TOKEN),
		.max_calls_per_token =
			count_in(value, "max_calls_per_token", CALLS_PER_TOKEN),
		.idle_s = seconds_in(value, "idle_s", IDLE_S),
		.life_s = seconds_in(value, "life_s", LIFE_S),
		.drain_s = seconds_in(value, "drain_s", DRAIN_S),
		.root = text_in(value, "root"),
		.workspace = text_in(value, "workspace"),
		.on_close = (enum service_closing)choice_in(value, "on_close"),
		.cell_base = text_in(value, "cell_base"),
		.agent = text_in(value, "agent"),
		.policy = policy != NULL ? value_copy(policy) : NULL,
		.tokens = text_in(value, "tokens"),
		.metrics = text_in(value, "metrics"),
	};
	service->proxies =
		memory_array(value_count(proxies) + 1, sizeof(*service->proxies));
	for (size_t i = 0; i < value_count(proxies); i++)
		(void)read_net(value_str(value_item(proxies, i)),
			       &service->proxies[service->proxy_count++]);
}

void service_fini(struct service *service)
{
	free(service->root);
	free(service->workspace);
	free(service->cell_base);
	free(service->agent);
	value_free(service->policy);
	free(service->tokens);
	free(service->metrics);
	free(service->proxies);
	*service = (struct service){0};
}

void service_token_read(const struct value *value, struct service_token *token)
{
	const struct value *expires = value_member(value, "expires");
	const struct value *policy = value_member(value, "policy");
	const struct value *quota = value_member(value, "quota");

	*token = (struct service_token){
		.name = text_in(value, "name"),
		.expires_ms = INT64_MAX,
		.expires = text_in(value, "expires"),
		.agent = text_in(value, "agent"),
		.policy = policy != NULL ? value_copy(policy) : NULL,
		.quota =
			{
				.cpu_s_day = seconds_in(quota, "cpu_s_day", 0),
				.written_day = bytes_of(value_member(quota, "written_day")),
				.net_day = bytes_of(value_member(quota, "net_day")),
				.calls_minute = count_in(quota, "calls_minute", 0),
				.cells = count_in(quota, "cells", 0),
			},
	};
	memcpy(token->sha256, value_text(value_member(value, "sha256")), HASH_HEX);
	if (expires != NULL)
		(void)read_moment(value_str(expires), &token->expires_ms);
}

void service_token_fini(struct service_token *token)
{
	free(token->name);
	free(token->expires);
	free(token->agent);
	value_free(token->policy);
	*token = (struct service_token){0};
}

bool service_quota_needs_group(const struct service_quota *quota)
{
	return quota->cpu_s_day > 0 || quota->written_day > 0;
}

bool service_token_has_rights(const struct service_token *a, const struct service_token *b)
{
	const bool same_agent =
		a->agent == b->agent ||
		(a->agent != NULL && b->agent != NULL && strcmp(a->agent, b->agent) == 0);
	const bool same_policy =
		a->policy == b->policy || (a->policy != NULL && b->policy != NULL &&
					   value_equal(a->policy, b->policy));

	return same_agent && same_policy;
}
