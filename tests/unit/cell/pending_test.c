/*
 * pending: what a dead front leaves. A front's death is a child that ends without a word: its
 * locks go with it.
 */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/fd.h"
#include "base/memory.h"
#include "cell/pending.h"
#include "guard/guard.h"
#include "view/spec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct here {
	char folder[64];
	struct guard *guard;
};

static int set_up(void **state)
{
	struct here *here = memory_alloc(sizeof(*here));

	(void)snprintf(here->folder, sizeof(here->folder), "/tmp/glovebox-unit-XXXXXX");
	assert_non_null(mkdtemp(here->folder));
	here->guard = memory_alloc(sizeof(*here->guard));
	*state = here;
	return 0;
}

static int tear_down(void **state)
{
	struct here *here = *state;

	guard_free(here->guard);
	/* Each test leaves it empty. */
	assert_int_equal(rmdir(here->folder), 0);
	free(here);
	return 0;
}

static struct pending *open_pending(const struct here *here, bool *due)
{
	*due = false;
	return pending_open(here->folder, "/ws", here->guard, due);
}

/* A session that may write docs, but neither drafts in it nor src. */
static void fill(struct cell_spec *spec)
{
	spec_init(spec);
	spec_add_root(spec, "/ws", false, NULL);
	spec_add_root(spec, "/ws/docs", true, NULL);
	spec_add_root(spec, "/ws/docs/drafts", false, NULL);
	spec_add_root(spec, "/ws/notes", true, "*.md");
	spec_add(spec, &spec->blocked, "/ws/docs/secret");
	spec_add_entry(spec, VIEW_PIN, "/ws/docs/.git/hooks", NULL);
}

static const char rows[] =
	"[{\"folder\": \"/ws/docs\", \"name\": \"own\"},"
	"{\"folder\": \"/ws/src\", \"name\": \"main.c\"},"
	"{\"folder\": \"/ws/docs/../src\", \"name\": \"main.c\"},"
	"{\"folder\": \"/ws/docs//x\", \"name\": \"main.c\"},"
	"{\"folder\": \"/ws\", \"name\": \"docs\"},"
	"{\"folder\": \"/ws/docs/drafts\", \"name\": \"a\"},"
	"{\"folder\": \"/ws/docs/secret\", \"name\": \"a\"},"
	"{\"folder\": \"/ws/docs\", \"name\": \"secret\"},"
	"{\"folder\": \"/ws/docs/.git/hooks\", \"name\": \"pre-commit\"},"
	"{\"folder\": \"/ws/notes\", \"name\": \"a.c\"},"
	"{\"folder\": \"/ws/notes\", \"name\": \"a.md\"},"
	"{\"folder\": \"relative\", \"name\": \"a\"},"
	"{\"folder\": 7}, null, []]\n";

