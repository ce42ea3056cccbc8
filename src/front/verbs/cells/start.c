/*
 * glovebox start: a cell that outlives the terminal. The front behind it is a process in the
 * background, an engine (serve/engine.h) with this one cell, and many callers at the socket in
 * the cell's folder (front/cells/place.h). The engine serves callers itself: a keeper between it
 * and them would parse each line twice, and would need the same list of callers.
 *
 * The process that a person starts waits until the cell serves, and is then its first caller.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "build_config.h"
#include "front/cells/carry.h"
#include "front/cells/peer.h"
#include "front/cells/place.h"
#include "front/interrupt.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "process/loop.h"
#include "serve/engine.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CHOICES = 1000,                 /* numbers behind the name of a folder */
	NAME_ROOM = CELLS_NAME_MAX + 2, /* with the end of a line */
};

/* The front behind the cell. */

struct behind {
	const char *name;      /* NULL: that of the workspace, which no other cell has */
	const char *workspace; /* its real path */
	int told; /* the pipe to the process that has started it; -1: it was told */
	struct setup *setup;
	const struct exec_time *time;
	struct cells_place place;
	int code; /* of a complaint that was printed; CODE_DONE: none was */
};

static bool open_place(void *context, const struct engine_wish *wish, struct loop *loop,
		       struct engine_place *place, struct err *err)
{
	struct behind *behind = context;
	struct session_options wanted = {
		.loop = loop,
		.ready_workers = 1,
		.cancel_fd = -1,
		.dormant = true,
		.counting = COUNTING_CELL,
	};
	/* Nobody waits for a cell whose process has gone before it was there. */
	const struct pollfd caller = {.fd = behind->told};

	(void)wish;
	if (place->session != NULL || behind->told < 0)
		return err_set(err, EAGAIN,
			       "there is one cell only; glovebox start makes more");
	behind->setup->ends = &caller;
	behind->setup->end_count = 1;
	behind->code = setup_session(behind->setup, &wanted, &place->session);
	behind->setup->end_count = 0;
	/* As exec has it: no cell, and nothing has run. */
	if (behind->code == CODE_FAILED || behind->code == CODE_NO_CELL)
		behind->code = CODE_EXEC_NO_CELL;
	if (behind->code != CODE_DONE)
		return err_set(err, ECHILD, "the cell could not be built");
	place->tools = setup_tools(behind->setup);
	place->wall_s = behind->time->seconds;
	return true;
}

static bool closed(void *context, struct engine_place *place, bool keeps)
{
	(void)context;
	(void)keeps;
	*place = (struct engine_place){0};
	return false;
}

static bool no_snapshot(void *context, const char *name, const char *from,
			struct loop *loop, struct engine_place *place, struct err *err)
{
	(void)context;
	(void)name;
	(void)from;
	(void)loop;
	(void)place;
	return err_set(err, EINVAL,
		       "a cell of glovebox start makes no snapshots; glovebox serve does");
}

static bool not_frozen(void *context, struct engine_place *place,
		       const struct engine_snapshot *made, int *waits, struct err *err)
{
	(void)context;
	(void)place;
	(void)made;
	(void)waits;
	return err_set(err, EINVAL, "there is no snapshot");
}

static struct engine_run *no_run(void *context, struct engine_place *place,
				 const struct engine_run_wish *wish, struct loop *loop,
				 struct err *err)
{
	(void)context;
	(void)place;
	(void)wish;
	(void)loop;
	(void)err_set(err, EINVAL,
		      "a cell of glovebox start has no agent; glovebox serve begins runs");
	return NULL;
}

static void no_run_end(struct engine_run *run)
{
	(void)run;
}

static struct value *about_of(const char *name, const struct engine_place *place)
{
	struct value *about = value_new_object();

	value_set_text(about, "name", name);
	value_set_integer(about, "pid", getpid());
	value_set_text(about, "workspace", session_workspace(place->session));
	tool_set_strength(about, session_strength(place->session));
	value_set_integer(about, "started_ms", clock_wall_ms());
	value_set_text(about, "program", "glovebox " GLOVEBOX_VERSION);
	return about;
}

