/*
 * verb: the words of the command line. A verb is one file with one `struct verb`, and a
 * row in verbs.c; usage, help, parsing and the refusal of unknown options come from this
 * record.
 */
#pragma once
#include "base/value.h"
#include "front/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct verb {
	const char *name;                 /* "run", or a group and a word: "tool call" */
	const char *summary;              /* one line, no full stop */
	const char *arguments;            /* "NAME [JSON|-]"; "" when there are none */
	const char *help;                 /* lines of at most 78 characters */
	const char *example;              /* lines as they are typed */
	const struct option_row *options; /* ends with {0} */
	size_t words_least, words_most;
	enum option_names names; /* the set that its first word is from */
	bool words_end_options;  /* words behind the first one are not parsed */
	bool folds; /* its output for people is folded on a terminal (fold.h) */
	/*
	 * Returns an exit code (exit_code.h). The options are parsed and the number of
	 * words is checked before. The verb prints on OUT, which folds when `folds` is
	 * set.
	 */
	int (*run)(const struct options *options, FILE *out);
};

/* Any number of words. */
#define VERB_WORDS_ANY ((size_t)-1)

/* In the order of the help; NULL ends it. */
extern const struct verb *const verbs[];

extern const struct verb verb_run, verb_chat, verb_exec, verb_tool_list, verb_tool_schema,
	verb_tool_call, verb_policy_explain, verb_sessions_list, verb_sessions_show,
	verb_sessions_resume, verb_sessions_export, verb_doctor, verb_state,
	verb_state_prune, verb_demo, verb_undo, verb_patch_list, verb_patch_show,
	verb_patch_apply, verb_patch_reject, verb_mcp, verb_json_get, verb_plugin_new,
	verb_plugin_check, verb_plugin_call, verb_plugin_list, verb_plugin_trust,
	verb_agents_list, verb_agents_show, verb_agents_new, verb_agents_trust, verb_help,
	verb_models, verb_schedule_list, verb_schedule_add, verb_schedule_approve,
	verb_schedule_enable, verb_schedule_disable, verb_schedule_remove,
	verb_schedule_run, verb_complete;

/* Options that may stand alone, without a verb and without options of a conversation. */
extern const struct option_row verb_none_options[];

/*
 * The options that every verb takes, so that an alias or a script can always write them:
 * -C, --config and --agent. These rows are for verbs that do not have the option
 * themselves: such a verb runs in the folder of -C, and ignores the other two.
 */
extern const struct option_row verb_common_options[];

/* Does VERB_OPTIONS have a row NAME? */
bool verb_has_option(const struct option_row *verb_options, const char *name);

/* The verb NAME ("tool call"), or NULL. */
const struct verb *verb_find(const char *name);

/*
 * The index of the first of WORDS (NULL-ended), at FROM or behind, that is neither an
 * option of any verb nor the value of an option; the index of the NULL if there is none.
 */
size_t verb_find_word(const char *const *words, size_t from);

/* Does GROUP ("tool") exist? Is VERB in GROUP? */
bool verb_group_exists(const char *group);
bool verb_is_in_group(const struct verb *verb, const char *group);

/*
 * Find the verb in WORDS (the program's arguments, NULL-ended), parse the other words by
 * its rows, and run the verb.
 */
int verb_dispatch(const char *const *words);

/*
 * Print "glovebox: sentence" and a line end on standard error, cleaned (text_clean).
 * Returns CODE.
 */
int verb_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Write all that was printed on OUT. Returns CODE. When writing failed and CODE is
 * CODE_DONE, prints a complaint and returns CODE_FAILED; a reader that has gone is no
 * failure. main calls this function for stdout after each verb, so a verb does not need
 * to.
 */
int verb_printed(int code, FILE *out);
/* Print VALUE (by enum value_flags) and a line end on OUT; returns as verb_printed. */
int verb_print_json(const struct value *value, unsigned flags, FILE *out);
