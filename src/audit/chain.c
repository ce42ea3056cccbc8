/* chain: makes the lines of an audit, and reads them back. */

#include "audit/chain.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ZEROS16 "0000000000000000"
/* `prev` of the first line. */
#define NO_LINE     (ZEROS16 ZEROS16 ZEROS16 ZEROS16)

#define SEQ_BEGINS  "{\"seq\":"
#define PREV_BEGINS ",\"prev\":\""
#define SUM_BEGINS  ",\"sum\":\""
#define HMAC_BEGINS ",\"hmac\":\""

static const char *const event_names[] = {
	[CHAIN_OPEN] = "open",   [CHAIN_CLOSE] = "close", [CHAIN_BEGIN] = "begin",
	[CHAIN_END] = "end",     [CHAIN_ASK] = "ask",     [CHAIN_GRANT] = "grant",
	[CHAIN_TOKEN] = "token", [CHAIN_DROP] = "drop",   [CHAIN_CUT] = "cut",
	[CHAIN_NEXT] = "next",   [CHAIN_HEAD] = "head",
};

struct chain_record chain_record_of(enum chain_event event)
{
	return (struct chain_record){
		.event = event,
		.at_ms = clock_wall_ms(),
		.exit = -1,
		.seconds = -1,
	};
}

/* Making a line. */

static void add_time(int64_t wall_ms, struct buf *out)
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	struct tm parts = {0};

	(void)gmtime_r(&seconds, &parts);
	(void)buf_addf(out, "\"at\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\"",
		       parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
		       parts.tm_hour, parts.tm_min, parts.tm_sec, (int)(wall_ms % 1000));
}

/* Append the member NAME with TEXT, unless it is NULL. */
static void add_text(const char *name, const char *text, struct buf *out)
{
	if (text == NULL)
		return;
	(void)buf_addf(out, ",\"%s\":", name);
	(void)value_quote(str_part(str_of(text), 0, CHAIN_WORD_MAX), out);
}

static void add_arguments(const struct chain_record *record, struct buf *out)
{
	char hex[HASH_HEX + 1];
	struct buf text;

	if (record->arguments == NULL)
		return;
	buf_init(&text, VALUE_TEXT_MAX);
	(void)value_print(record->arguments, VALUE_SORTED, &text);
	hash_text(buf_str(&text), hex);
	add_text("arguments_sha256", hex, out);
	if (record->shows_arguments && text.size <= CHAIN_ARGUMENTS_MAX)
		(void)buf_addf(out, ",\"arguments\":%s", text.data);
	else if (record->shows_arguments)
		(void)buf_addf(out, ",\"arguments_left_out\":%zu", text.size);
	buf_fini(&text);
}

bool chain_print(const struct chain_record *record, struct buf *out)
{
	add_time(record->at_ms, out);
	add_text("event", event_names[record->event], out);
	add_text("front", record->front, out);
	add_text("token", record->token, out);
	add_text("cell", record->cell, out);
	add_text("call", record->call, out);
	add_text("tool", record->tool, out);
	add_arguments(record, out);
	add_text("verdict", record->verdict, out);
	add_text("rule", record->rule, out);
	add_text("status", record->status, out);
	if (record->exit >= 0)
		(void)buf_addf(out, ",\"exit\":%d", record->exit);
	if (record->signal > 0)
		(void)buf_addf(out, ",\"signal\":%d", record->signal);
	if (record->seconds >= 0)
		(void)buf_addf(out, ",\"seconds\":%.6f", record->seconds);
	if (record->accounts != NULL) {
		(void)buf_adds(out, ",\"accounts\":");
		(void)value_print(record->accounts, 0, out);
	}
	for (void *at = value_first(record->more); at != NULL;
	     at = value_next(record->more, at)) {
		(void)buf_addc(out, ',');
		(void)value_quote(str_of(value_key(at)), out);
		(void)buf_addc(out, ':');
		(void)value_print(value_at(at), 0, out);
	}
	return !out->overflowed;
}

