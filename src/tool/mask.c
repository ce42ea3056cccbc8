/*
 * mask: finds secrets in a stream, and puts marks in their place.
 *
 * A place of a secret begins with three bytes. A table of their hashes says whether it may, so
 * most bytes cost one look at that table. The values are kept in order, so the longest value
 * that stands at a place is found by halving. A place that the bytes so far leave open is held
 * back until more have come, up to HELD_MAX bytes.
 */

#include "tool/mask.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tool/secret.h"

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREES = 1 << 16,     /* bits; of some hundred beginnings few share one */
	QUOTE = 3,            /* bytes of "‹", and of "›" */
	HELD_MAX = 16 << 10,  /* four times the longest secret */
	KEY_BYTES = 32 << 10, /* the longest private key, and the numbers of its lines */
	KEY_RUN_MIN = 16,     /* characters of its Base64 in one line */
	KEY_RUN_MAX = SECRET_MAX,
	KEY_HEAD_MAX = 80,
	KEY_IDLE_MAX = 3, /* lines without Base64: Proc-Type, DEK-Info and an empty one */
	/* Five bits each. Two values of a session share 30 bits in one of some hundred sessions. */
	TAG = 6,
	TAG_LONG = 12, /* of the second of two that share them */
};

struct secret {
	char *value;
	size_t size;
	char *name;
	bool shaped;     /* its name is that of a shape */
	uint64_t learnt; /* when, in the order of learning */
	/* the longest other value that is the beginning of this one, by index; -1: none */
	int32_t beginning;
};

struct mask {
	uint8_t key[MASK_KEY];
	struct secret *secrets; /* in order of value */
	size_t count, shaped, forgotten;
	uint64_t learnt;            /* values, so far */
	uint8_t begins[THREES / 8]; /* by hash of three bytes */
	uint8_t values[THREES / 8]; /* the same, only of values and keys */
	uint8_t firsts[256];        /* is this byte the first one of these? */
};

/* A hash of the three bytes at BYTES, which are the lower ones of a number. */
static size_t three_of(uint32_t bytes)
{
	return (bytes ^ (bytes >> 11 & 0x1fe0)) & (THREES - 1);
}

