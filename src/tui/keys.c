#include "tui/keys.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const struct action {
	enum typing_key key;
	const char *name, *chords, *effect;
} actions[] = {
	{TYPING_ENTER, "steer", "enter ctrl+m",
	 "send the text; while the agent works, it joins the conversation"},
	{TYPING_QUEUE, "queue", "",
	 "send it for the next turn; so does complete where nothing fits"},
	{TYPING_NEW_LINE, "new-line", "alt+enter shift+enter ctrl+j ctrl+enter alt+ctrl+j",
	 "begin another line; so does a backslash before Enter"},
	{TYPING_TAB, "complete", "tab ctrl+i", "complete a word, or open a paste as text"},
	{TYPING_UNDO, "undo", "ctrl+_ ctrl+/ ctrl+shift+-", "take back the last change"},
	{TYPING_LEFT, "left", "left ctrl+b", "a character to the left"},
	{TYPING_RIGHT, "right", "right ctrl+f", "a character to the right"},
	{TYPING_UP, "up", "up ctrl+p", "a row up, or an earlier text"},
	{TYPING_DOWN, "down", "down ctrl+n", "a row down, or a later text"},
	{TYPING_HOME, "home", "home ctrl+a alt+<", "to the beginning of the row"},
	{TYPING_END, "end", "end ctrl+e alt+>", "to the end of the row"},
	{TYPING_WORD_LEFT, "word-left", "ctrl+left alt+left alt+b", "a word to the left"},
	{TYPING_WORD_RIGHT, "word-right", "ctrl+right alt+right alt+f",
	 "a word to the right"},
	{TYPING_BACKSPACE, "backspace", "backspace ctrl+h", "delete the character before"},
	{TYPING_DELETE, "delete", "delete", "delete the character behind"},
	{TYPING_KILL_TO_START, "kill-to-start", "ctrl+u", "cut back to the row's beginning"},
	{TYPING_KILL_TO_END, "kill-to-end", "ctrl+k", "cut up to the row's end"},
	{TYPING_KILL_WORD_LEFT, "kill-word-left", "ctrl+w", "cut back to a blank"},
	{TYPING_KILL_NAME_LEFT, "kill-name-left",
	 "alt+backspace ctrl+backspace alt+ctrl+h", "cut back to the start of a name"},
	{TYPING_KILL_WORD_RIGHT, "kill-word-right", "alt+d ctrl+delete alt+delete",
	 "cut up to the end of a word"},
	{TYPING_YANK, "yank", "ctrl+y", "insert what was cut"},
	{TYPING_SWAP, "swap", "alt+t", "swap the two characters at the cursor"},
	{TYPING_SEARCH, "search", "ctrl+r", "search the earlier texts"},
	{TYPING_SEARCH_ON, "search-on", "ctrl+s", "search forwards again"},
	{TYPING_CANCEL, "cancel", "", "leave a search or a question; so does escape"},
	{TYPING_ESCAPE, "escape", "escape ctrl+[",
	 "stop the agent; twice: put the text away, or without one rewind"},
	{TYPING_INTERRUPT, "interrupt", "ctrl+c",
	 "clear the text, or stop the agent; twice: quit"},
	{TYPING_EOF, "quit", "ctrl+d", "quit when there is no text; else delete"},
	{TYPING_SUSPEND, "suspend", "ctrl+z", "stop the program, as a shell's job"},
	{TYPING_CLEAR, "clear-screen", "ctrl+l", "clear the window, and draw again"},
	{TYPING_TAKE_BACK, "take-back", "alt+up", "take back the last text that waits"},
	{TYPING_PICTURE, "picture", "ctrl+v", "a picture from the clipboard"},
	{TYPING_EDITOR, "editor", "ctrl+g", "the text in your own editor"},
	{TYPING_REWIND, "rewind", "", "go back to an earlier prompt"},
	{TYPING_VIEWER, "viewer", "ctrl+o", "all that was said, in full"},
	{TYPING_TASKS, "tasks", "ctrl+t", "the agent's tasks"},
	{TYPING_MODE, "mode", "shift+tab", "the next mode"},
};

enum {
	ACTIONS = sizeof(actions) / sizeof(actions[0]),
	CHORDS_OF_ACTION_MAX = 8,
	NAME_COLUMN = 16,
	CHORDS_COLUMN = 34,
	ROW_MAX = 256,
};

_Static_assert((int)KEYS_BOUND_MAX >= ACTIONS * CHORDS_OF_ACTION_MAX, "all fit");

