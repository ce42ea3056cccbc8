/* span: the JSON form of OTLP, and the places of spans in traces. */

#include "audit/span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Places. */

static void make_digits(char *digits, size_t count)
{
	uint8_t bytes[SPAN_TRACE / 2];

	/* An id of zeros is not valid. */
	do {
		while (getrandom(bytes, count / 2, 0) < 0 && errno == EINTR)
			;
		for (size_t i = 0; i < count / 2; i++)
			(void)snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
	} while (strspn(digits, "0") == count);
}

struct span_place span_place_new(const struct span_place *parent)
{
	struct span_place place = {0};

	if (parent != NULL && parent->trace[0] != '\0')
		memcpy(place.trace, parent->trace, sizeof(place.trace));
	else
		make_digits(place.trace, SPAN_TRACE);
	make_digits(place.id, SPAN_ID);
	return place;
}

/* Take COUNT digits, which are not all zero, from *AT. */
static bool take_digits(const char **at, size_t count, char *digits)
{
	if (strnlen(*at, count) < count || strspn(*at, "0123456789abcdef") < count ||
	    strspn(*at, "0") >= count)
		return false;
	memcpy(digits, *at, count);
	digits[count] = '\0';
	*at += count;
	return true;
}

bool span_place_read(const char *traceparent, struct span_place *place, bool *sampled)
{
	struct span_place read = {0};
	const char *at = traceparent;
	unsigned flags = 0;

	*sampled = true;
	if (at == NULL || strspn(at, "0123456789abcdef") != 2 || at[2] != '-' ||
	    strncmp(at, "ff", 2) == 0)
		return false;
	at += 3;
	if (!take_digits(&at, SPAN_TRACE, read.trace) || *at++ != '-' ||
	    !take_digits(&at, SPAN_ID, read.id) || *at++ != '-' ||
	    strspn(at, "0123456789abcdef") != 2 || sscanf(at, "%2x", &flags) != 1)
		return false;
	*place = read;
	*sampled = (flags & 1) != 0;
	return *sampled;
}

/* Printing. */

static void add_value(const struct value *value, struct buf *out)
{
	const struct str text = value_str(value);

	switch (value_kind(value)) {
	case VALUE_BOOLEAN:
		(void)buf_addf(out, "{\"boolValue\":%s}",
			       value_is_true(value) ? "true" : "false");
		return;
	case VALUE_INTEGER:
		/* An integer of 64 bits is a text in this form. */
		(void)buf_addf(out, "{\"intValue\":\"%" PRId64 "\"}", value_integer(value));
		return;
	case VALUE_REAL:
		(void)buf_adds(out, "{\"doubleValue\":");
		(void)value_print(value, 0, out);
		(void)buf_addc(out, '}');
		return;
	case VALUE_STRING:
		(void)buf_adds(out, "{\"stringValue\":");
		(void)value_quote(str_part(text, 0, SPAN_TEXT_MAX), out);
		(void)buf_addc(out, '}');
		return;
	default:
		(void)buf_adds(out, "{}");
	}
}

static void add_attributes(const struct value *attributes, struct buf *out)
{
	const char *comma = "";

	(void)buf_adds(out, "\"attributes\":[");
	for (void *at = value_first(attributes); at != NULL;
	     at = value_next(attributes, at)) {
		(void)buf_addf(out, "%s{\"key\":", comma);
		(void)value_quote(str_of(value_key(at)), out);
		(void)buf_adds(out, ",\"value\":");
		add_value(value_at(at), out);
		(void)buf_addc(out, '}');
		comma = ",";
	}
	(void)buf_addc(out, ']');
}

