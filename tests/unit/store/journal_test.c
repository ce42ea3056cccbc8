/* Tests of store/journal. */
#include "../base/unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"
#include "folder.h"
#include "store/journal.h"

struct log {
	struct buf text;
	int64_t last;
	size_t stop_after;
};

static bool note_event(void *context, int64_t number, const char *kind, int64_t wall_ms,
		       struct str json)
{
	struct log *log = context;

	assert_int_equal(number, log->last + 1);
	log->last = number;
	(void)buf_addf(&log->text, "%lld %s %lld %.*s\n", (long long)number, kind,
		       (long long)wall_ms, (int)json.size, json.data);
	return log->stop_after == 0 || (size_t)number < log->stop_after;
}

static void begin_session(struct journal *journal, char id[JOURNAL_ID + 1])
{
	assert_true(journal_new_session(journal, "/work", "coder", "replay", id, NULL));
	assert_int_equal(strspn(id, "0123456789abcdef"), JOURNAL_ID);
}

static void events_come_back_in_order(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct log log = {0};
	char id[JOURNAL_ID + 1];

	(void)state;
	folder_begin(&folder, "a/b/sessions.db");
	buf_init(&log.text, 1000);
	assert_true(journal_open(folder.file, &journal, NULL));
	begin_session(journal, id);
	assert_true(
		journal_append(journal, id, 1, "turn", 1000, STR("{\"a\":\"ä\"}"), NULL));
	assert_true(journal_append(journal, id, 2, "text", 1001, STR("{}"), NULL));
	journal_close(journal);
	journal_close(NULL);

	assert_true(journal_open(folder.file, &journal, NULL));
	assert_true(journal_append(journal, id, 3, "end", 1002, STR("[]"), NULL));
	assert_true(journal_read(journal, id, NULL, note_event, &log, NULL));
	assert_string_equal(log.text.data,
			    "1 turn 1000 {\"a\":\"ä\"}\n2 text 1001 {}\n3 end 1002 []\n");
	log.last = 0;
	log.stop_after = 2;
	assert_true(journal_read(journal, id, NULL, note_event, &log, NULL));
	assert_int_equal(log.last, 2);
	journal_close(journal);
	buf_fini(&log.text);
	folder_end(&folder);
}

static bool note_title(void *context, const struct journal_session *session)
{
	(void)buf_addf(context, "%.*s;", (int)session->title.size, session->title.data);
	return true;
}

static void a_session_is_copied_with_all_its_events(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct log log = {0};
	char id[JOURNAL_ID + 1], copy[JOURNAL_ID + 1], wanted[256];
	struct buf titles;

	(void)state;
	folder_begin(&folder, "sessions.db");
	buf_init(&log.text, 1000);
	buf_init(&titles, 1000);
	assert_true(journal_open(folder.file, &journal, NULL));
	begin_session(journal, id);
	assert_false(journal_fork(journal, id, copy, NULL));
	assert_true(journal_append(journal, id, 1, "session_began", 1000,
				   STR("{\"session\":\"x\",\"run\":\"y\",\"agent\":\"a\"}"),
				   NULL));
	assert_true(journal_append(journal, id, 2, "named", 1001,
				   STR("{\"text\":\"old\"}"), NULL));
	assert_true(journal_append(journal, id, 3, "named", 1002,
				   STR("{\"text\":\"new\"}"), NULL));
	assert_true(journal_fork(journal, id, copy, NULL));
	assert_string_not_equal(id, copy);
	assert_true(journal_append(journal, copy, 4, "named", 1003,
				   STR("{\"text\":\"own\"}"), NULL));
	assert_true(journal_read(journal, copy, NULL, note_event, &log, NULL));
	(void)snprintf(wanted, sizeof(wanted),
		       "1 session_began 1000 {\"session\":\"%s\",\"agent\":\"a\"}\n"
		       "2 named 1001 {\"text\":\"old\"}\n3 named 1002 {\"text\":\"new\"}\n"
		       "4 named 1003 {\"text\":\"own\"}\n",
		       copy);
	assert_string_equal(log.text.data, wanted);
	buf_clear(&log.text);
	log.last = 1;
	assert_true(journal_read(journal, id, "named", note_event, &log, NULL));
	assert_int_equal(log.last, 3);
	assert_true(journal_list(journal, 10, note_title, &titles, NULL));
	assert_string_equal(titles.data, "own;new;");
	assert_false(journal_fork(journal, "ffffffffffff", copy, NULL));
	journal_close(journal);
	buf_fini(&log.text);
	buf_fini(&titles);
	folder_end(&folder);
}

