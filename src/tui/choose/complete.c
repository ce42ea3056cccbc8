/* complete: the names, the way they are found, and mentions in a text. */

#include "tui/choose/complete.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

struct name {
	uint64_t letters; /* the characters in it: letters_of */
	uint32_t at;      /* in `text` */
	uint16_t size;
	uint16_t last; /* where its last part begins */
};

struct complete {
	char *text;
	char *folded; /* the same in lower case */
	struct name *names;
	size_t count;
	char *recent[COMPLETE_RECENT_MAX]; /* the newest last */
	size_t recent_count;
};

struct complete *complete_new(void)
{
	return memory_alloc(sizeof(struct complete));
}

static void forget_names(struct complete *complete)
{
	free(complete->text);
	free(complete->folded);
	free(complete->names);
	complete->text = complete->folded = NULL;
	complete->names = NULL;
	complete->count = 0;
}

void complete_free(struct complete *complete)
{
	if (complete == NULL)
		return;
	forget_names(complete);
	for (size_t i = 0; i < complete->recent_count; i++)
		free(complete->recent[i]);
	free(complete);
}

static unsigned char lower(char c)
{
	const unsigned char byte = (unsigned char)c;

	return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

/* A bit for each letter and digit, and one for some other characters together. */
static uint64_t letter_of(unsigned char c)
{
	if (c >= 'a' && c <= 'z')
		return (uint64_t)1 << (c - 'a');
	if (c >= '0' && c <= '9')
		return (uint64_t)1 << (26 + c - '0');
	return (uint64_t)1 << (36 + c % 28);
}

static uint64_t letters_of(struct str text)
{
	uint64_t letters = 0;

	for (size_t i = 0; i < text.size; i++)
		letters |= letter_of(lower(text.data[i]));
	return letters;
}

static struct str name_text(const struct complete *complete, const struct name *name)
{
	return (struct str){complete->text + name->at, name->size};
}

/* Would NAME be shown, and be found again in a text, as it is? */
static bool is_plain(struct str name)
{
	struct buf shown;
	bool plain;

	if (name.size == 0 || name.size > UINT16_MAX || memchr(name.data, '"', name.size))
		return false;
	buf_init(&shown, 4 * UINT16_MAX + 1);
	text_add_name(&shown, name);
	plain = str_equal(buf_str(&shown), name);
	buf_fini(&shown);
	return plain;
}

/* The same, quickly, for a name of visible ASCII. */
static bool is_ascii(struct str name)
{
	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] < ' ' || name.data[i] == 0x7f || name.data[i] == '"' ||
		    name.data[i] == '\\')
			return false;
	}
	return name.size > 0 && name.size <= UINT16_MAX;
}

static void add(struct complete *complete, struct str name)
{
	const struct str inner = str_part(name, 0, name.size - 1);
	const char *slash = memrchr(inner.data, '/', inner.size);

	complete->names[complete->count++] = (struct name){
		.letters = letters_of(name),
		.at = (uint32_t)(name.data - complete->text),
		.size = (uint16_t)name.size,
		.last = (uint16_t)(slash != NULL ? slash + 1 - name.data : 0),
	};
}

void complete_set(struct complete *complete, struct str list)
{
	size_t most = 0;

	forget_names(complete);
	list = str_part(list, 0, COMPLETE_TEXT_MAX);
	for (size_t i = 0; i < list.size; i++)
		most += list.data[i] == '\0';
	complete->text = memory_copy_str(list);
	complete->folded = memory_alloc(list.size + 1);
	for (size_t i = 0; i < list.size; i++)
		complete->folded[i] = (char)lower(list.data[i]);
	complete->names = memory_array(most + 1, sizeof(*complete->names));
	for (size_t at = 0; at < list.size;) {
		const char *end = memchr(list.data + at, '\0', list.size - at);
		struct str name;

		if (end == NULL)
			break;
		name = (struct str){complete->text + at, (size_t)(end - list.data) - at};
		at += name.size + 1;
		if (is_ascii(name) || is_plain(name))
			add(complete, name);
	}
}

void complete_note(struct complete *complete, struct str name)
{
	size_t i = 0;

	while (i < complete->recent_count && !str_is(name, complete->recent[i]))
		i++;
	if (i == COMPLETE_RECENT_MAX)
		i = 0;
	if (i < complete->recent_count) {
		free(complete->recent[i]);
		complete->recent_count--;
		memmove(complete->recent + i, complete->recent + i + 1,
			(complete->recent_count - i) * sizeof(complete->recent[0]));
	}
	complete->recent[complete->recent_count++] = memory_copy_str(name);
}

