/*
 * glovebox ps, attach, logs, stop: the cells of `glovebox start`, seen from outside. Each verb
 * is a caller of the front behind a cell (front/cells/peer.h).
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/cells/carry.h"
#include "front/cells/peer.h"
#include "front/cells/place.h"
#include "front/verb.h"
#include "mcp/message.h"
#include "process/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ASK_MS = 2000,     /* for the answers of all cells of a list together */
	STOP_S = 5,        /* unless --time says otherwise */
	STOP_MAX_S = 3600, /* the most that it may say */
	END_MS = 5000,     /* for the end of a front whose cell is closed */
	LOOK_MS = 20,      /* between two looks whether a front has ended */
	NAME_COLUMN = 16,
	TIME_TEXT = 32,
};

/* The job that the second word of OPTIONS names; 0: none. False: it is no number. */
static bool take_job(const char *verb, const struct options *options, uint64_t *job)
{
	const char *text = options->word_count > 1 ? options->words[1] : NULL;
	char *end = NULL;

	*job = 0;
	if (text == NULL)
		return true;
	errno = 0;
	*job = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *job > 0)
		return true;
	(void)verb_complain(CODE_USAGE,
			    "%s: \"%.40s\" is no number of a job; glovebox ps --json names them",
			    verb, text);
	return false;
}

/* ps. */

enum asked { ASKED_INFO, ASKED_ACCOUNTS, ASKED_LIST, ASKED };

/* A cell of the list. */
struct listed {
	struct cells_peer peer;
	const char *name;
	const char *state; /* gone, or unreachable; NULL: it answers */
	bool left;         /* it was closed a moment ago, and is not listed */
	int64_t numbers[ASKED];
	struct value *answers[ASKED];
};

static void take_answer(void *context, const struct mcp_message *message)
{
	struct listed *listed = context;
	const int64_t number = caller_answered(message);

	for (size_t i = 0; i < ASKED; i++) {
		if (number != 0 && number == listed->numbers[i] && message->result != NULL)
			listed->answers[i] = value_copy(message->result);
	}
}

static void ask(struct listed *listed, int64_t until, struct loop *loop)
{
	static const char *const methods[] = {"cell/info", "cell/accounts", "exec/list"};
	struct err err = {0};

	if (!cells_peer_open(&listed->peer, listed->name, until, loop, &err)) {
		listed->left = listed->peer.found.life == CELLS_NONE;
		listed->state = listed->peer.found.life == CELLS_GONE ||
						listed->peer.found.life == CELLS_KEPT
					? "gone"
					: "unreachable";
		return;
	}
	listed->peer.take = take_answer;
	listed->peer.context = listed;
	for (size_t i = 0; i < ASKED; i++)
		listed->numbers[i] =
			cells_peer_send(&listed->peer, methods[i], value_new_object());
}

static bool waits(const struct listed *listed)
{
	return listed->state == NULL && !cells_peer_is_lost(&listed->peer) &&
	       (listed->answers[ASKED_INFO] == NULL ||
		listed->answers[ASKED_ACCOUNTS] == NULL ||
		listed->answers[ASKED_LIST] == NULL);
}

/* Let all cells answer, which have ASK_MS for that together. */
static void gather(struct listed *list, size_t count, struct loop *loop)
{
	const int64_t until = clock_now_ms() + ASK_MS;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			if (list[i].state != NULL)
				continue;
			cells_peer_settle(&list[i].peer);
			more = more || waits(&list[i]);
		}
		more = more && clock_now_ms() < until;
		if (more)
			loop_turn(loop, until);
	}
	for (size_t i = 0; i < count; i++) {
		const struct cells_peer *peer = &list[i].peer;

		if (list[i].state != NULL || list[i].answers[ASKED_INFO] != NULL)
			continue;
		/* A front that has hung up closes its cell, or has done so. */
		list[i].left =
			cells_peer_is_lost(peer) && !cells_place_is_held(&peer->found);
		list[i].state = cells_peer_is_lost(peer) && !peer->turned_away ? "ending"
									       : "silent";
	}
}

