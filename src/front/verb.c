/* verb: the table of verbs, and the way from the command line to one of them. */

#include "front/verb.h"

#include "agent/when.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "front/agents.h"
#include "front/cells/place.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/output/formats.h"
#include "front/wrap/mcp_install.h"
#include "front/wrap/profile.h"
#include "model/catalogue.h"
#include "model/model.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "sandbox/probe.h"
#include "store/journal.h"
#include "store/patches.h"
#include "tool/tool.h"
#include "tools/tools.h"
#include "tui/paint.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * The options that every verb takes, so that an alias or a script can always write them:
 * -C, --config and --agent. These rows are for verbs that do not have the option
 * themselves: such a verb runs in the folder of -C, and ignores the other two.
 */
static const struct option_row verb_common_options[] = {
	{"workspace", 'C', OPTION_TEXT, "DIR", "do it in DIR, as if you were there"},
	{"config", 0, OPTION_TEXT, "FILE", "taken by every verb; changes nothing here"},
	{"agent", 'a', OPTION_TEXT, "NAME", "taken by every verb; changes nothing here",
	 NAMES_AGENTS},
	{0},
};

static const struct option_row verb_none_options[] = {
	{"version", 'V', OPTION_FLAG, NULL, "print the version"},
	OPTION_ROW_HELP,
	{0},
};

/* A name has at most two words. */
enum { NAME_MAX_BYTES = 256 };

/*
 * Prints the texts of `--help`, made from the rows of verbs and options. All functions
 * return an exit code.
 */

/* The width of the column of names; a longer name has two blanks behind it. */
enum { HELP_COLUMN = 24 };

static void print_verb_line(const struct verb *verb, FILE *out)
{
	(void)fprintf(out, "  %-*s%s\n", HELP_COLUMN, verb->name, verb->summary);
}

static bool verb_is_in_group(const struct verb *verb, const char *group);

static int help_print_group(const char *group, FILE *out)
{
	(void)fprintf(out, "usage: glovebox %s VERB [options] …\n\nVerbs\n", group);
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			print_verb_line(verbs[i], out);
	(void)fprintf(out, "\nExample\n");
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			(void)fprintf(out, "%s\n", verbs[i]->example);
	return CODE_DONE;
}

static void print_option(const struct option_row *row, FILE *out)
{
	char name[HELP_COLUMN * 2];
	const bool maybe = row->kind == OPTION_MAYBE || row->kind == OPTION_EITHER;
	const char *blank = row->kind == OPTION_FLAG     ? ""
			    : row->kind == OPTION_EITHER ? " ["
			    : maybe                      ? "[="
							 : " ";
	const char *value = row->kind == OPTION_FLAG ? "" : row->value;
	const char *end = maybe ? "]" : "";

	if (row->letter != 0)
		(void)snprintf(name, sizeof(name), "-%c, --%s%s%s%s", row->letter,
			       row->name, blank, value, end);
	else
		(void)snprintf(name, sizeof(name), "    --%s%s%s%s", row->name, blank,
			       value, end);
	const size_t columns = paint_width_of(str_of(name));

	(void)fprintf(out, "  %s%*s%s\n", name,
		      columns < HELP_COLUMN ? (int)(HELP_COLUMN - columns) : 2, "",
		      row->help);
}

/*
 * Print TEXT, which has line ends of its own. On a terminal with fewer columns than its longest
 * line each paragraph becomes one line, which OUT folds: lines of two widths would alternate
 * otherwise. A line that begins with a blank stays one.
 */
static void print_prose(const char *text, FILE *out)
{
	const size_t columns = paint_columns_of(STDOUT_FILENO);
	size_t longest = 0;

	for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
		at += at[0] == '\n';
		const size_t wide = paint_width_of((struct str){at, strcspn(at, "\n")});

		longest = wide > longest ? wide : longest;
	}
	if (longest <= columns) {
		(void)fputs(text, out);
		return;
	}
	for (bool listed = text[0] == ' '; *text != '\0'; text++) {
		const bool joins = *text == '\n' && !listed && text[1] != '\n' &&
				   text[1] != ' ' && text[1] != '\0';

		if (*text == '\n')
			listed = text[1] == '\n' || text[1] == ' ';
		(void)fputc(joins ? ' ' : *text, out);
	}
}

static bool verb_has_option(const struct option_row *verb_options, const char *name);

/*
 * The options of every verb, in the words of one that heeds them, and those that stand
 * without a verb.
 */
static void print_options_of_all(FILE *out)
{
	const struct option_row *const heeded = verb_run.options;

	for (const struct option_row *row = heeded; row->name != NULL; row++) {
		if (verb_has_option(verb_common_options, row->name))
			print_option(row, out);
	}
	for (const struct option_row *row = verb_none_options; row->name != NULL; row++)
		print_option(row, out);
}

static int help_print_overview(FILE *out)
{
	(void)fprintf(out,
		      "glovebox " GLOVEBOX_VERSION
		      ": tools for coding agents, run inside a kernel-enforced cell\n\n"
		      "usage: glovebox \"PROMPT\"          let an agent work on this folder\n"
		      "       glovebox VERB [options] …\n\nVerbs\n");
	for (size_t i = 0; verbs[i] != NULL; i++)
		print_verb_line(verbs[i], out);
	(void)fprintf(out, "\nOptions, also in front of a verb\n");
	print_options_of_all(out);
	(void)fprintf(out, "\nglovebox VERB --help explains one, with its own options and an "
			   "example.\n");
	return CODE_DONE;
}

/* Do the VERB_OPTIONS of a verb already hold all options that every verb takes? */
static bool has_common(const struct option_row *verb_options)
{
	for (const struct option_row *row = verb_common_options; row->name != NULL; row++) {
		if (!verb_has_option(verb_options, row->name))
			return false;
	}
	return true;
}

static int help_print_verb(const struct verb *verb, FILE *out)
{
	(void)fprintf(out, "usage: glovebox %s [options]%s%s\n\n", verb->name,
		      verb->arguments[0] != '\0' ? " " : "", verb->arguments);
	print_prose(verb->help, out);
	(void)fprintf(out, "\n\nOptions\n");
	for (const struct option_row *row = verb->options; row->name != NULL; row++)
		print_option(row, out);
	if (!has_common(verb->options))
		(void)fprintf(out, "\nOptions of every verb\n");
	for (const struct option_row *row = verb_common_options; row->name != NULL; row++) {
		if (!verb_has_option(verb->options, row->name))
			print_option(row, out);
	}
	(void)fprintf(out, "\nExample\n%s\n", verb->example);
	return CODE_DONE;
}