bool complete_has(const struct complete *complete, struct str name)
{
	const uint64_t letters = letters_of(name);

	for (size_t i = 0; i < complete->count; i++) {
		if (complete->names[i].letters == letters &&
		    str_equal(name_text(complete, &complete->names[i]), name))
			return true;
	}
	return false;
}

/* Finding: how well a name fits, from the best. */
enum fit {
	FIT_WHOLE,   /* the last part is what is wanted */
	FIT_BEGINS,  /* it begins so */
	FIT_IN,      /* it has it */
	FIT_LETTERS, /* it has the letters in their order */
	FIT_IN_PATH,
	FIT_LETTERS_OF_PATH,
	FIT_NONE,
};

/* Where WANTED is in TEXT; SIZE_MAX: nowhere. */
static size_t find(struct str text, struct str wanted)
{
	const char *at = memmem(text.data, text.size, wanted.data, wanted.size);

	return at != NULL ? (size_t)(at - text.data) : SIZE_MAX;
}

static bool has_letters(struct str text, struct str wanted)
{
	const char *at = text.data, *end = text.data + text.size;

	for (size_t i = 0; i < wanted.size; i++) {
		at = memchr(at, wanted.data[i], (size_t)(end - at));
		if (at == NULL)
			return false;
		at++;
	}
	return true;
}

/* How PATH, whose last part begins at LAST, fits WANTED; both are in lower case. */
static enum fit fit_of(struct str path, size_t last, struct str wanted)
{
	const struct str name = str_part(path, last, path.size);
	size_t at;

	/* A path without the letters has nothing else of the wanted text. */
	if (!has_letters(name, wanted)) {
		if (!has_letters(path, wanted))
			return FIT_NONE;
		at = find(path, wanted);
		/* A wanted text with folders means the path from its beginning. */
		if (at == 0 && memchr(wanted.data, '/', wanted.size) != NULL)
			return FIT_BEGINS;
		return at != SIZE_MAX ? FIT_IN_PATH : FIT_LETTERS_OF_PATH;
	}
	at = find(name, wanted);
	if (at == 0)
		return name.size == wanted.size ? FIT_WHOLE : FIT_BEGINS;
	return at != SIZE_MAX ? FIT_IN : FIT_LETTERS;
}

/* A name that was found. The smaller `order`, the better. */
struct finding {
	uint64_t order;
	const struct name *name;
};

struct findings {
	const struct complete *complete;
	struct finding items[COMPLETE_FOUND_MAX];
	size_t count;
};

static bool is_before(const struct findings *findings, const struct finding *a,
		      const struct finding *b)
{
	if (a->order != b->order)
		return a->order < b->order;
	const struct str x = name_text(findings->complete, a->name);
	const struct str y = name_text(findings->complete, b->name);
	const int compared = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
	return compared != 0 ? compared < 0 : x.size < y.size;
}

static void keep(struct findings *findings, struct finding finding)
{
	size_t at = findings->count;

	if (at == COMPLETE_FOUND_MAX) {
		if (!is_before(findings, &finding, &findings->items[at - 1]))
			return;
		at--;
	} else {
		findings->count++;
	}
	for (; at > 0 && is_before(findings, &finding, &findings->items[at - 1]); at--)
		findings->items[at] = findings->items[at - 1];
	findings->items[at] = finding;
}

/* How many names were used after NAME; COMPLETE_RECENT_MAX: it was not used. */
static uint64_t age_of(const struct complete *complete, struct str name)
{
	for (size_t i = complete->recent_count; i-- > 0;) {
		if (str_is(name, complete->recent[i]))
			return complete->recent_count - 1 - i;
	}
	return COMPLETE_RECENT_MAX;
}

static uint64_t depth_of(struct str name)
{
	uint64_t depth = 0;

	for (size_t i = 0; i + 1 < name.size; i++)
		depth += name.data[i] == '/';
	return depth;
}