static size_t count_running(const struct value *jobs)
{
	size_t running = 0;

	for (size_t i = 0; i < value_count(jobs); i++)
		running += value_is_true(value_member(value_item(jobs, i), "running"));
	return running;
}

static const struct value *jobs_of(const struct listed *listed)
{
	return value_member(listed->answers[ASKED_LIST], "processes");
}

/* A member of the accounts of LISTED; NULL: it is not known. */
static const struct value *account_of(const struct listed *listed, const char *name)
{
	return value_member(value_member(listed->answers[ASKED_ACCOUNTS], "accounts"), name);
}

static struct value *row_of(const struct listed *listed)
{
	static const char *const of_info[] = {"state", "because", "age_s", NULL};
	static const char *const of_about[] = {"workspace",  "level",   "pid",
					       "started_ms", "program", NULL};
	const struct value *info = listed->answers[ASKED_INFO];
	struct value *row = value_new_object();

	value_set_text(row, "name", listed->name);
	if (listed->state != NULL)
		value_set_text(row, "state", listed->state);
	value_set_members(row, info, of_info);
	if (info != NULL)
		value_set_real(row, "idle_s", value_number(value_member(info, "unused_s")));
	value_set_members(row, listed->peer.found.about, of_about);
	if (listed->answers[ASKED_ACCOUNTS] != NULL)
		value_set(row, "accounts",
			  value_copy(value_member(listed->answers[ASKED_ACCOUNTS],
						  "accounts")));
	if (jobs_of(listed) != NULL)
		value_set(row, "jobs", value_copy(jobs_of(listed)));
	return row;
}

/* "3 s", "12 min", "5 h", "2 d". */
static const char *time_text(const struct value *seconds, char text[TIME_TEXT])
{
	const double s = value_number(seconds);

	if (seconds == NULL)
		(void)snprintf(text, TIME_TEXT, "-");
	else if (s < 60)
		(void)snprintf(text, TIME_TEXT, "%.0f s", s);
	else if (s < 3600)
		(void)snprintf(text, TIME_TEXT, "%.0f min", s / 60);
	else if (s < 24 * 3600.0)
		(void)snprintf(text, TIME_TEXT, "%.0f h", s / 3600);
	else
		(void)snprintf(text, TIME_TEXT, "%.0f d", s / (24 * 3600));
	return text;
}

static void print_row(const struct listed *listed, FILE *out)
{
	const struct value *info = listed->answers[ASKED_INFO];
	const struct value *about = listed->peer.found.about;
	const struct value *cpu = account_of(listed, "cpu_s");
	const struct value *memory = account_of(listed, "memory_peak");
	const char *workspace = value_text(value_member(about, "workspace"));
	char age[TIME_TEXT], idle[TIME_TEXT], used[TIME_TEXT] = "-", size[TIME_TEXT] = "-";
	char jobs[TIME_TEXT] = "-";

	if (value_is_number(cpu))
		(void)snprintf(used, sizeof(used), "%.2f s", value_number(cpu));
	if (value_is_number(memory))
		(void)text_size((uint64_t)value_number(memory), size);
	if (jobs_of(listed) != NULL)
		(void)snprintf(jobs, sizeof(jobs), "%zu", count_running(jobs_of(listed)));
	(void)fprintf(out, "%-*s  %-11s  %-7s  %-7s  L%-4" PRId64 "  %-8s  %-9s  %-4s  ",
		      NAME_COLUMN, listed->name,
		      listed->state != NULL ? listed->state
					    : value_text(value_member(info, "state")),
		      time_text(value_member(info, "age_s"), age),
		      time_text(value_member(info, "unused_s"), idle),
		      value_integer(value_member(about, "level")), used, size, jobs);
	verb_print_name(workspace != NULL ? workspace : "-", 0, out);
	(void)fputc('\n', out);
}

