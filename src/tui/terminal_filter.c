/*
 * terminal_filter: a state machine over bytes. The first stage joins bytes to characters;
 * a C1 control comes out of it in whichever form it was. The second stage follows the
 * sequences, and holds each until it is judged.
 */
#include "tui/terminal_filter.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	BELL = 0x07,
	CANCEL = 0x18,
	SUBSTITUTE = 0x1a,
	ESCAPE_BYTE = 0x1b,
	DELETE = 0x7f,
	C1_FIRST = 0x80,
	C1_LAST = 0x9f,
	/* C1 controls that begin something; in 7 bits ESC and the letter at -0x40 */
	C1_DCS = 0x90,
	C1_SOS = 0x98,
	C1_CSI = 0x9b,
	C1_ST = 0x9c,
	C1_OSC = 0x9d,
	C1_PM = 0x9e,
	C1_APC = 0x9f,
	TO_LETTER = 0x40,
	LEAD_C1 = 0xc2, /* the first of the two bytes of a C1 character */
	CHARACTER_MAX = 4,
	NUMBER_MAX = 1000000,   /* reading a number stops there */
	NUMBER_BYTES = 64,      /* of a number, with the controls in it */
	PARAMETER_MAX = 0xffff, /* a larger one could be a small one in a terminal */
	SHIFT_OUT = 0x0e,       /* to other characters */
	C1_GUARD = 0x96,        /* and the next one: an area that is not erased */
	/* OSC that change how text looks: the palette, and the colours of plain text */
	OSC_PALETTE = 4,
	OSC_INK = 10,
	OSC_PAPER = 11,
	PUSHES_MAX = 64,
};

enum filter_state {
	TEXT = 1, /* nothing is held */
	ESCAPE,   /* ESC, and what stands before its final byte */
	CONTROL,  /* CSI, to its final byte */
	COMMAND,  /* OSC, as far as its number or arguments */
	DEVICE,   /* DCS, to its final byte */
	PASSING,  /* a string that was judged, to its end */
	DROPPING, /* the same, and nothing of it passes */
	SKIPPING, /* a CSI over the ceiling */
};

/* Modes that outlive a program, each with the number of its CSI ? n h. */
static const uint16_t modes_on[] = {1,    9,    1000, 1001, 1002, 1003, 1004,
				    1005, 1006, 1007, 1015, 1016, 2004, 2026,
				    2031, 2048, 9001, 47,   1047, 1049};
enum {
	MODES = sizeof(modes_on) / sizeof(modes_on[0]),
	SCREENS_FROM = MODES - 3, /* the last ones choose the screen */
	MODE_ANSI = 2,
	MODE_WRAP = 7,
	MODE_CURSOR = 25,
};

struct terminal_filter {
	bool clipboard;
	/* first stage: the bytes of a character */
	unsigned char character[CHARACTER_MAX];
	size_t character_size, character_whole;
	/* second stage */
	enum filter_state state;
	bool is_osc;      /* of a string: BEL ends it as well */
	bool is_tmux;     /* of a dropped string: ESC ESC stands for ESC */
	bool escaped;     /* in a string: the last character was ESC */
	bool interrupted; /* the terminal is in a passed string, which ESC has broken off */
	struct buf held;
	size_t introducer; /* bytes of `held` that begin the sequence */
	/* what the program has switched */
	bool modes[MODES];
	bool cursor_hidden, keypad, keys_set, keys_modified;
	bool wraps_not, colours_set;
	bool touched; /* the terminal has got a command of it */
	unsigned keys_pushed;
};

struct terminal_filter *terminal_filter_new(bool clipboard)
{
	struct terminal_filter *filter = memory_alloc(sizeof(*filter));

	filter->clipboard = clipboard;
	filter->state = TEXT;
	buf_init(&filter->held,
		 clipboard ? TERMINAL_FILTER_CLIPBOARD : TERMINAL_FILTER_HELD);
	return filter;
}

void terminal_filter_free(struct terminal_filter *filter)
{
	if (filter == NULL)
		return;
	buf_fini(&filter->held);
	free(filter);
}

