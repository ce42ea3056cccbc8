/*
 * Tests of guard/audit and git_scan in a temporary folder: what is new is put away, what was
 * there or is git's own stays. The cell around it is tests/cell/protected.case.
 */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/pending.h"
#include "guard/guard.h"
#include "guard/scan.h"
#include "tool/denial.h"

struct place {
	char folder[64];
	struct guard *guard;
	struct tool_result result;
};

static void put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), NULL));
}

static void repository_make(const char *folder)
{
	static const char *const folders[] = {"", "/refs", "/objects", "/hooks", "/info"};
	char path[PATH_MAX];

	for (size_t i = 0; i < UNIT_COUNT(folders); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", folder, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/HEAD", folder);
	put(path, "ref: refs/heads/x\n");
	(void)snprintf(path, sizeof(path), "%s/config", folder);
	put(path, "[core]\n\tbare = false\n");
}

/* The repositories deep in the workspace are those that the looks of undo find. */
static void guard_make(struct place *place)
{
	guard_free(place->guard);
	place->guard = memory_alloc(sizeof(*place->guard));
	place->guard->workspace = memory_copy(place->folder);
	guard_add_root(place->guard, place->folder, GUARD_UNDO);
}

static int set_up(void **state)
{
	struct place *place = memory_alloc(sizeof(*place));

	(void)snprintf(place->folder, sizeof(place->folder), "/tmp/audit-test-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	assert_int_equal(chdir(place->folder), 0);
	repository_make(".git");
	guard_make(place);
	tool_result_init(&place->result);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	assert_int_equal(chdir("/"), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", place->folder, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	guard_free(place->guard);
	tool_result_fini(&place->result);
	free(place);
	return 0;
}

static void begin(struct place *place)
{
	struct err err = {0};

	if (!audit_begin(place->guard, GIT_SCAN_FOLDERS, &err))
		fail_msg("%s", err.text);
}

static void audit_quiet(struct place *place, int64_t quiet_ns)
{
	tool_result_fini(&place->result);
	tool_result_init(&place->result);
	(void)tool_done(&place->result);
	struct audit *ready = audit_open(place->guard);
	audit_run(ready, &(struct audit_call){.quiet_ns = quiet_ns}, &place->result);
	audit_close(ready);
}

static void audit(struct place *place)
{
	audit_quiet(place, 0);
}

static void look_whole(struct place *place, enum guard_walk reach)
{
	tool_result_fini(&place->result);
	tool_result_init(&place->result);
	(void)tool_done(&place->result);
	struct audit *ready = audit_open(place->guard);
	audit_run(ready, &(struct audit_call){.reach = reach}, &place->result);
	audit_close(ready);
}

static size_t put_away(const struct place *place)
{
	return value_count(value_member(place->result.details, "quarantined"));
}

static const char *put_away_path(const struct place *place, size_t index)
{
	const struct value *list = value_member(place->result.details, "quarantined");

	return value_text(value_member(value_item(list, index), "path"));
}

static void nothing_new_is_nothing_told(void **state)
{
	struct place *place = *state;

	put(".git/hooks/pre-commit", "x");
	put(".git/config", "[alias]\nx = !y\n");
	begin(place);
	put(".git/hooks/pre-push.sample", "x");
	put("Makefile", "all:\n");
	audit(place);
	assert_int_equal(place->result.status, RESULT_DONE);
	assert_null(place->result.details);
	assert_string_equal(place->result.text.data, "");
}

static void what_appears_is_moved_and_told(void **state)
{
	struct place *place = *state;
	struct stat st;

	begin(place);
	put(".git/commondir", "../other\n");
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), ".git/commondir");
	assert_int_not_equal(lstat(".git/commondir", &st), 0);
	const struct value *item =
		value_item(value_member(place->result.details, "quarantined"), 0);
	assert_int_equal(lstat(value_text(value_member(item, "moved_to")), &st), 0);
	assert_non_null(
		strstr(place->result.text.data, "mv -- '.git/commondir..quarantine-"));
	/* It stays where it is, and is not told again. */
	audit(place);
	assert_int_equal(put_away(place), 0);
}

static void what_changed_counts_as_new(void **state)
{
	struct place *place = *state;

	put(".git/hooks/post-commit", "a");
	put(".git/config", "[alias]\nx = !y\n");
	begin(place);
	put(".git/hooks/post-commit", "b");
	put(".git/config", "[alias]\nx = !z\n[user]\nname = T\n");
	audit(place);
	assert_int_equal(put_away(place), 2);
}

static void inert_changes_stay(void **state)
{
	struct place *place = *state;

	put(".git/config", "[alias]\nx = !y\n");
	begin(place);
	put(".git/config", "[user]\nname = T\n[alias]\n\tx = !y\n");
	put(".git/info/exclude", "# nothing\n");
	audit(place);
	assert_int_equal(put_away(place), 0);
}

static void a_worktree_stays_when_both_ends_name_each_other(void **state)
{
	struct place *place = *state;
	char text[PATH_MAX];

	begin(place);
	assert_int_equal(mkdir(".git/worktrees", 0755), 0);
	assert_int_equal(mkdir(".git/worktrees/w", 0755), 0);
	assert_int_equal(mkdir("w", 0755), 0);
	(void)snprintf(text, sizeof(text), "gitdir: %s/.git/worktrees/w\n", place->folder);
	put("w/.git", text);
	(void)snprintf(text, sizeof(text), "%s/w/.git\n", place->folder);
	put(".git/worktrees/w/gitdir", text);
	put(".git/worktrees/w/commondir", "../..\n");
	audit(place);
	assert_int_equal(put_away(place), 0);
	put(".git/worktrees/w/commondir", "../../../other\n");
	audit(place);
	assert_true(put_away(place) >= 1);
}