static size_t three_at(const char *begin)
{
	const unsigned char *bytes = (const unsigned char *)begin;

	return three_of((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
			(uint32_t)bytes[2] << 16);
}

static bool has_bit(const uint8_t *table, size_t bit)
{
	return (table[bit / 8] >> bit % 8 & 1) != 0;
}

/* A place begins with the three bytes at BEGIN. */
static void add_begin(struct mask *mask, const char *begin)
{
	const size_t three = three_at(begin);

	mask->begins[three / 8] |= (uint8_t)(1U << three % 8);
	mask->firsts[(unsigned char)begin[0]] = 1;
}

/* A value or a key begins so. */
static void add_value_begin(void *context, const char *begin)
{
	struct mask *mask = context;
	const size_t three = three_at(begin);

	add_begin(mask, begin);
	mask->values[three / 8] |= (uint8_t)(1U << three % 8);
}

struct mask *mask_new(const uint8_t key[MASK_KEY])
{
	struct mask *mask = memory_alloc(sizeof(*mask));

	memcpy(mask->key, key, MASK_KEY);
	secret_each_begin(add_value_begin, mask);
	add_begin(mask, MASK_BEGIN);
	add_begin(mask, "://");
	add_begin(mask, "-----");
	return mask;
}

static void secret_fini(struct secret *secret)
{
	explicit_bzero(secret->value, secret->size);
	free(secret->value);
	free(secret->name);
}

void mask_free(struct mask *mask)
{
	if (mask == NULL)
		return;
	for (size_t i = 0; i < mask->count; i++)
		secret_fini(&mask->secrets[i]);
	free(mask->secrets);
	explicit_bzero(mask->key, MASK_KEY);
	free(mask);
}

/* The values, in their order. */

static int compare(const struct secret *secret, struct str text)
{
	const size_t size = secret->size < text.size ? secret->size : text.size;
	const int order = memcmp(secret->value, text.data, size);

	return order != 0                 ? order
	       : secret->size < text.size ? -1
					  : secret->size > text.size;
}

/* The number of values that come before TEXT. */
static size_t place_of(const struct mask *mask, struct str text)
{
	size_t from = 0, to = mask->count;

	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (compare(&mask->secrets[middle], text) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool begins_with(struct str text, const struct secret *secret)
{
	return text.size >= secret->size &&
	       memcmp(text.data, secret->value, secret->size) == 0;
}

static const struct secret *secret_find(const struct mask *mask, struct str value)
{
	const size_t at = place_of(mask, value);

	return at < mask->count && mask->secrets[at].size == value.size &&
			       begins_with(value, &mask->secrets[at])
		       ? &mask->secrets[at]
		       : NULL;
}

/* How many bytes at their beginning are the same. */
static size_t same_bytes(const struct secret *secret, struct str text)
{
	size_t same = 0;

	while (same < secret->size && same < text.size &&
	       secret->value[same] == text.data[same])
		same++;
	return same;
}

/* Would a value that is longer than TEXT stand there if the right bytes followed? */
static bool is_open(const struct mask *mask, struct str text)
{
	size_t at = place_of(mask, text);

	if (at < mask->count && mask->secrets[at].size == text.size)
		at++;
	return at < mask->count && mask->secrets[at].size > text.size &&
	       same_bytes(&mask->secrets[at], text) == text.size;
}

/*
 * The longest value at the beginning of TEXT. A value that TEXT begins with is also the
 * beginning of the greatest value before TEXT, so only those are looked at.
 */
static const struct secret *longest_at(const struct mask *mask, struct str text)
{
	const size_t at = place_of(mask, text);
	size_t same;

	if (at < mask->count && mask->secrets[at].size == text.size &&
	    begins_with(text, &mask->secrets[at]))
		return &mask->secrets[at];
	if (at == 0)
		return NULL;
	same = same_bytes(&mask->secrets[at - 1], text);
	for (int32_t i = (int32_t)at - 1; i >= 0; i = mask->secrets[i].beginning) {
		if (mask->secrets[i].size <= same)
			return &mask->secrets[i];
	}
	return NULL;
}

/* Note which values are beginnings of which, now that a new one stands at AT. */
static void note_beginnings(struct mask *mask, size_t at)
{
	struct secret *new = &mask->secrets[at];
	const struct str value = {new->value, new->size};
	int32_t beginning = (int32_t)at - 1;

	for (size_t i = 0; i < mask->count; i++)
		mask->secrets[i].beginning +=
			i != at && mask->secrets[i].beginning >= (int32_t)at;
	while (beginning >= 0 && !begins_with(value, &mask->secrets[beginning]))
		beginning = mask->secrets[beginning].beginning;
	new->beginning = beginning;
	for (size_t i = at + 1; i < mask->count; i++) {
		struct secret *longer = &mask->secrets[i];

		if (!begins_with((struct str){longer->value, longer->size}, new))
			break;
		if (longer->beginning == beginning)
			longer->beginning = (int32_t)at;
	}
}

/* Forget the secret at AT. */
static void forget(struct mask *mask, size_t at)
{
	const int32_t gone = (int32_t)at, before = mask->secrets[at].beginning;

	mask->shaped -= mask->secrets[at].shaped;
	secret_fini(&mask->secrets[at]);
	mask->count--;
	memmove(mask->secrets + at, mask->secrets + at + 1,
		(mask->count - at) * sizeof(*mask->secrets));
	for (size_t i = 0; i < mask->count; i++) {
		int32_t *beginning = &mask->secrets[i].beginning;

		if (*beginning == gone)
			*beginning = before;
		else if (*beginning > gone)
			--*beginning;
	}
}

/* The secret that was learnt longest ago. */
static size_t oldest(const struct mask *mask)
{
	size_t found = 0;

	for (size_t i = 1; i < mask->count; i++) {
		if (mask->secrets[i].learnt < mask->secrets[found].learnt)
			found = i;
	}
	return found;
}

static const struct secret *secret_named(const struct mask *mask, struct str name)
{
	for (size_t i = 0; i < mask->count; i++) {
		if (str_is(name, mask->secrets[i].name))
			return &mask->secrets[i];
	}
	return NULL;
}

/* Set TAG to SIZE characters that stand for VALUE. */
static void tag_make(const struct mask *mask, struct str value, size_t size,
		     char tag[TAG_LONG + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t digest[HASH_BYTES];
	struct buf bytes;

	buf_init(&bytes, MASK_KEY + value.size);
	(void)buf_add(&bytes, mask->key, MASK_KEY);
	(void)buf_addstr(&bytes, value);
	hash_bytes(buf_str(&bytes), digest);
	explicit_bzero(bytes.data, bytes.size);
	buf_fini(&bytes);
	for (size_t i = 0; i < size; i++)
		tag[i] = letters[digest[i] % 32];
	tag[size] = '\0';
}

/* Set MADE to the name of the mark of VALUE: NAME-TAG, which no other value has. */
static void name_make(const struct mask *mask, struct str name, struct str value,
		      char made[MASK_NAME_MAX + 1])
{
	char base[MASK_NAME_MAX - TAG_LONG], tag[TAG_LONG + 1];
	size_t size = 0;

	for (; size < name.size && size + 1 < sizeof(base); size++) {
		const char c = name.data[size];

		base[size] = isalnum((unsigned char)c) || c == '_' || c == '-' ? c : '_';
	}
	base[size] = '\0';
	tag_make(mask, value, TAG, tag);
	(void)snprintf(made, MASK_NAME_MAX + 1, "%s-%s", base, tag);
	if (secret_named(mask, str_of(made)) == NULL)
		return;
	tag_make(mask, value, TAG_LONG, tag);
	(void)snprintf(made, MASK_NAME_MAX + 1, "%s-%s", base, tag);
}

/* SHAPED: NAME is that of a shape. The secret that has VALUE now; NULL: there is no room. */
static const struct secret *learn(struct mask *mask, struct str name, bool shaped,
				  struct str value)
{
	size_t at = place_of(mask, value);
	char made[MASK_NAME_MAX + 1];

	if (at < mask->count && mask->secrets[at].size == value.size &&
	    begins_with(value, &mask->secrets[at])) {
		mask->secrets[at].learnt = ++mask->learnt;
		return &mask->secrets[at];
	}
	if (shaped && (mask->shaped == MASK_SHAPES_MAX || mask->count == MASK_VALUES_MAX))
		return NULL;
	if (mask->count == MASK_VALUES_MAX) {
		forget(mask, oldest(mask));
		mask->forgotten++;
		at = place_of(mask, value);
	}
	mask->secrets = memory_more(mask->secrets, mask->count, sizeof(*mask->secrets));
	name_make(mask, name, value, made);
	memmove(mask->secrets + at + 1, mask->secrets + at,
		(mask->count - at) * sizeof(*mask->secrets));
	mask->secrets[at] = (struct secret){.value = memory_copy_str(value),
					    .size = value.size,
					    .name = memory_copy(made),
					    .shaped = shaped,
					    .learnt = ++mask->learnt};
	mask->count++;
	mask->shaped += shaped;
	note_beginnings(mask, at);
	add_value_begin(mask, value.data);
	return &mask->secrets[at];
}

bool mask_learn(struct mask *mask, struct str name, struct str value)
{
	const size_t forgotten = mask->forgotten;

	if (secret_is_value(value))
		(void)learn(mask, name, false, value);
	return mask->forgotten == forgotten;
}

/* Finding a place. */

enum place_kind {
	PLACE_NONE,
	PLACE_VALUE,    /* a known one, or a key of a service */
	PLACE_PASSWORD, /* the "://", the user and the password of a URL */
	PLACE_KEY_HEAD, /* a private key begins */
	PLACE_KEY_TAIL, /* and ends */
	PLACE_QUOTES,   /* one "‹" or more */
};

struct place {
	enum place_kind kind;
	size_t size;
	bool open;
	const char *shape; /* of a value that may be unknown yet; NULL: it is known */
	size_t from, part; /* of the password within the place */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=';
}

/* BEFORE are the two bytes before TEXT. In JSON a line ends with a backslash and "n". */
static bool begins_run(const char before[2], struct str text)
{
	const bool is_escape = before[0] == '\\' && (before[1] == 'n' || before[1] == 'r');

	return is_base64(text.data[0]) && (!is_base64(before[1]) || is_escape) &&
	       !(before[1] == '\\' && (text.data[0] == 'n' || text.data[0] == 'r'));
}

static struct place run_at(const char before[2], struct str text, bool last)
{
	struct place place = {.shape = "private-key"};
	size_t end = 0;

	if (!begins_run(before, text))
		return place;
	while (end < text.size && end < KEY_RUN_MAX && is_base64(text.data[end]))
		end++;
	place.open = !last && end == text.size;
	/* Code and the names of files go on behind such a word. */
	if (end < KEY_RUN_MIN ||
	    (end < text.size && end < KEY_RUN_MAX &&
	     (text.data[end] == '\0' || strchr("\n\r\t \\\"'`<", text.data[end]) == NULL)))
		return place;
	place.kind = PLACE_VALUE;
	place.size = end;
	return place;
}

/*
 * A line of dashes: the head or the tail of a private key. Behind a head its line ends, also as
 * it does in a string, or a blank stands there where a key has one line.
 */
static struct place dashes_at(char before, struct str text, bool last)
{
	static const char *const begins[] = {"-----BEGIN ", "-----END "};
	struct place place = {0};

	if (before == '-')
		return place;
	for (size_t i = 0; i < 2; i++) {
		const struct str begin = str_of(begins[i]);

		if (text.size < begin.size) {
			place.open |=
				!last && memcmp(text.data, begin.data, text.size) == 0;
			continue;
		}
		if (!str_starts(text, begin))
			continue;
		const struct str head = str_part(text, 0, KEY_HEAD_MAX);
		const size_t end = str_find(head, STR("-----"), begin.size);
		const char behind = end + 5 < text.size ? text.data[end + 5] : '\0';
		place.open = !last && (end == (size_t)-1 ? text.size < KEY_HEAD_MAX
							 : text.size == end + 5);
		if (end == (size_t)-1 ||
		    (i == 0 && (behind == '\0' || strchr("\n\r\\ \t", behind) == NULL)) ||
		    str_find(str_part(head, 0, end), STR("PRIVATE KEY"), 0) == (size_t)-1)
			return place;
		place.kind = i == 0 ? PLACE_KEY_HEAD : PLACE_KEY_TAIL;
		place.size = begin.size; /* what follows may hold a value */
		return place;
	}
	return place;
}

/*
 * The secret at the beginning of TEXT: a known value, a key, or a line of a private key.
 * The longest one is meant, and a known one where two are equal.
 */
static struct place value_at(const struct mask_stream *stream, const char before[2],
			     struct str text, bool last)
{
	struct place place = {0};
	const struct secret *known = longest_at(stream->mask, text);

	place.open = !last && is_open(stream->mask, text);
	if (known != NULL) {
		place.kind = PLACE_VALUE;
		place.size = known->size;
	}
	if (!is_word(before[1])) {
		const struct secret_shape key = secret_key_at(text, last);

		place.open = place.open || key.open;
		if (key.size > place.size)
			place = (struct place){.kind = PLACE_VALUE,
					       .size = key.size,
					       .open = place.open,
					       .shape = key.name};
	}
	if (stream->key_bytes > 0) {
		struct place run = run_at(before, text, last);

		run.open = run.open || place.open;
		place.open = run.open;
		if (run.size > place.size)
			place = run;
	}
	return place;
}

static struct place password_at(char before, struct str text, bool last)
{
	struct place place = {0};

	if (!isalnum((unsigned char)before))
		return place;
	const struct secret_shape fit = secret_password_at(text, last);
	place.open = fit.open;
	if (fit.size > 0) {
		place.kind = PLACE_PASSWORD;
		place.size = fit.from + fit.size;
		place.from = fit.from;
		place.part = fit.size;
		place.shape = fit.name;
	}
	return place;
}

static bool is_quote(struct str text, size_t at)
{
	return at + QUOTE <= text.size && memcmp(text.data + at, MASK_BEGIN, QUOTE) == 0;
}

static struct place quotes_at(struct str text, bool last)
{
	struct place place = {.kind = PLACE_QUOTES};

	while (is_quote(text, place.size))
		place.size += QUOTE;
	const struct str rest = str_part(text, place.size, text.size);
	place.open =
		!last && (rest.size < sizeof(MASK_WORD) - 1) &&
		(rest.size == 0 || memcmp(rest.data, MASK_WORD, rest.size) == 0 ||
		 memcmp(rest.data, MASK_BEGIN, rest.size < QUOTE ? rest.size : QUOTE) == 0);
	if (place.size == 0)
		place.kind = PLACE_NONE;
	return place;
}

/* May a value, a key or a line of a private key stand at the beginning of TEXT? */
static bool may_be_value(const struct mask_stream *stream, struct str text, bool last)
{
	if (stream->key_bytes > 0)
		return true;
	return text.size < 3 ? !last : has_bit(stream->mask->values, three_at(text.data));
}

/* The place that begins with TEXT. BEFORE are the two bytes before it. */
static struct place place_at(const struct mask_stream *stream, const char before[2],
			     struct str text, bool last)
{
	struct place place = {0};

	if (text.data[0] == MASK_BEGIN[0])
		place = quotes_at(text, last);
	else if (text.data[0] == '-')
		place = dashes_at(before[1], text, last);
	else if (text.data[0] == ':')
		place = password_at(before[1], text, last);
	if (place.kind != PLACE_NONE)
		return place;
	if (!may_be_value(stream, text, last))
		return place;
	struct place value = value_at(stream, before, text, last);
	value.open = value.open || place.open;
	return value;
}

/*
 * Is there, among the first THREES_AT_ONCE bytes at DATA, one where a place may begin? Reads a
 * whole number. The order of its bytes is that of three_at.
 */
enum { THREES_AT_ONCE = sizeof(uint64_t) - 2 };

static bool has_begin(const struct mask *mask, const char *data)
{
	uint64_t bytes;
	bool has = false;

	memcpy(&bytes, data, sizeof(bytes));
	bytes = le64toh(bytes);
	for (int i = 0; i < THREES_AT_ONCE; i++)
		has |= has_bit(mask->begins, three_of((uint32_t)(bytes >> 8 * i)));
	return has;
}

/* The first offset in TEXT, not before FROM, where a place may begin; its size: none. */
static size_t next_place(const struct mask_stream *stream, struct str text, size_t from,
			 bool last)
{
	const struct mask *mask = stream->mask;

	if (stream->key_bytes > 0)
		return from;
	while (from + sizeof(uint64_t) < text.size && !has_begin(mask, text.data + from))
		from += THREES_AT_ONCE;
	for (; from + 2 < text.size; from++) {
		if (has_bit(mask->begins, three_at(text.data + from)))
			return from;
	}
	/* Two bytes at the end may go on. */
	for (; from < text.size && !last; from++) {
		if (mask->firsts[(unsigned char)text.data[from]])
			return from;
	}
	return text.size;
}

/* Putting marks. */

static bool add_mark(struct mask_stream *stream, struct str value, const char *shape,
		     struct buf *out)
{
	const struct secret *secret =
		shape == NULL ? secret_find(stream->mask, value)
			      : learn(stream->mask, str_of(shape), true, value);

	stream->count++;
	return buf_addf(out, MASK_BEGIN "%s%s" MASK_END,
			secret != NULL ? secret->name : shape,
			secret != NULL ? "" : "-and-more");
}

/* Append the user of a URL, which may be a key as well. */
static bool add_user(struct mask_stream *stream, struct str user, struct buf *out)
{
	const struct secret_shape key = secret_key_at(user, true);

	if (secret_find(stream->mask, user) != NULL)
		return add_mark(stream, user, NULL, out);
	if (key.size > 0 && key.size == user.size)
		return add_mark(stream, user, key.name, out);
	return buf_addstr(out, user);
}

/*
 * Append the quotes at the beginning of TEXT: twice before a mark, and before a text that
 * looks like one. False when it is open whether a mark follows.
 */
static bool add_quotes(struct mask_stream *stream, struct str text, size_t size,
		       bool last, struct buf *out)
{
	const struct str rest = str_part(text, size, text.size);
	const char before[2] = {MASK_BEGIN[1], MASK_BEGIN[2]};
	bool doubles = false;

	if (rest.size > 0) {
		const struct place place = place_at(stream, before, rest, last);

		if (place.open && !last)
			return false;
		doubles = place.kind == PLACE_VALUE || str_starts(rest, STR(MASK_WORD));
	}
	if (doubles)
		(void)buf_add(out, text.data, size);
	(void)buf_add(out, text.data, size);
	return true;
}

/* Append PLACE, at the beginning of TEXT. False: it is open. */
static bool place_add(struct mask_stream *stream, const struct place *place,
		      struct str text, bool last, struct buf *out)
{
	const struct str bytes = str_part(text, 0, place->size);

	switch (place->kind) {
	case PLACE_QUOTES:
		return add_quotes(stream, text, place->size, last, out);
	case PLACE_VALUE:
		stream->idle_lines = 0;
		stream->line_has_run = true;
		(void)add_mark(stream, bytes, place->shape, out);
		return true;
	case PLACE_PASSWORD:
		(void)buf_addstr(out, str_part(bytes, 0, 3));
		(void)add_user(stream, str_part(bytes, 3, place->from - 4), out);
		(void)buf_addc(out, ':');
		(void)add_mark(stream, str_part(bytes, place->from, place->part),
			       place->shape, out);
		return true;
	case PLACE_KEY_HEAD:
		stream->key_bytes = KEY_BYTES;
		stream->idle_lines = 0;
		stream->line_has_run = true;
		break;
	case PLACE_KEY_TAIL:
		stream->key_bytes = 0;
		break;
	case PLACE_NONE:
		break;
	}
	(void)buf_addstr(out, bytes);
	return true;
}

/* The two bytes before offset AT of TEXT. */
static void before_of(const struct mask_stream *stream, struct str text, size_t at,
		      char before[2])
{
	before[1] = at > 0 ? text.data[at - 1] : stream->before[1];
	before[0] = at > 1 ? text.data[at - 2] : stream->before[at == 0 ? 0 : 1];
}

/* In a private key: C, behind the byte BEFORE, may end a line, and with it the key. */
static void end_line(struct mask_stream *stream, char before, char c)
{
	if (stream->key_bytes == 0 || (c != '\n' && (before != '\\' || c != 'n')))
		return;
	stream->idle_lines += !stream->line_has_run;
	stream->line_has_run = false;
	if (stream->idle_lines > KEY_IDLE_MAX)
		stream->key_bytes = 0;
}

/* Append what is decided of TEXT, and return the number of its bytes. */
static size_t add_decided(struct mask_stream *stream, struct str text, bool last,
			  struct buf *out)
{
	size_t at = 0, done = 0;
	char before[2];

	while ((at = next_place(stream, text, at, last)) < text.size) {
		before_of(stream, text, at, before);
		const struct str rest = str_part(text, at, text.size);
		const struct place place = place_at(stream, before, rest, last);
		const size_t size = place.kind != PLACE_NONE ? place.size : 1;

		if (place.open && !last)
			break;
		if (place.kind != PLACE_NONE) {
			(void)buf_add(out, text.data + done, at - done);
			done = at;
			if (!place_add(stream, &place, rest, last, out))
				break;
			done = at + size;
		}
		at += size;
		if (place.kind == PLACE_NONE)
			end_line(stream, before[1], rest.data[0]);
		if (place.kind == PLACE_QUOTES)
			continue;
		/* add_quotes has looked behind them already, so they do not count. */
		stream->key_bytes -= stream->key_bytes < size ? stream->key_bytes : size;
	}
	(void)buf_add(out, text.data + done, at - done);
	before_of(stream, text, at, before);
	memcpy(stream->before, before, sizeof(before));
	return at;
}

void mask_stream_init(struct mask_stream *stream, struct mask *mask)
{
	*stream = (struct mask_stream){.mask = mask};
	buf_init(&stream->held, SIZE_MAX / 2);
}

bool mask_add(struct mask_stream *stream, struct str bytes, bool last, struct buf *out)
{
	struct buf *held = &stream->held;
	const bool joins = held->size > 0;

	if (joins && !buf_addstr(held, bytes))
		return false;
	const struct str text = joins ? buf_str(held) : bytes;
	/* A place that stays open for longer is none. */
	const size_t taken =
		add_decided(stream, text, last || text.size > HELD_MAX + bytes.size, out);
	if (joins)
		buf_remove(held, 0, taken);
	else if (taken < text.size)
		(void)buf_addstr(held, str_part(text, taken, text.size));
	return !out->overflowed;
}

void mask_stream_fini(struct mask_stream *stream)
{
	if (stream->held.capacity > 0)
		explicit_bzero(stream->held.data, stream->held.capacity);
	buf_fini(&stream->held);
}

bool mask_is_clean(const struct mask *mask, struct str text)
{
	const struct mask_stream stream = {.mask = (struct mask *)(uintptr_t)mask};
	char before[2];

	for (size_t at = 0; (at = next_place(&stream, text, at, true)) < text.size; at++) {
		before_of(&stream, text, at, before);
		if (place_at(&stream, before, str_part(text, at, text.size), true).kind !=
		    PLACE_NONE)
			return false;
	}
	return true;
}

/* Turning marks back. */

/* How many bytes at the beginning of TEXT may be those of a name. */
static size_t letters_of(struct str text)
{
	size_t size = 0;

	while (size < text.size && size <= MASK_NAME_MAX + 16 &&
	       (isalnum((unsigned char)text.data[size]) || text.data[size] == '_' ||
		text.data[size] == '-'))
		size++;
	return size;
}

/* The size of the name at the beginning of TEXT, behind which a mark ends; 0: there is none. */
static size_t name_size(struct str text)
{
	const size_t size = letters_of(text);

	return str_starts(str_part(text, size, text.size), STR(MASK_END)) ? size : 0;
}

static void add_value(const struct secret *secret, bool quotes, struct buf *out)
{
	for (size_t i = 0; i < secret->size; i++) {
		const char c = secret->value[i];

		if (quotes && ispunct((unsigned char)c) && c != '_')
			(void)buf_addc(out, '\\');
		(void)buf_addc(out, c);
	}
}

/*
 * The name of a mark of this session in TEXT whose bracket is written as JSON may write it;
 * NULL: there is none.
 */
static const char *escaped_name(const struct mask *mask, struct str text)
{
	const struct str begin = STR(MASK_ESCAPE);

	for (size_t at = str_find(text, begin, 0); at != (size_t)-1;
	     at = str_find(text, begin, at + 1)) {
		const struct str rest = str_part(text, at + begin.size, text.size);
		const struct secret *secret =
			secret_named(mask, str_part(rest, 0, letters_of(rest)));

		if (secret != NULL)
			return secret->name;
	}
	return NULL;
}

enum mask_undone mask_undo(const struct mask *mask, struct str text, bool quotes,
			   struct buf *out)
{
	const struct str begin = STR(MASK_BEGIN);
	const char *escaped = escaped_name(mask, text);
	size_t done = 0, found = str_find(text, begin, 0);

	if (escaped != NULL)
		return buf_adds(out, escaped) ? MASK_ESCAPED : MASK_FULL;
	if (found == (size_t)-1)
		return MASK_PLAIN;
	for (; found != (size_t)-1; found = str_find(text, begin, done)) {
		const struct str rest = str_part(text, found + begin.size, text.size);
		size_t from = found, count = 1;

		while (from >= done + QUOTE && is_quote(text, from - QUOTE)) {
			from -= QUOTE;
			count++;
		}
		(void)buf_addstr(out, str_part(text, done, from - done));
		(void)buf_addstr(out, str_part(text, from, count / 2 * QUOTE));
		done = found + begin.size;
		if (count % 2 == 0) {
			(void)buf_adds(out, MASK_WORD);
			continue;
		}
		const struct str name = str_part(rest, 0, name_size(rest));
		const struct secret *secret = secret_named(mask, name);
		if (secret == NULL) {
			buf_clear(out);
			(void)buf_addstr(out, name);
			return MASK_UNKNOWN;
		}
		add_value(secret, quotes, out);
		done += name.size + QUOTE;
	}
	(void)buf_addstr(out, str_part(text, done, text.size));
	return out->overflowed ? MASK_FULL : MASK_UNDONE;
}

bool mask_is_named(const struct mask *mask, struct str text)
{
	const struct str begin = STR(MASK_BEGIN);

	for (size_t at = str_find(text, begin, 0); at != (size_t)-1;
	     at = str_find(text, begin, at + 1)) {
		const struct str rest = str_part(text, at + begin.size, text.size);

		if (secret_named(mask, str_part(rest, 0, name_size(rest))) != NULL)
			return true;
	}
	return false;
}
