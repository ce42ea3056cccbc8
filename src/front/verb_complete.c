/*
 * glovebox complete: prints the words that may come next on a command line. Shells call
 * it when Tab is pressed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/when.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "front/agent_files.h"
#include "front/catalogue_file.h"
#include "front/config_file.h"
#include "front/embedded.h"
#include "front/exit_code.h"
#include "front/verb.h"
#include "front/verbs/mcp_install.h"
#include "model/catalogue.h"
#include "policy/policy.h"
#include "sandbox/probe.h"
#include "store/journal.h"
#include "store/patches.h"
#include "tool/tool.h"
#include "tools/tools.h"

enum { NAME_MAX_BYTES = 256, RECENT_MAX = 30, TEXT_MAX = 1 << 10 };

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
	agent_files_names_free(names);
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
	if (catalogue_file_open(config_value(config, "models"), &catalogue, &err))
		catalogue_each(catalogue, offer_name, completing);
	catalogue_close(catalogue);
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

	if (schedules_open_default(&schedules, &err))
		(void)schedules_find(schedules, NULL, 0, offer_schedule, completing, &err);
	schedules_close(schedules);
}

/* Offer the levels, the strongest first. */
static void offer_levels(const struct completing *completing)
{
	for (int level = SANDBOX_SEALED; level >= SANDBOX_NONE; level--)
		offer(completing, probe_level_row((enum sandbox_level)level)->name, "");
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
		if (shell_of(file).size > 0)
			offer(completing, shell_of(file).data, "");
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
		offer_files(completing, agent_files_shipped(), "shipped");
		offer_files(completing, agent_files_users(), "yours");
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
	case NAMES_QUESTIONS:
		offer_words(completing, POLICY_ASKABLE);
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