/* Parses the command line by rows. */

/* A larger count is a slip. This one still fits every counter of ours. */
static const uint64_t count_max = 1000000000;

/* Is WORD an option at all? "-" alone is a word: it stands for standard input. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

/* The row of WORD. *VALUE is the begin of the value in WORD (NULL: WORD has no value). */
static const struct option_row *find_row(const struct option_row *rows, const char *word,
					 const char **value)
{
	size_t length;

	*value = NULL;
	if (!is_option(word))
		return NULL;
	if (word[1] != '-') {
		for (; rows->name != NULL; rows++) {
			if (rows->letter != word[1])
				continue;
			if (word[2] != '\0')
				*value = word + 2 + (word[2] == '=');
			return rows;
		}
		return NULL;
	}
	length = strcspn(word + 2, "=");
	for (; rows->name != NULL; rows++) {
		if (strlen(rows->name) != length ||
		    memcmp(rows->name, word + 2, length) != 0)
			continue;
		if (word[2 + length] == '=')
			*value = word + 2 + length + 1;
		return rows;
	}
	return NULL;
}

static void add_word(struct value *words, const char *name, const char *text)
{
	struct buf word;

	buf_init(&word, SIZE_MAX);
	(void)buf_addf(&word, "--%s%s%s", name, text != NULL ? "=" : "",
		       text != NULL ? text : "");
	value_append(words, value_new_str(buf_str(&word)));
	buf_fini(&word);
}

struct value *options_words(const struct options *options)
{
	struct value *words = value_new_array();

	for (size_t i = 0; options->rows[i].name != NULL; i++) {
		const struct option_row *row = &options->rows[i];
		const struct option_value *value = &options->values[i];

		if (!value->given)
			continue;
		if (row->kind != OPTION_TEXTS)
			add_word(words, row->name,
				 row->kind == OPTION_FLAG ? NULL : value->text);
		for (size_t j = 0; row->kind == OPTION_TEXTS && j < value->text_count; j++)
			add_word(words, row->name, value->texts[j]);
	}
	return words;
}

const struct option_row *options_find(const struct option_row *rows, const char *word,
				      bool *apart)
{
	const char *value;
	const struct option_row *row = find_row(rows, word, &value);

	*apart = row != NULL && row->kind != OPTION_FLAG && row->kind != OPTION_MAYBE &&
		 row->kind != OPTION_EITHER && value == NULL;
	return row;
}

static bool refuse_unknown(const struct option_row *rows, const char *word, struct err *err)
{
	const char *names[OPTIONS_MAX + 1];
	auto_free char *given = NULL;
	const char *nearest = NULL;
	size_t count = 0;

	if (word[1] == '-') {
		for (const struct option_row *row = rows; row->name != NULL; row++)
			names[count++] = row->name;
		names[count] = NULL;
		given = memory_copy(word + 2);
		given[strcspn(given, "=")] = '\0';
		nearest = text_nearest(given, names);
	}
	if (nearest != NULL)
		return err_set(err, EINVAL, "no option %.100s; did you mean --%s?", word,
			       nearest);
	return err_set(err, EINVAL,
		       "no option %.100s; --help lists them, and words that begin with a dash "
		       "stand behind --",
		       word);
}

static bool parse_level(const struct option_row *row, const char *text, uint64_t *level,
			struct err *err)
{
	for (const struct level_row *at = probe_levels; at->name != NULL; at++) {
		if (strcmp(at->name, text) == 0) {
			*level = (uint64_t)at->level;
			return true;
		}
	}
	if (strcmp(text, "L1") == 0)
		return err_set(err, EINVAL, "--%s: " CONFIG_FORMER_LEVEL, row->name);
	return err_set(err, EINVAL, "--%s: no level \"%.20s\": L3, L2 or L0", row->name,
		       text);
}

/*
 * Parse a plain decimal number. Other texts that strtod takes ("inf", "0x1p3") are no
 * amounts.
 */
static bool parse_amount(const char *text, double *amount)
{
	char *end;

	if (text[0] == '\0' || text[strspn(text, "0123456789.")] != '\0')
		return false;
	*amount = strtod(text, &end);
	return *end == '\0' && *amount > 0;
}

static bool parse_value(const struct option_row *row, struct option_value *value,
			const char *text, struct err *err)
{
	value->given = true;
	value->text = text;
	if ((row->kind == OPTION_TEXT || row->kind == OPTION_TEXTS ||
	     ((row->kind == OPTION_MAYBE || row->kind == OPTION_EITHER) && text != NULL)) &&
	    text[0] == '\0')
		return err_set(err, EINVAL, "--%s: its value is empty: --%s %s",
			       row->name, row->name, row->value);
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_MAYBE:
	case OPTION_EITHER:
	case OPTION_TEXT:
	case OPTION_WORDS:
		return true;
	case OPTION_TEXTS:
		value->texts = memory_grow(value->texts, value->text_count + 2,
					   sizeof(*value->texts));
		value->texts[value->text_count++] = text;
		value->texts[value->text_count] = NULL;
		return true;
	case OPTION_COUNT:
		if (!text_parse_count(text, count_max, &value->count, err))
			return err_while(err, "--%s", row->name);
		if (value->count == 0)
			return err_set(err, EINVAL,
				       "--%s: 0 is too small, 1 is the least", row->name);
		return true;
	case OPTION_SECONDS:
		if (!text_parse_seconds(text, &value->seconds, err))
			return err_while(err, "--%s", row->name);
		return true;
	case OPTION_AMOUNT:
		return parse_amount(text, &value->amount) ||
		       err_set(err, EINVAL, "--%s: \"%.20s\" is no number above 0, as 0.5",
			       row->name, text);
	case OPTION_LEVEL:
		return parse_level(row, text, &value->count, err);
	}
	return true;
}

/* Is NEXT (or NULL) the value of ROW, an OPTION_EITHER, behind the options so far? */
static bool is_its_value(const struct options *options, const struct option_row *row,
			 const char *next)
{
	for (size_t i = 0; options->rows[i].name != NULL; i++) {
		if (options->values[i].given &&
		    str_among(row->alone, str_of(options->rows[i].name)))
			return false;
	}
	return next != NULL && !is_option(next);
}