static int print_list(struct listed *list, size_t count, bool as_json, FILE *out)
{
	int code = CODE_DONE;
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += list[i].left;
	if (!as_json && count == left)
		(void)fprintf(out, "No cells. glovebox start makes one.\n");
	else if (!as_json)
		(void)fprintf(out, "%-*s  %-11s  %-7s  %-7s  %-5s  %-8s  %-9s  %-4s  %s\n",
			      NAME_COLUMN, "NAME", "STATE", "AGE", "IDLE", "LEVEL", "CPU",
			      "MEMORY", "JOBS", "WORKSPACE");
	for (size_t i = 0; i < count && code == CODE_DONE; i++) {
		if (list[i].left) {
			continue;
		} else if (as_json) {
			auto_value struct value *row = row_of(&list[i]);

			code = verb_print_json(row, 0, out);
		} else {
			print_row(&list[i], out);
		}
	}
	return code;
}

static int ps_run(const struct options *options, FILE *out)
{
	auto_value struct value *names = NULL;
	struct loop *loop;
	struct listed *list;
	struct err err = {0};
	int64_t until;
	size_t count;
	int code;

	if (!cells_place_names(&names, &err))
		return verb_complain(CODE_FAILED, "ps: %s", err.text);
	count = value_count(names);
	list = memory_array(count + 1, sizeof(*list));
	loop = loop_new();
	until = clock_now_ms() + CELLS_REMOVER_MS;
	for (size_t i = 0; i < count; i++) {
		list[i].name = value_text(value_item(names, i));
		ask(&list[i], until, loop);
	}
	gather(list, count, loop);
	code = print_list(list, count, options_given(options, "json"), out);
	for (size_t i = 0; i < count; i++) {
		cells_peer_close(&list[i].peer);
		for (size_t j = 0; j < ASKED; j++)
			value_free(list[i].answers[j]);
	}
	loop_free(loop);
	free(list);
	return code;
}

static const struct option_row ps_options[] = {
	{"json", 0, OPTION_FLAG, NULL,
	 "print one object per line, with the jobs of each cell"},
	OPTION_ROW_HELP,
	{0},
};

static const char ps_help[] =
	"List the cells of `glovebox start`: name, state, age, how long nothing has run in\n"
	"it, level, processor time and the most memory that it has used, jobs that run, and\n"
	"workspace. With --json each cell has its jobs, with numbers, commands and ends.\n\n"
	"A cell whose front was killed is shown as `gone`, once; everything in it has ended.\n"
	"One that is `silent` does not answer within two seconds: `stop` ends it. One that\n"
	"is `ending` is being closed.";

const struct verb verb_ps = {
	.name = "ps",
	.summary = "list the cells that outlive a terminal",
	.arguments = "",
	.help = ps_help,
	.example = "  glovebox ps\n"
		   "  glovebox ps --json | jq -r 'select(.idle_s > 3600).name'",
	.options = ps_options,
	.folds = true,
	.run = ps_run,
};

/* attach. */

static int attach_run(const struct options *options, FILE *out)
{
	struct cells_attach attach = {
		.name = options->words[0],
		.looks = options_given(options, "look"),
		.takes = options_given(options, "take"),
	};

	(void)out;
	if (attach.looks && attach.takes)
		return verb_complain(CODE_USAGE,
				     "attach: --look never types, and --take does: give one");
	if (!take_job("attach", options, &attach.job))
		return CODE_USAGE;
	return cells_carry_attach(&attach);
}

static const struct option_row attach_options[] = {
	{"look", 0, OPTION_FLAG, NULL, "only look, and never type"},
	{"take", 0, OPTION_FLAG, NULL,
	 "type, though somebody else does, who looks from then on"},
	OPTION_ROW_HELP,
	{0},
};

static const char attach_help[] =
	"Show the terminal of a job in the cell NAME, and type at it: of the job with the\n"
	"number JOB, else of the newest that runs and has a terminal. Where there is none, a\n"
	"shell is started, which stays as a job.\n\n"
	"Ctrl+] lets go; the job goes on. Several may look at the same time, and one types:\n"
	"the first that came, and then the next. The size of the terminal is that of the one\n"
	"who types. The exit code is that of the job when it ends, else 0.";

const struct verb verb_attach = {
	.name = "attach",
	.summary = "show the terminal of a job in a cell, and type at it",
	.arguments = "NAME [JOB]",
	.help = attach_help,
	.example = "  glovebox attach work\n"
		   "  glovebox attach --look web 2",
	.options = attach_options,
	.words_least = 1,
	.words_most = 2,
	.names = NAMES_CELLS,
	.run = attach_run,
};

