/*
 * secret: reads files that hold secrets, and knows the shapes of keys.
 *
 * A line of a file is read as far as its key and its value are plain. A value that a
 * program would put together (`${OTHER}`) is none. Bytes of a file are foreign: nothing is
 * copied, and a line that does not fit is left.
 */

#include "tool/secret.h"

#include "base/text/text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* Texts that stand in the place of a secret. */

static const char *const placeholders[] = {
#define SHAPE(name, prefix, alphabet, least, most)
#define PLACEHOLDER(text) text,
#define WORDS_ONLY(text)
#include "tool/secret.def"
#undef PLACEHOLDER
#undef WORDS_ONLY
};

static const char *const words_only[] = {
#define PLACEHOLDER(text)
#define WORDS_ONLY(text) text,
#include "tool/secret.def"
#undef PLACEHOLDER
#undef WORDS_ONLY
#undef SHAPE
};

enum { COUNT_PLACEHOLDERS = sizeof(placeholders) / sizeof(placeholders[0]) };

/* NEEDLE is in lower case. */
static bool has_word(struct str text, const char *needle)
{
	const size_t size = strlen(needle);

	for (size_t at = 0; at + size <= text.size; at++) {
		size_t same = 0;

		while (same < size &&
		       tolower((unsigned char)text.data[at + same]) == needle[same])
			same++;
		if (same == size)
			return true;
	}
	return false;
}

