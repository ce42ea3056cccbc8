/* term: the table of terminals, and the reader of their answers. */

#include "tui/term.h"

#include "base/err.h"
#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	ESCAPE = 0x1b,
	BELL = 0x07,
	/* The longest answers are names and lists of abilities. */
	ANSWER_MAX = 256,
	PART_DIGITS = 4, /* of a colour's part: "rgb:ffff/ffff/ffff" */
	/* ITU-R BT.601, in parts of a thousand; a ground over the middle is light. */
	RED_WEIGHT = 299,
	GREEN_WEIGHT = 587,
	BLUE_WEIGHT = 114,
	WEIGHTS = 1000,
};

const char term_questions[] =
	"\x1b[?u\x1b[>0q\x1b]11;?\x1b\\\x1b[?1004$p\x1b[?2026$p\x1b[?2027$p\x1b[c";

/*
 * Terminals by their names in XTVERSION, TERM or TERM_PROGRAM, in small letters; the beginning
 * decides. xterm stands behind those that call themselves xterm-NAME.
 */
static const struct {
	const char *name;
	enum term_reflow reflow;
	bool links;
	enum term_notice notice;
} terminals[] = {
	{"alacritty", TERM_REFLOWS, true, TERM_NOTICE_BELL},
	{"apple_terminal", TERM_REFLOWS_OTHERS, false, TERM_NOTICE_BELL},
	{"contour", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_777},
	{"foot", TERM_REFLOWS, true, TERM_NOTICE_777},
	{"ghostty", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_777},
	{"hyper", TERM_REFLOWS_OTHERS, false, TERM_NOTICE_BELL},
	{"iterm", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_9},
	{"kitty", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_99},
	{"konsole", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_BELL},
	{"linux", TERM_CUTS, false, TERM_NOTICE_BELL},
	{"mintty", TERM_REFLOWS_OTHERS, false, TERM_NOTICE_BELL},
	{"rio", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_BELL},
	{"rxvt", TERM_CUTS, false, TERM_NOTICE_777},
	{"screen", TERM_CUTS, false, TERM_NOTICE_BELL},
	{"tmux", TERM_REFLOWS_BUT_BLANK, false, TERM_NOTICE_BELL},
	{"vscode", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_BELL},
	{"vte", TERM_REFLOWS, true, TERM_NOTICE_BELL},
	{"warpterminal", TERM_REFLOWS_OTHERS, false, TERM_NOTICE_BELL},
	{"wezterm", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_777},
	{"windows terminal", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_BELL},
	{"xterm-ghostty", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_777},
	{"xterm-kitty", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_99},
	{"xterm.js", TERM_REFLOWS_OTHERS, true, TERM_NOTICE_BELL},
	{"xterm(", TERM_CUTS, false,
	 TERM_NOTICE_BELL}, /* TERM=xterm says nothing: many call themselves so */
	{"zellij", TERM_REFLOWS_BUT_BLANK, false, TERM_NOTICE_BELL},
};

/* Variables of one terminal each, and what it does with long rows. */
static const struct {
	const char *name;
	enum term_reflow reflow;
} own_variables[] = {
	{"ALACRITTY_WINDOW_ID", TERM_REFLOWS}, {"KONSOLE_VERSION", TERM_REFLOWS_OTHERS},
	{"VTE_VERSION", TERM_REFLOWS},         {"WT_SESSION", TERM_REFLOWS_OTHERS},
	{"ZELLIJ", TERM_REFLOWS_BUT_BLANK},
};

