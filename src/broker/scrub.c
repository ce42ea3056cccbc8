/*
 * scrub: finds the forms of a secret in a stream.
 *
 * A form is a text: the secret, and its Base64. A form stands in the stream when each of
 * its characters does: as it is, as %XX, as \uXXXX, or behind a backslash. A byte of the
 * stream that belongs to such a place becomes "*".
 *
 * Most bytes belong to none. A table of all pairs of bytes says with which two bytes a
 * place can begin, and one comparison of 16 bytes passes over those without such a pair
 * (bench `broker`: twice as fast as the table by itself). A place that begins at the end of
 * what has come may go on later, so the stream holds its bytes back.
 */

#include "broker/scrub.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* the secret, and in JSON; Base64 alone, with a user, three within: two alphabets */
	FORMS_MAX = 12 * (SCRUB_SECRETS_MAX + 1),
	/* With more pairs the table by itself is faster. */
	VECTORS_MAX = 16,
	/* The longest place of the longest key (16 KiB, in Base64, each character escaped). */
	HELD_MAX = 256 << 10,
	ESCAPE_MAX = 6, /* bytes for a character: "\u0041" */
	PAIRS = 1 << 16,
	GROUP_BYTES = 3, /* of Base64: become … */
	GROUP_CHARACTERS = 4,
	/* A shorter part of a Base64 would be found in any text. */
	FORM_MIN = 6,
	PIECE_MAX = 64 << 10, /* bytes that are joined to held ones */
	/* A text that is no secret fits the beginning of one for some bytes only. */
	LONG_HELD = 1 << 10,
	LONG_PART = 8,
};

struct form {
	char *text;
	size_t size;
	uint64_t secret;  /* its number; the first form of each is the secret itself */
	int64_t until_ms; /* it lives until then */
};

struct scrub {
	struct form *forms; /* those of the secret that was learned longest ago come first */
	size_t count;
	uint64_t learned; /* the number of the newest secret */
	uint8_t pairs[PAIRS / 8];
	/* the first two bytes of the forms, each pair once; more than VECTORS_MAX: none */
	byte_vector firsts[VECTORS_MAX], seconds[VECTORS_MAX];
	char vectors[VECTORS_MAX][2];
	size_t vector_count;
};

/* Making the forms. */

static void add_form(struct scrub *scrub, struct str text)
{
	for (size_t i = 0; i < scrub->count; i++) {
		const struct form *form = &scrub->forms[i];

		if (form->secret == scrub->learned &&
		    str_equal((struct str){form->text, form->size}, text))
			return;
	}
	assert(scrub->count < FORMS_MAX);
	scrub->forms[scrub->count++] =
		(struct form){memory_copy_str(text), text.size, scrub->learned, 0};
}

/*
 * Add the JSON of SECRET. The escapes of a form leave it open whether a "%" or a backslash
 * of the secret stands for itself; this form is compared as it is.
 */
static void add_json(struct scrub *scrub, struct str secret)
{
	struct buf text;

	buf_init(&text, ESCAPE_MAX * secret.size + 2);
	(void)buf_reserve(&text, text.max);
	(void)value_quote(secret, &text);
	add_form(scrub, str_part(buf_str(&text), 1, text.size - 2));
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
}

/*
 * Add the Base64 of BYTES in both alphabets, without its first SKIP and last DROPPED
 * characters.
 */
static void add_base64(struct scrub *scrub, struct str bytes, size_t skip, size_t dropped)
{
	struct buf text;

	buf_init(&text, 2 * bytes.size + GROUP_CHARACTERS);
	(void)buf_reserve(&text, 2 * bytes.size + GROUP_CHARACTERS);
	(void)buf_base64_add(bytes, &text);
	while (text.size > 0 && text.data[text.size - 1] == '=')
		buf_truncate(&text, text.size - 1);
	if (text.size >= skip + dropped + FORM_MIN) {
		char *from = text.data + skip;
		size_t size = text.size - skip - dropped;

		add_form(scrub, (struct str){from, size});
		for (size_t i = 0; i < size; i++)
			from[i] = from[i] == '+' ? '-' : from[i] == '/' ? '_' : from[i];
		add_form(scrub, (struct str){from, size});
	}
	explicit_bzero(text.data, text.capacity);
	buf_fini(&text);
}

/*
 * Add the Base64 of something longer that has BEFORE bytes (of a group) in front of
 * SECRET: only the characters whose six bits are all of SECRET.
 */
static void add_within(struct scrub *scrub, struct str secret, size_t before)
{
	const size_t room = secret.size + GROUP_BYTES;
	auto_free char *bytes = memory_alloc(room);
	const size_t bits = (before + secret.size) * 8;

	memcpy(bytes + before, secret.data, secret.size);
	/* The first whole character, and whether the last one is cut. */
	add_base64(scrub, (struct str){bytes, before + secret.size}, (before * 8 + 5) / 6,
		   bits % 6 != 0 ? 1 : 0);
	explicit_bzero(bytes, room);
}