static bool is_placeholder(struct str value)
{
	for (size_t i = 0; i < COUNT_PLACEHOLDERS; i++) {
		if (has_word(value, placeholders[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(words_only) / sizeof(words_only[0]); i++) {
		if (value.size == strlen(words_only[i]) && has_word(value, words_only[i]))
			return true;
	}
	return false;
}

/* A number is a time or a size; a longer one may be a code. */
enum { NUMBER_MIN = 16 };

bool secret_is_value(struct str value)
{
	static const char *const begins[] = {"${", "$(", "{{", "<", "%", "`"};
	bool digits = true;

	if (value.size < SECRET_MIN || value.size > SECRET_MAX || !text_is_utf8(value))
		return false;
	for (size_t i = 0; i < value.size; i++) {
		const unsigned char c = (unsigned char)value.data[i];

		if (c < ' ' || c == 0x7f)
			return false;
		digits = digits && isdigit(c);
	}
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (str_starts(value, str_of(begins[i])))
			return false;
	}
	/* "‹" begins a mark. */
	return !(digits && value.size < NUMBER_MIN) &&
	       str_find(value, STR("${"), 0) == (size_t)-1 &&
	       str_find(value, STR("\xe2\x80\xb9"), 0) == (size_t)-1 &&
	       !is_placeholder(value);
}

/* Shapes. */

enum alphabet { UPPER, ALNUM, WORD, DOTTED, PATH, BASE64, JWT };

struct shape {
	const char *name, *prefix;
	enum alphabet alphabet;
	uint16_t least, most;
};

static const struct shape shapes[] = {
#define SHAPE(name, prefix, alphabet, least, most) {name, prefix, alphabet, least, most},
#define PLACEHOLDER(text)
#define WORDS_ONLY(text)
#include "tool/secret.def"
#undef SHAPE
#undef PLACEHOLDER
#undef WORDS_ONLY
};

enum { COUNT_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static bool is_of(enum alphabet alphabet, char c)
{
	static const char *const more[] = {
		[UPPER] = "",   [ALNUM] = "",     [WORD] = "_-", [DOTTED] = "_-.",
		[PATH] = "_-/", [BASE64] = "+/=", [JWT] = "_-.",
	};

	if (alphabet == UPPER)
		return isupper((unsigned char)c) || isdigit((unsigned char)c);
	return c != '\0' &&
	       (isalnum((unsigned char)c) || strchr(more[alphabet], c) != NULL);
}

/* A token of this kind is three texts of Base64, the first two of which are objects. */
static bool is_jwt(struct str token)
{
	const size_t first = str_find(token, STR("."), 0);
	const size_t second =
		first == (size_t)-1 ? first : str_find(token, STR("."), first + 1);

	return second != (size_t)-1 && second + 1 < token.size &&
	       str_find(token, STR("."), second + 1) == (size_t)-1 &&
	       str_starts(str_part(token, first + 1, token.size), STR("eyJ"));
}

static struct secret_shape fit_shape(const struct shape *shape, struct str text, bool last)
{
	const struct str prefix = str_of(shape->prefix);
	struct secret_shape fit = {.name = shape->name};
	size_t end = prefix.size;

	if (text.size < prefix.size) {
		fit.open = !last && memcmp(text.data, prefix.data, text.size) == 0;
		return fit;
	}
	if (!str_starts(text, prefix))
		return fit;
	while (end < text.size && end <= prefix.size + shape->most &&
	       is_of(shape->alphabet, text.data[end]))
		end++;
	fit.open = !last && end == text.size && end <= prefix.size + shape->most;
	/* The full stop or the slash behind a key is of the sentence. */
	while (end > prefix.size && strchr("./", text.data[end - 1]) != NULL &&
	       shape->alphabet != BASE64)
		end--;
	if (end - prefix.size < shape->least || end - prefix.size > shape->most)
		return fit;
	const struct str token = str_part(text, 0, end);
	if (is_placeholder(token) || (shape->alphabet == JWT && !is_jwt(token)))
		return fit;
	fit.size = end;
	return fit;
}

struct secret_shape secret_key_at(struct str text, bool last)
{
	struct secret_shape longest = {0};

	for (size_t i = 0; i < COUNT_SHAPES; i++) {
		if (text.size == 0 || shapes[i].prefix[0] != text.data[0] ||
		    (text.size > 1 && shapes[i].prefix[1] != text.data[1]))
			continue;
		const struct secret_shape fit = fit_shape(&shapes[i], text, last);

		longest.open = longest.open || fit.open;
		if (fit.size > longest.size) {
			longest.name = fit.name;
			longest.size = fit.size;
		}
	}
	return longest;
}

/* The longest user and password that are looked for in a URL. */
enum { USERINFO_MAX = 512 };

struct secret_shape secret_password_at(struct str text, bool last)
{
	static const char stops[] = "/?#\"'<>`\\ \t\r\n(){}[],;|";
	struct secret_shape fit = {.name = "url"};
	size_t at = 3, colon = 0;

	if (!str_starts(text, str_part(STR("://"), 0, text.size)))
		return fit;
	while (at < text.size && at < USERINFO_MAX && text.data[at] != '@') {
		if (text.data[at] == '\0' || strchr(stops, text.data[at]) != NULL)
			return fit;
		if (text.data[at] == ':' && colon == 0)
			colon = at;
		at++;
	}
	fit.open = !last && at >= text.size;
	if (at >= text.size || text.data[at] != '@' || colon == 0)
		return fit;
	const struct str password = str_part(text, colon + 1, at - colon - 1);
	if (!secret_is_value(password))
		return fit;
	fit.from = colon + 1;
	fit.size = password.size;
	return fit;
}

void secret_each_begin(void (*each)(void *context, const char *begin), void *context)
{
	for (size_t i = 0; i < COUNT_SHAPES; i++)
		each(context, shapes[i].prefix);
}

/* Files. */

enum secret_file secret_file_of(const char *name)
{
	static const char *const examples[] = {"example", "sample", "template", "dist"};

	if (strcmp(name, ".netrc") == 0)
		return SECRET_FILE_NETRC;
	if (strcmp(name, ".npmrc") == 0 || strcmp(name, ".pypirc") == 0 ||
	    strcmp(name, ".env") == 0 || fnmatch("*.tfvars", name, 0) == 0)
		return SECRET_FILE_LINES;
	if (strncmp(name, ".env.", 5) != 0)
		return SECRET_FILE_NONE;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		if (has_word(str_of(name), examples[i]))
			return SECRET_FILE_NONE;
	}
	return SECRET_FILE_LINES;
}

static bool is_key_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* The meaning of a key's name for its value. */
enum key_kind { KEY_OTHER, KEY_SECRET, KEY_PASSWORD };

/* Take the next word of *KEY: "API_KEY", "apiKey" and "APIKey2" have two. */
static bool next_part(struct str *key, struct str *part)
{
	size_t from = 0, end;

	while (from < key->size && !isalpha((unsigned char)key->data[from]))
		from++;
	for (end = from; end < key->size && isalpha((unsigned char)key->data[end]); end++) {
		const char *at = key->data + end;
		const bool upper = end > from && isupper((unsigned char)at[0]);

		if (upper && (islower((unsigned char)at[-1]) ||
			      (end + 1 < key->size && islower((unsigned char)at[1]))))
			break;
	}
	*part = str_part(*key, from, end - from);
	*key = str_part(*key, end, key->size);
	return part->size > 0;
}

static bool is_text(struct str text, const char *lower)
{
	return text.size == strlen(lower) && has_word(text, lower);
}

/* Does PART end with the word LOWER, or with more than one of them? *BEFORE: the rest. */
static bool splits(struct str part, const char *lower, struct str *before)
{
	const size_t size = strlen(lower);

	for (size_t plural = 0; plural < 2 && size + plural <= part.size; plural++) {
		const size_t rest = part.size - size - plural;

		if (plural > 0 && tolower((unsigned char)part.data[part.size - 1]) != 's')
			return false;
		*before = str_part(part, 0, rest);
		if (has_word(str_part(part, rest, size), lower))
			return true;
	}
	return false;
}

static bool ends_with(struct str part, const char *lower)
{
	struct str before;

	return splits(part, lower, &before);
}

/*
 * Is PART the word LOWER, which ends many others ("monkey", "bypass"), by itself or behind a
 * word as in "apikey" and "dbpass"?
 */
static bool is_short_word(struct str part, const char *lower)
{
	static const char *const firsts[] = {"",        "api",     "access", "secret",
					     "private", "ssh",     "db",     "pg",
					     "my",      "mysql",   "app",    "master",
					     "auth",    "o",       "user",   "admin",
					     "root",    "encrypt", "sign",   "signing",
					     "crypto",  "basic",   "host",   "deploy"};
	struct str before;

	if (!splits(part, lower, &before))
		return false;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		if (is_text(before, firsts[i]))
			return true;
	}
	return false;
}

static enum key_kind kind_of_part(struct str part)
{
	static const char *const passwords[] = {"password", "passwd", "passphrase",
						"secret"};
	static const char *const others[] = {"token",        "dsn",    "credential",
					     "private",      "cookie", "webhook",
					     "authorization"};
	static const char *const short_words[] = {"key", "auth", "salt"};

	for (size_t i = 0; i < sizeof(passwords) / sizeof(passwords[0]); i++) {
		if (has_word(part, passwords[i]))
			return KEY_PASSWORD;
	}
	if (ends_with(part, "pwd") || is_short_word(part, "pass"))
		return KEY_PASSWORD;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (ends_with(part, others[i]))
			return KEY_SECRET;
	}
	for (size_t i = 0; i < sizeof(short_words) / sizeof(short_words[0]); i++) {
		if (is_short_word(part, short_words[i]))
			return KEY_SECRET;
	}
	return KEY_OTHER;
}