static const struct {
	const char *name;
	uint32_t code;
} names[] = {
	{"enter", KEYS_ENTER},
	{"tab", KEYS_TAB},
	{"escape", KEYS_ESCAPE},
	{"space", KEYS_SPACE},
	{"backspace", KEYS_BACKSPACE},
	{"up", KEYS_UP},
	{"down", KEYS_DOWN},
	{"left", KEYS_LEFT},
	{"right", KEYS_RIGHT},
	{"home", KEYS_HOME},
	{"end", KEYS_END},
	{"insert", KEYS_INSERT},
	{"delete", KEYS_DELETE},
	{"page-up", KEYS_PAGE_UP},
	{"page-down", KEYS_PAGE_DOWN},
	{"plus", '+'},
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static const struct {
	const char *prefix;
	unsigned modifier;
} modifiers[] = {{"ctrl+", KEYS_CTRL}, {"alt+", KEYS_ALT}, {"shift+", KEYS_SHIFT}};

enum { MODIFIERS = sizeof(modifiers) / sizeof(modifiers[0]) };

/* The chords of a text. */

static uint32_t code_of_function_key(struct str name)
{
	struct str digits = str_part(name, 1, name.size);
	const size_t number =
		str_starts_caseless(name, "f") ? text_take_number(&digits) : 0;

	return digits.size == 0 && number >= 1 && number <= KEYS_F12 - KEYS_F1 + 1
		       ? KEYS_F1 + (uint32_t)number - 1
		       : 0;
}

/* The number of the character that is all of TEXT; 0: TEXT is none, or another number of them. */
static uint32_t code_of_character(struct str text)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code;

	if (text.size == 0 || text_utf8_length(text) != text.size)
		return 0;
	code = (unsigned char)text.data[0] & lead[text.size];
	for (size_t i = 1; i < text.size; i++)
		code = code << 6 | ((unsigned char)text.data[i] & 0x3f);
	return code > ' ' && (code < 0x7f || code > 0x9f) ? code : 0;
}

static uint32_t code_of_name(struct str name)
{
	uint32_t code = code_of_character(name);

	for (size_t i = 0; code == 0 && i < NAMES; i++) {
		if (str_is_caseless(name, names[i].name))
			code = names[i].code;
	}
	return code != 0 ? code : code_of_function_key(name);
}

/* A capital letter is its letter with Shift. */
static struct keys_chord chord_of(uint32_t code, unsigned with)
{
	if (code >= 'A' && code <= 'Z')
		return (struct keys_chord){code + ('a' - 'A'), with | KEYS_SHIFT};
	return (struct keys_chord){code, with};
}

/* The chord that TEXT names; its code is 0 when TEXT names none. */
static struct keys_chord parse_chord(struct str text)
{
	unsigned with = 0;

	for (size_t i = 0; i < MODIFIERS; i++) {
		const size_t size = strlen(modifiers[i].prefix);

		if (!str_starts_caseless(text, modifiers[i].prefix) ||
		    (with & modifiers[i].modifier) != 0)
			continue;
		with |= modifiers[i].modifier;
		text = str_part(text, size, text.size);
		i = (size_t)-1;
	}
	return chord_of(code_of_name(text), with);
}

static bool is_same(struct keys_chord a, struct keys_chord b)
{
	return a.code == b.code && a.modifiers == b.modifiers;
}

void keys_print_chord(struct keys_chord chord, struct buf *out)
{
	for (size_t i = 0; i < MODIFIERS; i++) {
		if ((chord.modifiers & modifiers[i].modifier) != 0)
			(void)buf_adds(out, modifiers[i].prefix);
	}
	for (size_t i = 0; i < NAMES; i++) {
		if (names[i].code == chord.code) {
			(void)buf_adds(out, names[i].name);
			return;
		}
	}
	if (chord.code >= KEYS_F1)
		(void)buf_addf(out, "f%u", (unsigned)(chord.code - KEYS_F1 + 1));
	else
		text_add_code(chord.code, out);
}

/* The name of CHORD in a sentence: "Ctrl+O". */
static void say_chord(struct keys_chord chord, struct buf *out)
{
	const size_t from = out->size;
	bool begins = true;

	keys_print_chord(chord, out);
	for (size_t i = from; i < out->size; i++) {
		char *c = &out->data[i];

		if (begins && *c >= 'a' && *c <= 'z')
			*c = (char)(*c - ('a' - 'A'));
		begins = *c == '+';
	}
}

/* The table. */

static void add(struct keys *keys, struct keys_chord chord, enum typing_key key, bool own)
{
	if (keys->count < KEYS_BOUND_MAX)
		keys->bound[keys->count++] = (struct keys_bound){chord, key, own};
}

static void take_out(struct keys *keys, size_t at)
{
	keys->count--;
	memmove(keys->bound + at, keys->bound + at + 1,
		(keys->count - at) * sizeof(keys->bound[0]));
}

