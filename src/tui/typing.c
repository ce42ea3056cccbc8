#include "tui/typing.h"

#include "base/text/text.h"
#include "tui/term.h"

#include <stdint.h>
#include <string.h>

/* Reads the bytes that keys send. */

enum {
	ESCAPE = 0x1b,
	INTERRUPT = 0x03, /* Ctrl+C */
	/* No key sends a longer sequence: it is thrown away as it comes. */
	SEQUENCE_MAX = 32,
	PARAMETERS_MAX = 4,
	NUMBER_MAX = 0x110000, /* no parameter of ours is larger */
};

static const char paste_end[] = "\x1b[201~";
/* U+FFFD, in place of bytes that cannot be shown. */
static const char bad_character[] = "\xef\xbf\xbd";

void typing_init(struct typing *typing)
{
	*typing = (struct typing){0};
	keys_init(&typing->keys);
	buf_init(&typing->held, TYPING_MAX);
}

void typing_fini(struct typing *typing)
{
	buf_fini(&typing->held);
}

static bool is_line_end(char byte)
{
	return byte == '\r' || byte == '\n';
}

static bool is_typed_text(char byte)
{
	return (unsigned char)byte >= ' ' && byte != 0x7f;
}

/* May the line end that is the next byte belong to a paste that the terminal has not marked? */
static bool is_of_paste(const struct typing *typing)
{
	const struct str held = buf_str(&typing->held);

	return !typing->marks && typing->after_text && typing->at >= typing->early &&
	       typing->at < held.size && is_line_end(held.data[typing->at]);
}

bool typing_add(struct typing *typing, struct str bytes)
{
	if (!is_of_paste(typing))
		typing->after_text = false;
	buf_remove(&typing->held, 0, typing->at);
	typing->early -= typing->early < typing->at ? typing->early : typing->at;
	typing->at = 0;
	typing->settled = false;
	return buf_addstr(&typing->held, bytes);
}

bool typing_add_early(struct typing *typing, struct str bytes)
{
	if (!typing_add(typing, bytes))
		return false;
	typing->early = typing->held.size;
	return true;
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
	typing->at = typing->early = 0;
	typing->settled = typing->burst = typing->pasting = typing->after_return = false;
	typing->after_text = false;
	typing->gave_up = TYPING_WHOLE;
}

bool typing_waits(const struct typing *typing)
{
	return (typing->at < typing->held.size && !is_torn_answer(typing)) ||
	       typing->pasting;
}