static void a_second_pointer_to_a_worktree_goes_and_not_the_worktree(void **state)
{
	struct place *place = *state;
	char text[PATH_MAX];

	assert_int_equal(mkdir(".git/worktrees", 0755), 0);
	assert_int_equal(mkdir(".git/worktrees/w", 0755), 0);
	put(".git/worktrees/w/gitdir", "/elsewhere/w/.git\n");
	put(".git/worktrees/w/commondir", "../..\n");
	begin(place);
	assert_int_equal(mkdir("d", 0755), 0);
	(void)snprintf(text, sizeof(text), "gitdir: %s/.git/worktrees/w\n", place->folder);
	put("d/.git", text);
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "d/.git");
}

static void names_that_are_no_text_are_names(void **state)
{
	static const char odd[] = "a\\\xff\n";
	struct place *place = *state;

	begin(place);
	assert_int_equal(mkdir(odd, 0755), 0);
	assert_int_equal(chdir(odd), 0);
	assert_int_equal(symlink("/nonexistent", ".git"), 0);
	assert_int_equal(chdir(place->folder), 0);
	audit(place);
	assert_int_equal(put_away(place), 1);
}

static void a_pointer_out_of_the_roots_goes(void **state)
{
	struct place *place = *state;

	begin(place);
	assert_int_equal(mkdir("d", 0755), 0);
	put("d/.git", "gitdir: /nonexistent/.git\n");
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "d/.git");
}

static void interrupted_work_stays_unless_it_executes(void **state)
{
	struct place *place = *state;
	struct stat st;

	begin(place);
	assert_int_equal(mkdir(".git/rebase-merge", 0755), 0);
	put(".git/rebase-merge/git-rebase-todo", "pick 1 a\n# exec no\n");
	assert_int_equal(mkdir(".git/sequencer", 0755), 0);
	put(".git/sequencer/todo", "pick 1 a\n");
	put(".git/sequencer/opts", "[options]\n\tstrategy = ort\n");
	audit(place);
	assert_int_equal(put_away(place), 0);
	put(".git/rebase-merge/git-rebase-todo", "pick 1 a\nexec no\n");
	put(".git/sequencer/opts", "[options]\n\tstrategy = evil\n");
	audit(place);
	assert_int_equal(put_away(place), 2);
	assert_int_not_equal(lstat(".git/rebase-merge", &st), 0);
	assert_int_not_equal(lstat(".git/sequencer", &st), 0);
}

static void a_protected_file_may_not_appear(void **state)
{
	struct place *place = *state;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/conf.json", place->folder);
	(void)marks_add(&place->guard->marks, MARK_FILE, path, STR(""));
	begin(place);
	put("conf.json", "{}");
	audit(place);
	assert_int_equal(put_away(place), 1);
}

static void what_cannot_be_seen_whole_is_said_and_the_result_stays(void **state)
{
	struct place *place = *state;

	begin(place);
	put(".git/index", "DIRC nonsense");
	audit(place);
	assert_int_equal(place->result.status, RESULT_DONE);
	assert_true(audit_failed(&place->result));
	assert_non_null(
		strstr(place->result.text.data, ".git/index: a git index that does not"));
	assert_non_null(strstr(place->result.text.data, "git reset makes a new one"));
}

static void a_root_that_is_gone_is_a_failure(void **state)
{
	struct place *place = *state;

	begin(place);
	guard_add_root(place->guard, "/nonexistent/x", GUARD_UNDO);
	audit(place);
	assert_true(audit_failed(&place->result));
	assert_false(guard_hold_root(&place->guard->roots[1], NULL));
}

static void a_root_with_a_decoy_in_its_place_fails_each_audit(void **state)
{
	struct place *place = *state;
	char away[PATH_MAX];
	struct err err = {0};

	begin(place);
	assert_true(guard_hold_root(&place->guard->roots[0], &err));
	struct audit *ready = audit_open(place->guard);
	audit_run(ready, &(struct audit_call){0}, &place->result);
	assert_false(audit_failed(&place->result));
	assert_true(guard_holds(place->guard, &err));
	(void)snprintf(away, sizeof(away), "%s.away", place->folder);
	assert_int_equal(rename(place->folder, away), 0);
	assert_int_equal(mkdir(place->folder, 0755), 0);
	/* A worker that looked before, and one that begins now. */
	audit_run(ready, &(struct audit_call){0}, &place->result);
	assert_true(audit_failed(&place->result));
	audit_close(ready);
	audit(place);
	assert_true(audit_failed(&place->result));
	assert_non_null(strstr(place->result.text.data, "was put in its place"));
	assert_false(guard_holds(place->guard, &err));
	assert_int_equal(err.code, ESTALE);
	assert_int_equal(rmdir(place->folder), 0);
	assert_int_equal(rename(away, place->folder), 0);
	assert_true(guard_holds(place->guard, &err));
}

static void files_that_run_by_themselves_are_listed(void **state)
{
	struct place *place = *state;
	struct timespec since;

	put("Makefile", "a");
	begin(place);
	assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &since), 0);
	since.tv_sec += 100;
	struct audit *ready = audit_open(place->guard);
	audit_run(ready, &(struct audit_call){.since = &since}, &place->result);
	assert_null(place->result.details);
	since.tv_sec -= 200;
	assert_int_equal(mkdir(".vscode", 0755), 0);
	put(".vscode/tasks.json", "{}");
	audit_run(ready, &(struct audit_call){.since = &since}, &place->result);
	audit_close(ready);
	assert_int_equal(value_count(value_member(place->result.details, "changed_autoexec")),
			 2);
}