/* The last word may say that the value is something about a secret. */
static enum key_kind kind_of_key(struct str key)
{
	static const char *const places[] = {"path", "file", "dir", "author"};
	static const char *const about[] = {"header", "type",   "enabled",  "name",
					    "prefix", "length", "algorithm"};
	enum key_kind kind = KEY_OTHER;
	struct str part, last = {0};

	while (next_part(&key, &part)) {
		const enum key_kind own = kind_of_part(part);

		kind = own > kind ? own : kind;
		last = part;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (ends_with(last, places[i]))
			return KEY_OTHER;
	}
	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
		if (is_text(last, about[i]))
			return KEY_OTHER;
	}
	return kind;
}

/* Letters alone are a word of a language ("internal_network"), but for a password. */
static bool is_word_only(struct str value)
{
	for (size_t i = 0; i < value.size; i++) {
		if (!isalpha((unsigned char)value.data[i]) && value.data[i] != '_')
			return false;
	}
	return true;
}

struct reading {
	void (*each)(void *context, struct str name, struct str value);
	void *context;
};

static void tell(const struct reading *reading, struct str name, struct str value)
{
	if (secret_is_value(value))
		reading->each(reading->context, name, value);
}

/* Of a URL only the password is secret, or else what a hook has behind its host. */
static void tell_url(const struct reading *reading, struct str key, struct str value,
		     size_t scheme)
{
	const struct str rest = str_part(value, scheme, value.size);
	const struct secret_shape fit = secret_password_at(rest, true);
	const size_t slash = str_find(rest, STR("/"), 3), at = str_find(rest, STR("@"), 0);

	if (fit.size > 0)
		tell(reading, key, str_part(rest, fit.from, fit.size));
	else if (has_word(key, "dsn") && at != (size_t)-1 && at < slash)
		tell(reading, key, str_part(rest, 3, at - 3));
	else if (has_word(key, "webhook") && slash != (size_t)-1)
		tell(reading, key, str_part(rest, slash + 1, rest.size));
}