/* Take the option at WORDS[*AT], and the word of its value. */
static bool take_option(struct options *options, const char *const *words, size_t *at,
			struct err *err)
{
	const char *word = words[*at];
	const char *text;
	const struct option_row *row = find_row(options->rows, word, &text);

	if (row == NULL)
		return refuse_unknown(options->rows, word, err);
	if (row->kind == OPTION_FLAG) {
		if (text != NULL)
			return err_set(err, EINVAL, "%.100s: --%s takes no value", word,
				       row->name);
	} else if (text == NULL && row->kind == OPTION_EITHER) {
		if (is_its_value(options, row, words[*at + 1]))
			text = words[++*at];
	} else if (text == NULL && row->kind != OPTION_MAYBE) {
		text = words[*at + 1];
		if (text == NULL)
			return err_set(err, EINVAL, "%s needs a value: --%s %s", word,
				       row->name, row->value);
		++*at;
	}
	return parse_value(row, &options->values[row - options->rows], text, err);
}

bool options_parse(struct options *options, const struct option_row *rows,
		   const char *const *words, bool words_end_it, struct err *err)
{
	size_t count = 0;
	bool ended = false;

	memset(options, 0, sizeof(*options));
	options->rows = rows;
	while (rows[count].name != NULL)
		count++;
	assert(count < OPTIONS_MAX);
	for (count = 0; words[count] != NULL; count++)
		;
	options->words = memory_array(count + 1, sizeof(*options->words));

	for (size_t i = 0; i < count; i++) {
		if (!ended && strcmp(words[i], "--") == 0) {
			ended = true;
		} else if (!ended && is_option(words[i])) {
			if (!take_option(options, words, &i, err))
				return false;
		} else {
			options->words[options->word_count++] = words[i];
			ended = ended || words_end_it;
		}
	}
	return true;
}

void options_fini(struct options *options)
{
	for (size_t i = 0; i < OPTIONS_MAX; i++) {
		free(options->values[i].texts);
		options->values[i].texts = NULL;
	}
	free(options->words);
	options->words = NULL;
	options->word_count = 0;
}

static const struct option_value *value_of(const struct options *options, const char *name)
{
	const struct option_row *row = options->rows;

	while (row->name != NULL && strcmp(row->name, name) != 0)
		row++;
	assert(row->name != NULL);
	return &options->values[row - options->rows];
}

bool options_given(const struct options *options, const char *name)
{
	return value_of(options, name)->given;
}

void options_set(struct options *options, const char *name, const char *text)
{
	struct option_value *value =
		&options->values[value_of(options, name) - options->values];

	value->given = text != NULL;
	value->text = text;
}

void options_fill(struct options *options, const char *name, const char *text)
{
	struct option_value *value =
		&options->values[value_of(options, name) - options->values];

	if (value->given)
		return;
	value->given = true;
	value->text = text;
}

const char *options_text(const struct options *options, const char *name)
{
	return value_of(options, name)->text;
}

const char *const *options_texts(const struct options *options, const char *name)
{
	static const char *const none[] = {NULL};
	const struct option_value *value = value_of(options, name);

	return value->texts != NULL ? value->texts : none;
}

uint64_t options_count(const struct options *options, const char *name, uint64_t absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->count : absent;
}

double options_seconds(const struct options *options, const char *name, double absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->seconds : absent;
}

double options_amount(const struct options *options, const char *name, double absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->amount : absent;
}

/* The table of verbs, and the choice of one of them. */

const struct verb *const verbs[] = {
#define VERB(name, file) &verb_##name,
#include "front/verbs.def"
#undef VERB
	NULL,
};

/* Options that may stand alone, without a verb and without options of a conversation. */
/* Longest name of a verb with its group. */
enum { VERB_NAME_MAX = 64 };

/* Bytes of a complaint; the longest ones quote a tool. */
enum { COMPLAINT_MAX = 4 << 20 };

/* Bytes of a foreign name with its escapes. */
enum { PRINTED_NAME_MAX = 16 << 10 };

enum { VERBS_COUNT = sizeof(verbs) / sizeof(verbs[0]) - 1 };

static bool reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int verb_printed(int code, FILE *out)
{
	const bool flushed = fflush(out) == 0;
	const int why = flushed ? 0 : errno;

	/*
	 * An earlier failed write has set the error mark of OUT, but left no errno and
	 * nothing to flush.
	 */
	if (code != CODE_DONE || (flushed && !ferror(out)) || why == EPIPE ||
	    reader_is_gone())
		return code;
	return verb_complain(CODE_FAILED, "standard output: %s",
			     why != 0 ? strerror(why) : "not all could be written");
}

/* A value that fits as compact text may be longer once it is indented. */
enum { PRINTED_MAX = 2 * VALUE_TEXT_MAX };

int verb_print_json(const struct value *value, unsigned flags, FILE *out)
{
	struct buf text;
	bool fits;

	buf_init(&text, PRINTED_MAX);
	fits = value_print(value, flags, &text) && buf_addc(&text, '\n');
	if (fits)
		(void)fwrite(text.data, 1, text.size, out);
	buf_fini(&text);
	return fits ? verb_printed(CODE_DONE, out)
		    : verb_complain(CODE_FAILED, "as JSON this is over %d bytes",
				    PRINTED_MAX);
}

void verb_print_name(const char *text, int width, FILE *out)
{
	struct buf clean;

	buf_init(&clean, PRINTED_NAME_MAX);
	text_add_name(&clean, str_of(text));
	(void)fprintf(out, "%-*s", width, clean.data);
	buf_fini(&clean);
}

const char *verb_temp_parent(void)
{
	const char *parent = getenv("TMPDIR");

	return parent != NULL && parent[0] == '/' ? parent : "/tmp";
}

bool verb_temp_folder(const char *verb, struct buf *folder, struct err *err)
{
	if (!buf_addf(folder, "%s/" VERB_TEMP_PREFIX "%s-XXXXXX", verb_temp_parent(), verb))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	return mkdtemp(folder->data) != NULL ||
	       err_set(err, errno, "%s: %s; name a folder that can be written to in TMPDIR",
		       folder->data, strerror(errno));
}