static void a_protected_name_that_comes_or_changes_is_put_away(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdir(".claude", 0755), 0);
	put(".claude/settings.json", "{}");
	begin(place);
	audit(place);
	assert_null(place->result.details);
	put(".claude/settings.json", "{\"hooks\": 1}");
	put(".mcp.json", "{}");
	put(".claude/other.json", "{}");
	assert_int_equal(mkdir(".opencode", 0755), 0);
	assert_int_equal(mkdir(".opencode/plugin", 0755), 0);
	audit(place);
	assert_int_equal(put_away(place), 2);
	assert_string_equal(put_away_path(place, 0), ".claude/settings.json");
	assert_string_equal(put_away_path(place, 1), ".mcp.json");
	put(".opencode/plugin/x.js", "x");
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), ".opencode/plugin");
	audit(place);
	assert_null(place->result.details);
}

/* As when git takes it away and puts it back. */
static void a_protected_name_that_comes_back_as_it_was_stays(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdir(".claude", 0755), 0);
	assert_int_equal(mkdir(".claude/hooks", 0755), 0);
	put(".claude/settings.json", "{}");
	put(".claude/hooks/x", "x");
	begin(place);
	for (size_t i = 0; i < 2; i++) {
		static const char *const names[] = {".claude/settings.json",
						    ".claude/hooks/x"};
		static const char *const texts[] = {"{}", "x"};

		assert_int_equal(unlink(names[i]), 0);
		put(names[i], texts[i]);
	}
	audit(place);
	assert_null(place->result.details);
	assert_int_equal(chmod(".claude/hooks/x", 0755), 0);
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), ".claude/hooks");
}

/* In a clone or a worktree, where the top has the same; what the top has not is put away. */
static void a_repository_may_hold_what_the_top_holds(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdir(".claude", 0755), 0);
	put(".claude/settings.json", "{}");
	begin(place);
	assert_int_equal(mkdir("sub", 0755), 0);
	repository_make("sub/.git");
	assert_int_equal(mkdir("sub/.claude", 0755), 0);
	put("sub/.claude/settings.json", "{}");
	audit(place);
	assert_null(place->result.details);
	put("sub/.claude/settings.json", "{ }");
	put("sub/.claude/settings.local.json", "{}");
	audit(place);
	assert_int_equal(put_away(place), 2);
}

static int64_t changed_ns(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return clock_ns(&st.st_ctim);
}

static void a_protected_file_of_a_quiet_time_is_a_persons(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdir(".claude", 0755), 0);
	begin(place);
	put(".claude/settings.local.json", "{}");
	audit_quiet(place, changed_ns(".claude/settings.local.json") + 1);
	assert_null(place->result.details);
	audit_quiet(place, changed_ns(".claude/settings.local.json"));
	assert_int_equal(put_away(place), 1);
}

/* A link, or a folder whose files' times its own does not tell, is nobody's that is known. */
static void a_protected_link_or_folder_of_a_quiet_time_is_put_away(void **state)
{
	struct place *place = *state;

	begin(place);
	assert_int_equal(symlink("elsewhere", ".mcp.json"), 0);
	assert_int_equal(mkdir(".pi", 0755), 0);
	assert_int_equal(mkdir(".pi/extensions", 0755), 0);
	put(".pi/extensions/x.ts", "x");
	audit_quiet(place, INT64_MAX);
	assert_int_equal(put_away(place), 2);
}

/* The file is old, and the folder that it came with is not. */
static void a_folder_moved_to_a_protected_name_is_no_persons(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdir("fixture", 0755), 0);
	put("fixture/settings.json", "{}");
	begin(place);
	const int64_t quiet_ns = changed_ns("fixture/settings.json") + 1;
	/* The clock that files are stamped by goes on in steps. */
	do
		put("later", "");
	while (changed_ns("later") < quiet_ns);
	assert_int_equal(rename("fixture", ".claude"), 0);
	audit_quiet(place, quiet_ns);
	assert_int_equal(put_away(place), 1);
}

static void a_place_that_was_named_is_open(void **state)
{
	struct place *place = *state;
	auto_free char *path = memory_alloc(PATH_MAX);

	(void)snprintf(path, PATH_MAX, "%s/.claude/hooks/mine", place->folder);
	(void)marks_add(&place->guard->marks, MARK_OPENED, path, STR(""));
	(void)marks_add(&place->guard->marks, MARK_OPENED, place->folder, STR(""));
	begin(place);
	assert_int_equal(mkdir(".claude", 0755), 0);
	assert_int_equal(mkdir(".claude/hooks", 0755), 0);
	put(".claude/hooks/mine", "x");
	audit(place);
	assert_null(place->result.details);
	put(".claude/hooks/other", "x");
	audit(place);
	assert_int_equal(put_away(place), 1);
}

