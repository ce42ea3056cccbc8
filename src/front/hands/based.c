/* based: finds the base of a session, and prepares that of a devcontainer. */

#include "front/hands/based.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/audit/recording.h"
#include "front/interrupt.h"
#include "front/output/policy_words.h"
#include "front/setup.h"
#include "front/verbs/exec.h"
#include "image/base.h"
#include "image/devcontainer/devcontainer.h"
#include "image/devcontainer/prepared.h"
#include "image/snapshot.h"
#include "policy/ceiling.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COMMAND_S = 3600,
	WAIT_S = 3 * COMMAND_S, /* for another process that runs the same commands */
	LOOK_MS = 100,          /* between two looks whether it still does */
	LINE_BYTES = 4096,      /* of a line of output; a longer one is cut in two */
	READ_ROOM = 16 << 10,   /* of one read */
	READS_LAST = 64, /* after the end of a command, whose children may go on printing */
	PRINTED_MAX = 1 << 20, /* bytes of output of one command that are printed */
	ENDS_MAX = 8,
	REASON_MAX = 300, /* bytes of a sentence of the cell that are quoted from its beginning */
	PATH_ROOM = PATH_MAX,
};
/* The time of a call that has come too late, which ends at once. */
#define LEAST_S 0.001
/* Bytes of the tar of a root, as of a snapshot of `glovebox serve`. */
#define TAR_MAX (INT64_C(4) << 30)

/*
 * Find the base WORD in PLACES; *BASED becomes NULL for the word of this machine, or when WORD is
 * NULL.
 */
static bool open_word(const char *word, const struct base_places *places,
		      struct based **based, struct err *err)
{
	struct based *made;
	bool fine;

	*based = NULL;
	if (word == NULL)
		return true;
	made = memory_alloc(sizeof(*made));
	fine = base_open(word, places, &made->base, err);
	if (!fine || made->base.kind == BASE_HOST) {
		based_close(made);
		return fine;
	}
	made->shape = (struct shape_base){
		.word = made->base.word,
		.folders = made->base.folders,
		.folder_count = made->base.folder_count,
		.workdir = made->base.workdir,
		.environment = made->base.environment,
		.digest = made->base.digest,
		.user = made->base.user,
		.lasting = made->base.lasting,
		.mark = made->base.mark,
		.named = made->base.named,
	};
	*based = made;
	return true;
}

void based_close(struct based *based)
{
	if (based == NULL)
		return;
	base_close(&based->base);
	free(based);
}

/* The entries of PATHS become the real paths that a cell would have for them. */
static void make_real(struct policy_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct policy_path *entry = &paths->items[i];
		auto_free char *real =
			entry->path != NULL ? realpath(entry->path, NULL) : NULL;

		if (real != NULL)
			policy_set_path(entry, real);
	}
}

/*
 * May the cell of SETUP (CONTEXT) read the file PATH of its workspace? The file of a devcontainer decides
 * what its programs find, so a file that is hidden from them is none. A base that comes from a caller or
 * a service was judged by the rights of these.
 */
static bool may_read(void *context, const char *path, struct err *err)
{
	const struct setup *setup = context;
	const char *key = ceiling_of_path(session_ceiling(), path, false);
	auto_policy struct policy *policy = NULL;
	struct verdict verdict;

	if (key != NULL)
		return ceiling_refuse(path, key, err);
	if (setup->base_is_lent)
		return true;
	policy = policy_copy(setup->policy);
	make_real(&policy->read);
	make_real(&policy->write);
	make_real(&policy->blocked);
	policy_judge_path(policy, path, false, false, &verdict);
	value_free(verdict.plan);
	return verdict.answer == VERDICT_ALLOW ||
	       err_set(err, EPERM, "agent \"%.64s\" may not read %.400s: %.500s",
		       policy->name, path, verdict.because);
}

static struct base_places places_of(struct setup *setup)
{
	return (struct base_places){.images = setup->images,
				    .snapshots = setup->snapshots,
				    .workspace = setup->workspace,
				    .reads = may_read,
				    .context = setup,
				    .at = setup->at};
}

