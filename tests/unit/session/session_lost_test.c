/*
 * Tests of a session with undo that comes to its end. Its cell breaks while it runs: a worker
 * that is made ahead cannot lock itself in. Or it is closed while a command still waits for a look
 * at the workspace. Whoever asks for something gets an answer; nobody waits for a look that
 * nobody makes any more.
 */
#include "../base/tree.h"
#include "../base/unit.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cell/pending.h"
#include "files/place.h"
#include "files/record.h"
#include "guard/guard.h"
#include "tool/call.h"
#include "view/spec.h"

enum {
	SOON_MS = 20000,   /* sanitizers, a busy machine; far from for ever */
	LONG_US = 1000000, /* so long that nobody looks ahead, when all is quiet */
	WORK_US = 100000,  /* a command that hears of no cancel */
	HANG_S = 60,
	WORKERS = 8, /* that are lost, one at a time */
};

/*
 * Workers go to the workspace last of all. With `no-more` in it those that are made cannot lock
 * themselves in. With `one-less` the next one ends there as if it were killed, with `all-end` all.
 */
int chdir(const char *path)
{
	char name[PATH_MAX];

	(void)snprintf(name, sizeof(name), "%s/one-less", path);
	if (unlink(name) == 0)
		_exit(9);
	(void)snprintf(name, sizeof(name), "%s/all-end", path);
	if (access(name, F_OK) == 0)
		_exit(9);

	(void)snprintf(name, sizeof(name), "%s/no-more", path);
	if (access(name, F_OK) == 0) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_chdir, path);
}

/* A temporary file of a killed worker. */
static const char left_behind[] = ".glovebox-0123456789abcdef.tmp";

/* With `mender-ends` in it, a worker that puts back what a dead front left ends meanwhile. */
int ftruncate(int fd, off_t size)
{
	if (access("mender-ends", F_OK) == 0)
		_exit(9);
	return (int)syscall(SYS_ftruncate, fd, size);
}

int unlinkat(int folder, const char *name, int flags)
{
	if (strcmp(name, left_behind) == 0 && access("mender-ends", F_OK) == 0)
		_exit(9);
	return (int)syscall(SYS_unlinkat, folder, name, flags);
}

static enum result_status look(struct call *call, struct tool_result *result)
{
	struct value *details = tool_details(result);

	(void)call;
	value_set_integer(details, "us", access("quick", F_OK) == 0 ? 0 : LONG_US);
	/* A repository deep in the workspace, another one each time: it is looked at again. */
	if (access("quick", F_OK) == 0) {
		struct value *nested = value_new_array();
		char path[PATH_MAX], whole[PATH_MAX + 16];

		(void)snprintf(whole, sizeof(whole), "%s/deep-%" PRIi64,
			       getcwd(path, sizeof(path)), clock_now_us());
		value_append(nested, value_new_text(whole));
		value_set(details, "nested", nested);
	}
	return tool_done(result);
}

/* A file that undo knows of, and by which the next worker dies as this one does. */
static enum result_status end_all(struct call *call, struct tool_result *result)
{
	struct place place;
	struct err err;

	place_init(&place);
	const bool fine = files_place(call->files, "no-more", false, &place, &err) &&
			  place_write(&place, STR(""), NULL, &err);
	place_fini(&place);
	if (fine)
		_exit(9);
	return tool_fail(result, "%s", err.text);
}

/* A worker that is killed in the middle of a write, and so is the one that mends it. */
static enum result_status end_writing(struct call *call, struct tool_result *result)
{
	struct undo_note temps = {.kind = UNDO_NOTE_TEMPS};
	char path[PATH_MAX], whole[PATH_MAX + 16];
	const int fd = open("mender-ends", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)snprintf(whole, sizeof(whole), "%s/a", getcwd(path, sizeof(path)));
	temps.path = str_of(whole);
	memcpy(temps.temp, left_behind, sizeof(left_behind));
	const int temp = open(left_behind, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && temp >= 0 && undo_log_note(call->files->log, &temps, NULL))
		_exit(9);
	return tool_fail(result, "no log");
}