/* Where there is no view, a root below another may be moved away and made anew. */
static void a_root_that_was_exchanged_is_looked_at_anew(void **state)
{
	struct place *place = *state;
	auto_free char *inner = memory_alloc(PATH_MAX);

	(void)snprintf(inner, PATH_MAX, "%s/inner", place->folder);
	assert_int_equal(mkdir("inner", 0755), 0);
	guard_add_root(place->guard, inner, GUARD_UNDO);
	begin(place);
	struct audit *ready = audit_open(place->guard);
	assert_int_equal(rename("inner", "elsewhere"), 0);
	assert_int_equal(mkdir("inner", 0755), 0);
	assert_int_equal(mkdir("inner/sub", 0755), 0);
	assert_int_equal(symlink("/nonexistent", "inner/sub/.git"), 0);
	(void)tool_done(&place->result);
	audit_run(ready, &(struct audit_call){0}, &place->result);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "inner/sub/.git");
	/* One that is gone altogether cannot be looked at, and that is said. */
	assert_int_equal(rename("inner", "gone"), 0);
	assert_false(audit_failed(&place->result));
	audit_run(ready, &(struct audit_call){0}, &place->result);
	assert_true(audit_failed(&place->result));
	audit_close(ready);
}

/* More names than one read of the kernel's gives. */
static void a_folder_of_many_names_is_read_whole(void **state)
{
	struct place *place = *state;
	char name[32];

	begin(place);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), ".git/hooks/hook-%04d", i);
		put(name, "x");
	}
	audit(place);
	assert_int_equal(put_away(place), 256);
	assert_int_equal(access(".git/hooks/hook-0000", F_OK), -1);
	assert_int_equal(access(".git/hooks/hook-0999", F_OK), -1);
}

/* A repository at a/b/c, with a hook. */
static void deep_repository_make(void)
{
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("a/b", 0755), 0);
	assert_int_equal(mkdir("a/b/c", 0755), 0);
	repository_make("a/b/c/.git");
	put("a/b/c/.git/hooks/pre-commit", "x");
}

static void a_root_is_gone_through_whole_when_it_is_deep(void **state)
{
	struct place *place = *state;

	deep_repository_make();
	place->guard->roots[0].walk = GUARD_CALLS;
	begin(place);
	assert_int_equal(place->guard->roots[0].walk, GUARD_CALLS);
	assert_int_equal(place->guard->marks.counts[MARK_WATCHED], 1);
	put("a/b/c/.git/hooks/pre-push", "x");
	assert_int_equal(mkdir("a/b/d", 0755), 0);
	assert_int_equal(mkdir("a/b/d/e", 0755), 0);
	put("a/b/d/e/.git", "gitdir: /nonexistent\n");
	audit(place);
	assert_int_equal(put_away(place), 2);
	assert_int_equal(access("a/b/c/.git/hooks/pre-commit", F_OK), 0);
	assert_int_equal(access("a/b/d/e/.git", F_OK), -1);
	assert_null(value_member(place->result.details, "audit_partial"));
}

static void that_there_are_too_many_folders_is_told(void **state)
{
	struct place *place = *state;
	struct err err = {0};
	char name[32];

	for (int i = 0; i <= GIT_SCAN_FOLDERS_CALL; i++) {
		(void)snprintf(name, sizeof(name), "folder-%d", i);
		assert_int_equal(mkdir(name, 0755), 0);
	}
	assert_int_equal(mkdir("folder-0/below", 0755), 0);
	place->guard->roots[0].walk = GUARD_CALLS;
	begin(place);
	/* Too many for each call; the guard has seen all of them, and with fewer not. */
	assert_int_equal(place->guard->roots[0].walk, GUARD_LAST);
	assert_int_equal(place->guard->marks.counts[MARK_PLACE], 0);
	assert_true(audit_begin(place->guard, GIT_SCAN_FOLDERS_CALL, &err));
	assert_int_equal(place->guard->roots[0].walk, GUARD_PART);
	assert_int_not_equal(place->guard->marks.counts[MARK_PLACE], 0);
	/* As when the folders came after the guard had begun. */
	place->guard->roots[0].walk = GUARD_CALLS;
	audit(place);
	assert_int_equal(place->result.status, RESULT_DONE);
	assert_false(audit_failed(&place->result));
	assert_non_null(strstr(place->result.text.data, "the first 256 folders"));
}

/* What a checkpoint finds later: older than the guard is what was there. */
static void more_repositories_are_known_by_their_age(void **state)
{
	struct place *place = *state;
	struct marks more = {0};
	char path[PATH_MAX];
	struct stat st;
	struct err err;

	deep_repository_make();
	begin(place);
	(void)snprintf(path, sizeof(path), "%s/a/b/c", place->folder);
	(void)marks_add(&more, MARK_WATCHED, path, STR(""));
	assert_int_equal(lstat("a/b/c/.git/hooks/pre-commit", &st), 0);
	const int64_t changed = st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	place->guard->ticked_ns = changed;
	assert_true(audit_begin_more(place->guard, &more, true, &err));
	assert_int_equal(more.counts[MARK_DANGER], 0);
	place->guard->ticked_ns = changed + 1;
	assert_true(audit_begin_more(place->guard, &more, true, &err));
	assert_int_equal(more.counts[MARK_DANGER], 1);
	struct audit *ready = audit_open(place->guard);
	(void)tool_done(&place->result);
	audit_run(ready, &(struct audit_call){.more = &more}, &place->result);
	assert_int_equal(put_away(place), 0);
	put("a/b/c/.git/config", "[core]\nfsmonitor = x\n");
	audit_run(ready, &(struct audit_call){.more = &more}, &place->result);
	audit_close(ready);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "a/b/c/.git/config");
	marks_fini(&more);
}

/* The guard has seen nothing of it: what is older than that stays, and what is not goes. */
static void a_whole_look_lets_pass_what_is_older(void **state)
{
	struct place *place = *state;
	struct stat st;

	begin(place);
	deep_repository_make();
	assert_int_equal(lstat("a/b/c/.git/hooks/pre-commit", &st), 0);
	const int64_t changed = st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	place->guard->roots[0].walk = GUARD_PART;
	place->guard->ticked_ns = changed + 1;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 0);
	/* One of the tick in which it began may have come since. */
	place->guard->ticked_ns = changed;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "a/b/c/.git/hooks/pre-commit");
}