/* The modes that the program switches on and off. */

/* Read a number of TEXT, in which terminals skip controls; the rest stays in TEXT. */
static unsigned number_read(struct str *text)
{
	unsigned value = 0;

	for (; text->size > 0; *text = str_part(*text, 1, text->size)) {
		const unsigned char byte = (unsigned char)text->data[0];

		if (byte >= '0' && byte <= '9')
			value = value < NUMBER_MAX ? 10 * value + byte - '0' : NUMBER_MAX;
		else if (byte >= ' ' && byte != DELETE)
			break;
	}
	return value;
}

static void mode_note(struct terminal_filter *filter, unsigned number, bool on)
{
	for (size_t i = 0; i < MODES; i++) {
		if (modes_on[i] == number)
			filter->modes[i] = on;
	}
	if (number == MODE_CURSOR)
		filter->cursor_hidden = !on;
	else if (number == MODE_WRAP)
		filter->wraps_not = !on;
}

/* Note BODY, of a CSI, with its final byte. */
static void control_note(struct terminal_filter *filter, struct str body)
{
	const char final = body.data[body.size - 1];
	const char mark = body.data[0];
	struct str rest = str_part(body, 1, body.size);

	if (mark == '?' && (final == 'h' || final == 'l')) {
		do {
			mode_note(filter, number_read(&rest), final == 'h');
			if (rest.size > 0)
				rest = str_part(rest, 1, rest.size);
		} while (rest.size > 0);
	} else if (mark == '>' && final == 'u') {
		if (filter->keys_pushed < PUSHES_MAX)
			filter->keys_pushed++;
	} else if (mark == '<' && final == 'u') {
		const unsigned count = number_read(&rest);
		const unsigned popped = count > 0 ? count : 1;
		filter->keys_pushed -=
			popped < filter->keys_pushed ? popped : filter->keys_pushed;
	} else if (mark == '=' && final == 'u') {
		filter->keys_set = true;
	} else if (mark == '>' && final == 'm') {
		filter->keys_modified = true;
	}
}

static void modes_forget(struct terminal_filter *filter)
{
	memset(filter->modes, 0, sizeof(filter->modes));
	filter->cursor_hidden = filter->keypad = filter->wraps_not = false;
	filter->keys_set = filter->keys_modified = false;
	filter->keys_pushed = 0;
}

/* Sequences that are held: how they begin, and how they pass or do not. */

/* The held part of the sequence behind its introducer. */
static struct str held_body(const struct terminal_filter *filter)
{
	return str_part(buf_str(&filter->held), filter->introducer, filter->held.size);
}

/* Hold SIZE bytes more. False when there is no room. */
static bool hold(struct terminal_filter *filter, const void *data, size_t size)
{
	const bool is_clipboard = filter->clipboard && filter->state == COMMAND &&
				  str_starts(held_body(filter), STR("52;"));

	return (is_clipboard || filter->held.size + size <= TERMINAL_FILTER_HELD) &&
	       buf_add(&filter->held, data, size);
}

static void held_pass(struct terminal_filter *filter, enum filter_state next, struct buf *out)
{
	filter->touched = true;
	(void)buf_addstr(out, buf_str(&filter->held));
	buf_clear(&filter->held);
	filter->interrupted = false;
	filter->state = next;
}

/*
 * Nothing of the sequence passes. An open string that it broke off is ended in its place:
 * otherwise the terminal would take what follows for a part of that string.
 */
static void held_drop(struct terminal_filter *filter, enum filter_state next, struct buf *out)
{
	if (filter->interrupted)
		(void)buf_adds(out, "\033\\");
	buf_clear(&filter->held);
	filter->interrupted = false;
	filter->state = next;
}

/* Begin a sequence with its introducer. A sequence that was held is broken off. */
static void sequence_begin(struct terminal_filter *filter, enum filter_state state,
			   const void *data, size_t size)
{
	if (filter->state == PASSING)
		filter->interrupted = true;
	filter->escaped = false;
	filter->is_tmux = false;
	filter->state = state;
	buf_clear(&filter->held);
	(void)buf_add(&filter->held, data, size);
	filter->introducer = size;
}