enum {
	PROGRESS_FROM_MS = 500,  /* work that is shorter needs no word */
	PROGRESS_EVERY_MS = 200, /* faster than this nobody reads */
	PROGRESS_MAX = 4096,     /* bytes of the line */
};

void verb_progress_show(struct verb_progress *progress, const char *format, ...)
{
	const int64_t now_ms = clock_now_ms();
	struct buf said, clean;
	va_list arguments;

	if (progress->began_ms == 0)
		progress->began_ms = now_ms;
	if (now_ms < progress->began_ms + PROGRESS_FROM_MS ||
	    now_ms < progress->shown_ms + PROGRESS_EVERY_MS || isatty(STDERR_FILENO) != 1)
		return;
	buf_init(&said, PROGRESS_MAX);
	buf_init(&clean, 4 * PROGRESS_MAX); /* \xHH for every byte */
	(void)buf_adds(&said, "glovebox: ");
	va_start(arguments, format);
	(void)buf_addv(&said, format, arguments);
	va_end(arguments);
	(void)text_clean(buf_str(&said), &clean);
	/* In the last column the cursor of some terminals stands on the next row. */
	const size_t columns = paint_columns_of(STDERR_FILENO) - 1;
	const size_t size = paint_width_fit(buf_str(&clean), columns);

	if (progress->shown_ms == 0)
		(void)fflush(stdout);
	(void)fprintf(stderr, "\r%.*s\033[K", (int)size, clean.data);
	(void)fflush(stderr);
	progress->shown_ms = now_ms;
	buf_fini(&said);
	buf_fini(&clean);
}

int verb_complain(int code, const char *format, ...)
{
	struct buf said, clean, shown;
	va_list arguments;

	buf_init(&said, COMPLAINT_MAX);
	buf_init(&clean, 4 * COMPLAINT_MAX); /* \xHH for every byte */
	buf_init(&shown, 16 * COMPLAINT_MAX);
	va_start(arguments, format);
	(void)buf_addv(&said, format, arguments);
	va_end(arguments);
	/* The complaint may quote servers, files and other programs, so it is cleaned. */
	(void)text_clean(buf_str(&said), &clean);
	(void)buf_adds(&shown, "glovebox: ");
	text_add_paragraph(&shown, buf_str(&clean));
	(void)fflush(stdout);
	(void)buf_addc(&shown, '\n');
	paint_fold_complain(buf_str(&shown));
	buf_fini(&shown);
	buf_fini(&said);
	buf_fini(&clean);
	return code;
}

/* A time of --since. Of any unit, more is a slip. */

static const uint64_t ago_max = 100000;

/* The day TEXT ("2026-11-23") as the wall clock's beginning of it, in local time. */
static bool read_day(const char *text, int64_t *since_ms)
{
	struct tm day = {.tm_isdst = -1};
	const char *end = strptime(text, "%Y-%m-%d", &day);
	time_t at;

	if (end == NULL || *end != '\0')
		return false;
	at = mktime(&day);
	*since_ms = (int64_t)at * 1000;
	return at != (time_t)-1;
}

bool verb_read_since(const char *text, int64_t *since_ms, struct err *err)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'m', 60}, {'h', 3600}, {'d', 24 * 3600}, {'w', 7 * 24 * 3600}};
	const size_t size = strlen(text);
	auto_free char *number =
		memory_copy_str((struct str){text, size > 0 ? size - 1 : 0});
	uint64_t count = 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (size > 1 && text[size - 1] == units[i].unit &&
		    text_parse_count(number, ago_max, &count, NULL)) {
			*since_ms =
				clock_wall_ms() - (int64_t)count * units[i].seconds * 1000;
			return true;
		}
	}
	return read_day(text, since_ms) ||
	       err_set(err, EINVAL,
		       "--since: \"%.40s\" is no time: 30m, 12h, 7d, 2w, or a day as "
		       "2026-11-23",
		       text);
}

/* The verb NAME ("tool call"), or NULL. */
static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

static bool verb_is_in_group(const struct verb *verb, const char *group)
{
	size_t length = strlen(group);

	return strncmp(verb->name, group, length) == 0 && verb->name[length] == ' ';
}

/* Does GROUP ("tool") exist? Is VERB in GROUP? */
static bool verb_group_exists(const char *group)
{
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			return true;
	return false;
}

/* Does VERB_OPTIONS have a row NAME? */
static bool verb_has_option(const struct option_row *verb_options, const char *name)
{
	for (; verb_options->name != NULL; verb_options++) {
		if (strcmp(verb_options->name, name) == 0)
			return true;
	}
	return false;
}

/*
 * Enough for the rows of any verb and for those of verb_common_options that the verb
 * lacks.
 */
enum { ROWS_MAX = OPTIONS_MAX + 1 };

/*
 * Fill ROWS with VERB_OPTIONS and, behind them, the rows of verb_common_options that
 * VERB_OPTIONS lack.
 */
static void add_common(const struct option_row *verb_options,
		       struct option_row rows[ROWS_MAX])
{
	size_t count = 0;

	for (const struct option_row *row = verb_options; row->name != NULL; row++)
		rows[count++] = *row;
	for (const struct option_row *row = verb_common_options; row->name != NULL; row++) {
		if (!verb_has_option(verb_options, row->name))
			rows[count++] = *row;
	}
	assert(count < ROWS_MAX);
	rows[count] = (struct option_row){0};
}

/* Is WORD an option of any verb, so that it may stand before the verb itself? */
static bool known_option(const char *word, bool *apart)
{
	if (options_find(verb_common_options, word, apart) != NULL)
		return true;
	if (options_find(verb_none_options, word, apart) != NULL)
		return true;
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (options_find(verbs[i]->options, word, apart) != NULL)
			return true;
	return false;
}

/*
 * The index of the first of WORDS (NULL-ended), at FROM or behind, that is neither an
 * option of any verb nor the value of an option; the index of the NULL if there is none.
 */
static size_t verb_find_word(const char *const *words, size_t from)
{
	while (words[from] != NULL) {
		bool apart;

		if (words[from][0] != '-' || words[from][1] == '\0' ||
		    strcmp(words[from], "--") == 0)
			return from;
		if (known_option(words[from], &apart) && apart && words[from + 1] != NULL)
			from++;
		from++;
	}
	return from;
}

/*
 * Complain about the unknown verb NAME, and name the most similar verb or group if there
 * is one.
 */