/* logs. */

struct logging {
	struct cells_peer peer;
	struct loop *loop;
	FILE *out;
	uint64_t job;
	uint64_t before, got; /* bytes that were printed before; that have come */
	uint64_t lost;        /* those of them that are not printed here */
	bool plain;           /* for a terminal */
	struct buf rest;      /* as of cells_carry_plain */
	struct buf why; /* the job could not be started, or was lost; empty: neither */
	bool follows, ended;
};

/* Bytes of the sentence that says why a job could not run to its end. */
enum { WHY_MAX = 64 << 10 };

static void print_output(struct logging *logging, const struct value *params)
{
	const int64_t dropped = value_integer(value_member(params, "dropped"));
	struct value *more;
	struct buf bytes, plain;

	buf_init(&bytes, 2 * CELLS_REPLAY);
	buf_init(&plain, 2 * CELLS_REPLAY + CELLS_REST);
	(void)buf_base64_read(value_str(value_member(params, "bytes")), &bytes);
	if (dropped > 0) {
		logging->lost += (uint64_t)dropped;
		/* The rest of a sequence is among them. */
		buf_clear(&logging->rest);
		(void)fflush(logging->out);
		(void)verb_complain(CODE_DONE,
				    "%" PRId64
				    " bytes are lost: the job prints faster than they "
				    "are read here",
				    dropped);
	}
	const size_t size = bytes.size;
	if (logging->plain)
		cells_carry_plain(&logging->rest, buf_str(&bytes), &plain);
	else
		buf_swap(&bytes, &plain);
	(void)fwrite(plain.data, 1, plain.size, logging->out);
	if (logging->follows)
		(void)fflush(logging->out);
	more = value_new_object();
	value_set_integer(more, "process", (int64_t)logging->job);
	value_set_integer(more, "bytes", (int64_t)size);
	(void)cells_peer_send(&logging->peer, "exec/more", more);
	logging->got += size + (uint64_t)dropped;
	buf_fini(&plain);
	buf_fini(&bytes);
}

/* Keep the sentence of OUTCOME, the end of the job: it ran never, or was lost. */
static void take_why(struct logging *logging, const struct value *outcome)
{
	buf_clear(&logging->why);
	(void)buf_addstr(&logging->why, value_str(value_member(outcome, "message")));
}

static void take_log(void *context, const struct mcp_message *message)
{
	struct logging *logging = context;

	if (message->method == NULL ||
	    (uint64_t)value_integer(value_member(message->params, "process")) != logging->job)
		return;
	if (strcmp(message->method, "exec/output") == 0) {
		print_output(logging, message->params);
	} else if (strcmp(message->method, "exec/exited") == 0) {
		logging->ended = true;
		take_why(logging, message->params);
	}
}

/* Find the job that is meant: the newest one unless its number is there. */
static bool find_log(struct logging *logging, struct err *err)
{
	auto_value struct value *told = NULL;
	const struct value *list, *meant = NULL;
	uint64_t newest = 0;

	if (!cells_peer_ask(&logging->peer, "exec/list", value_new_object(),
			    CELLS_ANSWER_MS, &told, err))
		return false;
	list = value_member(told, "processes");
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *at = value_item(list, i);
		const uint64_t number =
			(uint64_t)value_integer(value_member(at, "process"));

		if (!value_is_true(value_member(at, "stays")))
			continue;
		if (logging->job > 0 ? number == logging->job : number > newest)
			meant = at;
		newest = number > newest ? number : newest;
	}
	if (logging->job == 0 && newest == 0)
		return err_set(err, ENOENT,
			       "cell %s has no jobs yet; glovebox exec --in %s --detach -- CMD "
			       "begins one",
			       logging->peer.name, logging->peer.name);
	if (meant == NULL)
		return err_set(err, ENOENT,
			       "there is no job %" PRIu64
			       " in cell %s, or it has ended long ago; "
			       "glovebox ps --json names those that there are",
			       logging->job, logging->peer.name);
	logging->job = (uint64_t)value_integer(value_member(meant, "process"));
	take_why(logging, meant);
	return true;
}