/* A front in whose session a worker wrote TEXT into its journal, and which then died. */
static void die_with(const struct here *here, const char *text)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct pending_journal journal;
		struct cell_spec spec;
		bool due;
		struct pending *pending = open_pending(here, &due);

		fill(&spec);
		pending_give(pending, &spec, &journal);
		_exit(journal.fd >= 0 && journal.number == 1 &&
				      fd_write_all(journal.fd, text, strlen(text), NULL)
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A worker with all rights has finished them. */
static void mend(struct pending *pending)
{
	struct cell_spec spec;

	fill(&spec);
	pending_mended(pending, &spec);
	spec_fini(&spec);
}

static void only_what_the_dead_session_could_write_is_finished(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	bool due;

	die_with(here, rows);
	pending = open_pending(here, &due);
	assert_non_null(pending);
	assert_true(due);
	const struct value *writes = pending_writes(pending);
	assert_int_equal(value_count(writes), 2);
	assert_string_equal(value_text(value_member(value_item(writes, 0), "name")), "own");
	assert_string_equal(value_text(value_member(value_item(writes, 1), "name")), "a.md");
	mend(pending);
	assert_null(pending_writes(pending));
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

static void what_was_not_finished_is_left_for_the_next(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	bool due;

	die_with(here, rows);
	pending = open_pending(here, &due);
	assert_int_equal(value_count(pending_writes(pending)), 2);
	/* Meanwhile it is this one's. */
	struct pending *other = open_pending(here, &due);
	assert_false(due);
	assert_null(pending_writes(other));
	pending_close(other);
	pending_set_audit_due(pending, false);
	pending_close(pending);
	pending = open_pending(here, &due);
	assert_int_equal(value_count(pending_writes(pending)), 2);
	mend(pending);
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

static void what_this_cell_may_not_write_is_left_for_the_next(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	struct cell_spec spec;
	bool due;

	die_with(here, rows);
	pending = open_pending(here, &due);
	assert_int_equal(value_count(pending_writes(pending)), 2);
	spec_init(&spec);
	spec_add_root(&spec, "/ws", false, NULL);
	spec_add_root(&spec, "/ws/docs", true, NULL);
	pending_mended(pending, &spec);
	spec_fini(&spec);
	assert_null(pending_writes(pending));
	pending_set_audit_due(pending, false);
	pending_close(pending);
	pending = open_pending(here, &due);
	assert_int_equal(value_count(pending_writes(pending)), 2);
	mend(pending);
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

/*
 * A front whose worker still writes is killed. The worker writes TEXT into its journal, closes
 * TELLS[1] and ends once the other end of WAITS is closed.
 */
static void die_before_its_worker(const struct here *here, const char *text,
				  const int waits[2], const int tells[2])
{
	int status;
	pid_t front = fork();

	if (front == 0) {
		struct pending_journal journal;
		struct cell_spec spec;
		bool due;
		struct pending *pending = open_pending(here, &due);

		fill(&spec);
		pending_give(pending, &spec, &journal);
		const int worker = fork();
		if (worker == 0) {
			char byte;

			/* As in a cell: nothing of the front's but this. */
			(void)dup2(waits[0], 0);
			(void)dup2(tells[1], 1);
			(void)dup2(journal.fd, 3);
			(void)close_range(4, ~0U, 0);
			const bool ok = read(0, &byte, 1) == 0 &&
					fd_write_all(3, text, strlen(text), NULL);
			_exit(ok ? 0 : 1);
		}
		_exit(worker > 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(front, &status, 0), front);
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)close(waits[0]);
	(void)close(tells[1]);
}

static void a_worker_that_outlives_its_front_ends_its_write_first(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	int waits[2], tells[2];
	char byte;
	bool due;

	assert_int_equal(pipe2(waits, O_CLOEXEC), 0);
	assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
	die_before_its_worker(here, rows, waits, tells);
	/* It does not end: what it will have written is a later session's. */
	pending = open_pending(here, &due);
	assert_non_null(pending);
	assert_false(due);
	assert_null(pending_writes(pending));
	pending_close(pending);
	(void)close(waits[1]);
	assert_int_equal(read(tells[0], &byte, 1), 0);
	(void)close(tells[0]);
	pending = open_pending(here, &due);
	assert_true(due);
	assert_int_equal(value_count(pending_writes(pending)), 2);
	mend(pending);
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

static void a_journal_that_holds_nothing_is_forgotten(void **state)
{
	static const char *const texts[] = {"",
					    "[",
					    "{}\n",
					    "[]\n",
					    "[1]\n[2]\n",
					    "not JSON\n",
					    "[{\"folder\": \"/ws/docs\""};
	const struct here *here = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		bool due;

		die_with(here, texts[i]);
		struct pending *pending = open_pending(here, &due);
		assert_null(pending_writes(pending));
		pending_set_audit_due(pending, false);
		pending_close(pending);
	}
}

/* Its text is a whole list, but what the session could write never came to the disk. */
static void without_the_rights_nothing_is_finished(void **state)
{
	const struct here *here = *state;
	struct pending *pending;
	struct dirent *at;
	char path[512];
	bool due;

	die_with(here, rows);
	DIR *names = opendir(here->folder);
	assert_non_null(names);
	while ((at = readdir(names)) != NULL) {
		struct buf text;

		if (at->d_name[0] == '.' || strchr(at->d_name, '.') != NULL)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", here->folder, at->d_name);
		buf_init(&text, 1 << 16);
		assert_true(fd_read_file(path, 1 << 16, &text, NULL));
		assert_int_equal(truncate(path, strchr(text.data, '\n') + 1 - text.data), 0);
		buf_fini(&text);
	}
	(void)closedir(names);
	pending = open_pending(here, &due);
	assert_true(due);
	assert_null(pending_writes(pending));
	pending_set_audit_due(pending, false);
	pending_close(pending);
}

static void one_journal_serves_call_after_call(void **state)
{
	const struct here *here = *state;
	struct pending_journal first, second, third;
	struct cell_spec spec;
	bool due;
	struct pending *pending = open_pending(here, &due);

	fill(&spec);
	pending_give(pending, &spec, &first);
	pending_give(pending, &spec, &second);
	assert_int_not_equal(first.number, second.number);
	pending_take_back(pending, &first);
	assert_int_equal(first.fd, -1);
	pending_take_back(pending, &second);
	assert_int_equal(second.fd, -1);
	pending_give(pending, &spec, &third);
	assert_int_equal(third.number, 1);
	/* One that says something is not used again. */
	assert_int_equal(write(third.fd, "x", 1), 1);
	pending_take_back(pending, &third);
	pending_give(pending, &spec, &third);
	assert_int_equal(third.number, 3);
	pending_take_back(pending, &third);
	pending_close(pending);
	spec_fini(&spec);
}

static void without_a_state_folder_it_lies_in_memory(void **state)
{
	struct pending_journal journal;
	struct cell_spec spec;

	(void)state;
	fill(&spec);
	pending_give(NULL, &spec, &journal);
	assert_true(journal.fd >= 0);
	assert_int_equal(journal.number, 0);
	pending_take_back(NULL, &journal);
	assert_int_equal(journal.fd, -1);
	spec_fini(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(only_what_the_dead_session_could_write_is_finished),
		TEST(what_was_not_finished_is_left_for_the_next),
		TEST(what_this_cell_may_not_write_is_left_for_the_next),
		TEST(a_worker_that_outlives_its_front_ends_its_write_first),
		TEST(a_journal_that_holds_nothing_is_forgotten),
		TEST(without_the_rights_nothing_is_finished),
		TEST(one_journal_serves_call_after_call),
		TEST(without_a_state_folder_it_lies_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
