/* value_plain: one pass over the text; see value_plain.h. */
#include "base/value_plain.h"

#include <string.h>

#include "base/text.h"
#include "base/value_syntax.h"

enum {
	/* Far below VALUE_DEPTH_MAX, so that deep texts are judged at one place. */
	PLAIN_DEPTH_MAX = 32,
	/* The longest that no digit can take beyond 64 bits. */
	PLAIN_DIGITS_MAX = 18,
	PLAIN_KEY_MAX = 128,
};

struct plain {
	struct str text;
	size_t at;
	size_t depth, parts;
};

static struct value *plain_read(struct plain *plain);

static char plain_peek(const struct plain *plain)
{
	return plain->at < plain->text.size ? plain->text.data[plain->at] : '\0';
}

static void plain_skip_blanks(struct plain *plain)
{
	for (;;) {
		char c = plain_peek(plain);

		if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
			return;
		plain->at++;
	}
}

static bool plain_take(struct plain *plain, char c)
{
	plain_skip_blanks(plain);
	if (plain_peek(plain) != c)
		return false;
	plain->at++;
	return true;
}

/* What \C stands for; '\0': something longer. */
static char plain_escape(char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found = c != '\0' ? strchr(from, c) : NULL;

	return found ? to[found - from] : '\0';
}

/* Up to the first escape, quote or control byte: the run is UTF-8, or false. */
static bool plain_run(struct plain *plain, struct str *run)
{
	size_t from = plain->at;

	plain->at = value_syntax_skip_plain(plain->text, from);
	*run = str_part(plain->text, from, plain->at - from);
	/* A control byte, a byte that is not UTF-8, or no end. */
	return plain_peek(plain) == '"' || plain_peek(plain) == '\\';
}

/* A string with escapes, of which the run FIRST has been read. */
static bool plain_unescape(struct plain *plain, struct str first, struct buf *out)
{
	struct str run = first;

	for (;;) {
		char c;

		if (!buf_addstr(out, run))
			return false;
		if (plain_peek(plain) == '"') {
			plain->at++;
			return true;
		}
		plain->at++;
		c = plain_escape(plain_peek(plain));
		if (c == '\0' || !buf_addc(out, c))
			return false;
		plain->at++;
		if (!plain_run(plain, &run))
			return false;
	}
}

static struct value *plain_string(struct plain *plain)
{
	struct value *value = NULL;
	struct buf text;
	struct str run;

	plain->at++;
	if (!plain_run(plain, &run))
		return NULL;
	if (plain_peek(plain) == '"') {
		plain->at++;
		return value_new_utf8(run);
	}
	buf_init(&text, VALUE_TEXT_MAX);
	if (plain_unescape(plain, run, &text))
		value = value_new_utf8(buf_str(&text));
	buf_fini(&text);
	return value;
}

static struct value *plain_number(struct plain *plain)
{
	const bool below = plain_peek(plain) == '-';
	int64_t number = 0;
	size_t digits = 0;
	char first;

	plain->at += below;
	first = plain_peek(plain);
	for (char c = first; c >= '0' && c <= '9'; c = plain_peek(plain)) {
		if (++digits > PLAIN_DIGITS_MAX)
			return NULL;
		number = 10 * number + (c - '0');
		plain->at++;
	}
	if (digits == 0 || (digits > 1 && first == '0'))
		return NULL;
	return value_new_integer(below ? -number : number);
}

/* The value is TAKE_MEMBER's; false where the key occurs twice or is long. */
static bool plain_add_member(struct value *object, struct str key, struct value *take_member)
{
	char name[PLAIN_KEY_MAX];
	size_t count = value_count(object);

	if (key.size >= sizeof(name)) {
		value_free(take_member);
		return false;
	}
	memcpy(name, key.data, key.size);
	name[key.size] = '\0';
	value_set(object, name, take_member);
	return value_count(object) == count + 1;
}

static bool plain_member(struct plain *plain, struct value *object)
{
	struct value *member;
	struct str key;

	plain_skip_blanks(plain);
	if (plain_peek(plain) != '"')
		return false;
	plain->at++;
	if (!plain_run(plain, &key) || plain_peek(plain) != '"')
		return false;
	plain->at++;
	if (!plain_take(plain, ':'))
		return false;
	member = plain_read(plain);
	return member && plain_add_member(object, key, member);
}

static bool plain_item(struct plain *plain, struct value *array)
{
	struct value *item = plain_read(plain);

	if (!item)
		return false;
	value_append(array, item);
	return true;
}

static struct value *plain_container(struct plain *plain, bool is_object)
{
	struct value *made = is_object ? value_new_object() : value_new_array();
	const char close = is_object ? '}' : ']';
	bool fine = ++plain->depth <= PLAIN_DEPTH_MAX;

	plain->at++;
	if (fine && plain_take(plain, close)) {
		plain->depth--;
		return made;
	}
	while (fine) {
		fine = is_object ? plain_member(plain, made) : plain_item(plain, made);
		if (fine && plain_take(plain, close)) {
			plain->depth--;
			return made;
		}
		fine = fine && plain_take(plain, ',') && ++plain->parts <= VALUE_PARTS_MAX;
	}
	value_free(made);
	return NULL;
}

static bool plain_word(struct plain *plain, struct str word)
{
	if (!str_equal(str_part(plain->text, plain->at, word.size), word))
		return false;
	plain->at += word.size;
	return true;
}

static struct value *plain_read(struct plain *plain)
{
	plain_skip_blanks(plain);
	switch (plain_peek(plain)) {
	case '{':
		return plain_container(plain, true);
	case '[':
		return plain_container(plain, false);
	case '"':
		return plain_string(plain);
	case 't':
		return plain_word(plain, STR("true")) ? value_new_boolean(true) : NULL;
	case 'f':
		return plain_word(plain, STR("false")) ? value_new_boolean(false) : NULL;
	case 'n':
		return plain_word(plain, STR("null")) ? value_new_null() : NULL;
	default:
		return plain_number(plain);
	}
}

bool value_plain_parse(struct str text, struct value **value)
{
	struct plain plain = {.text = text};
	struct value *made = plain_read(&plain);

	if (!made)
		return false;
	plain_skip_blanks(&plain);
	/* Also after a whole number: a point or an exponent makes another of it. */
	if (plain.at < text.size) {
		value_free(made);
		return false;
	}
	*value = made;
	return true;
}