/* The guard begins now: what was made so far is older, what comes is not. */
static void tick(struct place *place)
{
	struct stat before, st;

	assert_int_equal(lstat("a/b/c/.git/hooks/pre-commit", &before), 0);
	do {
		assert_int_equal(mkdir("tick", 0755), 0);
		assert_int_equal(lstat("tick", &st), 0);
		assert_int_equal(rmdir("tick"), 0);
	} while (clock_ns(&st.st_ctim) <= clock_ns(&before.st_ctim));
	place->guard->ticked_ns = clock_ns(&st.st_ctim);
}

static size_t doubtful(const struct place *place)
{
	return value_count(value_member(place->result.details, "doubtful"));
}

/* A rename changes no time below what it moves. */
static void a_whole_look_finds_what_was_moved_with_a_folder_above(void **state)
{
	struct place *place = *state;

	begin(place);
	deep_repository_make();
	assert_int_equal(mkdir("d", 0755), 0);
	tick(place);
	place->guard->roots[0].walk = GUARD_PART;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place) + doubtful(place), 0);
	assert_int_equal(rename("a/b", "d/b"), 0);
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "d/b/c/.git/hooks/pre-commit");
	assert_int_equal(doubtful(place), 0);
}

/* It says nothing of folders that lie where they lay. */
static void a_whole_look_tells_what_may_have_been_moved(void **state)
{
	struct place *place = *state;
	char path[PATH_MAX], inode[32];
	struct stat st;

	begin(place);
	deep_repository_make();
	assert_int_equal(lstat("a", &st), 0);
	tick(place);
	put("new", "x");
	put("a/new", "x");
	place->guard->roots[0].walk = GUARD_PART;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 0);
	assert_int_equal(doubtful(place), 1);
	assert_non_null(strstr(place->result.text.data, "a/b/c/.git/hooks/pre-commit"));
	(void)snprintf(path, sizeof(path), "%s/a", place->folder);
	(void)snprintf(inode, sizeof(inode), "%ju", (uintmax_t)st.st_ino);
	(void)marks_add(&place->guard->marks, MARK_PLACE, path, str_of(inode));
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place) + doubtful(place), 0);
	/* A repository that got its last name is one since then. */
	put("a/b/c/.git/new", "x");
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 0);
	assert_int_equal(doubtful(place), 1);
}

/* A file that is overwritten changes no folder above it. */
static void a_folder_is_as_new_as_the_newest_name_in_it(void **state)
{
	static const char todo[] = "a/b/c/.git/rebase-merge/git-rebase-todo";
	struct place *place = *state;

	begin(place);
	deep_repository_make();
	assert_int_equal(mkdir("a/b/c/.claude", 0755), 0);
	assert_int_equal(mkdir("a/b/c/.claude/hooks", 0755), 0);
	assert_int_equal(mkdir("a/b/c/.claude/hooks/below", 0755), 0);
	put("a/b/c/.claude/hooks/below/x", "x");
	assert_int_equal(mkdir("a/b/c/.git/rebase-merge", 0755), 0);
	put(todo, "pick 1\n");
	assert_int_equal(mkdir("a/b/c/.git/modules", 0755), 0);
	assert_int_equal(mkdir("a/b/c/.git/modules/m", 0755), 0);
	put("a/b/c/.git/modules/m/note", "x");
	put("a/b/c/.git/hooks/pre-commit", "x");
	tick(place);
	place->guard->roots[0].walk = GUARD_PART;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place) + doubtful(place), 0);
	/* A module of git's is not judged by each file that git writes in it. */
	put("a/b/c/.git/modules/m/note", "y");
	put(todo, "pick 1\nexec evil\n");
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "a/b/c/.git/rebase-merge");
	put("a/b/c/.claude/hooks/below/x", "evil");
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "a/b/c/.claude/hooks");
}

/* A file tool writes it, and then the repository is looked at for the first time. */
static void an_index_is_read_again_when_it_is_new(void **state)
{
	/* One file, "../evil". */
	static const char index[] =
		"DIRC\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\0\0\201\244\0\0\0\0\0\0\0\0\0\0\0\0aaaaaaaaaaaaaaaaaaaa\0\7../evil\0\0\0\0\0\0\0"
		"hhhhhhhhhhhhhhhhhhh";
	struct place *place = *state;
	struct marks more = {0};
	char path[PATH_MAX];
	struct err err;

	begin(place);
	deep_repository_make();
	tick(place);
	auto_close int fd = open("a/b/c/.git/index", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && fd_write_all(fd, index, sizeof(index) - 1, NULL));
	(void)snprintf(path, sizeof(path), "%s/a/b/c", place->folder);
	(void)marks_add(&more, MARK_WATCHED, path, STR(""));
	assert_true(audit_begin_more(place->guard, &more, true, &err));
	struct audit *ready = audit_open(place->guard);
	(void)tool_done(&place->result);
	audit_run(ready, &(struct audit_call){.more = &more}, &place->result);
	audit_close(ready);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "a/b/c/.git/index");
	marks_fini(&more);
}