bool based_find(struct setup *setup, struct err *err)
{
	const struct base_places places = places_of(setup);
	const struct devcontainer *read;

	if (setup->based != NULL)
		return true;
	if (!open_word(setup->policy->cell_base, &places, &setup->based, err))
		return false;
	read = setup->based != NULL ? setup->based->base.devcontainer : NULL;
	if (read != NULL && read->workspace_folder != NULL && setup->at == NULL &&
	    strcmp(read->workspace_folder, setup->workspace) != 0)
		setup_set_at(setup, read->workspace_folder);
	return true;
}

/* The base of a delegate. */

bool based_keep(const struct policy *bound, const char *own, struct policy *both,
		struct err *err)
{
	struct verdict verdict = {.answer = VERDICT_ALLOW};
	struct base_word word;
	struct arena arena;
	struct buf path;
	bool fine;

	if (both->cell_base != NULL || own == NULL)
		return true;
	arena_init(&arena);
	buf_init(&path, PATH_MAX);
	fine = base_parse_word(own, &arena, &word, err);
	/* The file of a devcontainer is judged by BOTH where it is read. */
	if (fine && word.kind != BASE_DEVCONTAINER && word.folder[0] != '\0') {
		auto_free char *real = realpath(word.folder, NULL);

		fine = (real != NULL && buf_adds(&path, real)) ||
		       err_set(err, errno, "cell_base %s: %s", own, strerror(errno));
		if (fine)
			policy_judge_path(bound, path.data, false, false, &verdict);
		value_free(verdict.plan);
	}
	if (fine && verdict.answer != VERDICT_ALLOW)
		fine = err_set(err, EPERM,
			       "cell_base %s: the agent that delegates may not read this folder; add "
			       "it to its `read`, or give it the same cell_base",
			       own);
	if (fine)
		both->cell_base = memory_copy(own);
	buf_fini(&path);
	arena_fini(&arena);
	return fine;
}

/* Ends the commands of a devcontainer before their own end. */

struct ending {
	/* a signal, or somebody for whom they run and who has gone */
	struct watch watches[ENDS_MAX];
	size_t count;
	bool came;               /* one of these has */
	struct running *running; /* what is cancelled then; or NULL */
	int64_t until_ms;        /* of all commands together; CLOCK_NEVER */
	double seconds;          /* that these are */
};

static void end_came(struct watch *watch, short events)
{
	struct ending *ending = watch->context;

	(void)events;
	ending->came = true;
	if (ending->running != NULL && !running_is_done(ending->running))
		running_cancel(ending->running);
	loop_remove(watch);
}

static void add_end(struct ending *ending, int fd, short events)
{
	if (fd >= 0 && ending->count < ENDS_MAX)
		ending->watches[ending->count++] = (struct watch){.fd = fd,
								  .events = events,
								  .ready = end_came,
								  .context = ending};
}

/* ENDING for the commands that run before the session of SETUP with the options GIVEN. */
static void ending_begin(struct ending *ending, const struct setup *setup,
			 const struct session_options *given)
{
	const double run_s = setup->by_hand ? 0 : setup->policy->limits.run_s;

	*ending = (struct ending){.seconds = setup->prepare_s, .until_ms = CLOCK_NEVER};
	if (run_s > 0 && (ending->seconds <= 0 || run_s < ending->seconds))
		ending->seconds = run_s;
	if (ending->seconds > 0)
		ending->until_ms = clock_deadline(ending->seconds);
	add_end(ending, given->cancel_fd, POLLIN);
	if (setup->interrupt != NULL)
		add_end(ending, interrupt_fd(setup->interrupt), POLLIN);
	for (size_t i = 0; i < setup->end_count; i++)
		add_end(ending, setup->ends[i].fd, setup->ends[i].events);
}

static bool say_ended(struct err *err)
{
	return err_set(err, ECANCELED,
		       "this program was told to end, and nothing was frozen; the commands run "
		       "from the beginning with the next cell");
}

/*
 * Wait for MS until FD (-1: nothing) can be read. False: ENDING has come first, or its time
 * is over.
 */