static int print_log(struct logging *logging)
{
	struct value *params = value_new_object();
	auto_value struct value *told = NULL;
	struct err err = {0};
	int64_t first, until;

	value_set_integer(params, "process", (int64_t)logging->job);
	logging->peer.take = take_log;
	logging->peer.context = logging;
	if (!cells_peer_ask(&logging->peer, "exec/watch", params, CELLS_ANSWER_MS, &told,
			    &err))
		return verb_complain(CODE_FAILED, "logs: %s", err.text);
	first = value_integer(value_member(told, "from"));
	logging->before = (uint64_t)(value_integer(value_member(told, "to")) - first);
	if (first > 0)
		(void)verb_complain(CODE_DONE,
				    "the first %" PRId64
				    " bytes are gone: the newest %d of a job "
				    "are kept",
				    first, CELLS_REPLAY);
	logging->ended = logging->ended || !value_is_true(value_member(told, "running"));
	cells_peer_settle(&logging->peer);
	until = clock_now_ms() + CELLS_ANSWER_MS;
	while ((logging->got < logging->before || (logging->follows && !logging->ended)) &&
	       !cells_peer_is_lost(&logging->peer) && !ferror(logging->out)) {
		const uint64_t got = logging->got;
		const bool is_due = got < logging->before;

		/* The output of before is there, and waits for nothing but the front. */
		if (is_due && clock_now_ms() >= until)
			return verb_complain(CODE_FAILED,
					     "logs: cell %s does not answer; glovebox stop %s "
					     "ends it in any case",
					     logging->peer.name, logging->peer.name);
		loop_turn(logging->loop, is_due ? until : CLOCK_NEVER);
		cells_peer_settle(&logging->peer);
		if (logging->got > got)
			until = clock_now_ms() + CELLS_ANSWER_MS;
	}
	if (ferror(logging->out))
		return CODE_DONE; /* `main` says why */
	if (logging->got < logging->before || (logging->follows && !logging->ended))
		return verb_complain(CODE_FAILED,
				     "logs: cell %s has ended, and job %" PRIu64 " with it",
				     logging->peer.name, logging->job);
	if (logging->why.size > 0)
		(void)verb_complain(CODE_DONE, "job %" PRIu64 ": %s", logging->job,
				    logging->why.data);
	return logging->lost == 0
		       ? CODE_DONE
		       : verb_complain(CODE_FAILED,
				       "logs: %" PRIu64 " bytes of job %" PRIu64
				       " are missing above; a job whose every byte counts writes "
				       "into a file of the workspace",
				       logging->lost, logging->job);
}

static int logs_run(const struct options *options, FILE *out)
{
	struct logging logging = {
		.out = out,
		.plain = isatty(STDOUT_FILENO),
		.follows = options_given(options, "follow"),
	};
	struct err err = {0};
	int code;

	if (!take_job("logs", options, &logging.job))
		return CODE_USAGE;
	logging.loop = loop_new();
	buf_init(&logging.rest, 2 * CELLS_REPLAY + CELLS_REST);
	buf_init(&logging.why, WHY_MAX);
	if (!cells_peer_open(&logging.peer, options->words[0],
			     clock_now_ms() + CELLS_REMOVER_MS, logging.loop, &err) ||
	    !find_log(&logging, &err))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "logs: %s", err.text);
	else
		code = print_log(&logging);
	buf_fini(&logging.rest);
	buf_fini(&logging.why);
	cells_peer_close(&logging.peer);
	loop_free(logging.loop);
	return code;
}

static const struct option_row logs_options[] = {
	{"follow", 'f', OPTION_FLAG, NULL, "go on until the job ends"},
	OPTION_ROW_HELP,
	{0},
};

static const char logs_help[] =
	"Print what a job in the cell NAME has printed: the job with the number JOB, else\n"
	"the newest. The newest MiB of each job is kept, and what has gone is told. Output\n"
	"and error output are one stream, in their order. On a terminal only text and\n"
	"colours are shown; elsewhere the bytes are as they were. Of a job that could not be\n"
	"started the reason is told. The exit code is 1 when bytes are missing in what was\n"
	"printed, or the cell ends before the job does.";

