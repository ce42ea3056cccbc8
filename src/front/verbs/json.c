/*
 * glovebox json get: prints one part of a JSON text on standard input, for scripts that
 * would otherwise need another program. It reads no setting and starts nothing.
 */

#include "base/fd.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NAMED_MAX = 12, /* members that are named when one is missing */
	SENTENCE_MAX = 4096,
	INDEX_DIGITS_MAX = 9, /* no text that we read holds more items */
};

static const struct option_row get_options[] = {
	{"default", 0, OPTION_WORDS, "TEXT", "print TEXT when PATH is not there, or null"},
	{"json", 0, OPTION_FLAG, NULL, "print a string as JSON too, fit for other JSON"},
	OPTION_ROW_HELP,
	{0},
};

/*
 * One step of a path: a member's name, or the index of an item, from 0; a negative one
 * counts from the end.
 */
struct step {
	struct value *name; /* NULL: an item */
	long index;
	size_t end; /* the end of its text in the path */
};

static bool is_name_end(char c)
{
	return c == '\0' || strchr(".[]\" \t\n", c) != NULL;
}

/* Read the JSON string at AT into STEP. */
static bool read_quoted(const char *path, size_t at, struct step *step, struct err *err)
{
	size_t end = at + 1;

	while (path[end] != '\0' && path[end] != '"')
		end += path[end] == '\\' && path[end + 1] != '\0' ? 2 : 1;
	if (path[end] == '\0')
		return err_set(err, 0, "the quote at character %zu has no end", at + 1);
	if (!value_parse((struct str){path + at, end + 1 - at}, 0, &step->name, err))
		return false;
	step->end = end + 1;
	return true;
}

static bool read_index(const char *path, size_t at, struct step *step, struct err *err)
{
	size_t sign = path[at] == '-';
	size_t digits = strspn(path + at + sign, "0123456789");

	if (digits == 0 || digits > INDEX_DIGITS_MAX)
		return err_set(err, 0,
			       "in [ ] stands a number, or a name in double quotes; character "
			       "%zu is neither",
			       at + 1);
	step->index = strtol(path + at, NULL, 10);
	step->end = at + sign + digits;
	return true;
}

/* Read the step of PATH at AT, which is not the end of PATH. */
static bool read_step(const char *path, size_t at, struct step *step, struct err *err)
{
	size_t end;

	*step = (struct step){0};
	at += path[at] == '.' && path[at + 1] == '[';
	end = at + 1;
	if (path[at] == '[') {
		if (!(path[end] == '"' ? read_quoted(path, end, step, err)
				       : read_index(path, end, step, err)))
			return false;
		if (path[step->end] != ']')
			return err_set(err, 0, "the [ at character %zu has no ]", at + 1);
		step->end++;
		return true;
	}
	if (path[at] != '.')
		return err_set(err, 0,
			       "a step begins with . or [, which is missing before \"%.40s\"",
			       path + at);
	if (path[end] == '"')
		return read_quoted(path, end, step, err);
	while (!is_name_end(path[end]))
		end++;
	if (end == at + 1)
		return err_set(err, 0,
			       "behind the . at character %zu a name is missing; one with other "
			       "characters is written [\"a name\"]",
			       at + 1);
	step->name = value_new_str((struct str){path + at + 1, end - at - 1});
	step->end = end;
	return true;
}

static void add_names(struct buf *text, const struct value *object)
{
	size_t named = 0;

	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		if (named == NAMED_MAX) {
			(void)buf_adds(text, ", …");
			return;
		}
		(void)buf_adds(text, named++ != 0 ? ", " : "; it has ");
		text_add_name(text, str_part(str_of(value_key(at)), 0, 64));
	}
}

/*
 * Append to TEXT why STEP cannot be taken from VALUE. The first SIZE bytes of PATH lead
 * to VALUE.
 */
static void explain(const char *path, size_t size, const struct step *step,
		    const struct value *value, struct buf *text)
{
	const char *kind = value_kind_name(value_kind(value));

	if (size == 0)
		(void)buf_adds(text, "standard input");
	else
		text_add_name(text, (struct str){path, size});
	if (step->name != NULL && value_kind(value) == VALUE_OBJECT) {
		(void)buf_adds(text, " has no ");
		(void)value_quote(value_str(step->name), text);
		add_names(text, value);
	} else if (step->name == NULL && value_kind(value) == VALUE_ARRAY) {
		(void)buf_adds(text, " holds ");
		(void)text_add_count(text, value_count(value), "item");
		(void)buf_addf(text, ", and none at %ld", step->index);
	} else {
		(void)buf_addf(text, " is %s%s: it has no %s",
			       kind[0] == 'n'                   ? ""
			       : strchr("aio", kind[0]) != NULL ? "an "
								: "a ",
			       kind, step->name != NULL ? "members" : "items");
	}
}