void complete_find(const struct complete *complete, struct str wanted,
		   void (*found)(void *context, struct str name), void *context)
{
	enum { SIZE_BITS = 17, AGE_BITS = 10, DEPTH_BITS = 12 };
	struct findings findings = {.complete = complete};
	char folded[COMPLETE_WANTED_MAX];
	uint64_t recent = 0;

	if (wanted.size > sizeof(folded))
		return;
	for (size_t i = 0; i < wanted.size; i++)
		folded[i] = (char)lower(wanted.data[i]);
	wanted = (struct str){folded, wanted.size};
	const uint64_t letters = letters_of(wanted);
	for (size_t i = 0; i < complete->recent_count; i++)
		recent |= (uint64_t)1 << (strlen(complete->recent[i]) % 64);
	for (size_t i = 0; i < complete->count; i++) {
		const struct name *name = &complete->names[i];
		const struct str path = name_text(complete, name);

		if ((name->letters & letters) != letters)
			continue;
		const struct str lowered = {complete->folded + name->at, name->size};
		const enum fit fit = wanted.size > 0 ? fit_of(lowered, name->last, wanted)
						     : FIT_BEGINS;
		if (fit == FIT_NONE)
			continue;
		/* Few names were used: most are known by their length not to be among them. */
		const uint64_t age = (recent >> (path.size % 64) & 1) != 0
					     ? age_of(complete, path)
					     : COMPLETE_RECENT_MAX;
		const uint64_t depth = wanted.size == 0 ? depth_of(path) : 0;
		keep(&findings,
		     (struct finding){
			     .order = (((((uint64_t)fit << AGE_BITS) | age) << DEPTH_BITS) |
				       (depth < 1 << DEPTH_BITS ? depth
								: (1 << DEPTH_BITS) - 1))
					      << SIZE_BITS |
				      (wanted.size > 0 ? path.size : 0),
			     .name = name,
		     });
	}
	for (size_t i = 0; i < findings.count; i++)
		found(context, name_text(complete, findings.items[i].name));
}

/* Mentions. */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* May an @ behind C begin a mention? */
static bool may_precede(char c)
{
	return is_blank(c) || strchr("([{'\"`,;:", c) != NULL;
}

/* Take ":10" or ":10-40" from the beginning of TEXT. Returns its size; 0: there is none. */
static size_t take_lines(struct str text, struct mention *mention)
{
	struct str rest = text;
	size_t first, last;

	if (!str_starts(text, STR(":")))
		return 0;
	rest = str_part(text, 1, text.size);
	first = last = text_take_number(&rest);
	if (first == 0)
		return 0;
	if (rest.size > 1 && rest.data[0] == '-' && rest.data[1] >= '0' &&
	    rest.data[1] <= '9') {
		rest = str_part(rest, 1, rest.size);
		last = text_take_number(&rest);
	}
	if (last < first)
		return 0;
	mention->first = (uint32_t)first;
	mention->last = (uint32_t)last;
	return text.size - rest.size;
}

static void take_quoted(struct str rest, struct mention *mention)
{
	const size_t close = str_find(rest, STR("\""), 1);
	const size_t line = str_find(rest, STR("\n"), 1);

	mention->quoted = true;
	if (close == SIZE_MAX || line < close) {
		const size_t end = line < rest.size ? line : rest.size;

		mention->name = str_part(rest, 1, end - 1);
		mention->end += end;
		return;
	}
	mention->name = str_part(rest, 1, close - 1);
	mention->end += close + 1;
	mention->end += take_lines(str_part(rest, close + 1, rest.size), mention);
}

/* Is TEXT what may stand between the end of a mention and a blank? */
static bool is_closing(struct str text)
{
	const struct str closing = STR(".,;:!?)]}'\"`");
	size_t at = 0;

	while (at < text.size && memchr(closing.data, text.data[at], closing.size) != NULL)
		at++;
	return at == text.size;
}

static void take_plain(struct str rest, struct mention *mention)
{
	size_t end = 0, colon;

	while (end < rest.size && !is_blank(rest.data[end]))
		end++;
	const struct str word = str_part(rest, 0, end);
	mention->name = word;
	mention->end += end;
	for (colon = 0; (colon = str_find(word, STR(":"), colon)) != SIZE_MAX; colon++) {
		const size_t lines = take_lines(str_part(word, colon, word.size), mention);

		/* The end of a sentence may follow, and nothing else of a name. */
		if (lines == 0 || !is_closing(str_part(word, colon + lines, end))) {
			mention->first = mention->last = 0;
			continue;
		}
		mention->name = str_part(word, 0, colon);
		mention->end = mention->begin + 1 + colon + lines;
		return;
	}
}

bool mention_next(struct str text, size_t at, struct mention *mention)
{
	for (; (at = str_find(text, STR("@"), at)) != SIZE_MAX; at++) {
		const struct str rest = str_part(text, at + 1, text.size);

		if (at > 0 && !may_precede(text.data[at - 1]))
			continue;
		*mention = (struct mention){.begin = at, .end = at + 1};
		if (str_starts(rest, STR("\"")))
			take_quoted(rest, mention);
		else
			take_plain(rest, mention);
		return true;
	}
	return false;
}

void mention_add(struct str name, struct buf *out)
{
	struct mention plain = {0};

	/* A name with blanks, or one that ends like the lines of another file, is not read whole. */
	take_plain(name, &plain);
	const bool quotes = !str_equal(plain.name, name);
	(void)buf_adds(out, quotes ? "@\"" : "@");
	(void)buf_addstr(out, name);
	if (quotes)
		(void)buf_addc(out, '"');
}