/* Give the cell of PLACE the name NAME. False, with EEXIST in ERR: another cell has it. */
static bool take_name(struct behind *behind, const struct engine_place *place,
		      const char *name, struct err *err)
{
	auto_value struct value *about = about_of(name, place);

	return cells_place_name(&behind->place, name, about, err);
}

/* Give the cell its own name, or the first one for its folder that is free: NAME. */
static bool choose_name(struct behind *behind, const struct engine_place *place,
			struct buf *name, struct err *err)
{
	bool named = false;

	if (behind->name != NULL)
		return buf_adds(name, behind->name) &&
		       take_name(behind, place, behind->name, err);
	for (int i = 1; !named && i <= CHOICES; i++) {
		cells_place_suggest(behind->workspace, i, name);
		*err = (struct err){0};
		named = take_name(behind, place, name->data, err);
		if (!named && err->code != EEXIST)
			return false;
	}
	return named || err_set(err, EEXIST,
				"every name for a cell of this folder is taken; choose "
				"one with --name");
}

/* The cell is open: name it, tell the process that waits, and leave its terminal. */
static bool ready(void *context, const struct engine_place *place, char **cell,
		  struct err *err)
{
	struct behind *behind = context;
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct buf name;
	bool ok;

	buf_init(&name, NAME_ROOM);
	ok = choose_name(behind, place, &name, err);
	if (ok) {
		free(*cell);
		*cell = memory_copy(name.data);
		(void)buf_addc(&name, '\n');
		ok = write(behind->told, name.data, name.size) == (ssize_t)name.size ||
		     err_set(err, EPIPE, "the process that has started it has gone");
	}
	buf_fini(&name);
	if (!ok)
		return false;
	fd_close(&behind->told);
	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	/* No file system is held by a folder that nobody is in. */
	(void)!chdir("/");
	return true;
}

/* For exec_use: serve the cell of SETUP until it is closed, or a signal comes. */
static int serve(const void *context, struct setup *setup, const struct options *options,
		 const struct exec_time *time)
{
	struct behind *behind = (struct behind *)(uintptr_t)context;
	struct engine_standing standing = {.ready = ready, .context = behind};
	struct engine_options engine = {
		.host = {open_place, closed, no_snapshot, not_frozen, no_run, no_run_end,
			 no_run_end, behind},
		.program = "glovebox " GLOVEBOX_VERSION,
		.max_cells = 1,
		.input = -1,
		.output = -1,
		.standing = &standing,
	};
	struct err err = {0};
	int code = CODE_DONE;

	(void)options;
	behind->setup = setup;
	behind->time = time;
	if (!interrupt_open(&setup->interrupt, &err) ||
	    !interrupt_start(setup->interrupt, &err) ||
	    !cells_place_make(&behind->place, &err)) {
		cells_place_remove(&behind->place);
		return verb_complain(CODE_FAILED, "start: %s", err.text);
	}
	standing.listener = behind->place.listener;
	engine.stop_fd = interrupt_fd(setup->interrupt);
	if (!engine_run(&engine, &err))
		code = behind->code != CODE_DONE
			       ? behind->code
			       : verb_complain(err.code == ECHILD ? CODE_EXEC_NO_CELL
								  : CODE_FAILED,
					       "start: %s", err.text);
	cells_place_remove(&behind->place);
	return code;
}

/* Leave the terminal of the caller, and everything else that the caller has open. */
static void leave_caller(int kept)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
	}
	fd_close(&null);
	if (kept > STDERR_FILENO + 1)
		(void)close_range(STDERR_FILENO + 1, (unsigned)kept - 1, 0);
	(void)close_range((unsigned)kept + 1, ~0U, 0);
}

static int go_behind(const struct options *options, const struct setup_flags *flags,
		     const char *workspace, int told, FILE *out)
{
	struct behind behind = {.name = options_text(options, "name"),
				.workspace = workspace,
				.told = told,
				.place = CELLS_PLACE_NONE};
	const struct exec_use use = {serve, &behind};
	struct setup setup = {0};
	int code;

	leave_caller(told);
	code = exec_in_cell(&setup, options, flags, NULL, out, &use);
	setup_fini(&setup);
	return code;
}