/* It has seen all: age says nothing then, such as of what was moved there. */
static void a_whole_look_asks_the_age_of_what_was_not_seen_only(void **state)
{
	struct place *place = *state;

	place->guard->roots[0].walk = GUARD_CALLS;
	begin(place);
	deep_repository_make();
	place->guard->ticked_ns = INT64_MAX;
	/* With the guard of a front that has died, it is not known what it had seen. */
	place->guard->earlier = true;
	look_whole(place, GUARD_UNDO);
	assert_int_equal(put_away(place), 0);
	place->guard->earlier = false;
	place->guard->roots[0].walk = GUARD_UNDO;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 0);
	look_whole(place, GUARD_UNDO);
	assert_int_equal(put_away(place), 0);
	place->guard->roots[0].walk = GUARD_LAST;
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
}

/*
 * A small folder that a person grants beside a large one, of which the guard has not seen
 * all: only in the large one age decides, and the last look walks through both.
 */
static void each_root_is_judged_by_what_was_seen_of_it(void **state)
{
	struct place *place = *state;
	char path[PATH_MAX];

	assert_int_equal(mkdir("small", 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/small", place->folder);
	guard_add_root(place->guard, path, GUARD_CALLS);
	begin(place);
	place->guard->roots[0].walk = GUARD_PART;
	deep_repository_make();
	assert_int_equal(mkdir("small/x", 0755), 0);
	assert_int_equal(mkdir("small/x/y", 0755), 0);
	repository_make("small/x/y/.git");
	put("small/x/y/.git/hooks/pre-commit", "x");
	place->guard->ticked_ns = INT64_MAX;
	assert_true(guard_has(place->guard, GUARD_PART));
	look_whole(place, GUARD_PART);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), "small/x/y/.git/hooks/pre-commit");
}

static void count(struct git_scan *scan, void *context)
{
	size_t *repositories = context;

	*repositories += scan->found.counts[MARK_REPOSITORY];
}

static void a_whole_look_has_a_ceiling_and_says_what_is_behind(void **state)
{
	struct place *place = *state;
	auto_close int fd = open(place->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct git_scan_root root = {.path = place->folder, .fd = fd, .walk = true};
	struct git_scan scan;
	struct err err;
	char behind[PATH_MAX];
	size_t repositories = 0;

	deep_repository_make();
	for (size_t folders_max = 2; folders_max <= 3; folders_max++) {
		scan = (struct git_scan){.roots = &root,
					 .root_count = 1,
					 .part = GIT_SCAN_WALKS,
					 .work_ms = CLOCK_SECOND_NS / 1000000,
					 .each = count,
					 .context = &repositories,
					 .in_cell = true,
					 .folders_max = folders_max};
		root.partial = false;
		assert_true(git_scan_run(&scan, &err));
		assert_int_equal(root.partial, scan.partial);
		assert_int_equal(scan.partial, folders_max == 2);
		assert_int_equal(repositories, folders_max == 2 ? 0 : 1);
		assert_int_equal(scan.found.count, 0);
		(void)snprintf(behind, sizeof(behind), "%s/a/b", place->folder);
		if (scan.partial)
			assert_string_equal(scan.missed, behind);
		git_scan_fini(&scan);
	}
	scan = (struct git_scan){.roots = &root,
				 .root_count = 1,
				 .part = GIT_SCAN_WALKS,
				 .folders_max = 3};
	assert_true(git_scan_run(&scan, &err));
	assert_true(scan.partial);
	assert_non_null(scan.missed);
	git_scan_fini(&scan);
}

static void what_an_audit_said_is_taken_out_of_a_result(void **state)
{
	struct place *place = *state;
	struct tool_result said;

	tool_result_init(&said);
	begin(place);
	put(".git/commondir", "../other\n");
	audit(place);
	value_set_integer(tool_details(&place->result), "files", 3);
	audit_split(&place->result, &said);
	assert_string_equal(place->result.text.data, "");
	assert_int_equal(value_count(place->result.details), 1);
	assert_int_equal(value_count(denial_list(&said)), 1);
	assert_true(audit_quarantined(&said));
	tool_result_fini(&said);
}

static void a_record_goes_with_its_front(void **state)
{
	struct place *place = *state;
	struct stat st;
	bool due = true;

	begin(place);
	struct pending *record = pending_open("state", place->folder, place->guard, &due);
	assert_non_null(record);
	assert_false(due);
	/* Another session of the same workspace, beside it. */
	struct pending *beside = pending_open("state", place->folder, place->guard, &due);
	assert_non_null(beside);
	assert_false(due);
	pending_close(beside);
	pending_close(record);
	assert_int_equal(rmdir("state"), 0);
	assert_int_not_equal(stat("state", &st), 0);
}

static void what_came_after_a_dead_front_began_is_new(void **state)
{
	struct place *place = *state;
	bool due = false;

	put(".git/hooks/mine", "x");
	begin(place);
	place->guard->began_ns = place->guard->ticked_ns = clock_wall_ns();
	struct pending *record = pending_open("state", place->folder, place->guard, &due);
	/* It ends as a front does that is killed: the file stays, its lock does not. */
	pending_set_audit_due(record, true);
	pending_close(record);
	put(".git/hooks/theirs", "x");
	guard_make(place);
	begin(place);
	record = pending_open("state", place->folder, place->guard, &due);
	assert_true(due);
	audit(place);
	assert_int_equal(put_away(place), 1);
	assert_string_equal(put_away_path(place, 0), ".git/hooks/theirs");
	assert_true(place->guard->earlier);
	assert_int_equal(place->guard->marks.counts[MARK_LATE], 1);
	pending_set_audit_due(record, false);
	pending_close(record);
	assert_int_equal(rmdir("state"), 0);
}

/* Of a record that tells nothing the time counts: what is older than it was there. */
static void a_damaged_record_tells_when_its_front_began(void **state)
{
	struct place *place = *state;
	glob_t names;
	bool due = false;
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, ".git", 0, STATX_BTIME, &st), 0);
	if ((st.stx_mask & STATX_BTIME) == 0)
		unit_skip("this file system does not know when a file was made");
	put(".mcp.json", "{}");
	deep_repository_make();
	begin(place);
	tick(place);
	place->guard->began_ns = place->guard->ticked_ns;
	struct pending *record = pending_open("state", place->folder, place->guard, &due);
	pending_set_audit_due(record, true);
	pending_close(record);
	assert_int_equal(glob("state/*", 0, NULL, &names), 0);
	assert_int_equal(names.gl_pathc, 1);
	put(names.gl_pathv[0], "{\"roots\": [{");
	globfree(&names);
	put(".git/hooks/theirs", "x");
	/* Where git makes none. */
	repository_make(".git/inside");
	put(".git/inside/hooks/theirs", "x");
	put("a/b/c/.git/hooks/theirs", "x");
	guard_make(place);
	begin(place);
	const int64_t now_ns = place->guard->ticked_ns = clock_wall_ns();
	record = pending_open("state", place->folder, place->guard, &due);
	assert_true(due);
	assert_true(place->guard->ticked_ns > 0 && place->guard->ticked_ns <= now_ns);
	look_whole(place, GUARD_UNDO);
	assert_int_equal(put_away(place), 3);
	assert_int_equal(access(".mcp.json", F_OK), 0);
	assert_int_equal(access("a/b/c/.git/hooks/pre-commit", F_OK), 0);
	assert_int_equal(access(".git/inside/hooks/theirs", F_OK), -1);
	pending_set_audit_due(record, false);
	pending_close(record);
	assert_int_equal(rmdir("state"), 0);
}