/* Building the table of pairs. */

static void add_pair(struct scrub *scrub, unsigned char first, unsigned char second)
{
	size_t pair = (size_t)first | (size_t)second << 8;

	scrub->pairs[pair / 8] |= (uint8_t)(1U << pair % 8);
}

static void add_pairs(struct scrub *scrub, const struct form *form)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char first = (unsigned char)form->text[0];
	const unsigned char second = (unsigned char)form->text[1];
	const unsigned char high = (unsigned char)digits[first >> 4];

	add_pair(scrub, first, second);
	add_pair(scrub, first, '%');
	add_pair(scrub, first, '\\');
	add_pair(scrub, '%', high);
	add_pair(scrub, '%', (unsigned char)toupper(high));
	add_pair(scrub, '\\', first);
	add_pair(scrub, '\\', 'u');
}

static void add_vector(struct scrub *scrub, const struct form *form)
{
	for (size_t i = 0; i < scrub->vector_count && i < VECTORS_MAX; i++) {
		if (memcmp(scrub->vectors[i], form->text, 2) == 0)
			return;
	}
	if (scrub->vector_count < VECTORS_MAX) {
		memcpy(scrub->vectors[scrub->vector_count], form->text, 2);
		scrub->firsts[scrub->vector_count] = byte_vector_of(form->text[0]);
		scrub->seconds[scrub->vector_count] = byte_vector_of(form->text[1]);
	}
	scrub->vector_count++;
}

static void tables_make(struct scrub *scrub)
{
	memset(scrub->pairs, 0, sizeof(scrub->pairs));
	scrub->vector_count = 0;
	for (size_t i = 0; i < scrub->count; i++) {
		add_pairs(scrub, &scrub->forms[i]);
		add_vector(scrub, &scrub->forms[i]);
	}
}

struct scrub *scrub_new(void)
{
	struct scrub *scrub = memory_alloc(sizeof(*scrub));

	scrub->forms = memory_array(FORMS_MAX, sizeof(*scrub->forms));
	return scrub;
}

static void form_fini(struct form *form)
{
	explicit_bzero(form->text, form->size);
	free(form->text);
}

/* Forget the dead secret that was learned longest ago; where none is dead, a living one. */
static void forget_oldest(struct scrub *scrub)
{
	const int64_t now_ms = clock_now_ms();
	size_t from = 0, count = 0;

	while (from < scrub->count && scrub->forms[from].until_ms > now_ms)
		from++;
	if (from == scrub->count)
		from = 0;
	const uint64_t oldest = scrub->forms[from].secret;
	while (from + count < scrub->count && scrub->forms[from + count].secret == oldest)
		form_fini(&scrub->forms[from + count++]);
	scrub->count -= count;
	memmove(scrub->forms + from, scrub->forms + from + count,
		(scrub->count - from) * sizeof(*scrub->forms));
}

/* The number of secrets that live after AFTER_MS. */
static size_t count_secrets(const struct scrub *scrub, int64_t after_ms)
{
	size_t count = 0;

	for (size_t i = 0; i < scrub->count; i++)
		count += (i == 0 || scrub->forms[i].secret != scrub->forms[i - 1].secret) &&
			 scrub->forms[i].until_ms > after_ms;
	return count;
}

/* Is SECRET known? Then it becomes the newest. */
static bool make_newest(struct scrub *scrub, struct str secret)
{
	struct form moved[FORMS_MAX / (SCRUB_SECRETS_MAX + 1)];
	size_t from = 0, count = 0;

	while (from < scrub->count &&
	       ((from > 0 && scrub->forms[from].secret == scrub->forms[from - 1].secret) ||
		!str_equal((struct str){scrub->forms[from].text, scrub->forms[from].size},
			   secret)))
		from++;
	if (from == scrub->count)
		return false;
	while (from + count < scrub->count &&
	       scrub->forms[from + count].secret == scrub->forms[from].secret) {
		moved[count] = scrub->forms[from + count];
		count++;
	}
	scrub->learned++;
	for (size_t i = 0; i < count; i++)
		moved[i].secret = scrub->learned;
	memmove(scrub->forms + from, scrub->forms + from + count,
		(scrub->count - from - count) * sizeof(*scrub->forms));
	memcpy(scrub->forms + scrub->count - count, moved, count * sizeof(*scrub->forms));
	return true;
}