static int refuse_verb(const char *name)
{
	char groups[VERBS_COUNT][VERB_NAME_MAX];
	const char *names[2 * VERBS_COUNT + 1];
	const char *nearest;
	size_t count = 0;

	for (size_t i = 0; i < VERBS_COUNT; i++) {
		(void)snprintf(groups[i], VERB_NAME_MAX, "%.*s",
			       (int)strcspn(verbs[i]->name, " "), verbs[i]->name);
		names[count++] = verbs[i]->name;
		names[count++] = groups[i];
	}
	names[count] = NULL;
	nearest = text_nearest(name, names);
	if (nearest == NULL)
		return verb_complain(CODE_USAGE,
				     "no verb \"%.100s\"; to send it as a prompt: "
				     "glovebox run %.100s",
				     name, name);
	return verb_complain(CODE_USAGE,
			     "no verb \"%.100s\"; did you mean \"%s\"? To send it as a "
			     "prompt: glovebox run %.100s",
			     name, nearest, name);
}

static int refuse_in_group(const char *name, const char *group)
{
	const char *names[VERBS_COUNT + 1];
	const char *nearest;
	size_t count = 0;

	for (size_t i = 0; i < VERBS_COUNT; i++)
		if (verb_is_in_group(verbs[i], group))
			names[count++] = verbs[i]->name;
	names[count] = NULL;
	nearest = text_nearest(name, names);
	if (nearest == NULL)
		return verb_complain(CODE_USAGE,
				     "no verb \"%.100s\"; see: glovebox %s --help", name,
				     group);
	return verb_complain(CODE_USAGE,
			     "no verb \"%.100s\"; did you mean: glovebox %s? See: "
			     "glovebox %s --help",
			     name, nearest, group);
}

static bool speaks_json(const struct options *options)
{
	for (const struct option_row *row = options->rows; row->name != NULL; row++) {
		if (strcmp(row->name, "json") == 0)
			return options_given(options, "json");
	}
	return false;
}

/* Run VERB with OPTIONS, which were parsed by its rows. */
static int run_parsed(const struct verb *verb, const struct options *options)
{
	const bool help = options_given(options, "help");
	const bool folds = help || (verb->folds && !speaks_json(options));
	FILE *out = folds ? paint_fold_open() : stdout;
	const int code = help ? help_print_verb(verb, out) : verb->run(options, out);

	paint_fold_close(out);
	return code;
}

/*
 * Enter the folder of -C, for a verb that has no such option itself. A relative --config
 * of this verb still counts from the person's folder, as it does for verbs where -C names
 * a workspace.
 */
static bool enter_folder(const struct verb *verb, struct options *options,
			 struct buf *config, struct err *err)
{
	const char *folder = options_text(options, "workspace");
	const char *given = options_text(options, "config");
	char *here;

	if (folder == NULL || verb_has_option(verb->options, "workspace"))
		return true;
	if (given != NULL && given[0] != '/' && (here = getcwd(NULL, 0)) != NULL) {
		(void)buf_addf(config, "%s/%s", here, given);
		options_set(options, "config", config->data);
		free(here);
	}
	return chdir(folder) == 0 ||
	       err_set(err, errno, "workspace %s: %s; name a folder that exists with -C",
		       folder, strerror(errno));
}

static int run_verb(const struct verb *verb, const char *const *words)
{
	struct option_row rows[ROWS_MAX];
	struct options options;
	struct err err = {0};
	struct buf config;
	int code;

	add_common(verb->options, rows);
	buf_init(&config, 2 * PATH_MAX);
	const bool parsed =
		options_parse(&options, rows, words, verb->words_end_options, &err);
	options.verb = verb->name;
	if (!parsed)
		code = verb_complain(CODE_USAGE, "%s: %s", verb->name, err.text);
	else if (options_given(&options, "help"))
		code = run_parsed(verb, &options);
	else if (options.word_count < verb->words_least)
		code = verb_complain(CODE_USAGE, "%s: too few words; usage: glovebox %s %s",
				     verb->name, verb->name, verb->arguments);
	else if (options.word_count > verb->words_most)
		code = verb_complain(CODE_USAGE,
				     "%s: \"%.100s\" is one word too many; "
				     "usage: glovebox %s%s%s",
				     verb->name, options.words[verb->words_most],
				     verb->name, verb->arguments[0] != '\0' ? " " : "",
				     verb->arguments);
	else if (!enter_folder(verb, &options, &config, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = run_parsed(verb, &options);
	options_fini(&options);
	buf_fini(&config);
	return code;
}

/*
 * On a terminal, an empty command line, or one that begins with an option of a
 * conversation, means `chat`.
 */
static bool means_chat(const char *const *words)
{
	bool apart;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	return words[0] == NULL ||
	       (options_find(verb_none_options, words[0], &apart) == NULL &&
		options_find(verb_chat.options, words[0], &apart) != NULL);
}

/* Print all verbs, or those of GROUP. */
static int print_list(const char *group)
{
	FILE *out = paint_fold_open();
	const int code =
		group != NULL ? help_print_group(group, out) : help_print_overview(out);

	paint_fold_close(out);
	return code;
}

/* Complain that the verb of GROUP is missing. */
static int refuse_group(const char *group)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out != NULL) {
		(void)help_print_group(group, out);
		(void)fclose(out);
		paint_fold_complain((struct str){text, size});
	}
	free(text);
	return CODE_USAGE;
}

/* Handle a command line of options only: --version, --help, or a forgotten verb. */
static int run_without_verb(const char *const *words)
{
	struct option_row rows[ROWS_MAX];
	struct options options;
	struct err err = {0};
	int code;

	if (means_chat(words))
		return run_verb(&verb_chat, words);
	if (words[0] == NULL)
		return print_list(NULL);
	add_common(verb_none_options, rows);
	const bool parsed = options_parse(&options, rows, words, false, &err);
	bool apart;

	if (parsed && options_given(&options, "version")) {
		(void)printf("glovebox %s\n", GLOVEBOX_VERSION);
		code = CODE_DONE;
	} else if (parsed && options_given(&options, "help")) {
		code = print_list(NULL);
	} else if (parsed || known_option(words[0], &apart)) {
		code = verb_complain(CODE_USAGE,
				     "%s: there is no verb and no prompt; "
				     "see: glovebox --help",
				     words[0]);
	} else {
		code = verb_complain(CODE_USAGE, "%s", err.text);
	}
	options_fini(&options);
	return code;
}