static enum result_status work(struct call *call, struct tool_result *result)
{
	(void)call;
	if (access("quick", F_OK) == 0)
		(void)usleep(WORK_US);
	return tool_done(result);
}

static const struct row checkpoint_params[] = {
	{"log", ROW_COUNT, true, "Number of the log"},
	{"began_ms", ROW_COUNT, false, "When the command began", .aliases = NULL},
	{"ended_ms", ROW_COUNT, false, "When it ended", .aliases = NULL},
	{"looks", ROW_COUNT, false, "Looks that were taken", .aliases = NULL},
	{"wishes", ROW_COUNT, false, "What is wanted", .aliases = NULL},
	{0},
};
static const struct row no_params[] = {{0}};

static const struct tool checkpoint = {.name = "checkpoint",
				       .description = "Look.",
				       .example = "{\"log\": 1}",
				       .params = checkpoint_params,
				       .effects = EFFECT_READS,
				       .internal = true,
				       .timeout_s = 30,
				       .execute = look};
static const struct tool end = {.name = "end",
				.description = "End all.",
				.example = "{}",
				.params = no_params,
				.effects = EFFECT_WRITES,
				.timeout_s = 30,
				.execute = end_all};
static const struct tool half = {.name = "half",
				 .description = "End in a write.",
				 .example = "{}",
				 .params = no_params,
				 .effects = EFFECT_WRITES,
				 .timeout_s = 30,
				 .execute = end_writing};
static const struct tool command = {.name = "command",
				    .description = "Run.",
				    .example = "{}",
				    .params = no_params,
				    .effects = EFFECT_RUNS,
				    .timeout_s = 30,
				    .execute = work};
static const struct tool *const tools[] = {&checkpoint, &end, &half, &command, NULL};

struct lost {
	struct room room;
	char store[64];
	struct rlimit descriptors; /* as they were */
};

static int open_session(void **state)
{
	struct lost *lost = *state = memory_alloc(sizeof(*lost));

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &lost->descriptors), 0);
	(void)snprintf(lost->store, sizeof(lost->store), "/tmp/lost-test-XXXXXX");
	if (!room_make(&lost->room) || mkdtemp(lost->store) == NULL)
		return -1;
	const struct session_options options = {
		.take_policy = room_policy(lost->room.folder),
		.tools = tools,
		.undo_folder = lost->store,
		.ready_workers = 1,
	};
	return room_open(&lost->room, options) ? 0 : -1;
}

static int close_session(void **state)
{
	struct lost *lost = *state;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lost->descriptors), 0);
	room_close(&lost->room);
	tree_remove(lost->store);
	free(lost);
	return 0;
}