/* The value at the beginning of TEXT, without its quotes or the comment behind it. */
static struct str value_of(struct str text)
{
	size_t end = 0;

	text = str_trim(text);
	if (text.size > 1 && strchr("\"'`", text.data[0]) != NULL) {
		for (end = 1; end < text.size && text.data[end] != text.data[0]; end++) {
			if (text.data[end] == '\\' && text.data[0] == '"')
				end++;
		}
		return end < text.size ? str_part(text, 1, end - 1)
				       : str_part(text, 1, end);
	}
	while (end < text.size &&
	       !(text.data[end] == '#' && end > 0 && strchr(" \t", text.data[end - 1])))
		end++;
	return str_trim(str_part(text, 0, end));
}

static void read_line(const struct reading *reading, struct str line)
{
	size_t sign;

	line = str_trim(line);
	if (line.size == 0 || strchr("#;[", line.data[0]) != NULL)
		return;
	sign = str_find(line, STR("="), 0);
	if (sign == (size_t)-1)
		sign = str_find(line, STR(":"), 0);
	if (sign == (size_t)-1)
		return;
	const struct str before = str_trim(str_part(line, 0, sign));
	size_t from = before.size;
	while (from > 0 && is_key_character(before.data[from - 1]))
		from--;
	const struct str key = str_part(before, from, before.size);
	const struct str value = value_of(str_part(line, sign + 1, line.size));
	const size_t scheme = str_find(value, STR("://"), 0);
	if (scheme != (size_t)-1 && scheme > 0 && scheme < 32)
		tell_url(reading, key, value, scheme);
	else if (kind_of_key(key) > (is_word_only(value) ? KEY_SECRET : KEY_OTHER))
		tell(reading, key, value);
}

static void read_netrc(const struct reading *reading, struct str text)
{
	struct str line, word;
	bool wanted = false;

	while (str_next_line(&text, &line)) {
		while (line.size > 0 && line.data[line.size - 1] == '\r')
			line.size--;
		for (size_t i = 0; i < line.size;) {
			size_t end = i;

			while (end < line.size && strchr(" \t", line.data[end]) == NULL)
				end++;
			word = str_part(line, i, end - i);
			if (wanted && word.size > 0)
				tell(reading, STR("netrc-password"), value_of(word));
			if (word.size > 0)
				wanted = str_is(word, "password");
			i = end + 1;
		}
	}
}

void secret_file_read(enum secret_file kind, struct str text,
		      void (*each)(void *context, struct str name, struct str value),
		      void *context)
{
	const struct reading reading = {each, context};
	struct str line;

	if (kind == SECRET_FILE_NETRC) {
		read_netrc(&reading, text);
		return;
	}
	while (kind == SECRET_FILE_LINES && str_next_line(&text, &line))
		read_line(&reading, line);
}