static void learn(struct scrub *scrub, struct str secret, const char *user, int64_t until_ms)
{
	scrub->learned++;
	add_form(scrub, secret);
	add_json(scrub, secret);
	add_base64(scrub, secret, 0, 0);
	for (size_t before = 0; before < GROUP_BYTES; before++)
		add_within(scrub, secret, before);
	if (user != NULL) {
		struct buf both;

		buf_init(&both, strlen(user) + 1 + secret.size);
		(void)buf_reserve(&both, both.max);
		(void)buf_addf(&both, "%s:", user);
		(void)buf_addstr(&both, secret);
		add_base64(scrub, buf_str(&both), 0, 0);
		explicit_bzero(both.data, both.size);
		buf_fini(&both);
	}
	for (size_t i = 0; i < scrub->count; i++)
		if (scrub->forms[i].secret == scrub->learned)
			scrub->forms[i].until_ms = until_ms;
	if (count_secrets(scrub, INT64_MIN) > SCRUB_SECRETS_MAX)
		forget_oldest(scrub);
	tables_make(scrub);
}

bool scrub_learn(struct scrub *scrub, struct str secret, const char *user, int64_t life_ms)
{
	const int64_t now_ms = clock_now_ms();

	assert(secret.size > 1);
	if (!make_newest(scrub, secret))
		learn(scrub, secret, user, now_ms + life_ms);
	return count_secrets(scrub, now_ms) + SCRUB_SPARE <= SCRUB_SECRETS_MAX;
}

void scrub_free(struct scrub *scrub)
{
	if (scrub == NULL)
		return;
	for (size_t i = 0; i < scrub->count; i++)
		form_fini(&scrub->forms[i]);
	free(scrub->forms);
	explicit_bzero(scrub, sizeof(*scrub));
	free(scrub);
}

/* Comparing. */

/* How a form fits the bytes at one place. */
struct fit {
	size_t size; /* of the longest place there; 0: none */
	bool open;   /* the bytes end before it is decided */
};

/* Does the escape WANTED stand at the beginning of BYTES? Its size; 0: no. */
static size_t fit_escape(const char *wanted, struct str bytes, bool *open)
{
	const size_t size = strlen(wanted);

	for (size_t i = 0; i < size; i++) {
		if (i >= bytes.size) {
			*open = true;
			return 0;
		}
		if (tolower((unsigned char)bytes.data[i]) != wanted[i])
			return 0;
	}
	return size;
}

/* How C may stand at the beginning of BYTES: the number of bytes; 0: it does not. */
static size_t fit_character(unsigned char c, struct str bytes, bool *open)
{
	static const char digits[] = "0123456789abcdef";
	const char percent[] = {'%', digits[c >> 4], digits[c & 15], '\0'};
	const char unicode[] = {'\\',           'u', '0', '0', digits[c >> 4],
				digits[c & 15], '\0'};
	const char first = bytes.size > 0 ? bytes.data[0] : '\0';
	size_t size = 0;

	if (bytes.size == 0) {
		*open = true;
		return 0;
	}
	if (first == '%')
		size = fit_escape(percent, bytes, open);
	else if (first == '\\' && bytes.size > 1 && bytes.data[1] != 'u')
		size = (unsigned char)bytes.data[1] == c ? 2 : 0;
	else if (first == '\\')
		size = fit_escape(unicode, bytes, open);
	return size > 0 ? size : (unsigned char)first == c ? 1 : 0;
}

/* Does FORM stand at the beginning of BYTES? */
static struct fit fit_form(const struct form *form, struct str bytes)
{
	size_t same = form->size < bytes.size ? form->size : bytes.size, at = 0;
	struct fit fit = {0};

	/* As it is: such a form may itself have % and backslashes. */
	if (memcmp(form->text, bytes.data, same) == 0) {
		fit.size = same == form->size ? same : 0;
		fit.open = same < form->size;
	}
	for (size_t i = 0; i < form->size; i++) {
		size_t size = fit_character((unsigned char)form->text[i],
					    str_part(bytes, at, bytes.size), &fit.open);

		if (size == 0)
			return fit;
		at += size;
	}
	if (at > fit.size)
		fit.size = at;
	return fit;
}

static struct fit fit_any(const struct scrub *scrub, struct str bytes)
{
	struct fit longest = {0};

	for (size_t i = 0; i < scrub->count; i++) {
		struct fit fit = fit_form(&scrub->forms[i], bytes);

		longest.open = longest.open || fit.open;
		if (fit.size > longest.size)
			longest.size = fit.size;
	}
	return longest;
}

static bool is_place(const struct scrub *scrub, const char *at)
{
	size_t pair = (size_t)(unsigned char)at[0] | (size_t)(unsigned char)at[1] << 8;

	return (scrub->pairs[pair / 8] >> pair % 8 & 1) != 0;
}

/*
 * Is there, among the BYTE_VECTOR bytes at AT, a form that is not escaped in its first two
 * characters, or any escape? Reads one byte more.
 */