static void remove_word(const char **words, size_t at)
{
	for (; words[at] != NULL; at++)
		words[at] = words[at + 1];
}

/* WORDS[AT] is a group: run the verb that it names together with the next word. */
static int run_group(const char **words, size_t at)
{
	const char *group = words[at];
	const struct verb *verb;
	char name[VERB_NAME_MAX];
	size_t next;

	remove_word(words, at);
	next = verb_find_word(words, at);
	/* A group may be a verb as well: `state`, beside `state prune`. */
	if (words[next] == NULL && verb_find(group) != NULL)
		return run_verb(verb_find(group), words);
	if (words[next] == NULL) {
		for (size_t i = 0; words[i] != NULL; i++)
			if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
				return print_list(group);
		return refuse_group(group);
	}
	(void)snprintf(name, sizeof(name), "%s %s", group, words[next]);
	verb = verb_find(name);
	/* The word may be one of the group's own verb: `batch TASKS`, beside `batch status`. */
	if (verb == NULL && verb_find(group) != NULL && verb_find(group)->words_most > 0)
		return run_verb(verb_find(group), words);
	if (verb == NULL)
		return refuse_in_group(name, group);
	remove_word(words, next);
	return run_verb(verb, words);
}

/* `-p` before any word is `run`, as programs call Claude Code. */
static bool asks_for_run(const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], "-p") == 0 || strcmp(words[i], "--print") == 0)
			return true;
	return false;
}

int verb_dispatch(const char *const *given)
{
	auto_free const char **words = NULL;
	const struct verb *verb;
	size_t count = 0, at;

	while (given[count] != NULL)
		count++;
	words = memory_array(count + 1, sizeof(*words));
	for (size_t i = 0; i < count; i++)
		words[i] = given[i];

	at = verb_find_word((const char *const *)words, 0);
	if (asks_for_run((const char *const *)words, at))
		return run_verb(&verb_run, (const char *const *)words);
	if (words[at] == NULL)
		return run_without_verb((const char *const *)words);
	if (words[at][0] == '\0')
		return verb_complain(CODE_USAGE, "the prompt is empty");
	if (strcmp(words[at], "--") == 0)
		return verb_complain(CODE_USAGE, "there is no verb before --; to send what "
						 "follows as a prompt: glovebox run -- …");
	/*
	 * A word with a blank is a prompt, since no verb has a blank. A single word is
	 * rarely meant as a prompt.
	 */
	if (strpbrk(words[at], " \t\n") != NULL)
		return run_verb(&verb_run, (const char *const *)words);
	if (verb_group_exists(words[at]))
		return run_group(words, at);
	verb = verb_find(words[at]);
	if (verb == NULL || strchr(verb->name, ' ') != NULL)
		return refuse_verb(words[at]);
	remove_word(words, at);
	return run_verb(verb, (const char *const *)words);
}

/* `glovebox help` prints the overview, or the help of one verb. */

static const struct option_row help_options[] = {
	OPTION_ROW_HELP,
	{0},
};

static int help_run(const struct options *options, FILE *out)
{
	char name[NAME_MAX_BYTES];
	const struct verb *verb;

	if (options->word_count == 0)
		return help_print_overview(out);
	if (options->word_count == 1 && verb_group_exists(options->words[0]))
		return help_print_group(options->words[0], out);
	(void)snprintf(name, sizeof(name), "%s%s%s", options->words[0],
		       options->word_count > 1 ? " " : "",
		       options->word_count > 1 ? options->words[1] : "");
	verb = verb_find(name);
	if (verb == NULL)
		return verb_complain(CODE_USAGE, "no verb \"%.100s\"; see: glovebox help",
				     name);
	return help_print_verb(verb, out);
}

static const char help_help[] =
	"Print the list of verbs, or what one of them does and which options it has.";

const struct verb verb_help = {
	.name = "help",
	.summary = "explain a verb",
	.arguments = "[VERB]",
	.help = help_help,
	.example = "  glovebox help tool call",
	.options = help_options,
	.words_most = 2,
	.names = NAMES_VERBS,
	.folds = true,
	.run = help_run,
};

/*
 * `glovebox complete` prints the words that may come next on a command line. Shells call
 * it when Tab is pressed.
 */

enum { RECENT_MAX = 30, TEXT_MAX = 1 << 10 };

static const struct option_row complete_options[] = {
	{"script", 0, OPTION_TEXT, "SHELL",
	 "print what SHELL (bash, fish, zsh) reads to complete, instead", NAMES_SHELLS},
	OPTION_ROW_HELP,
	{0},
};

/*
 * One completion: the stream of the answers, the begun word, and the text before it in
 * each answer.
 */
struct completing {
	FILE *out;
	struct str begun;
	const char *before;
};

/* Print one line: WORD and, behind a tab, ABOUT. */
static void offer(const struct completing *completing, const char *word, const char *about)
{
	struct buf line;

	/* Leave out a word that a shell would not take as one plain word. */
	if (!str_starts(str_of(word), completing->begun) ||
	    text_find_unseen(str_of(word)) < strlen(word) ||
	    strpbrk(word, " \t'\"\\$`") != NULL)
		return;
	buf_init(&line, TEXT_MAX);
	text_add_name(&line, str_part(str_of(about), 0, TEXT_MAX / 8));
	(void)fprintf(completing->out, "%s%s\t%s\n", completing->before, word, line.data);
	buf_fini(&line);
}

static void offer_name(void *context, const char *name)
{
	offer(context, name, "");
}

static void offer_files(const struct completing *completing, char **names, const char *about)
{
	for (size_t i = 0; names[i] != NULL; i++)
		offer(completing, names[i], about);
	agents_files_names_free(names);
}

static void offer_keys(const struct completing *completing, const struct config *config,
		       const char *key, const char *about)
{
	const struct value *rows = config_value(config, key);

	for (void *at = value_first(rows); at != NULL; at = value_next(rows, at))
		offer(completing, value_key(at), about);
}

static bool offer_session(void *context, const struct journal_session *session)
{
	auto_free char *about = memory_copy_str(session->workspace);

	/*
	 * A delegate's session is offered as well: it can be shown, though it cannot go
	 * on.
	 */
	offer(context, session->id, about);
	return true;
}

