#include "tui/typing.h"

#include "base/text/text.h"
#include "tui/term.h"

#include <stdint.h>
#include <string.h>

/* Reads the bytes that keys send. */

enum {
	ESCAPE = 0x1b,
	/* No key sends a longer sequence: it is thrown away as it comes. */
	SEQUENCE_MAX = 32,
	PARAMETERS_MAX = 4,
	ALT = 3, /* a modifier (by_words) */
};

static const char paste_end[] = "\x1b[201~";
/* U+FFFD, in place of bytes that cannot be shown. */
static const char bad_character[] = "\xef\xbf\xbd";

static const enum typing_key control_keys[32] = {
	[0x01] = TYPING_HOME,
	[0x02] = TYPING_LEFT,
	[0x03] = TYPING_INTERRUPT,
	[0x04] = TYPING_EOF,
	[0x05] = TYPING_END,
	[0x06] = TYPING_RIGHT,
	[0x07] = TYPING_CANCEL,
	[0x08] = TYPING_BACKSPACE,
	[0x09] = TYPING_TAB,
	/*
	 * Enter as well: before the terminal was raw, the kernel translated "\r" to "\n".
	 */
	[0x0a] = TYPING_ENTER,
	[0x0b] = TYPING_KILL_TO_END,
	[0x0c] = TYPING_CLEAR,
	[0x0d] = TYPING_ENTER,
	[0x0e] = TYPING_DOWN,
	[0x10] = TYPING_UP,
	[0x12] = TYPING_SEARCH,
	[0x13] = TYPING_SEARCH_ON,
	[0x14] = TYPING_SWAP,
	[0x15] = TYPING_KILL_TO_START,
	[0x17] = TYPING_KILL_WORD_LEFT,
	[0x19] = TYPING_YANK,
	[0x1a] = TYPING_SUSPEND,
};

void typing_init(struct typing *typing)
{
	*typing = (struct typing){0};
	buf_init(&typing->held, TYPING_MAX);
}

void typing_fini(struct typing *typing)
{
	buf_fini(&typing->held);
}

bool typing_add(struct typing *typing, struct str bytes)
{
	buf_remove(&typing->held, 0, typing->at);
	typing->at = 0;
	typing->settled = false;
	return buf_addstr(&typing->held, bytes);
}

static struct str rest_of(const struct typing *typing)
{
	return str_part(buf_str(&typing->held), typing->at, typing->held.size);
}

/* Do the bytes that have come begin an answer of the terminal, whose end has not come? */
static bool is_torn_answer(const struct typing *typing)
{
	size_t size;

	return !typing->pasting && typing->at < typing->held.size &&
	       term_match(rest_of(typing), &size) == TERM_TORN;
}

void typing_clear(struct typing *typing)
{
	if (is_torn_answer(typing))
		return;
	buf_clear(&typing->held);
	typing->at = 0;
	typing->settled = typing->pasting = typing->after_return = false;
	typing->gave_up = TYPING_WHOLE;
}

bool typing_waits(const struct typing *typing)
{
	return (typing->at < typing->held.size && !is_torn_answer(typing)) ||
	       typing->pasting;
}

/* REST does not begin with a complete character: may more bytes make it one? */
static bool is_torn(struct str rest)
{
	unsigned char first = (unsigned char)rest.data[0];
	size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

	if (first < 0xc2 || first > 0xf4 || rest.size >= size)
		return false;
	for (size_t i = 1; i < rest.size; i++) {
		if (((unsigned char)rest.data[i] & 0xc0) != 0x80)
			return false;
	}
	return true;
}

/*
 * Is CHARACTER a control? The C1 controls U+0080 to U+009F have two bytes, and some
 * terminals obey them.
 */
static bool is_control(struct str character)
{
	unsigned char first = (unsigned char)character.data[0];

	return first < ' ' || first == 0x7f ||
	       (character.size == 2 && first == 0xc2 &&
		(unsigned char)character.data[1] < 0xa0);
}

/*
 * Append all typed characters that have come to TEXT. At least one byte is taken, unless
 * the first character is torn. False: it is.
 */
static bool take_text(struct typing *typing, struct buf *text)
{
	struct str rest = rest_of(typing);
	size_t taken = 0;

	while (taken < rest.size) {
		struct str at = str_part(rest, taken, rest.size);
		size_t size = text_utf8_length(at);
		unsigned char first = (unsigned char)at.data[0];

		if (first < ' ' || first == 0x7f)
			break;
		if (size == 0 && !typing->settled && is_torn(at))
			break;
		if (size == 0 || is_control(str_part(at, 0, size)))
			(void)buf_adds(text, bad_character);
		else
			(void)buf_add(text, at.data, size);
		taken += size > 0 ? size : 1;
	}
	typing->at += taken;
	return taken > 0;
}