const struct verb verb_logs = {
	.name = "logs",
	.summary = "print what a job in a cell has printed",
	.arguments = "NAME [JOB]",
	.help = logs_help,
	.example = "  glovebox logs web\n"
		   "  glovebox logs -f web 2",
	.options = logs_options,
	.words_least = 1,
	.words_most = 2,
	.names = NAMES_CELLS,
	.run = logs_run,
};

/* stop. */

/* How far a cell is that is being stopped, in the order of life. */
enum stopping_state {
	STOPPING_AWAY,  /* there is none: that was told */
	STOPPING_SHUT,  /* its front takes no caller now */
	STOPPING_ASKED, /* its programs are to end */
	STOPPING_EMPTY, /* no program runs in it, or none is waited for */
};

struct stopping {
	struct cells_peer peer;
	const char *name;
	enum stopping_state state;
	int64_t asked; /* the exec/list, then cell/close, that was not answered; 0: none */
	bool closed;   /* the cell was, or its front has gone */
	struct value *told; /* the numbers of the programs that got SIGTERM, as keys */
	struct err why;     /* it takes no caller */
};

/* Send TERM to the program with NUMBER, once. */
static void tell_to_end(struct stopping *stopping, int64_t number)
{
	char key[TIME_TEXT];
	struct value *params;

	(void)snprintf(key, sizeof(key), "%" PRId64, number);
	if (value_member(stopping->told, key) != NULL)
		return;
	value_set_boolean(stopping->told, key, true);
	params = value_new_object();
	value_set_integer(params, "process", number);
	value_set_integer(params, "signal", SIGTERM);
	(void)cells_peer_send(&stopping->peer, "exec/signal", params);
}

static void take_programs(void *context, const struct mcp_message *message)
{
	struct stopping *stopping = context;
	const struct value *list = value_member(message->result, "processes");
	const int64_t answered = caller_answered(message);
	size_t running = 0;

	if (answered == 0 || answered != stopping->asked)
		return;
	stopping->asked = 0;
	if (list == NULL)
		return;
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *at = value_item(list, i);

		if (!value_is_true(value_member(at, "running")))
			continue;
		running++;
		tell_to_end(stopping, value_integer(value_member(at, "process")));
	}
	if (running == 0)
		stopping->state = STOPPING_EMPTY;
}

/* Connect to the front of STOPPING. WAITS: its programs get time. UNTIL as of cells_place_find. */
static void reach(struct stopping *stopping, int64_t until, struct loop *loop, bool waits)
{
	stopping->asked = 0;
	if (cells_peer_open(&stopping->peer, stopping->name, until, loop, &stopping->why)) {
		stopping->peer.take = take_programs;
		stopping->peer.context = stopping;
		stopping->state = waits ? STOPPING_ASKED : STOPPING_EMPTY;
	} else {
		stopping->state = stopping->peer.found.life == CELLS_LIVES ? STOPPING_SHUT
									   : STOPPING_AWAY;
	}
}

/*
 * One look at STOPPING: ask what runs in it, or try again to be one of its callers. An answer that
 * waits for the end of a program would need a place among the calls of the cell, which may be
 * full. True: there is more to be waited for.
 */
static bool look_on(struct stopping *stopping, struct loop *loop)
{
	if (stopping->state == STOPPING_SHUT ||
	    (stopping->state == STOPPING_ASKED && cells_peer_is_lost(&stopping->peer))) {
		const bool is_full = stopping->peer.fd < 0 || stopping->peer.turned_away;

		if (!is_full) { /* it has ended */
			stopping->state = STOPPING_EMPTY;
			return false;
		}
		cells_peer_close(&stopping->peer);
		reach(stopping, clock_now_ms(), loop, true);
		/* A cell that has ended meanwhile is stopped. */
		if (stopping->state == STOPPING_AWAY)
			stopping->state = STOPPING_EMPTY;
	}
	if (stopping->state == STOPPING_ASKED && stopping->asked == 0)
		stopping->asked =
			cells_peer_send(&stopping->peer, "exec/list", value_new_object());
	if (stopping->state == STOPPING_ASKED)
		cells_peer_settle(&stopping->peer);
	return stopping->state == STOPPING_SHUT || stopping->state == STOPPING_ASKED;
}

