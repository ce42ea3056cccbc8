/* based: finds the base of a session, and prepares that of a devcontainer. */

#include "front/hands/based.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/setup.h"
#include "image/base.h"
#include "image/devcontainer.h"
#include "image/snapshot.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"

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
	LINE_BYTES = 4096,    /* of a line of output; a longer one is cut in two */
	READ_ROOM = 16 << 10, /* of one read */
	PATH_ROOM = PATH_MAX,
};
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

static struct base_places places_of(const struct setup *setup)
{
	return (struct base_places){.images = setup->images,
				    .snapshots = setup->snapshots,
				    .workspace = setup->workspace,
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
	if (fine && word.folder[0] != '\0') {
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

/* The commands of a devcontainer. */

/* Prints what a command writes, line by line. */
struct printing {
	struct watch watch;
	struct buf line; /* that has not ended yet */
	struct buf last; /* the one before that was not empty */
};

static void print_line(struct printing *printing)
{
	const struct str line = str_trim(buf_str(&printing->line));
	struct buf shown;

	if (line.size > 0) {
		buf_init(&shown, 4 * LINE_BYTES);
		text_add_name(&shown, line);
		(void)fprintf(stderr, "  %s\n", shown.data);
		buf_clear(&printing->last);
		(void)buf_addstr(&printing->last,
				 str_part(buf_str(&shown), 0, ERR_TEXT_MAX / 4));
		buf_fini(&shown);
	}
	buf_clear(&printing->line);
}

static void take_output(struct watch *watch, short events)
{
	struct printing *printing = watch->context;
	char bytes[READ_ROOM];
	ssize_t got;

	(void)events;
	while ((got = read(watch->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (bytes[i] == '\n' || printing->line.size == LINE_BYTES)
				print_line(printing);
			if (bytes[i] != '\n')
				(void)buf_addc(&printing->line, bytes[i]);
		}
	}
	if (got == 0)
		loop_remove(watch);
}

/* Call TOOL with ARGUMENTS in SESSION until it ends, with the COUNT descriptors FDS. */
static struct running *call_tool(struct session *session, const char *tool,
				 const struct value *arguments, const int *fds, size_t count)
{
	struct request request = {.tool = tool,
				  .arguments = arguments,
				  .by_front = true,
				  .timeout_s = COMMAND_S,
				  .fd_count = count};
	struct running *running;

	memcpy(request.fds, fds, count * sizeof(fds[0]));
	running = session_start(session, &request, NULL, NULL);
	while (!running_is_done(running))
		loop_turn(session_loop(session), CLOCK_NEVER);
	return running;
}

static bool judge_command(const char *member, const struct tool_result *result,
			  const struct printing *printing, struct err *err)
{
	const struct str text = str_trim(buf_str(&result->text));

	if (result->status == RESULT_DONE && result->exit_code == 0 && result->signal == 0)
		return true;
	if (result->status == RESULT_TIMED_OUT)
		return err_set(err, ETIMEDOUT, "%s did not end within %d seconds", member,
			       COMMAND_S);
	if (result->status != RESULT_DONE)
		return err_set(err, EIO, "%s: %.*s", member,
			       (int)str_part(text, 0, ERR_TEXT_MAX / 4).size, text.data);
	return err_set(err, EIO, "%s ended with %s %d%s%s", member,
		       result->signal != 0 ? "signal" : "code",
		       result->signal != 0 ? result->signal : result->exit_code,
		       printing->last.size > 0 ? ": " : "", printing->last.data);
}

/* Run COMMAND, with no input. */
static bool run_command(struct session *session,
			const struct devcontainer_command *command, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	struct printing printing = {.watch = {.ready = take_output, .events = POLLIN}};
	struct running *running;
	bool fine;

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
	buf_init(&printing.line, LINE_BYTES + 1);
	buf_init(&printing.last, ERR_TEXT_MAX);
	printing.watch.fd = out[0];
	printing.watch.context = &printing;
	loop_add(session_loop(session), &printing.watch);
	const int fds[] = {in[0], out[1], out[1]};
	running = call_tool(session, "exec", arguments, fds, sizeof(fds) / sizeof(fds[0]));
	take_output(&printing.watch, POLLIN);
	loop_remove(&printing.watch);
	print_line(&printing);
	fine = judge_command(command->member, running_result(running), &printing, err);
	running_free(running);
	fd_close(&in[0]);
	fd_close(&out[0]);
	fd_close(&out[1]);
	buf_fini(&printing.line);
	buf_fini(&printing.last);
	return fine;
}

/* Pack the root of the cell of SESSION into TAR. */
static bool pack(struct session *session, int tar, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	const struct tool_result *result;
	struct running *running;
	bool fine;

	value_set_text(arguments, "path", session_workspace(session));
	value_set_integer(arguments, "most", TAR_MAX);
	value_set_boolean(arguments, "exact", true);
	value_set_boolean(arguments, "layer", true);
	running = call_tool(session, "tree_get", arguments, &tar, 1);
	result = running_result(running);
	fine = result->status == RESULT_DONE;
	if (!fine)
		(void)err_set(err, EIO, "the root of the cell: %.*s",
			      (int)str_part(buf_str(&result->text), 0, ERR_TEXT_MAX / 2).size,
			      result->text.data);
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

/* Does another snapshot of LIST lie over the one of NAME? */
static bool is_below(const struct snapshot_list *list, const char *name)
{
	const size_t prefix = strlen(SNAPSHOT_WORD);

	for (size_t i = 0; i < list->count; i++) {
		const char *base = list->items[i].snapshot.base;

		if (base != NULL && strncmp(base, SNAPSHOT_WORD, prefix) == 0 &&
		    strcmp(base + prefix, name) == 0)
			return true;
	}
	return false;
}

/*
 * Remove what the commands of the file of PREPARED, a snapshot in FOLDER, have made before. The newest
 * of them stays, because work goes to and fro between two branches, and so do those that a cell or
 * another snapshot is on. What cannot be removed is left to the next time.
 */
static void drop_older(const char *folder, const char *prepared)
{
	const size_t place = (size_t)(strrchr(prepared, '-') - prepared) + 1;
	const struct snapshot_item *newest = NULL;
	struct snapshot_list list;
	struct err err;

	(void)snapshot_list_read(folder, &list, &err);
	for (int removes = 0; removes <= 1; removes++) {
		for (size_t i = 0; i < list.count; i++) {
			const struct snapshot_item *item = &list.items[i];
			const char *name = item->snapshot.name;

			if (strncmp(name, prepared, place) != 0 ||
			    strcmp(name, prepared) == 0)
				continue;
			if (!removes &&
			    (newest == NULL ||
			     item->snapshot.created_ms > newest->snapshot.created_ms))
				newest = item;
			if (removes && item != newest && !is_below(&list, name))
				(void)snapshot_remove(folder, name, &err);
		}
	}
	snapshot_list_fini(&list);
}

/* Freeze the root of the cell of *TAKE_SESSION, which is closed, as BASED names it. */
static bool freeze(const struct based *based, struct session **take_session,
		   const struct base_places *places, struct err *err)
{
	struct snapshot snapshot;
	auto_close int tar = -1;
	bool fine = snapshot_begin(places->snapshots, based->base.prepared, &snapshot, err);

	if (fine) {
		tar = open_tar(&snapshot, err);
		fine = tar >= 0 && pack(*take_session, tar, err);
	}
	session_close(*take_session);
	*take_session = NULL;
	if (fine) {
		snapshot.from = memory_copy(places->workspace);
		/* There are no files of a workspace in it. */
		hash_text(STR(""), snapshot.digest);
		fine = snapshot_add_layer(&snapshot, tar, based->base.below,
					  based->base.mark, err) &&
		       snapshot_finish(&snapshot, err);
	}
	snapshot_close(&snapshot);
	if (fine)
		drop_older(places->snapshots, based->base.prepared);
	/* Another process has done the same meanwhile. */
	return fine || err->code == EEXIST;
}

/*
 * Run the commands of BASED, which is BASE_IS_RAW, in a cell of OPTIONS, whose policy it takes, and
 * freeze the root of that cell for the next one that opens the base in PLACES.
 */
static bool prepare(const struct based *based, struct session_options *options,
		    const struct base_places *places, struct err *err)
{
	const struct devcontainer *read = based->base.devcontainer;
	struct session *session = NULL;
	bool fine = session_open(options, &session, err);

	for (size_t i = 0; fine && i < read->command_count; i++)
		fine = run_command(session, &read->commands[i], err);
	if (fine)
		fine = freeze(based, &session, places, err);
	session_close(session);
	for (size_t i = 0; fine && i < read->port_count; i++)
		(void)fprintf(stderr,
			      "glovebox: forwardPorts names port %" PRIu16
			      "; --publish %" PRIu16 " lets this machine reach it\n",
			      read->ports[i], read->ports[i]);
	return fine || err_while(err, "base %s", based->base.word);
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
	policy_judge_path(policy, setup->workspace, true, false, &verdict);
	value_free(verdict.plan);
	return (setup->prepares && setup->review == NULL && setup->below.count == 0 &&
		!setup->fresh_workspace && !policy->scratch &&
		policy->mode != MODE_PLAN && verdict.answer == VERDICT_ALLOW) ||
	       err_set(err, EAGAIN,
		       "base %s: its commands have not been run for this content of the file and of "
		       "the files of locks, and here they cannot write into the workspace; run them "
		       "first: glovebox exec -C %s --base %s -- true",
		       setup->based->base.word, setup->workspace, setup->based->base.word);
}

bool based_settle(struct setup *setup, const struct session_options *given, struct err *err)
{
	const struct base_places places = places_of(setup);
	const char *files[SETUP_PROTECTED_MAX];
	struct session_options options = {
		.minimum_level = given->minimum_level,
		.caller_environment = given->caller_environment,
		.ready_workers = 1,
		.cancel_fd = -1,
	};

	if (!based_find(setup, err))
		return false;
	if (setup->based == NULL || setup->based->base.state != BASE_IS_RAW)
		return true;
	if (!session_check_tools(setup->policy, setup->tools, err) ||
	    !may_prepare(setup, setup->policy, err))
		return false;
	setup_fill_options(setup, files, &options);
	options.undo_folder = NULL;
	options.publishes = options.asks = false;
	options.ssh = NULL;
	options.base = &setup->based->shape;
	options.take_policy = policy_intersect(setup->policy, setup->policy);
	if (!prepare(setup->based, &options, &places, err))
		return false;
	based_close(setup->based);
	setup->based = NULL;
	if (!based_find(setup, err))
		return false;
	return (setup->based != NULL && setup->based->base.state == BASE_IS_READY) ||
	       err_set(err, EAGAIN,
		       "base %s: its commands have changed the file, or a file of locks; run it "
		       "once more",
		       setup->policy->cell_base);
}