bool chain_seal(struct str body, uint64_t seq, const char prev[HASH_HEX + 1],
		struct str key, struct buf *out)
{
	const size_t begin = out->size;
	char hex[HASH_HEX + 1];

	(void)buf_addf(out, SEQ_BEGINS "%" PRIu64 ",", seq);
	(void)buf_addstr(out, body);
	(void)buf_addf(out, PREV_BEGINS "%s\"", prev[0] != '\0' ? prev : NO_LINE);
	if (key.size > 0) {
		hash_hmac_text(key, str_part(buf_str(out), begin, out->size), hex);
		(void)buf_addf(out, HMAC_BEGINS "%s\"", hex);
	}
	hash_text(str_part(buf_str(out), begin, out->size), hex);
	(void)buf_addf(out, SUM_BEGINS "%s\"", hex);
	return buf_adds(out, "}\n");
}

bool chain_seal_head(const struct chain_head *head, struct str key, struct buf *out)
{
	char body[128];
	const int size = snprintf(body, sizeof(body),
				  "\"event\":\"%s\",\"file\":%u,\"end\":%" PRId64,
				  event_names[CHAIN_HEAD], head->file, head->end);

	return chain_seal((struct str){body, (size_t)size}, head->seq, head->digits, key,
			  out);
}

/* Reading lines back. */

/* The parts of a line, which are views of it. */
struct line {
	uint64_t seq;
	struct str event;
	struct str prev, sum, hmac; /* digits; hmac empty: none */
	struct str summed, signed_by_key;
	bool keeps_head;
	struct chain_cut cut;
};

/* Take a member with digits, which begins with BEGINS, from the end of *REST. */
static bool take_digits(struct str *rest, const char *begins, struct str *digits)
{
	const size_t size = strlen(begins) + HASH_HEX + 1;
	struct str member;

	if (rest->size < size)
		return false;
	member = str_part(*rest, rest->size - size, size);
	if (!str_starts(member, str_of(begins)) || member.data[size - 1] != '"')
		return false;
	*digits = str_part(member, strlen(begins), HASH_HEX);
	for (size_t i = 0; i < digits->size; i++)
		if (strchr("0123456789abcdef", digits->data[i]) == NULL ||
		    digits->data[i] == '\0')
			return false;
	rest->size -= size;
	return true;
}

/*
 * Take the number that follows SEQ_BEGINS. The text of a number has one form only, so that two
 * lines never mean the same.
 */
static bool take_seq(struct str text, uint64_t *seq)
{
	const size_t from = sizeof(SEQ_BEGINS) - 1;
	size_t at = from;

	*seq = 0;
	if (!str_starts(text, STR(SEQ_BEGINS)))
		return false;
	for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++) {
		if (*seq > (UINT64_MAX - 9) / 10)
			return false;
		*seq = 10 * *seq + (uint64_t)(text.data[at] - '0');
	}
	return at > from && (text.data[from] != '0' || at == from + 1) &&
	       at < text.size && text.data[at] == ',';
}

/* The word behind `"event":"`, which stands behind the time in every line. */
static struct str event_of(struct str text)
{
	static const char begins[] = "Z\",\"event\":\"";
	const size_t at = str_find(text, STR(begins), 0);
	struct str rest = {0};

	if (at == (size_t)-1)
		return rest;
	rest = str_part(text, at + sizeof(begins) - 1, text.size);
	return str_part(rest, 0, str_find(rest, STR("\""), 0));
}

