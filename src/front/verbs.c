/* verbs: the table of verbs, and the way from the command line to one of them. */
#include "front/verb.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "front/exit_code.h"
#include "front/help.h"
#include "front/terminal/fold.h"

const struct verb *const verbs[] = {
	&verb_run,
	&verb_chat,
	&verb_exec,
	&verb_tool_list,
	&verb_tool_schema,
	&verb_tool_call,
	&verb_agents_list,
	&verb_agents_show,
	&verb_agents_new,
	&verb_agents_trust,
	&verb_plugin_new,
	&verb_plugin_check,
	&verb_plugin_call,
	&verb_plugin_list,
	&verb_plugin_trust,
	&verb_policy_explain,
	&verb_undo,
	&verb_patch_list,
	&verb_patch_show,
	&verb_patch_apply,
	&verb_patch_reject,
	&verb_mcp,
	&verb_sessions_list,
	&verb_sessions_show,
	&verb_sessions_resume,
	&verb_sessions_export,
	&verb_doctor,
	&verb_state,
	&verb_state_prune,
	&verb_models,
	&verb_schedule_list,
	&verb_schedule_add,
	&verb_schedule_approve,
	&verb_schedule_enable,
	&verb_schedule_disable,
	&verb_schedule_remove,
	&verb_schedule_run,
	&verb_demo,
	&verb_json_get,
	&verb_complete,
	&verb_help,
	NULL,
};

const struct option_row verb_none_options[] = {
	{"version", 'V', OPTION_FLAG, NULL, "print the version"},
	OPTION_ROW_HELP,
	{0},
};

const struct option_row verb_common_options[] = {
	{"workspace", 'C', OPTION_TEXT, "DIR", "do it in DIR, as if you were there"},
	{"config", 0, OPTION_TEXT, "FILE", "taken by every verb; changes nothing here"},
	{"agent", 'a', OPTION_TEXT, "NAME", "taken by every verb; changes nothing here",
	 NAMES_AGENTS},
	{0},
};

/* Longest name of a verb with its group. */
enum { VERB_NAME_MAX = 64 };

/* Bytes of a complaint; the longest ones quote a tool. */
enum { COMPLAINT_MAX = 4 << 20 };

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
	fold_complain(buf_str(&shown));
	buf_fini(&shown);
	buf_fini(&said);
	buf_fini(&clean);
	return code;
}

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

bool verb_is_in_group(const struct verb *verb, const char *group)
{
	size_t length = strlen(group);

	return strncmp(verb->name, group, length) == 0 && verb->name[length] == ' ';
}

bool verb_group_exists(const char *group)
{
	for (size_t i = 0; verbs[i] != NULL; i++)
		if (verb_is_in_group(verbs[i], group))
			return true;
	return false;
}

bool verb_has_option(const struct option_row *verb_options, const char *name)
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

size_t verb_find_word(const char *const *words, size_t from)
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
	FILE *out = folds ? fold_open() : stdout;
	const int code = help ? help_print_verb(verb, out) : verb->run(options, out);

	fold_close(out);
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
		options_replace(options, "config", config->data);
		free(here);
	}
	return chdir(folder) == 0 ||
	       err_set(err, errno, "workspace %s: %s", folder, strerror(errno));
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
	if (!options_parse(&options, rows, words, verb->words_end_options, &err))
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
	FILE *out = fold_open();
	const int code =
		group != NULL ? help_print_group(group, out) : help_print_overview(out);

	fold_close(out);
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
		fold_complain((struct str){text, size});
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
	if (verb == NULL)
		return refuse_in_group(name, group);
	remove_word(words, next);
	return run_verb(verb, words);
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