static bool offer_patch(void *context, const struct patch_row *row)
{
	auto_free char *about = memory_copy_str(row->workspace);

	offer(context, row->id, about);
	return true;
}

static void offer_recorded(struct completing *completing, enum option_names names)
{
	struct journal *journal = NULL;
	struct err err = {0};

	if (names == NAMES_SESSIONS)
		offer(completing, "last", "the newest of this folder");
	if (!journal_open_default(&journal, &err))
		return;
	if (names == NAMES_SESSIONS)
		(void)journal_list(journal, RECENT_MAX, offer_session, completing, &err);
	else
		(void)patches_list(journal, "", true, RECENT_MAX, offer_patch, completing,
				   &err);
	journal_close(journal);
}

static void offer_models(struct completing *completing, const struct config *config)
{
	struct catalogue *catalogue = NULL;
	struct err err = {0};

	offer(completing, "replay", "the built-in recording");
	if (catalogue_open(embedded_text(EMBEDDED_CATALOGUE),
			   config_value(config, "models"), &catalogue, &err))
		catalogue_each(catalogue, offer_name, completing);
	catalogue_close(catalogue);
}

static void offer_cells(const struct completing *completing)
{
	auto_value struct value *names = NULL;

	if (!cells_place_names(&names, NULL))
		return;
	for (size_t i = 0; i < value_count(names); i++)
		offer(completing, value_text(value_item(names, i)), "");
}

static void offer_tools(const struct completing *completing)
{
	for (size_t i = 0; builtin_tools[i] != NULL; i++) {
		if (tool_is_served(builtin_tools[i]))
			offer(completing, builtin_tools[i]->name,
			      builtin_tools[i]->description);
	}
}

/*
 * Offer the next word of each verb that begins with GROUP and a blank ("": of all verbs).
 */
static void offer_verbs(const struct completing *completing, const char *group)
{
	const size_t length = strlen(group);
	char last[NAME_MAX_BYTES] = "";

	for (size_t i = 0; verbs[i] != NULL; i++) {
		const char *name = verbs[i]->name;
		char word[NAME_MAX_BYTES];

		if (length > 0 && !verb_is_in_group(verbs[i], group))
			continue;
		name += length > 0 ? length + 1 : 0;
		(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " "), name);
		if (strcmp(word, last) == 0)
			continue;
		offer(completing, word,
		      verb_group_exists(word) && length == 0 ? "" : verbs[i]->summary);
		(void)snprintf(last, sizeof(last), "%s", word);
	}
}

/* Offer the words of LIST, which blanks and commas separate. */
static void offer_words(const struct completing *completing, const char *list)
{
	while (*list != '\0') {
		const size_t length = strcspn(list, " ,");
		char word[NAME_MAX_BYTES];

		(void)snprintf(word, sizeof(word), "%.*s", (int)length, list);
		if (length > 0)
			offer(completing, word, "");
		list += length + strspn(list + length, " ,");
	}
}

static bool offer_schedule(void *context, const struct schedule *schedule)
{
	char id[NAME_MAX_BYTES];
	struct buf about;

	buf_init(&about, TEXT_MAX);
	(void)buf_addf(&about, "%s: ", schedule_state_name(schedule->state));
	(void)buf_addstr(&about, str_part(schedule->task, 0, TEXT_MAX / 8));
	(void)snprintf(id, sizeof(id), "%" PRId64, schedule->id);
	offer(context, id, about.data);
	buf_fini(&about);
	return true;
}

static void offer_schedules(struct completing *completing)
{
	struct schedules *schedules = NULL;
	struct err err = {0};

	if (when_open_default(&schedules, &err))
		(void)schedules_find(schedules, NULL, 0, offer_schedule, completing, &err);
	schedules_close(schedules);
}

/* Offer the levels, the strongest first. */
static void offer_levels(const struct completing *completing)
{
	for (const struct level_row *row = probe_levels; row->name != NULL; row++)
		offer(completing, row->name, "");
}

/* The name of the shell that reads the completion file FILE; empty for other files. */
static struct str shell_of(const struct embedded_file *file)
{
	const struct str name = str_of(file->name);
	const struct str stem = STR("completions/glovebox.");

	return str_starts(name, stem) ? str_part(name, stem.size, name.size)
				      : (struct str){0};
}

static void offer_shells(const struct completing *completing)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		const struct str shell = shell_of(file);

		if (shell.size > 0)
			offer(completing, shell.data, "");
	}
}

/*
 * Offer the names of the set NAMES. Paths and free text get no offers: there the shell
 * knows better.
 */
static void offer_names(struct completing *completing, enum option_names names)
{
	auto_config struct config *config = NULL;
	struct err err = {0};

	if (names == NAMES_AGENTS || names == NAMES_MODELS)
		(void)config_file_load(NULL, &config, &err);
	switch (names) {
	case NAMES_NONE:
		break;
	case NAMES_AGENTS:
		offer_files(completing, agents_files_shipped(), "shipped");
		offer_files(completing, agents_files_users(), "yours");
		offer_keys(completing, config, "agents", "configuration");
		break;
	case NAMES_MODELS:
		offer_models(completing, config);
		break;
	case NAMES_TOOLS:
		offer_tools(completing);
		break;
	case NAMES_SESSIONS:
	case NAMES_PATCHES:
		offer_recorded(completing, names);
		break;
	case NAMES_SCHEDULES:
		offer_schedules(completing);
		break;
	case NAMES_CLIENTS:
		offer_words(completing, MCP_INSTALL_CLIENTS);
		break;
	case NAMES_PROFILES:
		offer_words(completing, WRAP_SHIPPED);
		break;
	case NAMES_QUESTIONS:
		offer_words(completing, POLICY_ASKABLE);
		break;
	case NAMES_FORMATS:
		offer_words(completing, FORMATS_NAMES);
		break;
	case NAMES_MODES:
		offer_words(completing, POLICY_MODES);
		break;
	case NAMES_THINKING:
		for (const struct model_level *at = model_levels; at->name != NULL; at++)
			offer(completing, at->name, at->title);
		break;
	case NAMES_COSTS:
		offer_words(completing, VERB_COST_GROUPS);
		break;
	case NAMES_CELLS:
		offer_cells(completing);
		break;
	case NAMES_LEVELS:
		offer_levels(completing);
		break;
	case NAMES_SHELLS:
		offer_shells(completing);
		break;
	case NAMES_VERBS:
		offer_verbs(completing, "");
		break;
	}
}