static const struct value *take_step(const struct value *value, const struct step *step)
{
	size_t count = value_count(value);
	struct str name = value_str(step->name);

	if (step->name != NULL)
		return memchr(name.data, '\0', name.size) ? NULL
							  : value_member(value, name.data);
	if (step->index < 0)
		return (size_t)-step->index > count
			       ? NULL
			       : value_item(value, count - (size_t)-step->index);
	return value_item(value, (size_t)step->index);
}

/* Is PATH a valid path? Checked before any input is read. */
static bool check_path(const char *path, struct err *err)
{
	struct step step = {0};

	if (strcmp(path, ".") == 0)
		return true;
	if (path[0] == '\0')
		return err_set(err, 0, "the path is empty; . is the whole value");
	while (path[step.end] != '\0') {
		bool read = read_step(path, step.end, &step, err);

		value_free(step.name);
		if (!read)
			return false;
	}
	return true;
}

/* The part of VALUE that PATH leads to (borrowed), or NULL and a sentence in TEXT. */
static const struct value *follow(const char *path, const struct value *value,
				  struct buf *text)
{
	size_t at = strcmp(path, ".") == 0 ? 1 : 0;

	while (value != NULL && path[at] != '\0') {
		const struct value *next;
		struct step step;

		if (!read_step(path, at, &step, NULL))
			return NULL;
		next = take_step(value, &step);
		if (next == NULL)
			explain(path, at, &step, value, text);
		value_free(step.name);
		value = next;
		at = step.end;
	}
	return value;
}

static int print(struct str text, FILE *out)
{
	(void)fwrite(text.data, 1, text.size, out);
	(void)fputc('\n', out);
	return CODE_DONE;
}

static int print_value(const struct value *value, bool bare, FILE *out)
{
	if (bare && value_kind(value) == VALUE_STRING)
		return print(value_str(value), out);
	return verb_print_json(value, 0, out);
}

static int get_from(const struct options *options, const struct value *whole, FILE *out)
{
	const char *otherwise = options_text(options, "default");
	const struct value *found;
	struct buf text;
	int code;

	buf_init(&text, SENTENCE_MAX);
	found = follow(options->words[0], whole, &text);
	if (otherwise != NULL && value_kind(found) == VALUE_NULL)
		code = print(str_of(otherwise), out);
	else if (found == NULL)
		code = verb_complain(CODE_FAILED, "json get: %s: %s", options->words[0],
				     text.data);
	else
		code = print_value(found, !options_given(options, "json"), out);
	buf_fini(&text);
	return code;
}

static int get_run(const struct options *options, FILE *out)
{
	auto_value struct value *whole = NULL;
	struct err err = {0};
	struct buf text;
	int code;

	if (!check_path(options->words[0], &err))
		return verb_complain(CODE_USAGE, "json get: \"%.200s\" is no path: %s",
				     options->words[0], err.text);
	buf_init(&text, VALUE_TEXT_MAX);
	if (!fd_read_all(STDIN_FILENO, &text, "standard input", &err) ||
	    (!value_parse(buf_str(&text), 0, &whole, &err) &&
	     !err_while(&err, "standard input")))
		code = verb_complain(CODE_FAILED, "json get: %s", err.text);
	else
		code = get_from(options, whole, out);
	buf_fini(&text);
	return code;
}

static const char json_get_help[] =
	"Read one JSON value on standard input (64 MiB at most) and print the part of it that\n"
	"PATH names: a string as its bare text, anything else as JSON on one line.\n\n"
	"PATH is steps, one behind the other: .name for a member, [0] for an item ([-1] is the\n"
	"last), [\"a name\"] for a member with any other characters; . alone is the whole value.\n\n"
	"Exit codes: 0 printed, 1 when it is not there or the input is no JSON, 2 when PATH is\n"
	"no path.";

const struct verb verb_json_get = {
	.name = "json get",
	.summary = "print a part of the JSON on standard input",
	.arguments = "PATH",
	.help = json_get_help,
	.example =
		"  path=$(glovebox json get .path <<<\"$arguments\")\n"
		"  printf '{\"said\": %s}\\n' \"$(glovebox json get --json .text <<<\"$arguments\")\"\n"
		"  glovebox json get --default 20 '.options[\"max lines\"]' <arguments.json",
	.options = get_options,
	.words_least = 1,
	.words_most = 1,
	.run = get_run,
};