static bool ending_wait(struct ending *ending, int fd, int ms, struct err *err)
{
	struct pollfd slots[ENDS_MAX + 1];
	int64_t until_ms = ms < 0 ? CLOCK_NEVER : clock_now_ms() + ms;

	if (until_ms > ending->until_ms)
		until_ms = ending->until_ms;
	for (size_t i = 0; i < ending->count; i++)
		slots[i] = (struct pollfd){.fd = ending->watches[i].fd,
					   .events = ending->watches[i].events};
	slots[ending->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	(void)poll(slots, ending->count + 1, clock_poll_timeout(until_ms));
	for (size_t i = 0; i < ending->count; i++)
		ending->came = ending->came || slots[i].revents != 0;
	if (ending->came)
		return say_ended(err);
	return clock_now_ms() < ending->until_ms ||
	       err_set(err, ETIMEDOUT, "its commands had %g seconds, which are over",
		       ending->seconds);
}

/* The commands of a devcontainer. */

/* Prints what a command writes, line by line. */
struct printing {
	struct watch watch;
	struct buf line; /* that has not ended yet */
	struct buf last; /* the one before that was not empty */
	uint64_t taken;  /* bytes of output; those behind PRINTED_MAX are only counted */
};

static void print_line(struct printing *printing)
{
	const struct str line = str_trim(buf_str(&printing->line));
	struct buf shown;

	if (line.size > 0) {
		buf_init(&shown, 4 * LINE_BYTES);
		text_add_name(&shown, line);
		if (printing->taken <= PRINTED_MAX)
			(void)fprintf(stderr, "  %s\n", shown.data);
		buf_clear(&printing->last);
		(void)buf_addstr(&printing->last,
				 str_part(buf_str(&shown), 0, ERR_TEXT_MAX / 4));
		buf_fini(&shown);
	}
	buf_clear(&printing->line);
}

/* Take one read of the output; false when there is none now. */
static bool take_some(struct printing *printing)
{
	char bytes[READ_ROOM];
	const ssize_t got = read(printing->watch.fd, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < got; i++) {
		if (bytes[i] == '\n' || printing->line.size == LINE_BYTES)
			print_line(printing);
		if (bytes[i] != '\n')
			(void)buf_addc(&printing->line, bytes[i]);
	}
	if (got > 0)
		printing->taken += (uint64_t)got;
	if (got == 0)
		loop_remove(&printing->watch);
	return got > 0;
}

/* One read each time, so that output without an end holds up neither a time limit nor a signal. */
static void take_output(struct watch *watch, short events)
{
	(void)events;
	(void)take_some(watch->context);
}

/* The command has ended: print what its pipe still holds, and say how much was not shown. */
static void take_rest(struct printing *printing)
{
	for (int i = 0; i < READS_LAST && take_some(printing); i++)
		;
	loop_remove(&printing->watch);
	print_line(printing);
	if (printing->taken > PRINTED_MAX)
		(void)fprintf(stderr,
			      "glovebox: it has printed %" PRIu64
			      " bytes; what came behind the first %d is not shown\n",
			      printing->taken, PRINTED_MAX);
}

/*
 * Call TOOL, or MADE in its place (or NULL), with ARGUMENTS in SESSION until it ends or ENDING
 * comes, with the COUNT descriptors FDS.
 */
static struct running *call_tool(struct session *session, struct ending *ending,
				 const char *tool, const struct tool *made,
				 const struct value *arguments, const int *fds, size_t count)
{
	struct request request = {.tool = tool,
				  .arguments = arguments,
				  .by_front = true,
				  .timeout_s = COMMAND_S,
				  .fd_count = count,
				  .made = made};
	struct loop *loop = session_loop(session);

	if (ending->until_ms != CLOCK_NEVER)
		request.most_s = (double)(ending->until_ms - clock_now_ms()) / 1000;
	if (ending->until_ms != CLOCK_NEVER && request.most_s < LEAST_S)
		request.most_s = LEAST_S;
	memcpy(request.fds, fds, count * sizeof(fds[0]));
	ending->running = session_start(session, &request, NULL, NULL);
	for (size_t i = 0; i < ending->count; i++)
		loop_add(loop, &ending->watches[i]);
	while (!running_is_done(ending->running))
		loop_turn(loop, CLOCK_NEVER);
	for (size_t i = 0; i < ending->count; i++)
		loop_remove(&ending->watches[i]);
	return ending->running;
}

/*
 * Set ERR to what RESULT of the cell says about WHAT. It may begin with a long path, so the
 * middle is left out.
 */
static bool say_result(const char *what, const struct tool_result *result, struct err *err)
{
	const struct str text = str_trim(buf_str(&result->text));
	const struct str head = str_part(text, 0, text_character_border(text, REASON_MAX));
	size_t rest =
		text.size - head.size > REASON_MAX ? text.size - REASON_MAX : head.size;

	while (rest < text.size && ((unsigned char)text.data[rest] & 0xC0) == 0x80)
		rest++;
	return err_set(err, EIO, "%s: %.*s%s%.*s", what, (int)head.size, head.data,
		       rest > head.size ? " ... " : "", (int)(text.size - rest),
		       text.data + rest);
}

static bool judge_command(const char *member, const struct ending *ending,
			  const struct tool_result *result,
			  const struct printing *printing, struct err *err)
{
	if (ending->came)
		return say_ended(err);
	if (result->status == RESULT_DONE && result->exit_code == 0 && result->signal == 0)
		return true;
	if (result->status == RESULT_TIMED_OUT && clock_now_ms() >= ending->until_ms)
		return err_set(err, ETIMEDOUT, "%s did not end within %g seconds", member,
			       ending->seconds);
	if (result->status == RESULT_TIMED_OUT)
		return err_set(err, ETIMEDOUT,
			       "%s did not end in its time, %d seconds at most", member,
			       COMMAND_S);
	if (result->status != RESULT_DONE)
		return say_result(member, result, err);
	return err_set(err, EIO, "%s ended with %s %d%s%s", member,
		       result->signal != 0 ? "signal" : "code",
		       result->signal != 0 ? result->signal : result->exit_code,
		       printing->last.size > 0 ? ": " : "", printing->last.data);
}

/* Run COMMAND, with no input. */
static bool run_command(struct session *session, struct ending *ending,
			const struct devcontainer_command *command,
			const struct policy_words *words, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	struct printing printing = {.watch = {.ready = take_output, .events = POLLIN}};
	struct tool tool = exec_tool;
	struct running *running;
	struct buf title;
	bool fine;

	/* Where the session that follows has steps that can be undone, this is one of them. */
	tool.is_step = true;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    fcntl(out[0], F_SETFL, O_NONBLOCK) < 0) {
		(void)err_set(err, errno, "a pipe: %s", strerror(errno));
		fd_close(&in[0]);
		fd_close(&in[1]);
		return false;
	}
	fd_close(&in[1]);
	(void)fprintf(stderr, "glovebox: %s runs in the cell\n", command->member);
	value_set(arguments, "argv", value_new_texts(command->argv));
	buf_init(&title, LINE_BYTES);
	(void)buf_addf(&title, "devcontainer: %s", command->member);
	value_set_str(arguments, "title", buf_str(&title));
	buf_fini(&title);
	buf_init(&printing.line, LINE_BYTES + 1);
	buf_init(&printing.last, ERR_TEXT_MAX);
	printing.watch.fd = out[0];
	printing.watch.context = &printing;
	loop_add(session_loop(session), &printing.watch);
	const int fds[] = {in[0], out[1], out[1]};
	running = call_tool(session, ending, "exec", &tool, arguments, fds,
			    sizeof(fds) / sizeof(fds[0]));
	take_rest(&printing);
	exec_print_told(session, running_result(running), words);
	fine = judge_command(command->member, ending, running_result(running), &printing,
			     err);
	ending->running = NULL;
	running_free(running);
	fd_close(&in[0]);
	fd_close(&out[0]);
	fd_close(&out[1]);
	buf_fini(&printing.line);
	buf_fini(&printing.last);
	return fine;
}