/* The process that a person starts. */

/*
 * Wait until the front CHILD has told TOLD that the cell serves, and how it is called: NAME.
 * Returns its code otherwise; what it has made is removed.
 */
static int wait_for(pid_t child, int told, char name[NAME_ROOM])
{
	ssize_t n;
	int status = 0;

	/* The child writes the whole name in one call. */
	do
		n = read(told, name, NAME_ROOM - 1);
	while (n < 0 && errno == EINTR);
	name[n > 0 ? n - 1 : 0] = '\0';
	if (n > 0)
		return CODE_DONE;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : CODE_FAILED;
	cells_place_sweep();
	return verb_complain(CODE_EXEC_NO_CELL,
			     "start: the front behind the cell was killed by "
			     "signal %d before the cell was there",
			     WTERMSIG(status));
}

/* Begin the words of OPTIONS as the first job of the cell NAME, which ends when that fails. */
static int begin_job(const struct options *options, const char *name, uint64_t *job)
{
	struct value *wish = cells_carry_wish(options, false);
	auto_value struct value *told = NULL;
	struct cells_peer peer;
	struct loop *loop = loop_new();
	struct err err = {0};
	int code = CODE_DONE;

	if (wish != NULL)
		value_set_boolean(wish, "stays", true);
	if (!cells_peer_open(&peer, name, clock_now_ms() + CELLS_REMOVER_MS, loop, &err)) {
		value_free(wish);
		code = CODE_FAILED;
	} else if (wish == NULL) {
		(void)err_set(&err, EILSEQ, "CMD cannot be sent");
		(void)cells_peer_ask(&peer, "cell/close", value_new_object(),
				     CELLS_ANSWER_MS, NULL, NULL);
		code = CODE_USAGE;
	} else if (!cells_peer_ask(&peer, "exec/start", wish, CELLS_ANSWER_MS, &told, &err)) {
		(void)cells_peer_ask(&peer, "cell/close", value_new_object(),
				     CELLS_ANSWER_MS, NULL, NULL);
		code = CODE_FAILED;
	}
	*job = (uint64_t)value_integer(value_member(told, "process"));
	cells_peer_close(&peer);
	loop_free(loop);
	return code == CODE_DONE
		       ? code
		       : verb_complain(code, "start: %s; the cell was closed again",
				       err.text);
}

static int start(const struct options *options, const struct setup_flags *flags,
		 const char *workspace, FILE *out)
{
	struct err err = {0};
	char name[NAME_ROOM];
	uint64_t job = 0;
	int ends[2], code;
	pid_t child;

	if (!fd_pipe(ends, &err))
		return verb_complain(CODE_FAILED, "start: %s", err.text);
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		exit(go_behind(options, flags, workspace, ends[1], out));
	}
	(void)close(ends[1]);
	if (child < 0)
		code = verb_complain(CODE_FAILED, "start: no process: %s", strerror(errno));
	else
		code = wait_for(child, ends[0], name);
	(void)close(ends[0]);
	if (code == CODE_DONE && options->word_count > 0)
		code = begin_job(options, name, &job);
	if (code == CODE_DONE)
		(void)fprintf(out, "%s\n", name);
	return code;
}

/* Is a cell NAME there already? Then a complaint is printed. */
static bool is_taken(const char *name, int *code)
{
	struct cells_found found;
	struct err err = {0};

	*code = CODE_DONE;
	if (!cells_place_fits(name, &err))
		*code = verb_complain(CODE_USAGE, "start: --name: %s", err.text);
	else if (!cells_place_find(name, clock_now_ms() + CELLS_REMOVER_MS, &found, &err))
		*code = verb_complain(CODE_FAILED, "start: %s", err.text);
	else if (found.life == CELLS_LIVES)
		*code = verb_complain(CODE_FAILED,
				      "start: a cell %s runs already; take another name, or: "
				      "glovebox stop %s",
				      name, name);
	else if (found.life == CELLS_KEPT && !cells_place_say_kept(name, &found, &err))
		*code = verb_complain(CODE_FAILED, "start: %s", err.text);
	if (*code != CODE_USAGE)
		cells_place_found_fini(&found);
	return *code != CODE_DONE;
}