static void add_pasted(struct typing *typing, struct str character, struct buf *text)
{
	char first = character.data[0];
	bool follows_return = typing->after_return;

	typing->after_return = first == '\r';
	if (first == '\n' && follows_return)
		return;
	if (first == '\r' || first == '\n')
		(void)buf_addc(text, '\n');
	else if (first == '\t' || !is_control(character))
		(void)buf_addstr(text, character);
	else
		(void)buf_adds(text, bad_character);
}

/*
 * Take pasted text up to the end mark of the paste, or up to bytes that may begin this
 * mark.
 */
static bool take_paste(struct typing *typing, enum typing_key *key, struct buf *text)
{
	struct str rest = rest_of(typing);
	size_t taken = 0;

	*key = TYPING_PASTE;
	while (taken < rest.size) {
		struct str at = str_part(rest, taken, rest.size);
		size_t size = text_utf8_length(at);

		if (at.data[0] == ESCAPE) {
			size_t same = at.size < sizeof(paste_end) - 1
					      ? at.size
					      : sizeof(paste_end) - 1;

			if ((same == sizeof(paste_end) - 1 || !typing->settled) &&
			    memcmp(at.data, paste_end, same) == 0) {
				if (same == sizeof(paste_end) - 1) {
					typing->pasting = false;
					taken += same;
				}
				break;
			}
		}
		if (size == 0 && !typing->settled && is_torn(at))
			break;
		add_pasted(typing, size > 0 ? str_part(at, 0, size) : STR("\x7f"), text);
		taken += size > 0 ? size : 1;
	}
	typing->at += taken;
	if (typing->settled)
		typing->pasting = false;
	return taken > 0;
}

/* A parsed "CSI 1 ; 5 C". */
struct sequence {
	unsigned parameters[PARAMETERS_MAX];
	size_t count;
	char last;
};

/*
 * The control sequence at the front of TEXT (behind ESC and "[" or "O"), of *SIZE bytes;
 * false: it is not complete yet.
 */
static bool parse_sequence(struct str text, struct sequence *sequence, size_t *size)
{
	*sequence = (struct sequence){.count = 1};
	for (*size = 0; *size < text.size; (*size)++) {
		unsigned char c = (unsigned char)text.data[*size];
		unsigned *number = &sequence->parameters[sequence->count - 1];

		if (c >= '0' && c <= '9') {
			if (*number < 10000)
				*number = *number * 10 + c - (unsigned)'0';
		} else if (c == ';') {
			if (sequence->count < PARAMETERS_MAX)
				sequence->count++;
		} else if (c >= 0x40 && c <= 0x7e) {
			sequence->last = (char)c;
			(*size)++;
			return true;
		} else if (c < ' ' || c >= 0x7f) {
			/* The sequence has no end; this byte is a key of its own. */
			return true;
		}
		if (*size >= SEQUENCE_MAX)
			return true;
	}
	return false;
}

/*
 * xterm's modifier is 1 plus the sum of Shift 1, Alt 2 and Ctrl 4. An arrow with Alt or
 * Ctrl moves by words.
 */
static bool by_words(const struct sequence *sequence)
{
	return sequence->count > 1 && sequence->parameters[1] > 2 &&
	       sequence->parameters[1] <= 8;
}

static enum typing_key numbered_key(struct typing *typing, const struct sequence *sequence)
{
	switch (sequence->parameters[0]) {
	case 1:
	case 7:
		return TYPING_HOME;
	case 4:
	case 8:
		return TYPING_END;
	case 3:
		return by_words(sequence) ? TYPING_KILL_WORD_RIGHT : TYPING_DELETE;
	case 200:
		typing->pasting = true;
		typing->after_return = false;
		return TYPING_NONE;
	default:
		return TYPING_NONE;
	}
}

static enum typing_key sequence_key(struct typing *typing, const struct sequence *sequence)
{
	bool words = by_words(sequence);