/* The held bytes introduce what the C1 control WHICH introduces; false: WHICH is none. */
static bool introduce(struct terminal_filter *filter, unsigned which, struct buf *out)
{
	filter->introducer = filter->held.size;
	filter->is_osc = which == C1_OSC;
	switch (which) {
	case C1_CSI:
		filter->state = CONTROL;
		return true;
	case C1_OSC:
		filter->state = COMMAND;
		return true;
	case C1_DCS:
		filter->state = DEVICE;
		return true;
	case C1_SOS:
	case C1_PM:
	case C1_APC:
		held_pass(filter, PASSING, out);
		return true;
	default:
		return false;
	}
}

/* The four kinds of sequences, and what of each may pass. */

/* The first byte of an escape sequence, without the controls that terminals obey in it. */
static char escape_first(struct str body)
{
	size_t at = 0;

	while (at + 1 < body.size && (body.data[at] < ' ' || body.data[at] == DELETE))
		at++;
	return body.data[at];
}

/* The final byte has come. */
static void escape_judge(struct terminal_filter *filter, struct buf *out)
{
	const struct str body = held_body(filter);
	const char first = escape_first(body);
	const char final = body.data[body.size - 1];

	/* Nothing stands between ESC and a letter, so the letter may introduce more. */
	if (first >= '0' && introduce(filter, (unsigned char)first + TO_LETTER, out))
		return;
	if ((first == '%' && final != 'G') || first == 'V' || first == 'W') {
		held_drop(filter, TEXT, out);
		return;
	}
	if (first == '=' || first == '>')
		filter->keypad = first == '=';
	else if (first == 'c')
		modes_forget(filter);
	held_pass(filter, TEXT, out);
}

/* Do the numbers of BODY, behind its mark, hold 2, or one that may be read as 2? */
static bool has_vt52(struct str body)
{
	bool found = false;

	while (!found && body.size > 1) {
		body = str_part(body, 1, body.size);
		const unsigned number = number_read(&body);
		found = number == MODE_ANSI || number > PARAMETER_MAX;
	}
	return found;
}

/* May the terminal not get the CSI of BODY? */
static bool is_control_forbidden(struct str body)
{
	const char final = body.data[body.size - 1];
	const bool marked = body.data[0] >= '<' && body.data[0] <= '?';
	const bool between = body.size > 1 && body.data[body.size - 2] >= ' ' &&
			     body.data[body.size - 2] <= '/';
	struct str rest = body;
	const unsigned number = number_read(&rest);

	switch (final) {
	case 't':
		return !marked && !between &&
		       (number == 4 || number == 8 || number == 20 || number == 21 ||
			number > PARAMETER_MAX);
	case 'r':
	case 's':
		return str_find(body, STR("?"), 0) != (size_t)-1;
	case 'l':
		return str_find(body, STR("?"), 0) != (size_t)-1 && has_vt52(body);
	case '}':
	case '~':
		return str_find(body, STR("$"), 0) != (size_t)-1;
	default:
		return false;
	}
}

static void control_judge(struct terminal_filter *filter, struct buf *out)
{
	const struct str body = held_body(filter);

	if (is_control_forbidden(body)) {
		held_drop(filter, TEXT, out);
		return;
	}
	control_note(filter, body);
	held_pass(filter, TEXT, out);
}

static void device_judge(struct terminal_filter *filter, struct buf *out)
{
	const struct str body = held_body(filter);
	const char final = body.data[body.size - 1];

	/* tmux looks at the final byte and the data only. No other DCS ends with 't'. */
	filter->is_tmux = final == 't';
	if (final == 't' || final == '@' ||
	    (final == 'q' && str_find(body, STR("$"), 0) != (size_t)-1))
		held_drop(filter, DROPPING, out);
	else
		held_pass(filter, PASSING, out);
}