/*
 * Pack the root of the cell of SESSION into TAR, which lies in FOLDER; *SKIPPED becomes the count of
 * what is not in it.
 */
static bool pack(struct session *session, struct ending *ending, int tar,
		 const char *folder, int64_t *skipped, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	const struct tool_result *result;
	struct running *running;
	int code;
	bool fine;

	value_set_text(arguments, "path", session_workspace(session));
	value_set_integer(arguments, "most", TAR_MAX);
	value_set_boolean(arguments, "exact", true);
	value_set_boolean(arguments, "layer", true);
	running = call_tool(session, ending, "tree_get", NULL, arguments, &tar, 1);
	result = running_result(running);
	fine = result->status == RESULT_DONE;
	*skipped = value_integer(value_member(result->details, "skipped"));
	code = (int)value_integer(value_member(result->details, "code"));
	if (ending->came)
		fine = say_ended(err);
	else if (!fine && (code == ENOSPC || code == EDQUOT))
		(void)err_set(err, code,
			      "%s: %s; make room on that disk, as by glovebox base prune, and run "
			      "it again",
			      folder, strerror(code));
	else if (!fine)
		(void)say_result("what the commands have changed of the root cannot be frozen; "
				 "let the last of them remove it",
				 result, err);
	ending->running = NULL;
	running_free(running);
	return fine;
}