static void a_gap_or_a_repeat_is_refused(void **state)
{
	static const int64_t wrong[] = {0, -1, 1, 2, 4, INT64_MAX, INT64_MIN};
	struct folder folder;
	struct journal *journal;
	struct log log = {0};
	char id[JOURNAL_ID + 1];
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "sessions.db");
	buf_init(&log.text, 1000);
	assert_true(journal_open(folder.file, &journal, NULL));
	begin_session(journal, id);
	assert_false(journal_append(journal, id, 2, "x", 0, STR("{}"), &err));
	assert_true(journal_append(journal, id, 1, "x", 0, STR("{}"), NULL));
	assert_true(journal_append(journal, id, 2, "x", 0, STR("{}"), NULL));
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		assert_false(journal_append(journal, id, wrong[i], "x", 0, STR("{}"), &err));
		assert_int_equal(err.code, EINVAL);
		assert_non_null(strstr(err.text, "does not follow event 2"));
	}
	assert_true(journal_read(journal, id, NULL, note_event, &log, NULL));
	assert_int_equal(log.last, 2);
	journal_close(journal);
	buf_fini(&log.text);
	folder_end(&folder);
}

static void a_session_nobody_began_is_unknown(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct log log = {0};
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "sessions.db");
	assert_true(journal_open(folder.file, &journal, NULL));
	assert_false(journal_append(journal, "0123456789ab", 1, "x", 0, STR("{}"), &err));
	assert_int_equal(err.code, ENOENT);
	assert_false(journal_read(journal, "' OR 1=1", NULL, note_event, &log, &err));
	assert_int_equal(err.code, ENOENT);
	assert_non_null(strstr(err.text, "no session \"' OR 1=1\""));
	journal_close(journal);
	folder_end(&folder);
}

static bool note_session(void *context, const struct journal_session *session)
{
	struct log *log = context;

	(void)buf_addf(&log->text, "%s %.*s %.*s %.*s %lld %lld\n", session->id,
		       (int)session->workspace.size, session->workspace.data,
		       (int)session->agent.size, session->agent.data,
		       (int)session->model.size, session->model.data,
		       (long long)session->events,
		       session->events ? (long long)session->last_wall_ms : 0);
	assert_true(session->began_wall_ms > 0);
	log->last++;
	return log->stop_after == 0 || (size_t)log->last < log->stop_after;
}

static void the_newest_session_is_listed_first(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct log log = {0};
	char ids[3][JOURNAL_ID + 1], expected[400];
	/* In the future, so that the session without events is the oldest. */
	int64_t late = 4000000000000;

	(void)state;
	folder_begin(&folder, "sessions.db");
	buf_init(&log.text, 1000);
	assert_true(journal_open(folder.file, &journal, NULL));
	for (size_t i = 0; i < 3; i++)
		begin_session(journal, ids[i]);
	assert_true(journal_append(journal, ids[0], 1, "x", late + 5, STR("{}"), NULL));
	assert_true(journal_append(journal, ids[2], 1, "x", late + 9, STR("{}"), NULL));
	assert_true(journal_append(journal, ids[2], 2, "x", late + 2, STR("{}"), NULL));

	assert_true(journal_list(journal, 10, note_session, &log, NULL));
	(void)snprintf(expected, sizeof(expected),
		       "%s /work coder replay 1 4000000000005\n"
		       "%s /work coder replay 2 4000000000002\n"
		       "%s /work coder replay 0 0\n",
		       ids[0], ids[2], ids[1]);
	assert_string_equal(log.text.data, expected);
	log.last = 0;
	assert_true(journal_list(journal, 2, note_session, &log, NULL));
	assert_int_equal(log.last, 2);
	log.last = 0;
	log.stop_after = 1;
	assert_true(journal_list(journal, SIZE_MAX, note_session, &log, NULL));
	assert_int_equal(log.last, 1);
	journal_close(journal);
	buf_fini(&log.text);
	folder_end(&folder);
}

static void folders_are_made_for_the_owner_alone(void **state)
{
	struct folder folder;
	struct journal *journal;
	char path[sizeof(folder.path) + 8];
	struct stat st;
	mode_t old = umask(0);

	(void)state;
	folder_begin(&folder, "new/deeper/sessions.db");
	assert_true(journal_open(folder.file, &journal, NULL));
	journal_close(journal);
	(void)snprintf(path, sizeof(path), "%s/new", folder.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	(void)umask(old);
	folder_end(&folder);
}

static void a_folder_that_is_a_file_is_told(void **state)
{
	struct folder folder;
	struct journal *journal = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "file/x/sessions.db");
	assert_false(journal_open("", &journal, &err));
	assert_false(journal_open("/proc/self/nowhere/sessions.db", &journal, &err));
	assert_non_null(strstr(err.text, "it may be): /proc/self/nowhere"));
	assert_null(journal);
	folder_end(&folder);
}