/* Put what VALUE, a record CHAIN_CUT, says of lines that are gone into CUT. */
static void read_cut(const struct value *value, struct chain_cut *cut)
{
	const char *head = value_text(value_member(value, "head"));
	const int64_t lost = value_integer(value_member(value, "lost"));

	if (head == NULL)
		return;
	cut->found = true;
	cut->lost = lost > 0 ? (uint64_t)lost : 0;
	(void)snprintf(cut->head, sizeof(cut->head), "%s", head);
	/* The text is shown to a person, and anybody may have written it. */
	for (char *at = cut->head; *at != '\0'; at++)
		if ((*at < 'a' || *at > 'z') && (*at < '0' || *at > ':'))
			*at = '?';
}

/* Read TEXT, a line of a chain or a kept head, whose JSON becomes *VALUE. */
static bool read_sealed(struct str text, struct line *line, struct value **value,
			struct err *err)
{
	struct str rest = text;

	if (text.size == 0)
		return err_set(err, EPROTO, "is empty");
	if (text.size >= CHAIN_LINE_MAX)
		return err_set(err, EPROTO, "is longer than %d bytes", CHAIN_LINE_MAX);
	if (text.data[text.size - 1] != '}')
		return err_set(err, EPROTO, "does not end as a line of an audit does");
	rest.size--;
	if (!take_digits(&rest, SUM_BEGINS, &line->sum))
		return err_set(err, EPROTO, "has no sum at its end");
	line->summed = rest;
	(void)take_digits(&rest, HMAC_BEGINS, &line->hmac);
	line->signed_by_key = rest;
	if (!take_digits(&rest, PREV_BEGINS, &line->prev))
		return err_set(err, EPROTO, "has no prev before its sum");
	if (!take_seq(rest, &line->seq))
		return err_set(err, EPROTO, "does not begin with its number (seq)");
	line->event = event_of(rest);
	return value_parse(text, 0, value, err) || err_while(err, "is no JSON");
}

static bool line_read(struct str text, struct line *line, struct err *err)
{
	auto_value struct value *value = NULL;

	if (!read_sealed(text, line, &value, err))
		return false;
	if (line->event.size == 0)
		return err_set(err, EPROTO, "has no event: it is no line of a chain");
	if (line->seq == 0)
		return err_set(err, EPROTO, "has number 0, and the first line has 1");
	if (str_is(line->event, event_names[CHAIN_CUT]))
		read_cut(value, &line->cut);
	line->keeps_head = str_is(value_str(value_member(value, "keeps")), "head");
	return true;
}

/* Do the sums of LINE fit its bytes? */
static bool line_is_whole(const struct line *line, struct str key, struct err *err)
{
	char hex[HASH_HEX + 1];

	hash_text(line->summed, hex);
	if (!str_is(line->sum, hex))
		return err_set(err, EPROTO,
			       "was changed: its sum is %.12s…, its bytes have %.12s…",
			       line->sum.data, hex);
	if (key.size == 0)
		return true;
	if (line->hmac.size == 0)
		return err_set(err, EPROTO, "has no hmac: it was not written with the key");
	hash_hmac_text(key, line->signed_by_key, hex);
	return str_is(line->hmac, hex) ||
	       err_set(err, EPROTO,
		       "does not fit the key: it was changed, or written with another key");
}

/* CHECK stands behind LINE, whose text is TEXT. */
static void stand_behind(struct chain_check *check, const struct line *line, struct str text)
{
	if (check->seq == 0)
		check->first = line->seq;
	check->seq = line->seq;
	check->has_hmac = line->hmac.size > 0;
	check->cut = line->cut;
	check->cut.had_head = line->cut.found && check->keeps_head;
	/* The ledger makes a head with the record that tells of a missing one. */
	if (line->keeps_head || line->cut.found)
		check->keeps_head = true;
	hash_text(text, check->prev);
}

bool chain_check_last(struct chain_check *check, struct str text, struct err *err)
{
	struct line line = {0};

	if (!line_read(text, &line, err) || !line_is_whole(&line, check->key, err))
		return false;
	stand_behind(check, &line, text);
	return true;
}

