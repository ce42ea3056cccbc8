/*
 * glovebox schedule list, add, approve, enable, disable and remove; see
 * docs/orchestration.md.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/when.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "model/model.h"
#include "policy/config.h"

enum { LIST_MAX = 16 << 20, MS_PER_S = 1000 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print one object per line"},
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row add_options[] = {
	{"when", 'w', OPTION_TEXT, "TIME",
	 "\"every weekday at 9\", \"every 90 minutes\", \"0 9 * * 1-5\""},
	{"zone", 'z', OPTION_TEXT, "ZONE", "time zone of TIME (default: the machine's)"},
	{"agent", 'a', OPTION_TEXT, "NAME", "who is to do it (default: default)",
	 NAMES_AGENTS},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row id_options[] = {OPTION_ROW_HELP, {0}};

static int64_t now_s(void)
{
	return clock_wall_ms() / MS_PER_S;
}

static bool id_of(const char *word, int64_t *id, struct err *err)
{
	uint64_t number;

	if (!text_parse_count(word, INT32_MAX, &number, NULL) || number == 0)
		return err_set(err, EINVAL, "\"%.40s\" is no number of a schedule", word);
	*id = (int64_t)number;
	return true;
}

static void print_object(const struct schedule *schedule, FILE *out)
{
	auto_value struct value *row = value_new_object();
	struct buf text;

	value_set_integer(row, "id", schedule->id);
	value_set_text(row, "state", schedule_state_name(schedule->state));
	value_set_boolean(row, "approved", schedule->approved);
	value_set_text(row, "hash", schedule->hash);
	value_set_str(row, "agent", schedule->agent);
	value_set_str(row, "workspace", schedule->workspace);
	value_set_str(row, "task", schedule->task);
	value_set_str(row, "when", schedule->times);
	value_set_str(row, "zone", schedule->zone);
	value_set_str(row, "by", schedule->by);
	value_set_integer(row, "next_s", schedule->next_s);
	value_set_integer(row, "last_s", schedule->last_s);
	value_set_str(row, "last_outcome", schedule->last_outcome);
	value_set_str(row, "last_session", schedule->last_session);
	buf_init(&text, LIST_MAX);
	(void)value_print(row, 0, &text);
	(void)fprintf(out, "%s\n", text.data);
	buf_fini(&text);
}

struct listing {
	FILE *out; /* of JSON */
	bool json;
	size_t count;
	struct buf text;
};

static bool list_one(void *context, const struct schedule *schedule)
{
	struct listing *listing = context;

	listing->count++;
	if (listing->json)
		print_object(schedule, listing->out);
	else
		schedule_add(schedule, now_s(), &listing->text);
	return true;
}