	switch (sequence->last) {
	case 'A':
		return sequence->count > 1 && sequence->parameters[1] == ALT
			       ? TYPING_TAKE_BACK
			       : TYPING_UP;
	case 'B':
		return TYPING_DOWN;
	case 'C':
		return words ? TYPING_WORD_RIGHT : TYPING_RIGHT;
	case 'D':
		return words ? TYPING_WORD_LEFT : TYPING_LEFT;
	case 'H':
		return TYPING_HOME;
	case 'F':
		return TYPING_END;
	case 'M':
		return TYPING_ENTER; /* Enter of the number pad */
	case 'u':
		return sequence->parameters[0] == '\r' && sequence->count > 1
			       ? TYPING_NEW_LINE
			       : TYPING_NONE;
	case '~':
		return numbered_key(typing, sequence);
	default:
		return TYPING_NONE;
	}
}

static enum typing_key alt_key(unsigned char byte)
{
	switch (byte) {
	case '\r':
	case '\n':
		return TYPING_NEW_LINE;
	case 'b':
	case 'B':
		return TYPING_WORD_LEFT;
	case 'f':
	case 'F':
		return TYPING_WORD_RIGHT;
	case 'd':
	case 'D':
		return TYPING_KILL_WORD_RIGHT;
	case 0x08:
	case 0x7f:
		return TYPING_KILL_NAME_LEFT;
	case '<':
		return TYPING_HOME;
	case '>':
		return TYPING_END;
	default:
		return TYPING_NONE;
	}
}

/* Take the key or sequence that begins with Escape. False: it is not complete yet. */
static bool take_escape(struct typing *typing, enum typing_key *key)
{
	struct str rest = rest_of(typing);
	struct sequence sequence;
	size_t size;

	/* Escape twice: the first is the key, the second may begin a sequence. */
	if (rest.size < 2 ? typing->settled : rest.data[1] == ESCAPE) {
		*key = TYPING_ESCAPE;
		typing->at++;
		if (rest.size < 2)
			typing->gave_up = TYPING_GAVE_UP_ESCAPE;
		return true;
	}
	if (rest.size < 2)
		return false;
	if (term_match(rest, &size) == TERM_MAYBE) {
		if (!typing->settled)
			return false;
		typing->gave_up = TYPING_GAVE_UP_TWO;
		typing->gave_up_character = rest.data[1];
	}
	if (rest.data[1] != '[' && rest.data[1] != 'O') {
		size = text_utf8_length(str_part(rest, 1, rest.size));
		*key = alt_key((unsigned char)rest.data[1]);
		typing->at += 1 + (size > 0 ? size : 1);
		return true;
	}
	if (!parse_sequence(str_part(rest, 2, rest.size), &sequence, &size) &&
	    !typing->settled)
		return false;
	*key = sequence_key(typing, &sequence);
	typing->at += 2 + size;
	return true;
}

/*
 * Put back the Escape before the rest of an answer, when an Escape was taken for a key and what
 * follows it is no text that a person types.
 */
static void mend_answer(struct typing *typing)
{
	struct buf whole;
	size_t size;

	if (typing->gave_up == TYPING_WHOLE || typing->at == typing->held.size)
		return;
	buf_init(&whole, TYPING_MAX + 2);
	(void)buf_addc(&whole, ESCAPE);
	if (typing->gave_up == TYPING_GAVE_UP_TWO)
		(void)buf_addc(&whole, typing->gave_up_character);
	typing->gave_up = TYPING_WHOLE;
	(void)buf_addstr(&whole, rest_of(typing));
	if (term_match(buf_str(&whole), &size) > TERM_MAYBE) {
		buf_clear(&typing->held);
		(void)buf_addstr(&typing->held, buf_str(&whole));
		typing->at = 0;
	}
	buf_fini(&whole);
}

/* Take an answer of the terminal. False: none has come. */
static bool take_answer(struct typing *typing, enum typing_key *key, struct buf *text)
{
	const struct str rest = rest_of(typing);
	size_t size;

	if (term_match(rest, &size) != TERM_ANSWER)
		return false;
	*key = TYPING_ANSWER;
	typing->at += size;
	return buf_addstr(text, str_part(rest, 0, size));
}

bool typing_next(struct typing *typing, enum typing_key *key, struct buf *text)
{
	unsigned char first;

	if (typing->pasting)
		return take_paste(typing, key, text);
	mend_answer(typing);
	if (!typing_waits(typing))
		return false;
	if (take_answer(typing, key, text))
		return true;
	first = (unsigned char)typing->held.data[typing->at];
	if (first == ESCAPE)
		return take_escape(typing, key);
	if (first < ' ' || first == 0x7f) {
		*key = first == 0x7f ? TYPING_BACKSPACE : control_keys[first];
		typing->at++;
		return true;
	}
	*key = TYPING_TEXT;
	return take_text(typing, text);
}

void typing_settle(struct typing *typing)
{
	typing->settled = true;
}