/* The arguments of a picture, as far as the colon: TEXT begins with the semicolon. */
static bool is_picture(struct str text)
{
	static const char *const names[] = {";File=", ";MultipartFile="};
	static const struct str inline_is = STR("inline=");
	struct str rest = STR("");
	unsigned shown = 0;

	if (str_is(text, ";FileEnd") || str_starts(text, STR(";FilePart=")))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_starts(text, str_of(names[i])))
			rest = str_part(text, strlen(names[i]), text.size);
	}
	/* The last of several would hold, so there must be one. */
	for (size_t at = 0; (at = str_find(rest, inline_is, at)) != (size_t)-1;
	     at += inline_is.size) {
		const struct str value = str_part(rest, at + inline_is.size, rest.size);

		if ((at > 0 && rest.data[at - 1] != ';') ||
		    (!str_is(value, "1") && !str_starts(value, STR("1;"))))
			return false;
		shown++;
	}
	return shown == 1;
}

static bool is_clipboard_byte(unsigned char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= 'a' && byte <= 'z') || byte == '+' || byte == '/' || byte == '=';
}

/* TEXT sets a clipboard: ";" names ";" base64. A question mark would read it. */
static bool is_setting(struct str text)
{
	unsigned semicolons = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == ';')
			semicolons++;
		else if (!is_clipboard_byte((unsigned char)text.data[i]))
			return false;
	}
	return semicolons == 2 && str_starts(text, STR(";"));
}

enum command_verdict { COMMAND_MORE, COMMAND_PASSES, COMMAND_DROPPED };

/* Judge the held OSC, of which all is there when WHOLE. */
static enum command_verdict command_verdict(const struct terminal_filter *filter, bool whole)
{
	const struct str body = held_body(filter);
	struct str rest = body;
	const unsigned number = number_read(&rest);
	const bool ends = rest.size > 0 && rest.data[0] == ';';

	/* A letter in the place of the number: no terminal reads a number behind it. */
	if (rest.size > 0 && rest.size == body.size && !ends &&
	    ((rest.data[0] >= 'A' && rest.data[0] <= 'Z') ||
	     (rest.data[0] >= 'a' && rest.data[0] <= 'z')))
		return COMMAND_PASSES;
	/* Between number and semicolon terminals read different things. */
	if (rest.size > 0 && !ends)
		return COMMAND_DROPPED;
	if (!ends && body.size > NUMBER_BYTES)
		return COMMAND_DROPPED;
	if (!ends && !whole)
		return COMMAND_MORE;
	switch (number) {
	case 52:
		if (!filter->clipboard)
			return COMMAND_DROPPED;
		if (!whole)
			return COMMAND_MORE;
		return str_starts(body, STR("52;")) && is_setting(rest) ? COMMAND_PASSES
									: COMMAND_DROPPED;
	case 1337:
		if (str_ends(rest, STR(":")))
			rest.size--;
		else if (!whole && !str_starts(rest, STR(";FilePart=")))
			return COMMAND_MORE;
		return is_picture(rest) ? COMMAND_PASSES : COMMAND_DROPPED;
	case 21:
	case 5113:
	case 5522:
	case 30001:
	case 30101:
	case NUMBER_MAX:
		return COMMAND_DROPPED;
	default:
		return COMMAND_PASSES;
	}
}

static void command_judge(struct terminal_filter *filter, bool whole, struct buf *out)
{
	struct str body = held_body(filter);
	unsigned number;

	switch (command_verdict(filter, whole)) {
	case COMMAND_PASSES:
		number = number_read(&body);
		if (number == OSC_PALETTE || number == OSC_INK || number == OSC_PAPER)
			filter->colours_set = true;
		held_pass(filter, PASSING, out);
		break;
	case COMMAND_DROPPED:
		held_drop(filter, DROPPING, out);
		break;
	case COMMAND_MORE:
		break;
	}
}

/* The second stage: characters, controls, and the ends of strings. */

static bool is_string(const struct terminal_filter *filter)
{
	return filter->state == COMMAND || filter->state == PASSING ||
	       filter->state == DROPPING;
}

/* A string ends with these bytes. */
static void string_end(struct terminal_filter *filter, const void *data, size_t size,
		       struct buf *out)
{
	if (filter->state == COMMAND)
		command_judge(filter, true, out);
	if (filter->state == PASSING)
		(void)buf_add(out, data, size);
	filter->state = TEXT;
	filter->is_tmux = false;
}