static int list_run(const struct options *options, FILE *out)
{
	struct listing listing = {.out = out, .json = options_given(options, "json")};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&listing.text, LIST_MAX);
	if (!schedules_open_default(&schedules, &err) ||
	    !schedules_find(schedules, NULL, 0, list_one, &listing, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (listing.count == 0 && !listing.json)
		(void)fputs("There are no schedules; see: glovebox schedule add --help\n",
			    out);
	(void)fputs(listing.text.data, out);
	buf_fini(&listing.text);
	schedules_close(schedules);
	return code;
}

static bool join_words(const struct options *options, struct buf *task, struct err *err)
{
	for (size_t i = 0; i < options->word_count; i++)
		(void)buf_addf(task, "%s%s", i > 0 ? " " : "", options->words[i]);
	return !task->overflowed || err_set(err, E2BIG, "the task has more than %d KiB",
					    SCHEDULES_TASK_MAX >> 10);
}

/* Rows for the options that the request of a run stands for (delegate_role.c). */
static const struct option_row setup_rows[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT, OPTION_ROW_LEVEL, {0},
};

/*
 * Check in advance that a run would work: the agent exists, and its rights and its model
 * are valid.
 */
static bool check_agent(const char *agent, const char *workspace, struct err *err)
{
	const char *const words[] = {"-C", workspace, "--agent", agent, NULL};
	const struct setup_flags flags = {.quiet_plugins = true};
	struct setup setup = {0};
	struct model_name name;
	struct options options;
	bool ok;

	ok = options_parse(&options, setup_rows, words, false, err) &&
	     setup_init_with(&setup, &options, &flags, err) &&
	     (setup.role.model == NULL || model_name_parse(setup.role.model, &name, err));
	if (ok && setup.role.model == NULL && getenv("GLOVEBOX_MODEL") == NULL)
		(void)verb_complain(CODE_DONE,
				    "no model is named for it: a run plays the built-in recording "
				    "unless GLOVEBOX_MODEL is set where glovebox schedule run is "
				    "called, or agents.%.64s.model in the configuration",
				    agent);
	setup_fini(&setup);
	options_fini(&options);
	return ok || err_set(err, ENOENT, "%s", err->text);
}

static bool add(const struct options *options, struct buf *task, struct buf *times,
		struct err *err, FILE *out)
{
	const char *folder = options_text(options, "workspace");
	const char *agent = options_text(options, "agent");
	const char *zone = options_text(options, "zone");
	const char *when = options_text(options, "when");
	auto_free char *workspace = realpath(folder != NULL ? folder : ".", NULL);
	struct schedules *schedules = NULL;
	struct schedule wanted = {.zone = str_of(zone)};
	struct listing listing = {0};
	char hash[HASH_HEX + 1];
	int64_t id = 0;
	bool ok;

	if (when == NULL)
		return err_set(err, EINVAL,
			       "--when TIME is missing, as --when \"every day at 9\"");
	if (workspace == NULL)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	wanted.agent = str_of(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	if (!config_check_name(wanted.agent.data, err) || !join_words(options, task, err) ||
	    !schedule_settle(when, zone, now_s(), times, &wanted.next_s, err) ||
	    !check_agent(wanted.agent.data, workspace, err))
		return false;
	wanted.workspace = str_of(workspace);
	wanted.task = buf_str(task);
	wanted.times = buf_str(times);
	buf_init(&listing.text, LIST_MAX);
	ok = schedules_open_default(&schedules, err) &&
	     schedules_add(schedules, &wanted, &id, hash, err) &&
	     schedules_find(schedules, NULL, id, list_one, &listing, err);
	(void)fputs(listing.text.data, out);
	buf_fini(&listing.text);
	schedules_close(schedules);
	return ok;
}

static int add_run(const struct options *options, FILE *out)
{
	struct buf task, times;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&task, SCHEDULES_TASK_MAX);
	buf_init(&times, WHEN_TEXT_MAX * 4);
	if (!add(options, &task, &times, &err, out))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	buf_fini(&times);
	buf_fini(&task);
	return code;
}

/* The schedule that is to be approved, as it was found. */
struct approval {
	struct listing listing;
	char hash[HASH_HEX + 1];
	char *times, *zone;
	int64_t made_s;
	bool found;
};

static bool take_content(void *context, const struct schedule *schedule)
{
	struct approval *approval = context;

	approval->found = true;
	memcpy(approval->hash, schedule->hash, sizeof(approval->hash));
	approval->times = memory_copy_str(schedule->times);
	approval->zone = memory_copy_str(schedule->zone);
	approval->made_s = schedule->made_s;
	return list_one(&approval->listing, schedule);
}

/*
 * Ask for consent on a terminal; elsewhere the person names the content (NAMED, its
 * hash).
 */
static bool is_meant(const struct approval *approval, const char *id, const char *named,
		     struct err *err, FILE *out)
{
	if (named != NULL)
		return (hash_is_valid(named) && hash_matches(named, approval->hash)) ||
		       err_set(err, ESTALE,
			       "schedule %s has another content than %.64s: look at it again "
			       "(glovebox schedule list)",
			       id, named);
	if (!isatty(STDIN_FILENO))
		return err_set(err, EINVAL,
			       "nobody can be asked here: name the content that is approved, as in: "
			       "glovebox schedule approve %s %.*s",
			       id, HASH_SHOWN, approval->hash);
	return confirm_ask(out, "Is this to run by itself from now on?") ||
	       err_set(err, ECANCELED, "not approved");
}

static bool approve(const struct options *options, struct schedules *schedules,
		    struct approval *approval, struct err *err, FILE *out)
{
	const char *word = options->words[0];
	int64_t id = 0;

	if (!id_of(word, &id, err) ||
	    !schedules_find(schedules, NULL, id, take_content, approval, err))
		return false;
	if (!approval->found)
		return err_set(err, ENOENT,
			       "there is no schedule %s; see: glovebox schedule list",
			       word);
	(void)fputs(approval->listing.text.data, out);
	if (!is_meant(approval, word, options->word_count > 1 ? options->words[1] : NULL,
		      err, out))
		return false;
	return schedules_approve(schedules, id, approval->hash,
				 schedule_next(str_of(approval->times),
					       str_of(approval->zone), approval->made_s,
					       now_s()),
				 err);
}

static int approve_run(const struct options *options, FILE *out)
{
	struct approval approval = {0};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&approval.listing.text, LIST_MAX);
	if (!schedules_open_default(&schedules, &err) ||
	    !approve(options, schedules, &approval, &err, out))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	else
		(void)fputs("Approved.\n", out);
	buf_fini(&approval.listing.text);
	free(approval.times);
	free(approval.zone);
	schedules_close(schedules);
	return code;
}