/* A worker that was taken over names files that the front asks after. */
static void what_a_worker_says_was_left_is_read_with_care(void **state)
{
	static const char text[] =
		"{\"git_left\": {\"/a/\\\\ffx.lock\": {\"file\": \"1:2:3.0\", \"shared\": true, "
		"\"told\": false}, \"/f\": {\"file\": \"1:2:3.0\", \"shared\": true},"
		" \"b\": {\"file\": \"1:2:3.0\"}, \"/c\": 7, \"/d\": {\"file\": 7},"
		" \"/e\": {\"file\": \"0123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456789\"}}, \"git_locks\": []}";
	struct place *place = *state;
	struct git_left left = {0}, many = {0};
	char path[32];

	assert_true(value_parse(STR(text), 0, &place->result.details, NULL));
	audit_take_left(&place->result, &left);
	assert_int_equal(value_count(place->result.details), 1);
	assert_int_equal(left.count, 1);
	assert_string_equal(left.items[0].path, "/a/\xffx.lock");
	assert_string_equal(left.items[0].file, "1:2:3.0");
	assert_true(left.items[0].shared);
	assert_false(left.items[0].told);
	assert_null(left.items[0].held);
	for (int i = 0; i <= GIT_LEFT_MAX; i++) {
		(void)snprintf(path, sizeof(path), "/%d", i);
		assert_int_equal(git_left_add(&many, path, "x") != NULL, i < GIT_LEFT_MAX);
	}
	assert_int_equal(many.count, GIT_LEFT_MAX);
	git_left_fini(&many);
	/* A worker that is asked to remove it removes no other file. */
	put("index.lock", "x");
	begin(place);
	struct audit *ready = audit_open(place->guard);
	auto_value struct value *carried = audit_carry_left(0, &left);
	tool_result_fini(&place->result);
	tool_result_init(&place->result);
	audit_look_left(ready, NULL, carried, &place->result);
	assert_null(place->result.details);
	assert_int_equal(access("index.lock", F_OK), 0);
	audit_close(ready);
	git_left_fini(&left);
}

/* A folder that a person grants while the session runs joins what the cell has. */
static void a_granted_folder_changes_no_other_root(void **state)
{
	struct guard *granted = memory_alloc(sizeof(*granted));
	struct place *place = *state;

	put(".git/hooks/mine", "x");
	begin(place);
	place->guard->began_ns = 7;
	place->guard->ticked_ns = 5;
	guard_add_root(place->guard, "/large", GUARD_LAST);
	guard_add_root(granted, "/small", GUARD_CALLS);
	(void)marks_add(&granted->marks, MARK_DANGER, "/small/.git/config", STR("x"));
	guard_join(granted, place->guard);
	assert_int_equal(granted->root_count, 3);
	assert_true(guard_has(granted, GUARD_CALLS));
	assert_true(guard_has(granted, GUARD_LAST));
	assert_true(guard_has(granted, GUARD_UNDO));
	assert_false(guard_has(granted, GUARD_PART));
	assert_int_equal(granted->marks.counts[MARK_DANGER], 2);
	assert_int_equal(granted->began_ns, 7);
	assert_int_equal(granted->ticked_ns, 5);
	assert_false(granted->earlier);
	place->guard->earlier = true;
	guard_join(granted, place->guard);
	assert_true(granted->earlier);
	guard_free(granted);
}