bool span_print(const struct span *span, struct buf *out)
{
	(void)buf_addf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\",", span->place.trace,
		       span->place.id);
	if (span->parent[0] != '\0')
		(void)buf_addf(out, "\"parentSpanId\":\"%s\",", span->parent);
	(void)buf_adds(out, "\"name\":");
	(void)value_quote(str_of(span->name), out);
	(void)buf_addf(out,
		       ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64
		       "\",\"endTimeUnixNano\":\"%" PRId64 "\",",
		       (int)span->kind, span->began_ns, span->ended_ns);
	add_attributes(span->attributes, out);
	/* 2 is an error; a span that went well has no code. */
	(void)buf_addf(out, ",\"status\":{\"code\":%d", span->failure != NULL ? 2 : 0);
	if (span->failure != NULL) {
		(void)buf_adds(out, ",\"message\":");
		(void)value_quote(str_part(str_of(span->failure), 0, SPAN_TEXT_MAX), out);
	}
	(void)buf_adds(out, "}}");
	return !out->overflowed;
}

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);

	return c != '\0' && at != NULL ? (int)(at - digits) : -1;
}

/* Append TEXT, in which "%2C" is a comma. */
static void add_decoded(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		const bool has_two = text.data[i] == '%' && i + 2 < text.size;
		const int high = has_two ? digit_of(text.data[i + 1]) : -1;
		const int low = has_two ? digit_of(text.data[i + 2]) : -1;

		if (high < 0 || low < 0) {
			(void)buf_addc(out, text.data[i]);
			continue;
		}
		(void)buf_addc(out, (char)(16 * high + low));
		i += 2;
	}
}

bool span_next_pair(struct str *rest, struct buf *name, struct buf *value)
{
	while (rest->size > 0) {
		const size_t comma = str_find(*rest, STR(","), 0);
		const struct str pair = str_trim(str_part(*rest, 0, comma));
		const size_t equals = str_find(pair, STR("="), 0);

		*rest = comma != (size_t)-1 ? str_part(*rest, comma + 1, rest->size)
					    : (struct str){0};
		if (equals == (size_t)-1 || equals == 0)
			continue;
		buf_clear(name);
		buf_clear(value);
		add_decoded(str_trim(str_part(pair, 0, equals)), name);
		add_decoded(str_trim(str_part(pair, equals + 1, pair.size)), value);
		return true;
	}
	return false;
}

/* Names of attributes have printable ASCII only. */
static bool is_plain(const struct buf *name)
{
	for (size_t i = 0; i < name->size; i++)
		if (name->data[i] <= ' ' || name->data[i] > '~')
			return false;
	return name->size > 0;
}

bool span_print_resource(const char *service, const char *pairs, struct buf *out)
{
	auto_value struct value *attributes = value_new_object();
	struct str rest = str_of(pairs);
	struct buf name, value;

	buf_init(&name, SPAN_PAIR_MAX);
	buf_init(&value, SPAN_PAIR_MAX);
	while (value_count(attributes) < SPAN_PAIRS_MAX &&
	       span_next_pair(&rest, &name, &value)) {
		if (is_plain(&name))
			value_set_str(attributes, name.data, buf_str(&value));
	}
	/* OTEL_SERVICE_NAME goes before a service.name among the pairs. */
	if (service != NULL || value_member(attributes, "service.name") == NULL)
		value_set_text(attributes, "service.name",
			       service != NULL ? service : "glovebox");
	buf_fini(&name);
	buf_fini(&value);
	(void)buf_addc(out, '{');
	add_attributes(attributes, out);
	return buf_addc(out, '}');
}

bool span_print_request(struct str resource, const char *version, char *const *spans,
			size_t count, struct buf *out)
{
	(void)buf_adds(out, "{\"resourceSpans\":[{\"resource\":");
	(void)buf_addstr(out, resource);
	(void)buf_adds(out,
		       ",\"scopeSpans\":[{\"scope\":{\"name\":\"glovebox\",\"version\":");
	(void)value_quote(str_of(version), out);
	(void)buf_adds(out, "},\"spans\":[");
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(out, "%s%s", i > 0 ? "," : "", spans[i]);
	return buf_adds(out, "]}]}]}");
}