/* A byte that belongs to the sequence, and is neither its end nor a control of its own. */
static void sequence_add(struct terminal_filter *filter, unsigned char byte, struct buf *out)
{
	const bool final = byte >= '@' && byte != DELETE;

	if (!hold(filter, &byte, 1)) {
		held_drop(filter,
			  filter->state == CONTROL && !final                    ? SKIPPING
			  : filter->state == CONTROL || filter->state == ESCAPE ? TEXT
										: DROPPING,
			  out);
		return;
	}
	switch (filter->state) {
	case ESCAPE:
		/* Controls, and bytes before the final one, which need not be a letter. */
		if (byte >= '0' && byte != DELETE)
			escape_judge(filter, out);
		return;
	case CONTROL:
		if (final)
			control_judge(filter, out);
		return;
	case DEVICE:
		if (final)
			device_judge(filter, out);
		return;
	case COMMAND:
		command_judge(filter, false, out);
		return;
	default:
		return;
	}
}

/* ESC was the last character in a string, and BYTE follows. True when BYTE is handled. */
static bool after_escape(struct terminal_filter *filter, unsigned char byte, struct buf *out)
{
	static const unsigned char escape = ESCAPE_BYTE;

	filter->escaped = false;
	if (byte == '\\') {
		string_end(filter, "\033\\", 2, out);
		return true;
	}
	if (filter->is_tmux && byte == ESCAPE_BYTE)
		return true;
	sequence_begin(filter, ESCAPE, &escape, 1);
	return false;
}

/* A byte that is no C1 control and no part of a longer character. */
static void byte_take(struct terminal_filter *filter, unsigned char byte, struct buf *out)
{
	if (filter->escaped && after_escape(filter, byte, out))
		return;
	if (byte == ESCAPE_BYTE && is_string(filter)) {
		filter->escaped = true;
		return;
	}
	if (byte == ESCAPE_BYTE) {
		sequence_begin(filter, ESCAPE, &byte, 1);
		return;
	}
	if (byte == CANCEL || byte == SUBSTITUTE) {
		/* It breaks off the terminal's string as well. */
		filter->interrupted = false;
		held_drop(filter, TEXT, out);
		(void)buf_addc(out, (char)byte);
		return;
	}
	if (byte == BELL && is_string(filter) && filter->is_osc) {
		string_end(filter, &byte, 1, out);
		return;
	}
	switch (filter->state) {
	case TEXT:
	case PASSING:
		filter->touched = filter->touched || byte == SHIFT_OUT;
		(void)buf_addc(out, (char)byte);
		return;
	case DROPPING:
		return;
	case SKIPPING:
		if (byte >= '@' && byte != DELETE)
			filter->state = TEXT;
		return;
	default:
		sequence_add(filter, byte, out);
	}
}

/* A C1 control WHICH, in one byte or as a character of two. */
static void control_take(struct terminal_filter *filter, unsigned char which,
			 const unsigned char *data, size_t size, struct buf *out)
{
	filter->escaped = false;
	if (which == C1_ST && is_string(filter)) {
		string_end(filter, data, size, out);
	} else if (which == C1_DCS || which == C1_SOS || which == C1_CSI ||
		   which == C1_OSC || which == C1_PM || which == C1_APC) {
		sequence_begin(filter, ESCAPE, data, size);
		(void)introduce(filter, which, out);
	} else if (which == C1_GUARD || which == C1_GUARD + 1) {
		if (filter->state != PASSING && filter->state != DROPPING)
			held_drop(filter, TEXT, out);
	} else if (filter->state == PASSING) {
		(void)buf_add(out, data, size);
	} else if (filter->state != DROPPING) {
		held_drop(filter, TEXT, out);
		(void)buf_add(out, data, size);
	}
}