/* Turn LOOP until all programs have ended, or UNTIL. */
static void wait_for_ends(struct stopping *list, size_t count, struct loop *loop,
			  int64_t until)
{
	bool more = true;

	while (more && clock_now_ms() < until) {
		const int64_t look = clock_now_ms() + LOOK_MS;
		const int64_t next = look < until ? look : until;

		more = false;
		for (size_t i = 0; i < count; i++)
			more = look_on(&list[i], loop) || more;
		while (more && clock_now_ms() < next)
			loop_turn(loop, next);
	}
}

static void take_closed(void *context, const struct mcp_message *message)
{
	struct stopping *stopping = context;
	const int64_t answered = caller_answered(message);

	if (answered == 0 || answered != stopping->asked)
		return;
	stopping->asked = 0;
	stopping->closed = message->result != NULL;
}

/* Is there no front that could take requests? It has gone, or turns its callers away. */
static bool is_beyond(const struct stopping *stopping)
{
	return stopping->state == STOPPING_AWAY || stopping->state == STOPPING_SHUT ||
	       stopping->peer.turned_away || stopping->peer.found.folder < 0;
}

/* Ask for the end of all cells, and let them have END_MS together: some may not answer. */
static void close_all(struct stopping *list, size_t count, struct loop *loop)
{
	const int64_t until = clock_now_ms() + END_MS;
	bool more = true;

	for (size_t i = 0; i < count; i++) {
		list[i].asked = 0;
		if (is_beyond(&list[i]))
			continue;
		list[i].peer.take = take_closed;
		list[i].asked =
			cells_peer_send(&list[i].peer, "cell/close", value_new_object());
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			if (is_beyond(&list[i]) || list[i].asked == 0)
				continue;
			cells_peer_settle(&list[i].peer);
			if (list[i].asked != 0 && cells_peer_is_lost(&list[i].peer)) {
				list[i].asked = 0;
				list[i].closed = true;
			}
			more = more || list[i].asked != 0;
		}
		more = more && clock_now_ms() < until;
		if (more)
			loop_turn(loop, until);
	}
}