/* Change the state of the schedule that OPTIONS name. */
static int set_state(const struct options *options, enum schedule_state state, FILE *out)
{
	struct approval approval = {0};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int64_t id = 0, next_s = 0;
	int code = CODE_DONE;

	buf_init(&approval.listing.text, LIST_MAX);
	if (!id_of(options->words[0], &id, &err)) {
		code = verb_complain(CODE_USAGE, "%s", err.text);
	} else if (!schedules_open_default(&schedules, &err) ||
		   !schedules_find(schedules, NULL, id, take_content, &approval, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		if (state == SCHEDULE_ACTIVE && approval.found)
			next_s = schedule_next(str_of(approval.times),
					       str_of(approval.zone), approval.made_s,
					       now_s());
		if (!schedules_set_state(schedules, id, state, next_s, &err))
			code = verb_complain(CODE_FAILED, "%s", err.text);
		else if (state == SCHEDULE_ACTIVE)
			(void)fprintf(out,
				      "Schedule %" PRId64 " is active from now on.\n", id);
		else
			(void)fprintf(out,
				      "Schedule %" PRId64
				      " is disabled and stays in the list; "
				      "glovebox schedule enable %" PRId64
				      " lets it run again.\n",
				      id, id);
	}
	buf_fini(&approval.listing.text);
	free(approval.times);
	free(approval.zone);
	schedules_close(schedules);
	return code;
}

static int enable_run(const struct options *options, FILE *out)
{
	return set_state(options, SCHEDULE_ACTIVE, out);
}

static int disable_run(const struct options *options, FILE *out)
{
	return set_state(options, SCHEDULE_DISABLED, out);
}

static int remove_run(const struct options *options, FILE *out)
{
	struct schedules *schedules = NULL;
	struct err err = {0};
	int64_t id = 0;
	int code = CODE_DONE;

	if (!id_of(options->words[0], &id, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!schedules_open_default(&schedules, &err) ||
	    !schedules_remove(schedules, id, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		(void)fprintf(out, "Schedule %" PRId64 " is removed.\n", id);
	schedules_close(schedules);
	return code;
}

const struct verb verb_schedule_list = {
	.name = "schedule list",
	.summary = "list what runs by itself, and what waits for approval",
	.arguments = "",
	.help = "List all schedules: number, state, content hash, agent, folder, times, task.\n"
		"Those that an agent asked for are pending until you approve them.",
	.example = "  glovebox schedule list",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

const struct verb verb_schedule_add = {
	.name = "schedule add",
	.summary = "have an agent work on this folder by itself",
	.arguments = "PROMPT…",
	.help = "Write down that an agent is to work on PROMPT in a folder at certain times. It\n"
		"runs when glovebox schedule run is called then, which the systemd timer that\n"
		"comes along does each minute (docs/orchestration.md).",
	.example = "  glovebox schedule add --agent reviewer --when \"every weekday at 9\" \\\n"
		   "      \"Review what was committed since yesterday.\"",
	.options = add_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = add_run,
};

const struct verb verb_schedule_approve = {
	.name = "schedule approve",
	.summary = "let run what an agent has asked for",
	.arguments = "ID [HASH]",
	.help = "Show the schedule ID with all it says, and approve exactly that content. On a\n"
		"terminal you are asked; elsewhere HASH (12 digits or more, as list shows it)\n"
		"says what was looked at.",
	.example = "  glovebox schedule approve 3\n  glovebox schedule approve 3 8a1f0c22b19d",
	.options = id_options,
	.words_least = 1,
	.words_most = 2,
	.names = NAMES_SCHEDULES,
	.run = approve_run,
};

const struct verb verb_schedule_enable = {
	.name = "schedule enable",
	.summary = "let a disabled schedule run again",
	.arguments = "ID",
	.help = "Let the schedule ID, which was approved once, run again from now on.",
	.example = "  glovebox schedule enable 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = enable_run,
};

const struct verb verb_schedule_disable = {
	.name = "schedule disable",
	.summary = "keep a schedule, but do not run it",
	.arguments = "ID",
	.help = "Keep the schedule ID, but do not run it. A run under way goes on.",
	.example = "  glovebox schedule disable 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = disable_run,
};

const struct verb verb_schedule_remove = {
	.name = "schedule remove",
	.summary = "forget a schedule",
	.arguments = "ID",
	.help = "Forget the schedule ID. Its number is not used again.",
	.example = "  glovebox schedule remove 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = remove_run,
};