static void the_default_place_is_in_the_state_folder(void **state)
{
	struct buf path;
	struct err err = {0};

	(void)state;
	buf_init(&path, 1000);
	(void)setenv("HOME", "/home/x", 1);
	(void)setenv("XDG_STATE_HOME", "/state", 1);
	assert_true(journal_default_path(&path, NULL));
	assert_string_equal(path.data, "/state/glovebox/sessions.db");
	buf_clear(&path);
	(void)setenv("XDG_STATE_HOME", "relative", 1);
	assert_true(journal_default_path(&path, NULL));
	assert_string_equal(path.data, "/home/x/.local/state/glovebox/sessions.db");
	buf_clear(&path);
	(void)unsetenv("HOME");
	assert_false(journal_default_path(&path, &err));
	assert_non_null(strstr(err.text, "HOME"));
	buf_fini(&path);
}

/*
 * In a child: append to session ID of the journal at PATH, telling each number over FD.
 */
static _Noreturn void write_for_ever(const char *path, const char *id, int64_t most, int fd)
{
	static char json[2048];
	struct journal *journal;

	memset(json, 'x', sizeof(json));
	if (!journal_open(path, &journal, NULL))
		_exit(1);
	for (int64_t number = 1; number <= most; number++) {
		if (!journal_append(journal, id, number, "text", number,
				    (struct str){json, sizeof(json)}, NULL))
			_exit(2);
		if (fd >= 0 && !fd_write_all(fd, &number, sizeof(number), NULL))
			_exit(3);
	}
	journal_close(journal);
	_exit(0);
}

static void a_killed_writer_leaves_every_event_it_was_told_of(void **state)
{
	(void)state;
	for (int64_t kill_at = 1; kill_at < 60; kill_at += 9) {
		struct folder folder;
		struct journal *journal;
		struct log log = {0};
		char id[JOURNAL_ID + 1];
		int64_t told = 0;
		int ends[2], status;
		pid_t child;

		folder_begin(&folder, "sessions.db");
		buf_init(&log.text, 16 << 20);
		assert_true(journal_open(folder.file, &journal, NULL));
		begin_session(journal, id);
		journal_close(journal);
		assert_true(fd_pipe(ends, NULL));
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			write_for_ever(folder.file, id, INT64_MAX, ends[1]);
		fd_close(&ends[1]);
		while (told < kill_at &&
		       read(ends[0], &told, sizeof(told)) == (ssize_t)sizeof(told))
			;
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		while (read(ends[0], &told, sizeof(told)) == (ssize_t)sizeof(told))
			;
		fd_close(&ends[0]);

		assert_true(journal_open(folder.file, &journal, NULL));
		assert_true(journal_read(journal, id, NULL, note_event, &log, NULL));
		/*
		 * The one after the last told may be there: it was killed before it could
		 * tell.
		 */
		assert_true(log.last == told || log.last == told + 1);
		assert_true(journal_append(journal, id, log.last + 1, "x", 0, STR("{}"),
					   NULL));
		journal_close(journal);
		buf_fini(&log.text);
		folder_end(&folder);
	}
}