/* Has the front of STOPPING ended within LIMIT_MS? */
static bool has_ended(const struct stopping *stopping, int limit_ms)
{
	const int64_t until = clock_now_ms() + limit_ms;

	while (stopping->peer.found.folder >= 0 &&
	       cells_place_is_held(&stopping->peer.found)) {
		if (clock_now_ms() >= until)
			return false;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return true;
}

/* Has the process PID the folder of FOUND open? Nobody but its front keeps it so. */
static bool holds_folder(int64_t pid, const struct cells_found *found)
{
	struct stat ours, theirs;
	char path[TIME_TEXT];
	DIR *names;
	bool holds = false;

	(void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd", pid);
	names = opendir(path);
	if (names == NULL)
		return false;
	for (const struct dirent *at = readdir(names);
	     at != NULL && !holds && fstat(found->folder, &ours) == 0; at = readdir(names))
		holds = at->d_name[0] != '.' &&
			fstatat(dirfd(names), at->d_name, &theirs, 0) == 0 &&
			ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	(void)closedir(names);
	return holds;
}

/* The front of STOPPING as a descriptor; -1: it is not known. */
static int open_front(const struct stopping *stopping)
{
	const struct cells_found *found = &stopping->peer.found;
	const int64_t told = value_integer(value_member(found->about, "pid"));
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	int process = -1;

	/* The process that listens, whatever about.json says. */
	if (stopping->peer.fd >= 0 &&
	    getsockopt(stopping->peer.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	    peer.pid > 0)
		return kernel_pidfd_open(peer.pid);
	if (told > 0 && told <= INT_MAX)
		process = kernel_pidfd_open((pid_t)told);
	/* The number is that of this front as long as it is open here. */
	if (process >= 0 && !holds_folder(told, found))
		fd_close(&process);
	return process;
}

/*
 * Let the front of STOPPING end without being asked by the wire: by SIGTERM, which ends it in order,
 * and by SIGKILL, with which its cell dies as well. HANGS: it does not answer, so that no order
 * is to be hoped for.
 */
static bool end_front(const struct stopping *stopping, bool hangs)
{
	auto_close int process = open_front(stopping);

	for (int i = hangs; i < 2 && process >= 0; i++) {
		if (cells_place_is_held(&stopping->peer.found) &&
		    syscall(SYS_pidfd_send_signal, process, i == 0 ? SIGTERM : SIGKILL,
			    NULL, 0) == 0 &&
		    has_ended(stopping, END_MS))
			return true;
	}
	return has_ended(stopping, 0);
}

/* UNTIL as of cells_place_find. */
static int finish_stop(struct stopping *stopping, int64_t until, FILE *out)
{
	const bool shut = stopping->state == STOPPING_SHUT || stopping->peer.turned_away;
	struct cells_found left;
	struct err err = {0};
	bool ended = stopping->peer.found.folder < 0;

	if (!ended && !shut)
		ended = stopping->closed && has_ended(stopping, END_MS);
	/* It may have been a caller too many for this request. */
	if (!ended && !end_front(stopping, !shut && !stopping->peer.turned_away))
		return verb_complain(
			CODE_FAILED,
			"stop: cell %s does not end%s%s; kill -9 %lld ends its front, and "
			"the cell with it",
			stopping->name, shut ? ": " : "", shut ? stopping->why.text : "",
			(long long)value_integer(
				value_member(stopping->peer.found.about, "pid")));
	/* The folder of a front that was killed: finding it removes it. */
	(void)cells_place_find(stopping->name, until, &left, &err);
	cells_place_found_fini(&left);
	(void)fprintf(out, "%s\n", stopping->name);
	return CODE_DONE;
}

static int stop_run(const struct options *options, FILE *out)
{
	const double seconds = options_seconds(options, "time", STOP_S);
	struct stopping *list;
	struct loop *loop;
	int64_t until;
	int code = CODE_DONE;

	if (seconds > STOP_MAX_S)
		return verb_complain(CODE_USAGE, "stop: --time: at most %d seconds",
				     STOP_MAX_S);
	list = memory_array(options->word_count, sizeof(*list));
	loop = loop_new();
	until = clock_now_ms() + CELLS_REMOVER_MS;
	for (size_t i = 0; i < options->word_count; i++) {
		list[i].name = options->words[i];
		list[i].told = value_new_object();
		reach(&list[i], until, loop, seconds > 0);
		if (list[i].state == STOPPING_AWAY)
			code = verb_complain(list[i].why.code == EINVAL ? CODE_USAGE
									: CODE_FAILED,
					     "stop: %s", list[i].why.text);
	}
	if (seconds > 0)
		wait_for_ends(list, options->word_count, loop,
			      clock_now_ms() + (int64_t)(seconds * 1000));
	close_all(list, options->word_count, loop);
	until = clock_now_ms() + CELLS_REMOVER_MS;
	for (size_t i = 0; i < options->word_count; i++) {
		if (list[i].state != STOPPING_AWAY) {
			const int ended = finish_stop(&list[i], until, out);

			code = code == CODE_DONE ? ended : code;
		}
		cells_peer_close(&list[i].peer);
		value_free(list[i].told);
	}
	loop_free(loop);
	free(list);
	return code;
}

static const struct option_row stop_options[] = {
	{"time", 't', OPTION_SECONDS, "S",
	 "how long programs have to end after SIGTERM, 0: no time (default: 5)"},
	OPTION_ROW_HELP,
	{0},
};

static const char stop_help[] =
	"End the cells with these names. Everything that runs in them gets SIGTERM; after\n"
	"the time of --time, or earlier when all has ended, the cell is closed, and with it\n"
	"ends whatever is left. A front that does not answer is killed. The names of the\n"
	"cells that were ended are printed.";

const struct verb verb_stop = {
	.name = "stop",
	.summary = "end cells that outlive a terminal",
	.arguments = "NAME…",
	.help = stop_help,
	.example = "  glovebox stop web work\n"
		   "  glovebox stop --time 0 web",
	.options = stop_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.names = NAMES_CELLS,
	.run = stop_run,
};