bool chain_read_head(struct str text, struct str key, struct chain_head *head,
		     struct err *err)
{
	auto_value struct value *value = NULL;
	struct line line = {0};
	int64_t file, end;

	if (!read_sealed(text, &line, &value, err) || !line_is_whole(&line, key, err))
		return false;
	file = value_integer(value_member(value, "file"));
	end = value_integer(value_member(value, "end"));
	/* A line of a chain has its time before its event. */
	if (line.event.size > 0 || file <= 0 || file > UINT32_MAX || end < 0 ||
	    (line.seq == 0) != (end == 0) || (line.seq == 0) != str_is(line.prev, NO_LINE) ||
	    !str_is(value_str(value_member(value, "event")), event_names[CHAIN_HEAD]))
		return err_set(err, EPROTO, "is no head of a chain");
	*head = (struct chain_head){.seq = line.seq, .file = (unsigned)file, .end = end};
	memcpy(head->digits, line.prev.data, HASH_HEX);
	return true;
}

static bool line_is_first(const struct line *line, struct err *err)
{
	if (line->seq == 1)
		return str_is(line->prev, NO_LINE) ||
		       err_set(err, EPROTO, "is number 1, and yet its prev names a line");
	return str_is(line->event, event_names[CHAIN_NEXT]) ||
	       err_set(err, EPROTO,
		       "is number %" PRIu64
		       " and the first one: lines before it are missing",
		       line->seq);
}

static bool line_follows(const struct chain_check *check, const struct line *line,
			 struct err *err)
{
	if (line->seq > check->seq + 1)
		return err_set(err, EPROTO,
			       "is number %" PRIu64 " and follows number %" PRIu64
			       ": lines between them are missing",
			       line->seq, check->seq);
	if (line->seq <= check->seq)
		return err_set(err, EPROTO,
			       "is number %" PRIu64 " and follows number %" PRIu64
			       ": it was doubled or moved",
			       line->seq, check->seq);
	return str_is(line->prev, check->prev) ||
	       err_set(err, EPROTO,
		       "names another line before it (prev %.12s…) than the one that stands "
		       "there (%.12s…)",
		       line->prev.data, check->prev);
}

bool chain_check_line(struct chain_check *check, struct str text, struct err *err)
{
	struct line line = {0};

	if (!line_read(text, &line, err) || !line_is_whole(&line, check->key, err))
		return false;
	if (check->seq == 0 ? !line_is_first(&line, err) : !line_follows(check, &line, err))
		return false;
	stand_behind(check, &line, text);
	if (check->head_seq == check->seq && strcmp(check->head, check->prev) != 0)
		return err_set(err, EPROTO,
			       "is not the line that was told as the head (%.12s…)",
			       check->head);
	return true;
}

bool chain_check_end(const struct chain_check *check, struct err *err)
{
	if (check->head_seq != 0 && check->first > check->head_seq)
		return err_set(err, EPROTO,
			       "the chain begins with number %" PRIu64
			       ", behind number %" PRIu64
			       ", which was told as a head: give the files before it, too",
			       check->first, check->head_seq);
	return check->seq >= check->head_seq ||
	       err_set(err, EPROTO,
		       "the chain ends with number %" PRIu64 ", and number %" PRIu64
		       " was told as its head: its end was cut off",
		       check->seq, check->head_seq);
}

bool chain_check_head(struct chain_check *check, const char *head, struct err *err)
{
	char *end = NULL;

	errno = 0;
	check->head_seq = strtoull(head, &end, 10);
	if (errno != 0 || check->head_seq == 0 || *end != ':' || end == head ||
	    strlen(end + 1) != HASH_HEX || !hash_is_valid(end + 1))
		return err_set(err, EINVAL,
			       "\"%.100s\" is no head: copy it from the line \"audit head\", "
			       "NUMBER:DIGITS",
			       head);
	memcpy(check->head, end + 1, sizeof(check->head));
	return true;
}