static void two_processes_write_side_by_side(void **state)
{
	enum { EVENTS = 100, WRITERS = 2 };
	struct folder folder;
	struct journal *journal;
	char ids[WRITERS][JOURNAL_ID + 1];
	pid_t children[WRITERS];

	(void)state;
	folder_begin(&folder, "sessions.db");
	assert_true(journal_open(folder.file, &journal, NULL));
	for (int i = 0; i < WRITERS; i++)
		begin_session(journal, ids[i]);
	journal_close(journal);
	for (int i = 0; i < WRITERS; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			write_for_ever(folder.file, ids[i], EVENTS, -1);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_true(journal_open(folder.file, &journal, NULL));
	for (int i = 0; i < WRITERS; i++) {
		struct log log = {0};

		buf_init(&log.text, 1 << 20);
		assert_true(journal_read(journal, ids[i], NULL, note_event, &log, NULL));
		assert_int_equal(log.last, EVENTS);
		buf_fini(&log.text);
	}
	journal_close(journal);
	folder_end(&folder);
}

static void the_first_opening_by_many_at_once_makes_one_journal(void **state)
{
	enum { OPENERS = 8 };
	struct folder folder;
	pid_t children[OPENERS];

	(void)state;
	folder_begin(&folder, "deep/sessions.db");
	for (int i = 0; i < OPENERS; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct journal *journal;
			char id[JOURNAL_ID + 1];

			if (!journal_open(folder.file, &journal, NULL) ||
			    !journal_new_session(journal, "/", "a", "m", id, NULL))
				_exit(1);
			journal_close(journal);
			_exit(0);
		}
	}
	for (int i = 0; i < OPENERS; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	folder_end(&folder);
}

static void a_session_is_one_process_s(void **state)
{
	struct folder folder;
	struct journal *first, *second;
	char id[JOURNAL_ID + 1], other[JOURNAL_ID + 1];
	struct err err;

	(void)state;
	folder_begin(&folder, "sessions.db");
	assert_true(journal_open(folder.file, &first, NULL));
	assert_true(journal_open(folder.file, &second, NULL));
	begin_session(first, id);
	begin_session(first, other);
	assert_false(journal_claim(second, id, &err));
	assert_int_equal(err.code, EBUSY);
	assert_true(journal_claim(first, id, &err));
	assert_false(journal_claim(second, "000000000000", &err));
	assert_int_equal(err.code, ENOENT);
	journal_close(first);
	assert_true(journal_claim(second, id, &err));
	assert_true(journal_claim(second, other, &err));
	journal_close(second);
	folder_end(&folder);
}

static void sessions_are_found_by_what_people_write(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct journal_found found;
	char id[JOURNAL_ID + 1], beginning[JOURNAL_ID_LEAST + 1] = "";
	struct err err;

	(void)state;
	folder_begin(&folder, "sessions.db");
	assert_true(journal_open(folder.file, &journal, NULL));
	assert_false(journal_find(journal, "last", "/work", &found, &err));
	assert_int_equal(err.code, ENOENT);
	begin_session(journal, id);
	assert_true(journal_append(journal, id, 1, "turn", 1000, STR("{}"), NULL));
	memcpy(beginning, id, JOURNAL_ID_LEAST);
	for (size_t i = 0; i < 3; i++) {
		const char *const names[] = {id, beginning, "last"};

		assert_true(journal_find(journal, names[i], "/work", &found, &err));
		assert_string_equal(found.id, id);
		assert_string_equal(found.workspace, "/work");
		assert_string_equal(found.agent, "coder");
		assert_int_equal(found.events, 1);
		journal_found_fini(&found);
	}
	assert_false(journal_find(journal, "last", "/other", &found, &err));
	beginning[JOURNAL_ID_LEAST - 1] = '\0';
	assert_false(journal_find(journal, beginning, "/work", &found, &err));
	assert_int_equal(err.code, ENOENT);
	assert_false(journal_find(journal, "", "/work", &found, &err));
	journal_close(journal);
	folder_end(&folder);
}

static bool is_there(struct journal *journal, const char *id)
{
	struct journal_found found = {0};
	const bool there = journal_find(journal, id, "/work", &found, NULL);

	journal_found_fini(&found);
	return there;
}

static void a_forgotten_session_goes_with_its_delegates(void **state)
{
	char ids[4][JOURNAL_ID + 1], first[64];
	struct journal *journal, *other;
	struct folder folder;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "sessions.db");
	assert_true(journal_open(folder.file, &journal, NULL));
	/* A session, its delegate, the delegate of that one, and one of its own. */
	for (size_t i = 0; i < 4; i++) {
		begin_session(journal, ids[i]);
		(void)snprintf(first, sizeof(first), "{\"parent\":\"%s\"}",
			       i == 1 || i == 2 ? ids[i - 1] : "none");
		assert_true(journal_append(journal, ids[i], 1, "x", 0, str_of(first), NULL));
	}
	assert_true(journal_open(folder.file, &other, NULL));
	assert_false(journal_forget(other, ids[0], &err));
	assert_int_equal(err.code, EBUSY);
	assert_true(is_there(journal, ids[0]));
	assert_true(journal_forget(journal, ids[0], &err));
	for (size_t i = 0; i < 3; i++)
		assert_false(is_there(journal, ids[i]));
	assert_true(is_there(journal, ids[3]));
	assert_false(journal_forget(journal, ids[0], &err));
	assert_int_equal(err.code, ENOENT);
	journal_close(other);
	journal_close(journal);
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_back_in_order),
		cmocka_unit_test(a_session_is_copied_with_all_its_events),
		cmocka_unit_test(a_gap_or_a_repeat_is_refused),
		cmocka_unit_test(a_forgotten_session_goes_with_its_delegates),
		cmocka_unit_test(a_session_nobody_began_is_unknown),
		cmocka_unit_test(the_newest_session_is_listed_first),
		cmocka_unit_test(folders_are_made_for_the_owner_alone),
		cmocka_unit_test(a_folder_that_is_a_file_is_told),
		cmocka_unit_test(the_default_place_is_in_the_state_folder),
		cmocka_unit_test(a_killed_writer_leaves_every_event_it_was_told_of),
		cmocka_unit_test(two_processes_write_side_by_side),
		cmocka_unit_test(the_first_opening_by_many_at_once_makes_one_journal),
		cmocka_unit_test(a_session_is_one_process_s),
		cmocka_unit_test(sessions_are_found_by_what_people_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