void keys_init(struct keys *keys)
{
	keys->count = 0;
	for (size_t i = 0; i < ACTIONS; i++) {
		struct str rest = str_of(actions[i].chords), chord;

		while (str_next_word(&rest, &chord))
			add(keys, parse_chord(chord), actions[i].key, false);
	}
}

/* The place of CHORD in the table; the count: it has none. */
static size_t place_of(const struct keys *keys, struct keys_chord chord)
{
	size_t at = 0;

	while (at < keys->count && !is_same(keys->bound[at].chord, chord))
		at++;
	return at;
}

enum typing_key keys_find(const struct keys *keys, struct keys_chord chord)
{
	size_t at = place_of(keys, chord);

	if (at == keys->count) {
		chord.modifiers &= ~(unsigned)KEYS_SHIFT;
		at = place_of(keys, chord);
	}
	if (at == keys->count && chord.code > KEYS_NO_CHARACTER) {
		chord.modifiers = 0;
		at = place_of(keys, chord);
	}
	return at < keys->count ? keys->bound[at].key : TYPING_NONE;
}

struct keys_chord keys_chord_of_byte(unsigned char byte, bool alt)
{
	const unsigned with = alt ? KEYS_ALT : 0;

	if (byte == KEYS_TAB || byte == KEYS_ENTER || byte == KEYS_ESCAPE || byte > ' ')
		return chord_of(byte, with);
	if (byte == 0)
		return chord_of(KEYS_SPACE, with | KEYS_CTRL);
	if (byte == ' ')
		return chord_of(KEYS_SPACE, with);
	/* The terminal takes away the bits of the letter, or of "\", "]", "^", "_". */
	return (struct keys_chord){byte + (byte <= 26 ? 'a' - 1U : '@'), with | KEYS_CTRL};
}

/* The first chord of the action NAME in KEYS; its code is 0 when there is none. */
static struct keys_chord chord_of_action(const struct keys *keys, struct str name)
{
	for (size_t i = 0; i < ACTIONS; i++) {
		for (size_t at = 0; at < keys->count && str_is(name, actions[i].name);
		     at++) {
			if (keys->bound[at].key == actions[i].key)
				return keys->bound[at].chord;
		}
	}
	return (struct keys_chord){0};
}

void keys_say(const struct keys *keys, const char *sentence, struct buf *out)
{
	struct str rest = str_of(sentence);
	struct keys defaults;

	if (keys == NULL) {
		keys_init(&defaults);
		keys = &defaults;
	}
	while (rest.size > 0) {
		const size_t open = str_find(rest, STR("{"), 0);
		const size_t end = str_find(rest, STR("}"), 0);

		(void)buf_addstr(out, str_part(rest, 0, open));
		if (open == SIZE_MAX || end == SIZE_MAX)
			return;
		const struct str named = str_part(rest, open + 1, end - open - 1);
		const size_t bar = str_find(named, STR("|"), 0);
		const struct keys_chord chord =
			chord_of_action(keys, str_part(named, 0, bar));

		if (chord.code != 0)
			say_chord(chord, out);
		else
			(void)buf_addstr(out, bar != SIZE_MAX
						      ? str_part(named, bar + 1, named.size)
						      : named);
		rest = str_part(rest, end + 1, rest.size);
	}
}

/* The person's file. */

/* Without a key for these nobody gets on, or out. */
static const struct {
	enum typing_key key, other; /* OTHER does the same; or TYPING_NONE */
	const char *effect, *usual;
} needed[] = {
	{TYPING_ENTER, TYPING_QUEUE, "sends a text", "enter"},
	{TYPING_INTERRUPT, TYPING_NONE, "stops the agent", "ctrl+c"},
	{TYPING_EOF, TYPING_NONE, "quits", "ctrl+d"},
};

static const struct action *action_named(const char *name, struct err *err)
{
	const char *all[ACTIONS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < ACTIONS; i++) {
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
		all[i] = actions[i].name;
	}
	nearest = text_nearest(name, all);
	if (nearest != NULL)
		(void)err_set(err, EINVAL,
			      "there is no action \"%.40s\"; did you mean \"%s\"?", name,
			      nearest);
	else
		(void)err_set(err, EINVAL,
			      "there is no action \"%.40s\"; /keys lists them", name);
	return NULL;
}

/* Does any key of KEYS stand for KEY? Many terminals send the same for Ctrl+M and for Enter. */
static bool has_key(const struct keys *keys, enum typing_key key)
{
	static const struct keys_chord twin = {'m', KEYS_CTRL}, enter = {KEYS_ENTER, 0};

	for (size_t at = 0; at < keys->count; at++) {
		if (keys->bound[at].key == key && (!is_same(keys->bound[at].chord, twin) ||
						   keys_find(keys, enter) == TYPING_NONE ||
						   keys_find(keys, enter) == key))
			return true;
	}
	return false;
}