static int refuse_options(const struct options *options)
{
	if (options_given(options, "ssh"))
		return verb_complain(CODE_USAGE,
				     "start: --ssh asks you before each use of a key, "
				     "and a cell in the background cannot ask");
	if (options_given(options, "clipboard"))
		return verb_complain(CODE_USAGE,
				     "start: --clipboard is for a terminal here: give "
				     "it to glovebox exec --in NAME --tty");
	if (options_given(options, "tty") && options->word_count == 0)
		return verb_complain(CODE_USAGE,
				     "start: --tty gives CMD a terminal, and there is "
				     "no CMD; glovebox attach starts a shell");
	return CODE_DONE;
}

static int start_run(const struct options *options, FILE *out)
{
	auto_value struct value *entry = value_new_object();
	const char *name = options_text(options, "name");
	const char *folder = options_text(options, "workspace");
	struct setup_flags flags;
	struct setup setup = {0};
	bool begins_again;
	struct err err = {0};
	int code = refuse_options(options);

	if (code != CODE_DONE)
		return code;
	if (!exec_scope(options, &begins_again, &err))
		return verb_complain(CODE_USAGE, "start: %s", err.text);
	if (name != NULL && !options_given(options, "explain") && is_taken(name, &code))
		return code;
	/* The scope is for the front behind, which stays in it. */
	if (begins_again && !options_given(options, "explain"))
		exec_begin_in_scope();
	code = exec_take_flags("start", options, entry, &flags);
	if (code != CODE_DONE)
		return code;
	if (flags.explain) {
		code = exec_in_cell(&setup, options, &flags, NULL, out, NULL);
		setup_fini(&setup);
		return code;
	}
	auto_free char *real = realpath(folder != NULL ? folder : ".", NULL);
	if (real == NULL)
		return verb_complain(CODE_USAGE, "start: %s: %s",
				     folder != NULL ? folder : ".", strerror(errno));
	return start(options, &flags, real, out);
}

static const struct option_row start_options[] = {
	{"name", 'n', OPTION_TEXT, "NAME",
	 "call the cell NAME (default: as its folder, with a number when that is taken)"},
	EXEC_OPTION_ROWS,
	EXEC_ROW_JSON,
	EXEC_POLICY_ROWS,
	OPTION_ROW_BASE,
	OPTION_ROW_AT,
	OPTION_ROW_HELP,
	{0},
};

static const char start_help[] =
	"Start a cell that outlives your terminal, and print its name. What it shows and\n"
	"allows comes from the same options as those of `exec`. With CMD it has a first\n"
	"job, which runs until it ends; --tty gives it a terminal for `attach`.\n\n"
	"`glovebox exec --in NAME` runs a program in it, with --detach another job;\n"
	"`attach` shows the terminal of a job, `logs` what a job has printed, `ps` lists\n"
	"the cells, and `stop` ends one with everything in it. So does the end of its\n"
	"front, a process in the background; where there is systemd, it has a scope of its\n"
	"own (--scope never: it has none). --timeout is the time of each program in it, and of\n"
	"all commands of a devcontainer (--base) together, each of which has an hour at most.\n\n"
	"Cells are found in $XDG_RUNTIME_DIR, and only you can reach them.";

const struct verb verb_start = {
	.name = "start",
	.summary = "start a cell that outlives the terminal",
	.arguments = "[[--] CMD [ARGS…]]",
	.help = start_help,
	.example = "  glovebox start --name web --publish 3000 -- npm run dev\n"
		   "  glovebox start --name work --tty -- bash; glovebox attach work\n"
		   "  glovebox exec --in web -- npm test\n"
		   "  glovebox logs -f web; glovebox stop web",
	.options = start_options,
	.words_most = VERB_WORDS_ANY,
	.words_end_options = true,
	.run = start_run,
};