/* A file without a name in the folder of SNAPSHOT; -1. */
static int open_tar(const struct snapshot *snapshot, struct err *err)
{
	struct buf path;
	int fd;

	buf_init(&path, PATH_ROOM);
	(void)buf_addf(&path, "%s/tar", snapshot->path);
	fd = open(path.data, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  S_IRUSR | S_IWUSR);
	if (fd < 0)
		(void)err_set(err, errno, "%s: %s", path.data, strerror(errno));
	else
		(void)unlink(path.data);
	buf_fini(&path);
	return fd;
}

/* Freeze the root of the cell of *TAKE_SESSION, which is closed, as BASED names it. */
static bool freeze(const struct based *based, struct session **take_session,
		   struct ending *ending, const struct base_places *places, struct err *err)
{
	struct snapshot snapshot;
	int64_t skipped = 0;
	auto_close int tar = -1;
	bool fine = snapshot_begin(places->snapshots, based->base.prepared, &snapshot, err);

	if (fine) {
		tar = open_tar(&snapshot, err);
		fine = tar >= 0 &&
		       pack(*take_session, ending, tar, places->snapshots, &skipped, err);
	}
	session_close(*take_session);
	*take_session = NULL;
	if (fine) {
		snapshot.from = memory_copy(places->workspace);
		/* There are no files of a workspace in it. */
		hash_text(STR(""), snapshot.digest);
		fine = snapshot_add_layer(&snapshot, tar, based->base.below,
					  based->base.mark, err) &&
		       ending_wait(ending, snapshot_unpacks(&snapshot), -1, err) &&
		       snapshot_finish(&snapshot, err);
	}
	snapshot_close(&snapshot);
	if (fine && skipped > 0)
		(void)fprintf(stderr,
			      "glovebox: %" PRId64
			      " files of the root are not in the snapshot, so the cells do not "
			      "have them: pipes, sockets, and what its owner may not read "
			      "(docs/bases.md)\n",
			      skipped);
	if (fine)
		prepared_drop_older(places->snapshots, based->base.prepared);
	/* Another process has done the same meanwhile. */
	return fine || err->code == EEXIST;
}

/*
 * Run the commands of BASED, which is BASE_IS_RAW, in a cell of OPTIONS, whose policy it takes, and
 * freeze the root of that cell for the next one that opens the base in PLACES.
 */
static bool prepare(const struct based *based, struct session_options *options,
		    struct ending *ending, const struct policy_words *words,
		    const struct base_places *places, struct err *err)
{
	const struct devcontainer *read = based->base.devcontainer;
	struct session *session = NULL;
	bool fine = session_open(options, &session, err);

	for (size_t i = 0; fine && i < read->command_count; i++)
		fine = run_command(session, ending, &read->commands[i], words, err);
	if (fine)
		fine = freeze(based, &session, ending, places, err);
	session_close(session);
	for (size_t i = 0; fine && i < read->port_count; i++)
		(void)fprintf(stderr,
			      "glovebox: forwardPorts names port %" PRIu16
			      "; --publish %" PRIu16 " lets this machine reach it\n",
			      read->ports[i], read->ports[i]);
	return fine || err_while(err, "base %s", based->base.word);
}