static const char *name_of(enum typing_key key)
{
	for (size_t i = 0; i < ACTIONS; i++) {
		if (actions[i].key == key)
			return actions[i].name;
	}
	return "";
}

/* The person gives the chord NAME to ACTION. */
static bool bind(struct keys *keys, const struct action *action, const struct value *name,
		 struct err *err)
{
	const struct keys_chord chord = parse_chord(value_str(name));
	const size_t at = place_of(keys, chord);

	if (value_text(name) == NULL || chord.code == 0)
		return err_set(err, EINVAL,
			       "%s: \"%.40s\" is no key; keys are written as \"ctrl+o\", "
			       "\"alt+up\", \"shift+enter\", \"f5\"",
			       action->name,
			       value_text(name) != NULL ? value_text(name) : "");
	if ((chord.modifiers & ~(unsigned)KEYS_SHIFT) == 0 && chord.code >= KEYS_SPACE &&
	    chord.code < KEYS_NO_CHARACTER && chord.code != KEYS_BACKSPACE)
		return err_set(err, EINVAL,
			       "%s: \"%.40s\" types a character; take it with ctrl or alt",
			       action->name, value_text(name));
	if (at < keys->count && keys->bound[at].own)
		return err_set(err, EINVAL, "%s and %s have the same key \"%.40s\"",
			       name_of(keys->bound[at].key), action->name,
			       value_text(name));
	if (at < keys->count)
		take_out(keys, at);
	add(keys, chord, action->key, true);
	return true;
}

static bool bind_all(struct keys *keys, const struct action *action,
		     const struct value *chords, struct err *err)
{
	const size_t count = value_count(chords);

	for (size_t at = keys->count; at-- > 0;) {
		if (keys->bound[at].key == action->key && !keys->bound[at].own)
			take_out(keys, at);
	}
	if (value_kind(chords) == VALUE_STRING)
		return bind(keys, action, chords, err);
	if (value_kind(chords) != VALUE_ARRAY || count > CHORDS_OF_ACTION_MAX)
		return err_set(err, EINVAL,
			       "%s: this is no key, and no list of at most %d keys",
			       action->name, CHORDS_OF_ACTION_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!bind(keys, action, value_item(chords, i), err))
			return false;
	}
	return true;
}

bool keys_parse(struct keys *keys, struct str text, struct err *err)
{
	auto_value struct value *file = NULL;
	struct keys changed = *keys;

	if (!value_parse(text, VALUE_COMMENTS, &file, err))
		return false;
	if (value_kind(file) != VALUE_OBJECT)
		return err_set(err, EINVAL, "this is no object of actions and their keys");
	for (void *at = value_first(file); at != NULL; at = value_next(file, at)) {
		const struct action *action = action_named(value_key(at), err);

		if (action == NULL || !bind_all(&changed, action, value_at(at), err))
			return false;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (!has_key(&changed, needed[i].key) && !has_key(&changed, needed[i].other))
			return err_set(err, EINVAL,
				       "no key %s any more; give %s one, such as \"%s\"",
				       needed[i].effect, name_of(needed[i].key),
				       needed[i].usual);
	}
	*keys = changed;
	return true;
}

bool keys_load(struct keys *keys, const char *path, struct err *err)
{
	struct err why = {0};
	struct buf text;
	bool sound;

	buf_init(&text, KEYS_FILE_MAX);
	/* A link to a terminal or a pipe is told of, and nobody waits for its bytes. */
	sound = fd_read_file(path, KEYS_FILE_MAX, &text, &why);
	if (!sound && why.code == ENOENT) {
		buf_fini(&text);
		return true;
	}
	if (!sound)
		(void)err_set(err, why.code, "%s", why.text);
	if (sound && !keys_parse(keys, buf_str(&text), err))
		sound = err_while(err, "%s", path);
	buf_fini(&text);
	return sound;
}

void keys_print(const struct keys *keys, struct buf *out)
{
	struct buf chords;

	buf_init(&chords, ROW_MAX);
	for (size_t i = 0; i < ACTIONS; i++) {
		buf_clear(&chords);
		for (size_t at = 0; at < keys->count; at++) {
			if (keys->bound[at].key != actions[i].key)
				continue;
			if (chords.size > 0)
				(void)buf_addc(&chords, ' ');
			keys_print_chord(keys->bound[at].chord, &chords);
		}
		/* Keys that fill their column end with a blank all the same. */
		(void)buf_addf(out, "  %-*s%-*s%s%s\n", NAME_COLUMN, actions[i].name,
			       CHORDS_COLUMN, chords.size > 0 ? chords.data : "-",
			       chords.size >= CHORDS_COLUMN ? "  " : "", actions[i].effect);
	}
	buf_fini(&chords);
}