int typing_patience_ms(const struct typing *typing)
{
	if (typing->pasting)
		return TYPING_PASTE_MS;
	if (typing_waits(typing))
		return is_of_paste(typing) ? TYPING_SOON_MS : TYPING_SEQUENCE_MS;
	return typing->burst ? TYPING_SOON_MS : -1;
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

/* Is there the mark of the paste's end, or its beginning, at the front of TEXT? */
static bool is_paste_end(const struct typing *typing, struct str text, bool *whole)
{
	const size_t size = sizeof(paste_end) - 1;

	*whole = text.size >= size;
	return text.data[0] == ESCAPE && (*whole || !typing->settled) &&
	       memcmp(text.data, paste_end, *whole ? size : text.size) == 0;
}

/*
 * Take pasted text up to the end mark of the paste, or up to bytes that may begin this
 * mark; or the end itself.
 */
static bool take_paste(struct typing *typing, enum typing_key *key, struct buf *text)
{
	struct str rest = rest_of(typing);
	size_t taken = 0;
	bool whole = false;

	*key = TYPING_PASTE;
	if (rest.size == 0 ? typing->settled : is_paste_end(typing, rest, &whole) && whole) {
		*key = TYPING_PASTE_END;
		typing->pasting = false;
		typing->at += whole ? sizeof(paste_end) - 1 : 0;
		return true;
	}
	if (typing->pasted > TYPING_PASTE_MAX && rest.size > 0 && rest.data[0] == INTERRUPT) {
		*key = TYPING_PASTE_END;
		typing->pasting = false;
		typing->at++;
		return true;
	}
	while (taken < rest.size) {
		struct str at = str_part(rest, taken, rest.size);
		size_t size = text_utf8_length(at);

		if (is_paste_end(typing, at, &whole) ||
		    (typing->pasted > TYPING_PASTE_MAX && at.data[0] == INTERRUPT) ||
		    (size == 0 && !typing->settled && is_torn(at)))
			break;
		add_pasted(typing, size > 0 ? str_part(at, 0, size) : STR("\x7f"), text);
		taken += size > 0 ? size : 1;
		typing->pasted += size > 0 ? size : 1;
	}
	typing->at += taken;
	return taken > 0;
}

/* Take a key that is one byte, or a line end of a paste. False: more bytes will tell which. */
static bool take_byte(struct typing *typing, enum typing_key *key)
{
	const struct str rest = rest_of(typing);
	const bool is_early = typing->at < typing->early;
	char byte = rest.data[0];
	size_t behind = 1;

	while (behind < rest.size && is_line_end(rest.data[behind]))
		behind++;
	if (is_of_paste(typing) && !typing->burst && behind == rest.size && !typing->settled)
		return false;
	if (is_line_end(byte) && !is_early &&
	    (typing->burst || (is_of_paste(typing) && behind < rest.size &&
			       is_typed_text(rest.data[behind])))) {
		typing->burst = true;
		*key = TYPING_NEW_LINE;
		typing->at += byte == '\r' && rest.size > 1 && rest.data[1] == '\n' ? 2 : 1;
		return true;
	}
	/* The kernel has turned the Return of an early Enter into a line feed. */
	if (is_early && byte == '\n')
		byte = KEYS_ENTER;
	*key = keys_find(&typing->keys, keys_chord_of_byte((unsigned char)byte, false));
	typing->at++;
	return true;
}

/* A parsed "CSI 1 ; 5 C". */
struct sequence {
	unsigned parameters[PARAMETERS_MAX];
	size_t count;
	char prefix; /* '?', '<', '=' or '>', with which a terminal answers; 0: a key */
	char last;
};

/*
 * The control sequence at the front of TEXT (behind ESC and "[" or "O"), of *SIZE bytes;
 * false: it is not complete yet.
 */
static bool parse_sequence(struct str text, struct sequence *sequence, size_t *size)
{
	bool part = false; /* of a parameter, behind a colon: nothing of it is wanted */

	*sequence = (struct sequence){.count = 1};
	for (*size = 0; *size < text.size; (*size)++) {
		unsigned char c = (unsigned char)text.data[*size];
		unsigned *number = &sequence->parameters[sequence->count - 1];

		if (c >= '0' && c <= '9') {
			if (*number < NUMBER_MAX && !part)
				*number = *number * 10 + c - (unsigned)'0';
		} else if (c == ';') {
			part = false;
			if (sequence->count < PARAMETERS_MAX)
				sequence->count++;
		} else if (c == ':') {
			part = true;
		} else if (c >= '<' && c <= '?' && *size == 0) {
			sequence->prefix = (char)c;
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

/* The key of "CSI NUMBER ~"; 0: it is none of ours. */
static uint32_t code_of_number(unsigned number)
{
	static const uint32_t codes[] = {
		[1] = KEYS_HOME,     [2] = KEYS_INSERT,  [3] = KEYS_DELETE,
		[4] = KEYS_END,      [5] = KEYS_PAGE_UP, [6] = KEYS_PAGE_DOWN,
		[7] = KEYS_HOME,     [8] = KEYS_END,     [11] = KEYS_F1,
		[12] = KEYS_F1 + 1,  [13] = KEYS_F1 + 2, [14] = KEYS_F1 + 3,
		[15] = KEYS_F1 + 4,  [17] = KEYS_F1 + 5, [18] = KEYS_F1 + 6,
		[19] = KEYS_F1 + 7,  [20] = KEYS_F1 + 8, [21] = KEYS_F1 + 9,
		[23] = KEYS_F1 + 10, [24] = KEYS_F12,
	};

	return number < sizeof(codes) / sizeof(codes[0]) ? codes[number] : 0;
}

/* The key of "CSI LAST" or "ESC O LAST"; 0: it is none of ours. */
static uint32_t code_of_last(char last)
{
	switch (last) {
	case 'A':
		return KEYS_UP;
	case 'B':
		return KEYS_DOWN;
	case 'C':
		return KEYS_RIGHT;
	case 'D':
		return KEYS_LEFT;
	case 'H':
		return KEYS_HOME;
	case 'F':
		return KEYS_END;
	case 'M':
		return KEYS_ENTER; /* of the number pad */
	case 'Z':
		return KEYS_TAB;
	default:
		return last >= 'P' && last <= 'S' ? KEYS_F1 + (uint32_t)(last - 'P') : 0;
	}
}

/* The key that kitty's protocol, or modifyOtherKeys, calls NUMBER; 0: it is none of ours. */
static uint32_t code_of_character(unsigned number)
{
	/* kitty's numbers of the keys on the number pad that type no character */
	enum { PAD_ENTER = 57414, PAD_FIRST = 57417, PAD_LAST = 57426, PRIVATE = 0xe000 };
	static const uint32_t pad[] = {
		KEYS_LEFT,      KEYS_RIGHT, KEYS_UP,  KEYS_DOWN,   KEYS_PAGE_UP,
		KEYS_PAGE_DOWN, KEYS_HOME,  KEYS_END, KEYS_INSERT, KEYS_DELETE,
	};

	if (number >= PAD_FIRST && number <= PAD_LAST)
		return pad[number - PAD_FIRST];
	if (number == PAD_ENTER)
		return KEYS_ENTER;
	if (number == '\b')
		return KEYS_BACKSPACE;
	if (number == KEYS_TAB || number == KEYS_ENTER || number == KEYS_ESCAPE)
		return number;
	/* Neither controls, nor surrogates, nor kitty's other keys. */
	if (number < ' ' || (number > 0x7f && number < 0xa0) ||
	    (number >= 0xd800 && number < 0xf900) || number >= 0x110000)
		return 0;
	return number;
}

/* The chord of SEQUENCE; its code is 0 when it is no key of ours. */
static struct keys_chord sequence_chord(const struct sequence *sequence)
{
	/* Bits that are 1 less than a parameter: Super, Hyper, Meta; the locks do not matter. */
	enum {
		OURS = KEYS_SHIFT | KEYS_ALT | KEYS_CTRL,
		OTHERS = 8 | 16 | 32,
		OTHER_KEY = 27
	};
	const bool is_other = sequence->last == '~' && sequence->parameters[0] == OTHER_KEY;
	const unsigned bits = sequence->parameters[1] > 0 ? sequence->parameters[1] - 1 : 0;
	struct keys_chord chord = {.modifiers = bits & OURS};

	if (sequence->prefix != 0 || (bits & OTHERS) != 0)
		return chord;
	if (is_other || sequence->last == 'u')
		chord.code = code_of_character(sequence->parameters[is_other ? 2 : 0]);
	else if (sequence->last == '~')
		chord.code = code_of_number(sequence->parameters[0]);
	else
		chord.code = code_of_last(sequence->last);
	if (sequence->last == 'Z')
		chord.modifiers |= KEYS_SHIFT;
	if (chord.code >= 'A' && chord.code <= 'Z') {
		chord.code += 'a' - 'A';
		chord.modifiers |= KEYS_SHIFT;
	}
	return chord;
}

/* The action of SEQUENCE, or the character that it types, which is appended to TEXT. */
static enum typing_key sequence_key(struct typing *typing, const struct sequence *sequence,
				    bool alt, struct buf *text)
{
	struct keys_chord chord = sequence_chord(sequence);
	enum typing_key key;

	if (sequence->last == '~' && sequence->parameters[0] == 200) {
		typing->pasting = typing->marks = true;
		typing->pasted = 0;
		typing->burst = typing->after_return = false;
		return TYPING_NONE;
	}
	if (chord.code == 0)
		return TYPING_NONE;
	if (alt)
		chord.modifiers |= KEYS_ALT;
	key = keys_find(&typing->keys, chord);
	if (key != TYPING_NONE || (chord.modifiers & ~(unsigned)KEYS_SHIFT) != 0 ||
	    chord.code < ' ' || chord.code == 0x7f || chord.code >= KEYS_NO_CHARACTER)
		return key;
	if (chord.modifiers != 0 && chord.code >= 'a' && chord.code <= 'z')
		chord.code -= 'a' - 'A';
	text_add_code(chord.code, text);
	return TYPING_TEXT;
}

/*
 * Take the key or sequence that begins with Escape. False: it is not complete yet. Another
 * Escape before a sequence is Alt, as in rxvt; else it is the key, twice.
 */
static bool take_escape(struct typing *typing, enum typing_key *key, struct buf *text)
{
	const struct str rest = rest_of(typing);
	const bool twice = rest.size > 1 && rest.data[1] == ESCAPE;
	const struct str behind = str_part(rest, twice ? 2 : 1, rest.size);
	struct sequence sequence;
	size_t size;

	if (behind.size == 0 && !typing->settled)
		return false;
	if (!twice && behind.size > 0 && term_match(rest, &size) == TERM_MAYBE) {
		if (!typing->settled)
			return false;
		typing->gave_up = TYPING_GAVE_UP_TWO;
		typing->gave_up_character = rest.data[1];
	}
	if (behind.size > 0 && (behind.data[0] == '[' || behind.data[0] == 'O') &&
	    (!twice || term_match(str_part(rest, 1, rest.size), &size) <= TERM_MAYBE)) {
		if (!parse_sequence(str_part(behind, 1, behind.size), &sequence, &size) &&
		    !typing->settled)
			return false;
		*key = sequence_key(typing, &sequence, twice, text);
		typing->at += (twice ? 3 : 2) + size;
	} else if (twice || behind.size == 0) {
		*key = keys_find(&typing->keys, keys_chord_of_byte(ESCAPE, false));
		typing->at++;
		if (!twice)
			typing->gave_up = TYPING_GAVE_UP_ESCAPE;
	} else {
		size = text_utf8_length(behind);
		*key = keys_find(&typing->keys,
				 keys_chord_of_byte((unsigned char)behind.data[0], true));
		typing->at += 1 + (size > 0 ? size : 1);
	}
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
		typing->at = typing->early = 0;
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

static bool take_key(struct typing *typing, enum typing_key *key, struct buf *text)
{
	const unsigned char first = (unsigned char)typing->held.data[typing->at];

	if (take_answer(typing, key, text))
		return true;
	if (first == ESCAPE)
		return take_escape(typing, key, text);
	if (first < ' ' || first == 0x7f)
		return take_byte(typing, key);
	*key = TYPING_TEXT;
	return take_text(typing, text);
}

bool typing_next(struct typing *typing, enum typing_key *key, struct buf *text)
{
	if (typing->pasting)
		return take_paste(typing, key, text);
	mend_answer(typing);
	if (!typing_waits(typing) || !take_key(typing, key, text))
		return false;
	typing->after_text = *key == TYPING_TEXT;
	return true;
}

void typing_settle(struct typing *typing)
{
	typing->settled = true;
	typing->burst = false;
}