static void offer_option(const struct completing *completing, const struct option_row *row)
{
	char word[NAME_MAX_BYTES];

	(void)snprintf(word, sizeof(word), "--%s", row->name);
	offer(completing, word, row->help);
}

static void offer_options(const struct completing *completing, const struct option_row *rows)
{
	for (; rows->name != NULL; rows++)
		offer_option(completing, rows);
}

/* Offer the options that may stand alone, except those in KNOWN. */
static void offer_alone(const struct completing *completing, const struct option_row *known)
{
	for (const struct option_row *row = verb_none_options; row->name != NULL; row++) {
		const struct option_row *same = known;

		while (same->name != NULL && strcmp(same->name, row->name) != 0)
			same++;
		if (same->name == NULL)
			offer_option(completing, row);
	}
}

/* Complete LAST, an option or its value behind "=". FIRST: it is the first word. */
static void complete_option(const struct option_row *rows, const char *last, bool first,
			    FILE *out)
{
	struct completing completing = {.out = out, .begun = str_of(last), .before = ""};
	const char *equals = strchr(last, '=');
	char before[NAME_MAX_BYTES];
	const struct option_row *row;
	bool apart;

	if (equals == NULL) {
		offer_options(&completing, rows);
		if (first)
			offer_alone(&completing, rows);
		return;
	}
	row = options_find(rows, last, &apart);
	(void)snprintf(before, sizeof(before), "%.*s", (int)(equals + 1 - last), last);
	completing.begun = str_of(equals + 1);
	completing.before = before;
	if (row != NULL && strlen(before) < sizeof(before) - 1)
		offer_names(&completing, row->names);
}

/*
 * The verb that the words before the last one name. When they only name a group, GROUP
 * gets it.
 */
static const struct verb *find_verb(const char **words, char group[NAME_MAX_BYTES],
				    size_t *at)
{
	char name[2 * NAME_MAX_BYTES];
	size_t next;

	*at = verb_find_word((const char *const *)words, 0);
	group[0] = '\0';
	if (words[*at] == NULL)
		return NULL;
	if (!verb_group_exists(words[*at]))
		return verb_find(words[*at]);
	(void)snprintf(group, NAME_MAX_BYTES, "%s", words[*at]);
	next = verb_find_word((const char *const *)words, *at + 1);
	if (words[next] == NULL)
		return NULL;
	(void)snprintf(name, sizeof(name), "%s %.*s", group, NAME_MAX_BYTES - 1,
		       words[next]);
	*at = next;
	return verb_find(name);
}

/*
 * Offer words of VERB. FIRST is its first word; NULL: the first word is to be completed.
 */
static void complete_word(struct completing *completing, const struct verb *verb,
			  const char *first)
{
	if (first == NULL)
		offer_names(completing, verb->names);
	else if (verb->names == NAMES_VERBS && verb_group_exists(first))
		offer_verbs(completing, first);
}

static void complete(const char **words, const char *last, const char *before_last, FILE *out)
{
	struct completing completing = {.out = out, .begun = str_of(last), .before = ""};
	const struct option_row *rows = verb_chat.options, *row = NULL;
	char group[NAME_MAX_BYTES];
	const struct verb *verb;
	bool apart = false;
	size_t at;

	verb = find_verb(words, group, &at);
	if (verb != NULL) {
		rows = verb->options;
		/* The command that the verb is to start has options of its own. */
		if (verb->words_end_options &&
		    words[verb_find_word((const char *const *)words, at + 1)] != NULL)
			return;
	} else if (group[0] != '\0' && verb_find(group) != NULL) {
		/* A group may be a verb as well. */
		rows = verb_find(group)->options;
	}
	if (before_last != NULL && before_last[0] == '-')
		row = options_find(rows, before_last, &apart);
	if (row == NULL && before_last != NULL && before_last[0] == '-')
		row = options_find(verb_common_options, before_last, &apart);
	if (row != NULL && apart)
		offer_names(&completing, row->names);
	else if (last[0] == '-')
		complete_option(rows, last, words[0] == NULL, out);
	else if (verb != NULL)
		complete_word(&completing, verb, words[verb_find_word(words, at + 1)]);
	else if (words[at] == NULL || group[0] != '\0')
		offer_verbs(&completing, group);
}

static int print_script(const char *shell, FILE *out)
{
	char name[NAME_MAX_BYTES];
	struct buf shells;
	struct str text;

	(void)snprintf(name, sizeof(name), "completions/glovebox.%.64s", shell);
	text = embedded_text(name);
	if (text.size > 0) {
		(void)fwrite(text.data, text.size, 1, out);
		return CODE_DONE;
	}
	buf_init(&shells, TEXT_MAX);
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (shell_of(file).size > 0)
			(void)buf_addf(&shells, "%s%s", shells.size > 0 ? ", " : "",
				       shell_of(file).data);
	}
	(void)verb_complain(CODE_USAGE,
			    "complete: --script is for one of %s, not for \"%.64s\"",
			    shells.data, shell);
	buf_fini(&shells);
	return CODE_USAGE;
}

static int complete_run(const struct options *options, FILE *out)
{
	const size_t count = options->word_count;
	auto_free const char **words = memory_array(count + 1, sizeof(*words));

	if (options_given(options, "script"))
		return print_script(options_text(options, "script"), out);
	for (size_t i = 0; i + 1 < count; i++)
		words[i] = options->words[i];
	complete(words, count > 0 ? options->words[count - 1] : "",
		 count > 1 ? words[count - 2] : NULL, out);
	return CODE_DONE;
}

static const char complete_help[] =
	"Print what may stand in the place of the last WORD of a command line of glovebox:\n"
	"verbs, options, agents, models, tools, sessions, patches, schedules; behind a tab\n"
	"what it is. bash, fish and zsh ask when Tab is pressed, by files that make install\n"
	"puts where they look for them, or by what --script prints.";

const struct verb verb_complete = {
	.name = "complete",
	.summary = "print what may stand next on a command line, for shells",
	.arguments = "-- [WORD…]",
	.help = complete_help,
	.example = "  glovebox complete -- agents sh\n"
		   "  source <(glovebox complete --script bash)\n"
		   "  glovebox complete --script fish | source",
	.options = complete_options,
	.words_most = VERB_WORDS_ANY,
	.run = complete_run,
};