/* Has POLICY a tool of TOOLS with which its agent can run commands? */
static bool runs_commands(const struct policy *policy, const struct tool *const *tools)
{
	for (; *tools != NULL; tools++) {
		if (((*tools)->effects & EFFECT_RUNS) != 0 && !(*tools)->internal &&
		    policy_has_tool(policy, (*tools)->name))
			return true;
	}
	return false;
}

/*
 * The commands of SETUP's devcontainer have not been run, and cannot run here, BECAUSE: ERR names
 * the line that runs them.
 */
static bool refuse_raw(const struct setup *setup, const char *because, struct err *err)
{
	const char *word = setup->based->base.word;
	struct buf line;

	buf_init(&line, ERR_TEXT_MAX);
	(void)buf_adds(&line, "glovebox exec -C ");
	shell_token_add_word(setup->workspace, &line);
	(void)buf_adds(&line, " --base ");
	shell_token_add_word(word, &line);
	/* The agent of that line may have the same layer by its entry. */
	(void)buf_addf(&line, "%s -- true",
		       setup->review != NULL ? " --" NO_REVIEW_OPTION : "");
	(void)err_set(err, EAGAIN,
		      "base %s: its commands have not been run for this content of the file and of "
		      "the files of locks, and %s; run them first: %s",
		      word, because, line.data);
	buf_fini(&line);
	return false;
}

/* May the commands of a devcontainer run before the session of SETUP, and what they write stay? */
static bool may_prepare(const struct setup *setup, const struct policy *policy,
			struct err *err)
{
	struct verdict verdict = {0};

	if (setup->snapshots == NULL)
		return err_set(err, ENOENT,
			       "base %s: there is no place for snapshots; set HOME or "
			       "XDG_DATA_HOME",
			       setup->based->base.word);
	if (!setup->by_hand && policy->mode == MODE_ASK)
		return refuse_raw(setup,
				  "this agent works in the mode ask, in which nothing runs unasked",
				  err);
	if (!setup->by_hand && !runs_commands(policy, setup_tools(setup)))
		return refuse_raw(setup, "this agent has no tool that runs commands", err);
	if (setup->review != NULL || setup->below.count > 0)
		return refuse_raw(setup,
				  "here a layer would take what they write into the workspace",
				  err);
	policy_judge_path(policy, setup->workspace, true, false, &verdict);
	value_free(verdict.plan);
	return (setup->prepares && !setup->fresh_workspace && !policy->scratch &&
		policy->mode != MODE_PLAN && verdict.answer == VERDICT_ALLOW) ||
	       refuse_raw(setup, "here they cannot write into the workspace", err);
}

/* PATHS are those in WORKSPACE only. An entry above the workspace becomes the workspace. */
static void keep_within(struct policy_paths *paths, const char *workspace)
{
	size_t kept = 0;

	for (size_t i = 0; i < paths->count; i++) {
		struct policy_path *entry = &paths->items[i];
		auto_free char *real = realpath(entry->path, NULL);
		const char *path = real != NULL ? real : entry->path;

		if (path_within(workspace, path) && entry->pattern == NULL) {
			policy_set_path(entry, workspace);
			entry->trunk = 0;
		} else if (!path_within(path, workspace)) {
			free(entry->text);
			free(entry->path);
			free(entry->pattern);
			continue;
		}
		paths->items[kept++] = *entry;
	}
	paths->count = kept;
	paths->given = true;
}

/*
 * The rights with which the commands of SETUP's devcontainer run. What they make of the root stays
 * for all later cells, which may have fewer rights: so no secret of this session's may get into
 * it, no variable, no key and no file but those of the workspace.
 */
static struct policy *rights_of_commands(const struct setup *setup)
{
	struct policy *policy = policy_copy(setup->policy);