/* A character of several bytes: text, or a part of a string. */
static void character_take(struct terminal_filter *filter, const unsigned char *data,
			   size_t size, struct buf *out)
{
	if (filter->escaped) {
		/* The ESC breaks off its string, and this character the ESC. */
		filter->escaped = false;
		if (filter->state == PASSING)
			filter->interrupted = true;
		held_drop(filter, TEXT, out);
	}
	switch (filter->state) {
	case COMMAND:
		if (!hold(filter, data, size))
			held_drop(filter, DROPPING, out);
		else
			command_judge(filter, false, out);
		return;
	case DROPPING:
		return;
	case ESCAPE:
	case CONTROL:
	case DEVICE:
	case SKIPPING:
		held_drop(filter, TEXT, out);
		break;
	case TEXT:
	case PASSING:
		break;
	}
	(void)buf_add(out, data, size);
}

/* The first stage: bytes become characters (Unicode, table 3-7: well-formed UTF-8). */

/* How many bytes a character has that begins with LEAD; 1: it begins none. */
static size_t character_length(unsigned char lead)
{
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

/* May BYTE be the second byte of a character that begins with LEAD? */
static bool is_second(unsigned char lead, unsigned char byte)
{
	switch (lead) {
	case 0xe0:
		return byte >= 0xa0 && byte <= 0xbf;
	case 0xed:
		return byte >= 0x80 && byte <= 0x9f;
	case 0xf0:
		return byte >= 0x90 && byte <= 0xbf;
	case 0xf4:
		return byte >= 0x80 && byte <= 0x8f;
	default:
		return byte >= 0x80 && byte <= 0xbf;
	}
}

static void single_take(struct terminal_filter *filter, unsigned char byte, struct buf *out)
{
	if (byte >= C1_FIRST && byte <= C1_LAST)
		control_take(filter, byte, &byte, 1, out);
	else if (byte > C1_LAST)
		character_take(filter, &byte, 1, out);
	else
		byte_take(filter, byte, out);
}

/* The bytes so far are no character: each stands for itself. */
static void character_break(struct terminal_filter *filter, struct buf *out)
{
	const size_t size = filter->character_size;

	filter->character_size = 0;
	for (size_t i = 0; i < size; i++)
		single_take(filter, filter->character[i], out);
}

static void take(struct terminal_filter *filter, unsigned char byte, struct buf *out)
{
	unsigned char *character = filter->character;

	if (filter->character_size > 0) {
		const bool fits = filter->character_size == 1
					  ? is_second(character[0], byte)
					  : byte >= 0x80 && byte <= 0xbf;

		if (!fits) {
			character_break(filter, out);
		} else {
			character[filter->character_size++] = byte;
			if (filter->character_size < filter->character_whole)
				return;
			filter->character_size = 0;
			if (character[0] == LEAD_C1 && byte <= C1_LAST)
				control_take(filter, byte, character, 2, out);
			else
				character_take(filter, character, filter->character_whole,
					       out);
			return;
		}
	}
	filter->character_whole = character_length(byte);
	if (filter->character_whole > 1) {
		character[0] = byte;
		filter->character_size = 1;
	} else {
		single_take(filter, byte, out);
	}
}

static bool is_plain(char byte)
{
	return (byte >= ' ' && byte < DELETE) || byte == '\n' || byte == '\r';
}

void terminal_filter_pass(struct terminal_filter *filter, struct str text, struct buf *out)
{
	size_t at = 0;

	while (at < text.size) {
		size_t plain = at;

		/* Most of it is ASCII without controls, and goes on in one piece. */
		if (filter->character_size == 0 && !filter->escaped &&
		    (filter->state == TEXT || filter->state == PASSING)) {
			while (plain < text.size && is_plain(text.data[plain]))
				plain++;
			(void)buf_add(out, text.data + at, plain - at);
		}
		if (plain < text.size)
			take(filter, (unsigned char)text.data[plain], out);
		at = plain + 1;
	}
}

/* Does the program draw on the alternate screen? */
static bool is_alternate(const struct terminal_filter *filter)
{
	for (size_t i = SCREENS_FROM; i < MODES; i++) {
		if (filter->modes[i])
			return true;
	}
	return false;
}

/* Switch the modes of the program off or on, but for those that choose the screen. */
static void modes_switch(const struct terminal_filter *filter, char final, struct buf *out)
{
	for (size_t i = 0; i < SCREENS_FROM; i++) {
		if (filter->modes[i])
			(void)buf_addf(out, "\033[?%u%c", modes_on[i], final);
	}
}

#define COLOURS_RESET "\033]104\007\033]110\007\033]111\007"
/*
 * Plain text in the usual characters that is no part of a link, on the whole screen: no
 * inverse screen, origin, insert mode or margins.
 */
#define PLAIN_TEXT "\033[0m\033]8;;\033\\\033(B\017\033[?5l\033[?6l\033[4l\033[?69l"

void terminal_filter_pause(struct terminal_filter *filter, struct buf *out)
{
	/* The terminal never saw a held sequence, which may pass later. */
	if (filter->state == PASSING || filter->interrupted)
		(void)buf_adds(out, "\033\\");
	if (filter->state == PASSING)
		filter->state = DROPPING;
	filter->interrupted = false;
	modes_switch(filter, 'l', out);
	(void)buf_adds(out, is_alternate(filter) ? "\0337" : "\033[?1049h");
	/* Keyboard protocols are those of a screen. */
	if (filter->keys_pushed > 0 || filter->keys_set)
		(void)buf_adds(out, "\033[>0u");
	if (filter->colours_set)
		(void)buf_adds(out, COLOURS_RESET);
	(void)buf_adds(out, PLAIN_TEXT "\033[r\033[?7h\033[?25h\033[?2004h\033[2J\033[H");
}

bool terminal_filter_resume(const struct terminal_filter *filter, struct buf *out)
{
	const bool alternate = is_alternate(filter);

	(void)buf_adds(out, "\033[2J\033[?2004l");
	if (filter->keys_pushed > 0 || filter->keys_set)
		(void)buf_adds(out, "\033[<u");
	(void)buf_adds(out, alternate ? "\0338" : "\033[?1049l");
	modes_switch(filter, 'h', out);
	if (filter->wraps_not)
		(void)buf_adds(out, "\033[?7l");
	if (filter->cursor_hidden)
		(void)buf_adds(out, "\033[?25l");
	return !alternate;
}

void terminal_filter_end(struct terminal_filter *filter, struct buf *out)
{
	character_break(filter, out);
	filter->escaped = false;
	filter->interrupted = filter->interrupted || filter->state == PASSING;
	held_drop(filter, TEXT, out);
	/* Keyboard protocols are those of a screen, so they go before it. */
	if (filter->keys_pushed > 0)
		(void)buf_addf(out, "\033[<%uu", filter->keys_pushed);
	if (filter->keys_set)
		(void)buf_adds(out, "\033[=0u");
	if (filter->keys_modified)
		(void)buf_adds(out, "\033[>4m");
	if (filter->keypad)
		(void)buf_adds(out, "\033>");
	for (size_t i = 0; i < MODES; i++) {
		if (filter->modes[i])
			(void)buf_addf(out, "\033[?%ul", modes_on[i]);
	}
	if (filter->cursor_hidden)
		(void)buf_adds(out, "\033[?25h");
	if (filter->colours_set)
		(void)buf_adds(out, COLOURS_RESET);
	/* New margins move the cursor, which is kept around them. */
	if (filter->touched)
		(void)buf_adds(out, PLAIN_TEXT "\0337\033[r\0338\033[?7h");
	filter->touched = filter->colours_set = false;
	modes_forget(filter);
}

const char terminal_filter_reset[] =
	"\030\033\\\033[<8u\033[=0u\033[>4m\033>\033[?1l\033[?9l\033[?1000l\033[?1002l"
	"\033[?1003l\033[?1004l\033[?1005l\033[?1006l\033[?1007l\033[?1015l\033[?1016l\033[?2004l"
	"\033[?2026l\033[?2031l\033[?2048l\033[?9001l\033[?1049l" COLOURS_RESET PLAIN_TEXT
	"\0337\033[r\0338\033[?7h\033[?25h\r\n";