static bool may_have_place(const struct scrub *scrub, const char *at)
{
	byte_vector hits = byte_vector_equal(at, byte_vector_of('%')) |
			   byte_vector_equal(at + 1, byte_vector_of('%')) |
			   byte_vector_equal(at, byte_vector_of('\\')) |
			   byte_vector_equal(at + 1, byte_vector_of('\\'));

	if (scrub->vector_count > VECTORS_MAX)
		return true;
	for (size_t i = 0; i < scrub->vector_count; i++)
		hits |= byte_vector_equal(at, scrub->firsts[i]) &
			byte_vector_equal(at + 1, scrub->seconds[i]);
	return byte_vector_first(hits) < BYTE_VECTOR;
}

/* The first offset in BYTES, not before FROM, where a pair is in the table; the last byte. */
static size_t next_place(const struct scrub *scrub, struct str bytes, size_t from)
{
	while (from + 1 < bytes.size) {
		size_t end = from + BYTE_VECTOR;

		if (end >= bytes.size)
			end = bytes.size - 1;
		else if (!may_have_place(scrub, bytes.data + from))
			from = end;
		for (; from < end; from++) {
			if (is_place(scrub, bytes.data + from))
				return from;
		}
	}
	return from;
}

/* A stream. */

void scrub_stream_init(struct scrub_stream *stream, const struct scrub *scrub)
{
	*stream = (struct scrub_stream){.scrub = scrub};
	buf_init(&stream->held, scrub == NULL ? 0 : HELD_MAX + PIECE_MAX);
}

/*
 * Append to OUT the bytes of BYTES, up to the first one that may begin an open place.
 * *TAKEN is their number. LAST: nothing follows, so no place is open.
 */
static bool scrub_piece(struct scrub_stream *stream, struct str bytes, bool last,
			size_t *taken, struct buf *out)
{
	const struct scrub *scrub = stream->scrub;
	size_t covered = stream->covered, hold = bytes.size, done = 0;
	char *to = buf_reserve(out, bytes.size);

	if (to == NULL)
		return false;
	memcpy(to, bytes.data, bytes.size);
	memset(to, '*', covered);
	for (size_t at = 0; (at = next_place(scrub, bytes, at)) < bytes.size; at++) {
		struct fit fit = fit_any(scrub, str_part(bytes, at, bytes.size));

		if (fit.open && !last) {
			hold = at;
			break;
		}
		done = at > covered ? at : covered;
		if (fit.size > 0 && at + fit.size > covered) {
			covered = at + fit.size;
			memset(to + done, '*', covered - done);
		}
	}
	buf_commit(out, hold);
	stream->covered = covered > hold ? covered - hold : 0;
	*taken = hold;
	return true;
}

bool scrub_add(struct scrub_stream *stream, struct str bytes, struct buf *out)
{
	struct buf *held = &stream->held;
	size_t taken;

	if (stream->scrub == NULL)
		return buf_addstr(out, bytes);
	while (bytes.size > 0) {
		struct str piece = str_part(bytes, 0, PIECE_MAX);

		bytes = str_part(bytes, piece.size, bytes.size);
		if (held->size == 0) {
			if (!scrub_piece(stream, piece, false, &taken, out) ||
			    !buf_addstr(held, str_part(piece, taken, piece.size)))
				return false;
			continue;
		}
		/*
		 * The held bytes are compared from their beginning. So a long tail that comes
		 * byte by byte is compared whenever it has grown by a part of itself.
		 */
		stream->unseen += piece.size;
		if (held->size > LONG_HELD && stream->unseen < held->size / LONG_PART) {
			if (!buf_addstr(held, piece))
				return false;
			continue;
		}
		stream->unseen = 0;
		if (!buf_addstr(held, piece) ||
		    !scrub_piece(stream, buf_str(held), false, &taken, out))
			return false;
		buf_remove(held, 0, taken);
	}
	return true;
}

bool scrub_end(struct scrub_stream *stream, struct buf *out)
{
	size_t taken;

	if (stream->held.size == 0)
		return true;
	bool fine = scrub_piece(stream, buf_str(&stream->held), true, &taken, out);
	buf_clear(&stream->held);
	return fine;
}

void scrub_stream_fini(struct scrub_stream *stream)
{
	if (stream->held.capacity > 0)
		explicit_bzero(stream->held.data, stream->held.capacity);
	buf_fini(&stream->held);
}

bool scrub_whole(const struct scrub *scrub, struct str bytes, struct buf *out)
{
	struct scrub_stream stream;

	scrub_stream_init(&stream, scrub);
	bool fine = scrub_add(&stream, bytes, out) && scrub_end(&stream, out);
	scrub_stream_fini(&stream);
	return fine;
}