/* The worker and the next front get it as text. */
static void a_guard_that_was_printed_is_the_same(void **state)
{
	static const char odd[] = "/a\\\xff\n";
	static const char names[] = "stamp\0sub\0a\\\xff/";
	struct place *place = *state;
	struct guard *guard = place->guard, *read;

	put(".git/hooks/mine", "x");
	begin(place);
	guard->home = memory_copy(odd);
	guard->began_ns = 7;
	guard->ticked_ns = 5;
	guard->earlier = true;
	guard_add_root(guard, odd, GUARD_LAST);
	for (enum mark_kind kind = 0; kind < MARK_REPOSITORY; kind++)
		(void)marks_add(&guard->marks, kind, odd,
				kind == MARK_NAMES   ? (struct str){names, sizeof(names)}
				: kind < MARK_DANGER ? STR("")
						     : str_of(odd));
	auto_value struct value *text = guard_print(guard);
	read = guard_parse(text, NULL);
	auto_value struct value *again = guard_print(read);
	assert_true(value_equal(text, again));
	assert_int_equal(read->root_count, 2);
	assert_string_equal(read->roots[1].path, odd);
	assert_int_equal(read->roots[1].walk, GUARD_LAST);
	assert_string_equal(read->home, odd);
	assert_true(read->earlier);
	for (enum mark_kind kind = 0; kind < MARK_REPOSITORY; kind++) {
		const struct mark *one = marks_find(&guard->marks, kind, odd);
		const struct mark *other = marks_find(&read->marks, kind, odd);

		assert_non_null(other);
		assert_int_equal(one->size, other->size);
		assert_memory_equal(one->text, other->text, one->size + 1);
		assert_int_equal(guard->marks.counts[kind], read->marks.counts[kind]);
	}
	guard_free(read);
	assert_null(guard_parse(NULL, NULL));
}

static void a_guard_that_lacks_a_member_or_has_an_odd_one_is_none(void **state)
{
	static const struct {
		const char *member, *value, *told;
	} odd[] = {
		{"roots", NULL, "roots is missing"},
		{"roots", "{}", "roots: object does not belong there"},
		{"roots", "[7]", "roots: 0: integer does not belong there"},
		{"roots", "[{\"path\":\"/a\"}]", "roots: 0: walk is missing"},
		{"roots", "[{\"path\":\"/a\",\"walk\":\"none\"}]",
		 "roots: 0: walk: it is none of its words"},
		{"roots", "[{\"path\":\"\\\\x\",\"walk\":\"last\"}]",
		 "roots: 0: path: it is no path in escaped form"},
		{"began", NULL, "began is missing"},
		{"ticked", "\"x\"", "ticked: string does not belong there"},
		{"earlier", NULL, "earlier is missing"},
		{"home", "1", "home: integer does not belong there"},
	};
	struct place *place = *state;

	begin(place);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		auto_value struct value *object = guard_print(place->guard);
		struct value *value = NULL;
		struct err err = {0};

		if (odd[i].value == NULL) {
			value_remove(object, odd[i].member);
		} else {
			assert_true(value_parse(str_of(odd[i].value), 0, &value, NULL));
			value_set(object, odd[i].member, value);
		}
		assert_null(guard_parse(object, &err));
		assert_string_equal(err.text, odd[i].told);
	}
	/* A mark of no sense is left out, as one that nobody knew. */
	auto_value struct value *marks = guard_print(place->guard);
	struct value *paths = NULL, *dangers = NULL;
	assert_true(value_parse(STR("[1,\"x\"]"), 0, &paths, NULL) &&
		    value_parse(STR("{\"/a\":1,\"b\":\"c\"}"), 0, &dangers, NULL));
	value_set(marks, "watched", paths);
	value_set(marks, "dangers", dangers);
	struct guard *read = guard_parse(marks, NULL);
	assert_int_equal(read->marks.counts[MARK_WATCHED] + read->marks.counts[MARK_DANGER],
			 0);
	guard_free(read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_protected_name_that_comes_or_changes_is_put_away,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_protected_name_that_comes_back_as_it_was_stays,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_repository_may_hold_what_the_top_holds,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_protected_file_of_a_quiet_time_is_a_persons,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_protected_link_or_folder_of_a_quiet_time_is_put_away, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_folder_moved_to_a_protected_name_is_no_persons,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_place_that_was_named_is_open, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_new_is_nothing_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_root_is_gone_through_whole_when_it_is_deep,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(that_there_are_too_many_folders_is_told,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_repositories_are_known_by_their_age,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_whole_look_lets_pass_what_is_older,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_whole_look_finds_what_was_moved_with_a_folder_above, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_whole_look_tells_what_may_have_been_moved,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_is_as_new_as_the_newest_name_in_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_index_is_read_again_when_it_is_new,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_whole_look_asks_the_age_of_what_was_not_seen_only,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_root_is_judged_by_what_was_seen_of_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_record_tells_when_its_front_began,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_worker_says_was_left_is_read_with_care,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_granted_folder_changes_no_other_root,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_guard_that_lacks_a_member_or_has_an_odd_one_is_none, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_guard_that_was_printed_is_the_same,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_whole_look_has_a_ceiling_and_says_what_is_behind,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_an_audit_said_is_taken_out_of_a_result,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_appears_is_moved_and_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_changed_counts_as_new, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(inert_changes_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_worktree_stays_when_both_ends_name_each_other,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_second_pointer_to_a_worktree_goes_and_not_the_worktree, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(names_that_are_no_text_are_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_pointer_out_of_the_roots_goes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(interrupted_work_stays_unless_it_executes,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_protected_file_may_not_appear, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_seen_whole_is_said_and_the_result_stays, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_root_that_is_gone_is_a_failure, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_root_that_was_exchanged_is_looked_at_anew,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_root_with_a_decoy_in_its_place_fails_each_audit,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_of_many_names_is_read_whole,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_that_run_by_themselves_are_listed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_record_goes_with_its_front, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_came_after_a_dead_front_began_is_new,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