static void a_command_of_a_broken_cell_is_answered(void **state)
{
	const struct request request = {.tool = "command", .arguments_text = STR("{}")};
	struct lost *lost = *state;
	struct session *session = lost->room.session;
	struct tool_result result;

	room_call(&lost->room, "command", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
	room_call(&lost->room, "end", "{}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	tool_result_fini(&result);
	session_rest(session);

	const int64_t deadline = clock_now_ms() + SOON_MS;
	while (session_broken(session) == NULL && clock_now_ms() < deadline)
		loop_turn(session_loop(session), deadline);
	assert_non_null(session_broken(session));

	struct running *running = session_start(session, &request, NULL, NULL);
	while (!running_is_done(running) && clock_now_ms() < deadline)
		loop_turn(session_loop(session), deadline);
	assert_true(running_is_done(running));
	assert_int_equal(running_result(running)->status, RESULT_FAILED);
	running_free(running);
}

static void make_file(const struct lost *lost, const char *name, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%s/%s", lost->room.folder, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static void a_worker_that_ends_while_it_is_made_is_replaced(void **state)
{
	struct lost *lost = *state;
	struct session *session = lost->room.session;
	const int64_t deadline = clock_now_ms() + SOON_MS;
	struct tool_result result;
	char path[PATH_MAX];

	room_call(&lost->room, "command", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
	/* The worker was made ahead, or for a call: that one call is told to try again. */
	for (int i = 0; i < WORKERS; i++) {
		int told = 0;

		make_file(lost, "one-less", path);
		for (bool gone = false, fine = false; !gone || !fine;) {
			gone = access(path, F_OK) != 0;
			room_call(&lost->room, "command", "{}", &result);
			fine = result.status == RESULT_DONE;
			told += !fine &&
				strstr(result.text.data, "Nothing was done") != NULL;
			assert_true(fine || told == 1);
			tool_result_fini(&result);
		}
		assert_null(session_broken(session));
	}
	make_file(lost, "all-end", path);
	while (session_broken(session) == NULL && clock_now_ms() < deadline) {
		room_call(&lost->room, "command", "{}", &result);
		tool_result_fini(&result);
	}
	assert_non_null(session_broken(session));
	assert_int_equal(unlink(path), 0);
}

/* It was cancelled, and had an answer all the same. */
static void a_command_that_waits_for_a_look_does_not_hold_the_end(void **state)
{
	const struct request request = {.tool = "command", .arguments_text = STR("{}")};
	struct lost *lost = *state;
	struct session *session = lost->room.session;
	struct tool_result result;
	char path[PATH_MAX];

	make_file(lost, "quick", path);
	room_call(&lost->room, "command", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);

	struct running *running = session_start(session, &request, NULL, NULL);
	assert_false(running_is_done(running));
	running_cancel(running);
	lost->room.session = NULL;
	(void)alarm(HANG_S);
	session_close(session);
	(void)alarm(0);
}

/* The next descriptor would be the first too many; who is to get two for a worker gets none. */
static void leave_no_descriptor(const struct lost *lost)
{
	struct rlimit now = lost->descriptors;
	const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	now.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static void a_cell_whose_workers_do_not_come_says_why(void **state)
{
	struct lost *lost = *state;
	struct session *session = lost->room.session;
	const int64_t deadline = clock_now_ms() + SOON_MS;

	leave_no_descriptor(lost);
	while (session_broken(session) == NULL && clock_now_ms() < deadline) {
		const struct request request = {.tool = "command",
						.arguments_text = STR("{}")};
		struct running *running = session_start(session, &request, NULL, NULL);

		while (!running_is_done(running) && clock_now_ms() < deadline)
			loop_turn(session_loop(session), deadline);
		assert_true(running_is_done(running));
		running_free(running);
	}
	assert_non_null(session_broken(session));
	assert_non_null(strstr(session_broken(session), "too many files open"));
}

static bool note_nothing(void *context, const struct event *event, struct err *err)
{
	(void)context;
	(void)event;
	(void)err;
	return true;
}

/* A front of the workspace of ROOM begins to write and dies. FOLDER is of the records. */
static void die_writing(const struct room *room, const char *folder)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct guard *guard = memory_alloc(sizeof(*guard));
		struct undo_note temps = {.kind = UNDO_NOTE_TEMPS};
		struct undo_log writes;
		struct pending_log log;
		struct cell_spec spec;
		char path[PATH_MAX];
		bool due = false;
		struct pending *pending = pending_open(folder, room->folder, guard, &due);

		spec_init(&spec);
		spec_add_root(&spec, room->folder, true, NULL);
		pending_hold(pending, &spec, -1, &log);
		(void)snprintf(path, sizeof(path), "%s/a", room->folder);
		temps.path = str_of(path);
		undo_log_begin(&writes, log.fd, 1);
		_exit(log.number == 1 && undo_log_note(&writes, &temps, NULL) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void no_session_works_on_what_nobody_could_put_back(void **state)
{
	struct room room = {0};
	char store[] = "/tmp/lost-test-XXXXXX", folder[64], path[128];
	struct err err = {0};

	(void)state;
	assert_true(room_make(&room));
	assert_non_null(mkdtemp(store));
	assert_int_equal(setenv("XDG_STATE_HOME", store, 1), 0);
	(void)snprintf(folder, sizeof(folder), "%s/glovebox/pending", store);
	(void)snprintf(path, sizeof(path), "%s/mender-ends", room.folder);
	die_writing(&room, folder);
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	for (int i = 0; i < 2; i++) {
		const struct session_options options = {
			.take_policy = room_policy(room.folder),
			.tools = tools,
			.workspace = room.folder,
			.cancel_fd = room.cancel_fd,
			.sink = {note_nothing, NULL},
			.ready_workers = 1,
		};
		const bool opened = session_open(&options, &room.session, &err);
		assert_int_equal(opened, i == 1);
		if (opened)
			break;
		assert_non_null(strstr(err.text, "could not be put back"));
		assert_non_null(strstr(err.text, "its worker ended"));
		/* It names the file that may be half old, and the record to give up. */
		assert_non_null(strstr(err.text, room.folder));
		assert_non_null(strstr(err.text, folder));
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	room_close(&room);
	tree_remove(store);
}

/*
 * The result of a call says that its files are perhaps between old and new. Before the next
 * call they are put back, unless the workers that try it are lost as well: that is told once,
 * and the session goes on.
 */
static void a_write_without_its_end_is_tried_again(struct lost *lost, bool in_vain)
{
	struct tool_result result;
	char path[PATH_MAX], temp[PATH_MAX];

	room_call(&lost->room, "half", "{}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_true(value_is_true(value_member(result.details, "writes_left")));
	assert_non_null(strstr(result.text.data, "begun to write"));
	assert_non_null(strstr(result.text.data, "before the next call"));
	tool_result_fini(&result);
	(void)snprintf(path, sizeof(path), "%s/mender-ends", lost->room.folder);
	(void)snprintf(temp, sizeof(temp), "%s/%s", lost->room.folder, left_behind);
	assert_int_equal(access(temp, F_OK), 0);
	if (!in_vain)
		assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 3; i++) {
		const bool tells = in_vain && i == 0;

		room_call(&lost->room, "command", "{}", &result);
		assert_int_equal(result.status, RESULT_DONE);
		assert_int_equal(value_is_true(value_member(result.details, "writes_left")),
				 tells);
		assert_int_equal(strstr(result.text.data, "A later session") != NULL, tells);
		tool_result_fini(&result);
		assert_int_equal(access(temp, F_OK), in_vain ? 0 : -1);
	}
}

static void a_write_without_its_end_is_put_back_before_the_next_call(void **state)
{
	a_write_without_its_end_is_tried_again(*state, false);
}

static void a_write_that_nobody_can_put_back_is_told_once(void **state)
{
	a_write_without_its_end_is_tried_again(*state, true);
}

/* The session closes before another call comes. */
static void a_write_without_its_end_is_left_to_the_next_session(void **state)
{
	struct lost *lost = *state;
	struct tool_result result;

	room_call(&lost->room, "half", "{}", &result);
	assert_true(value_is_true(value_member(result.details, "writes_left")));
	tool_result_fini(&result);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(a_cell_whose_workers_do_not_come_says_why,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(a_worker_that_ends_while_it_is_made_is_replaced,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(
			a_command_that_waits_for_a_look_does_not_hold_the_end,
			open_session, close_session),
		cmocka_unit_test(no_session_works_on_what_nobody_could_put_back),
		cmocka_unit_test_setup_teardown(
			a_write_without_its_end_is_put_back_before_the_next_call,
			open_session, close_session),
		cmocka_unit_test_setup_teardown(a_write_that_nobody_can_put_back_is_told_once,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(a_write_without_its_end_is_left_to_the_next_session,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(a_command_of_a_broken_cell_is_answered,
						open_session, close_session),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