/* Is the variable NAME set, and neither empty nor "0"? */
static bool is_on(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/* Take over the row of NAME; false: the table has none. */
static bool learn_name(struct term *term, const char *name)
{
	for (size_t i = 0; i < sizeof(terminals) / sizeof(terminals[0]); i++) {
		if (strncasecmp(name, terminals[i].name, strlen(terminals[i].name)) != 0)
			continue;
		term->reflow = terminals[i].reflow;
		term->links = terminals[i].links;
		term->notice = terminals[i].notice;
		return true;
	}
	return false;
}

/* Of "15;0" or "15;default;0", which rxvt and Konsole set, the last number is the ground. */
static enum term_ground ground_of_variable(void)
{
	enum { LIGHT_GREY = 7, DARK_GREY = 8, COLOURS = 16 };
	const char *said = getenv("COLORFGBG");
	const char *last = said != NULL ? strrchr(said, ';') : NULL;
	uint64_t colour;
	struct err err;

	if (last == NULL || !text_parse_count(last + 1, COLOURS - 1, &colour, &err))
		return TERM_GROUND_UNKNOWN;
	return colour < LIGHT_GREY || colour == DARK_GREY ? TERM_GROUND_DARK
							  : TERM_GROUND_LIGHT;
}

void term_init(struct term *term)
{
	const char *type = getenv("TERM"), *program = getenv("TERM_PROGRAM");

	*term = (struct term){.ground = ground_of_variable()};
	/* Inside screen, the variables of the terminal around it are still there. */
	if (is_on("STY"))
		return;
	if (is_on("TMUX")) {
		(void)learn_name(term, "tmux");
		return;
	}
	if ((type != NULL && learn_name(term, type)) ||
	    (program != NULL && learn_name(term, program)))
		return;
	for (size_t i = 0; i < sizeof(own_variables) / sizeof(own_variables[0]); i++) {
		if (is_on(own_variables[i].name))
			term->reflow = own_variables[i].reflow;
	}
}

bool term_may_ask(void)
{
	const char *type = getenv("TERM");

	return type != NULL && strcmp(type, "linux") != 0;
}

/* Finding the answers. */

/* How answers begin, and whether a string with an end of its own follows. */
static const struct {
	struct str opening;
	bool is_string;
} openings[] = {
	{{"\x1b[?", 3}, false},
	{{"\x1b]11;", 5}, true},
	{{"\x1bP>|", 4}, true},
};

/* BYTES have the opening of a string of FROM bytes: where does it end? */
static enum term_match end_of_string(struct str bytes, size_t from, size_t *size)
{
	for (*size = from; *size < bytes.size; ++*size) {
		const char c = bytes.data[*size];

		if (c == BELL) {
			++*size;
			return TERM_ANSWER;
		}
		if (c == ESCAPE) {
			if (*size + 1 == bytes.size)
				return TERM_TORN;
			*size += bytes.data[*size + 1] == '\\' ? 2 : 0;
			return TERM_ANSWER;
		}
		if ((unsigned char)c < ' ' || *size >= ANSWER_MAX)
			return TERM_ANSWER;
	}
	return TERM_TORN;
}

static enum term_match end_of_sequence(struct str bytes, size_t from, size_t *size)
{
	for (*size = from; *size < bytes.size; ++*size) {
		const unsigned char c = (unsigned char)bytes.data[*size];

		if (c < ' ' || c >= 0x7f || *size >= ANSWER_MAX)
			return TERM_ANSWER;
		if (c >= '@') {
			++*size;
			return TERM_ANSWER;
		}
	}
	return TERM_TORN;
}

enum term_match term_match(struct str bytes, size_t *size)
{
	*size = 0;
	if (str_starts(bytes, STR("\x1b[I")) || str_starts(bytes, STR("\x1b[O"))) {
		*size = 3;
		return TERM_ANSWER;
	}
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		const struct str opening = openings[i].opening;

		if (str_starts(bytes, opening))
			return openings[i].is_string
				       ? end_of_string(bytes, opening.size, size)
				       : end_of_sequence(bytes, opening.size, size);
		/* Escape and one character are a key as well. */
		if (bytes.size > 1 && str_starts(opening, bytes))
			return bytes.size == 2 ? TERM_MAYBE : TERM_TORN;
	}
	return TERM_KEY;
}

/* Learning from them. */

/* Read one part of a colour as a share of WEIGHT, and the sign behind it. */
static bool take_part(struct str *rest, int weight, int *sum)
{
	int value = 0, most = 0;
	size_t digits = 0;

	while (digits < rest->size && digits < PART_DIGITS &&
	       text_hex_digit(rest->data[digits]) >= 0) {
		value = value * 16 + text_hex_digit(rest->data[digits++]);
		most = most * 16 + 15;
	}
	if (digits == 0)
		return false;
	*sum += (int)((int64_t)value * weight / most);
	*rest = str_part(*rest, digits + (digits < rest->size), rest->size);
	return true;
}

/* "rgb:1e1e/1e1e/1e1e", as XParseColor(3) has it; some terminals add the opacity in front. */
static void take_ground(struct term *term, struct str text)
{
	const size_t colon = str_find(text, STR(":"), 0);
	int sum = 0;

	if (!str_starts(text, STR("rgb")) || colon == SIZE_MAX)
		return;
	text = str_part(text, colon + 1, text.size);
	if (take_part(&text, RED_WEIGHT, &sum) && take_part(&text, GREEN_WEIGHT, &sum) &&
	    take_part(&text, BLUE_WEIGHT, &sum))
		term->ground = sum * 2 > WEIGHTS ? TERM_GROUND_LIGHT : TERM_GROUND_DARK;
}

static void take_name(struct term *term, struct str text)
{
	size_t size = 0;

	while (size < text.size && size + 1 < sizeof(term->name) &&
	       text.data[size] >= ' ' && text.data[size] < 0x7f) {
		term->name[size] = text.data[size];
		size++;
	}
	term->name[size] = '\0';
	(void)learn_name(term, term->name);
}

/* DECRPM: "2026;2$y". 0: not known; 1 and 3: on; 2 and 4: off. */
static void take_mode(struct term *term, struct str text)
{
	const char state = text.size > 5 ? text.data[5] : '0';

	if (str_starts(text, STR("1004;")))
		term->has_focus = state >= '1' && state <= '3';
	else if (str_starts(text, STR("2026;")))
		term->has_frames = state >= '1' && state <= '3';
	else if (str_starts(text, STR("2027;")))
		term->joins = state == '1' || state == '3';
}

void term_take(struct term *term, struct str answer)
{
	struct str rest = str_part(answer, 3, answer.size);

	if (str_is(answer, "\x1b[I"))
		term->focus = TERM_FOCUSED;
	else if (str_is(answer, "\x1b[O"))
		term->focus = TERM_UNFOCUSED;
	else if (str_starts(answer, STR("\x1b]11;")))
		take_ground(term, str_part(answer, 5, answer.size));
	else if (str_starts(answer, STR("\x1bP>|")))
		take_name(term, str_part(answer, 4, answer.size));
	else if (str_ends(rest, STR("$y")))
		take_mode(term, rest);
	else if (str_ends(rest, STR("u")))
		term->has_keyboard = true;
	else if (str_ends(rest, STR("c")))
		term->answered = true;
}