	policy_names_fini(&policy->environment);
	policy_names_fini(&policy->credentials);
	policy->environment.given = policy->credentials.given = true;
	keep_within(&policy->read, setup->workspace);
	keep_within(&policy->write, setup->workspace);
	return policy;
}

/*
 * Hold the lock on the snapshot PREPARED in FOLDER. Waits for another process that has it, until
 * ENDING comes.
 */
static bool lock_prepared(const char *folder, const char *prepared, struct ending *ending,
			  struct prepared_lock *lock, struct err *err)
{
	const int64_t until_ms = clock_deadline(WAIT_S);
	bool told = false;

	while (clock_now_ms() < until_ms) {
		if (prepared_lock(folder, prepared, lock, err))
			return true;
		if (err->code != EWOULDBLOCK)
			return false;
		if (!told)
			(void)fprintf(stderr,
				      "glovebox: another glovebox runs the commands of this "
				      "devcontainer; waiting for it\n");
		told = true;
		if (!ending_wait(ending, -1, LOOK_MS, err))
			return false;
	}
	return err_set(err, ETIMEDOUT,
		       "another glovebox has run the commands of this devcontainer for %d "
		       "seconds; end it, and try again",
		       WAIT_S);
}

/* Look again for the base of SETUP. */
static bool find_again(struct setup *setup, struct err *err)
{
	based_close(setup->based);
	setup->based = NULL;
	return based_find(setup, err);
}

static bool is_raw(const struct setup *setup)
{
	return setup->based != NULL && setup->based->base.state == BASE_IS_RAW;
}

/* Tell the audit that a session prepares BASE, and from which file. */
static struct value *purpose_of(const struct base *base)
{
	struct value *purpose = value_new_object();

	value_set_text(purpose, "prepares", base->word);
	value_set_text(purpose, "file", base->file);
	value_set_text(purpose, "file_sha256", base->file_digest);
	value_set_text(purpose, "snapshot", base->prepared);
	return purpose;
}

/* Run the commands of SETUP's devcontainer; the lock on what they make is held. */
static bool settle_locked(struct setup *setup, const struct session_options *given,
			  struct ending *ending, struct err *err)
{
	const struct policy_words words = {setup->policy_file, setup->said, setup->wrapped};
	const struct base_places places = places_of(setup);
	const char *files[SETUP_PROTECTED_MAX];
	auto_value struct value *purpose = NULL;
	struct session_options options = {
		.minimum_level = given->minimum_level,
		.caller_environment = given->caller_environment,
		.ready_workers = 1,
		.cancel_fd = -1,
	};

	setup_fill_options(setup, files, &options);
	options.publishes = options.asks = false;
	options.ssh = NULL;
	options.shown = NULL;
	options.home = NULL;
	options.undoes = NULL;
	options.credentials = NULL;
	options.credential_count = 0;
	options.base = &setup->based->shape;
	purpose = purpose_of(&setup->based->base);
	if (!recording_join(setup, purpose, &options.sink, err))
		return false;
	options.take_policy = rights_of_commands(setup);
	return prepare(setup->based, &options, ending, &words, &places, err);
}

bool based_settle(struct setup *setup, const struct session_options *given, struct err *err)
{
	struct prepared_lock lock = {.fd = -1};
	struct ending ending;
	bool fine;

	if (!based_find(setup, err))
		return false;
	if (!is_raw(setup))
		return true;
	if (!session_check_tools(setup->policy, setup->tools, err) ||
	    !may_prepare(setup, setup->policy, err))
		return false;
	ending_begin(&ending, setup, given);
	/* Another process may have run them meanwhile. */
	fine = lock_prepared(setup->snapshots, setup->based->base.prepared, &ending,
			     &lock, err)
		       ? find_again(setup, err)
		       : err_while(err, "base %s", setup->policy->cell_base);
	if (fine && is_raw(setup))
		fine = settle_locked(setup, given, &ending, err) && find_again(setup, err) &&
		       (!is_raw(setup) ||
			err_set(err, EAGAIN,
				"base %s: its commands have changed the file, or a file of "
				"locks; run it once more",
				setup->policy->cell_base));
	prepared_unlock(&lock);
	return fine;
}
