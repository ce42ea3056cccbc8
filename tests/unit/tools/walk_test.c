/*
 * Tests of tools/walk and tools/rules: what is visited, by how many threads, and what
 * is not.
 */
#include "tree.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tool/call.h"
#include "tools/search/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The paths visited, a line each. */
struct visits {
	pthread_mutex_t lock;
	struct buf paths;
	atomic_uint threads_seen; /* a bit each */
};

static void note_visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct visits *visits = owner;

	atomic_fetch_or(&visits->threads_seen, 1U << walker_number(walker));
	(void)pthread_mutex_lock(&visits->lock);
	(void)buf_addf(&visits->paths, "%.*s\n", (int)entry->path.size, entry->path.data);
	(void)pthread_mutex_unlock(&visits->lock);
}

/* Walk PATH with OPTIONS; the paths visited, sorted, to be freed. */
static char *walk_lines(struct hand *hand, const char *path, struct walk_options options,
			struct walk_summary *summary)
{
	struct call call = {.deadline_ms = clock_deadline(60), .control_fd = -1};
	struct visits visits = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct walk_summary own;
	struct walk_start start;
	struct err err;
	char *lines;

	buf_init(&visits.paths, 1 << 26);
	if (!options.call)
		options.call = &call;
	options.owner = &visits;
	options.visit = note_visit;
	call.files = hand->files;
	call.environment = hand->environment;
	if (!walk_start_open(&start, &call, path, &err))
		fail_msg("%s", err.text);
	walk_summary_init(&own);
	walk_run(&start, &options, &own);
	if (summary) {
		*summary = own;
		buf_init(&summary->example, 0);
	}
	walk_summary_fini(&own);
	walk_start_fini(&start);
	lines = sorted_lines(buf_str(&visits.paths), '\n');
	buf_fini(&visits.paths);
	return lines;
}

static void assert_walk(struct hand *hand, const char *path, struct walk_options options,
			const char *expected)
{
	char *lines = walk_lines(hand, path, options, NULL);

	assert_string_equal(lines, expected);
	free(lines);
}

static void finds_files_and_links_and_never_enters_git_folders(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a.c", "", 1);
	tree_write(hand, "d/.hidden", "", 1);
	tree_write(hand, "d/e/f", "", 1);
	tree_write(hand, ".git/config", "", 1);
	tree_write(hand, "d/.git", "gitdir: ../.git/modules/d\n", 1);
	tree_link(hand, "d/link", "e");
	tree_folder(hand, "empty");
	assert_walk(hand, ".", (struct walk_options){0}, "a.c\nd/.hidden\nd/e/f\nd/link\n");
	assert_walk(hand, "d", (struct walk_options){0}, ".hidden\ne/f\nlink\n");
}

static void links_are_not_followed_whatever_they_lead_to(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "d/x", "", 1);
	tree_link(hand, "up", "..");
	tree_link(hand, "d/self", ".");
	tree_link(hand, "etc", "/etc");
	assert_walk(hand, ".", (struct walk_options){0}, "d/self\nd/x\netc\nup\n");
}

static void depth_and_under_bound_the_walk(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "1", "", 1);
	tree_write(hand, "a/2", "", 1);
	tree_write(hand, "a/b/3", "", 1);
	tree_write(hand, "ab/2", "", 1);
	tree_write(hand, "a/bc/3", "", 1);
	assert_walk(hand, ".", (struct walk_options){.depth = 1}, "1\n");
	assert_walk(hand, ".", (struct walk_options){.depth = 2}, "1\na/2\nab/2\n");
	assert_walk(hand, ".", (struct walk_options){.under = "a/b"}, "1\na/2\na/b/3\n");
	assert_walk(hand, ".", (struct walk_options){.under = "a"},
		    "1\na/2\na/b/3\na/bc/3\n");
}

static void what_is_ignored_and_what_is_not_are_the_whole(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "*.o\n/build/\n!keep.o\n", 1);
	tree_write(hand, "x.o", "", 1);
	tree_write(hand, "keep.o", "", 1);
	tree_write(hand, "x.c", "", 1);
	tree_write(hand, "build/x.c", "", 1);
	tree_write(hand, "build/keep.o", "", 1);
	tree_write(hand, "src/build/x.c", "", 1);
	assert_walk(hand, ".", (struct walk_options){0},
		    ".gitignore\nkeep.o\nsrc/build/x.c\nx.c\n");
	assert_walk(hand, ".", (struct walk_options){.ignored_only = true},
		    "build/keep.o\nbuild/x.c\nx.o\n");
}

static void rules_above_the_start_hold_in_it_too(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "*.log\n/a/b/secret\n", 1);
	tree_write(hand, "a/.gitignore", "!yes.log\n", 1);
	tree_write(hand, "a/b/no.log", "", 1);
	tree_write(hand, "a/b/yes.log", "", 1);
	tree_write(hand, "a/b/secret", "", 1);
	tree_write(hand, "a/b/open", "", 1);
	assert_walk(hand, "a/b", (struct walk_options){0}, "open\nyes.log\n");
}

static void a_folder_asked_for_by_name_is_walked_though_it_is_ignored(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "out/\n", 1);
	tree_write(hand, "out/d/x", "", 1);
	tree_write(hand, "out/.gitignore", "x\n", 1);
	assert_walk(hand, "out", (struct walk_options){0}, ".gitignore\nd/x\n");
	assert_walk(hand, "out/d", (struct walk_options){0}, "x\n");
}

static void a_nested_repository_begins_anew_with_its_own_exclude_file(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "*.o\n", 1);
	tree_write(hand, "sub/.git/info/exclude", "local\n", 1);
	tree_write(hand, "sub/x.o", "", 1);
	tree_write(hand, "sub/local", "", 1);
	tree_write(hand, "x.o", "", 1);
	assert_walk(hand, ".", (struct walk_options){0}, ".gitignore\nsub/x.o\n");
}

static void an_ignore_file_that_is_a_link_is_not_read(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "rules", "x\n", 1);
	tree_link(hand, ".gitignore", "rules");
	tree_write(hand, "x", "", 1);
	assert_walk(hand, ".", (struct walk_options){0}, ".gitignore\nrules\nx\n");
}

enum { MANY_FOLDERS = 60, MANY_FILES = 40, LARGE_FOLDER = 3000 };

static void any_number_of_threads_visits_each_file_once(void **state)
{
	struct hand *hand = *state;
	struct walk_summary summary;
	struct buf expected;
	char name[64];
	char *once;

	buf_init(&expected, 1 << 24);
	for (unsigned i = 0; i < MANY_FOLDERS; i++) {
		for (unsigned k = 0; k < MANY_FILES; k++) {
			(void)snprintf(name, sizeof(name), "d%u/e%u/f%u", i % 7, i, k);
			tree_write(hand, name, "", 1);
			(void)buf_addf(&expected, "%s\n", name);
		}
	}
	/* More than one buffer of entries: shared out in parts. */
	for (unsigned i = 0; i < LARGE_FOLDER; i++) {
		(void)snprintf(name, sizeof(name), "large/a-file-with-some-name-%u", i);
		tree_write(hand, name, "", 1);
		(void)buf_addf(&expected, "%s\n", name);
	}
	once = sorted_lines(buf_str(&expected), '\n');
	for (unsigned threads = 1; threads <= WALK_THREADS_MAX; threads++) {
		char *lines =
			walk_lines(hand, ".", (struct walk_options){.threads = threads},
				   &summary);

		assert_string_equal(lines, once);
		assert_int_equal(summary.end, WALK_COMPLETE);
		assert_int_equal(summary.folders, 1 + 7 + MANY_FOLDERS + 1);
		free(lines);
	}
	free(once);
	buf_fini(&expected);
}

static void a_gitignore_at_the_end_of_a_large_folder_holds(void **state)
{
	struct hand *hand = *state;
	char name[64];

	for (unsigned i = 0; i < LARGE_FOLDER; i++) {
		(void)snprintf(name, sizeof(name), "large/a-file-with-some-name-%u", i);
		tree_write(hand, name, "", 1);
	}
	tree_write(hand, "large/.gitignore", "a-file-*\n", 1);
	assert_walk(hand, ".", (struct walk_options){0}, "large/.gitignore\n");
}

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	(void)closedir(folder);
	return count;
}

/* Folders "d/d/d/…", so deep that no single path reaches the last. */
static void make_deep_tree(struct hand *hand, unsigned depth)
{
	int fd = open(hand->workspace, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	for (unsigned i = 0; i < depth; i++) {
		int below;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		below = openat(fd, "d", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		assert_true(below >= 0);
		(void)close(fd);
		fd = below;
	}
	(void)close(fd);
}

static void remove_deep_tree(struct hand *hand, unsigned depth)
{
	int fd = open(hand->workspace, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	assert_int_equal(fchdir(fd), 0);
	for (unsigned i = 0; i < depth; i++)
		assert_int_equal(chdir("d"), 0);
	for (unsigned i = 0; i < depth; i++) {
		assert_int_equal(chdir(".."), 0);
		assert_int_equal(rmdir("d"), 0);
	}
	(void)close(fd);
	assert_int_equal(chdir("/"), 0);
}

static void a_tree_deeper_than_any_path_ends_and_is_counted(void **state)
{
	enum { DEEP = 2200, FEW_DESCRIPTORS = 24 };
	struct hand *hand = *state;
	struct rlimit before, few;
	struct walk_summary summary;
	size_t descriptors = open_descriptors();
	char *lines;

	make_deep_tree(hand, DEEP);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = FEW_DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	lines = walk_lines(hand, ".", (struct walk_options){.threads = 4}, &summary);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_string_equal(lines, "");
	assert_int_equal(summary.end, WALK_COMPLETE);
	assert_int_equal(summary.too_long, 1);
	assert_int_equal(summary.unreadable, 0);
	/* The start, and as many as fit into a path of 4,095 bytes. */
	assert_int_equal(summary.folders, 2049);
	free(lines);
	assert_int_equal(open_descriptors(), descriptors);
	remove_deep_tree(hand, DEEP);
}

static void a_folder_that_cannot_be_read_is_counted(void **state)
{
	struct hand *hand = *state;
	struct walk_summary summary;
	char closed[128];
	char *lines;

	tree_write(hand, "open/x", "", 1);
	tree_write(hand, "closed/x", "", 1);
	(void)snprintf(closed, sizeof(closed), "%s/closed", hand->workspace);
	assert_int_equal(chmod(hand->workspace, 0755), 0);
	assert_int_equal(chmod(closed, 0), 0);
	/* Nothing is closed to root: be nobody for a moment. */
	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	lines = walk_lines(hand, ".", (struct walk_options){0}, &summary);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(closed, 0755), 0);
	assert_string_equal(lines, "open/x\n");
	assert_int_equal(summary.unreadable, 1);
	free(lines);
}

static void stops_when_the_call_is_out_of_time(void **state)
{
	struct hand *hand = *state;
	struct call call = {.deadline_ms = 1, .control_fd = -1};
	struct walk_summary summary;
	char *lines;

	tree_write(hand, "a/x", "", 1);
	lines = walk_lines(hand, ".", (struct walk_options){.call = &call}, &summary);
	assert_string_equal(lines, "");
	assert_int_equal(summary.end, WALK_STOPPED);
	free(lines);
}

static void stops_at_its_own_bounds_and_says_which(void **state)
{
	struct hand *hand = *state;
	struct walk_summary summary;
	char name[32];
	char *lines;

	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "d%u/f%u", i % 10, i);
		tree_write(hand, name, "", 1);
	}
	lines = walk_lines(hand, ".", (struct walk_options){.entries_max = 300}, &summary);
	assert_int_equal(summary.end, WALK_FULL);
	assert_in_range(summary.entries, 300, 900);
	free(lines);
	lines = walk_lines(hand, ".", (struct walk_options){.until_ms = 1}, &summary);
	assert_int_equal(summary.end, WALK_LATE);
	free(lines);
}

/* Exchange a folder and a link that leads out, over and over. */
struct exchange {
	struct hand *hand;
	atomic_bool stop;
	atomic_uint times;
};

static void *exchange_main(void *argument)
{
	struct exchange *exchange = argument;
	int fd = open(exchange->hand->workspace, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	while (!atomic_load(&exchange->stop)) {
		(void)renameat2(fd, "a/folder", fd, "a/link", RENAME_EXCHANGE);
		atomic_fetch_add(&exchange->times, 1);
	}
	(void)close(fd);
	return NULL;
}

static void a_folder_exchanged_for_a_link_leads_nowhere(void **state)
{
	enum { RACES = 5000, WALKS_MAX = 200000 };
	struct hand *hand = *state;
	struct exchange exchange = {.hand = hand};
	pthread_t thread;

	tree_write(hand, "../outside/below/secret", "", 1);
	tree_write(hand, "a/folder/below/x", "", 1);
	tree_link(hand, "a/link", hand->outside);
	assert_int_equal(pthread_create(&thread, NULL, exchange_main, &exchange), 0);
	for (unsigned i = 0; i < WALKS_MAX && atomic_load(&exchange.times) < RACES; i++) {
		char *lines = walk_lines(hand, ".", (struct walk_options){0}, NULL);

		assert_null(strstr(lines, "secret"));
		free(lines);
	}
	atomic_store(&exchange.stop, true);
	(void)pthread_join(thread, NULL);
	assert_true(atomic_load(&exchange.times) >= RACES);
}

/* Fill FOLDER ("" or ended by a slash), some folders of it with rules. */
static void make_random_tree(struct hand *hand, uint64_t *seed, const char *folder,
			     unsigned depth, unsigned *budget)
{
	char path[256];
	struct buf rules;

	buf_init(&rules, 4096);
	if (depth == 0 || made_random(seed, 3) == 0) {
		made_rules(seed, &rules);
		(void)snprintf(path, sizeof(path), "%s.gitignore", folder);
		tree_write_bytes(hand, path, buf_str(&rules), 1);
	}
	for (unsigned n = 0; n < 10 && *budget > 0; n++) {
		auto_free char *full = NULL;
		const char *name = made_name(seed);
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s%s", folder, name);
		full = hand_path(hand, path);
		if (lstat(full, &st) == 0)
			continue;
		--*budget;
		if (depth < 3 && made_random(seed, 3) == 0) {
			(void)snprintf(path, sizeof(path), "%s%s/", folder, name);
			tree_folder(hand, path);
			make_random_tree(hand, seed, path, depth + 1, budget);
		} else {
			tree_write(hand, path, "", 1);
		}
	}
	buf_fini(&rules);
}

/* Rules, or nothing, in the file PATH. */
static void write_rules(struct hand *hand, uint64_t *seed, const char *path)
{
	struct buf rules;

	buf_init(&rules, 4096);
	if (made_random(seed, 2))
		made_rules(seed, &rules);
	tree_write_bytes(hand, path, buf_str(&rules), 1);
	buf_fini(&rules);
}

/*
 * The least that git takes for a repository, or for a linked worktree of one; sometimes with
 * rules of its own, with a file that its configuration names, and blind to case.
 */
static void make_repository(struct hand *hand, uint64_t *seed)
{
	const bool linked = made_random(seed, 4) == 0;
	const char *folder = linked ? "main.git" : ".git";
	char path[64];
	struct buf config;

	buf_init(&config, 4096);
	(void)snprintf(path, sizeof(path), "%s/HEAD", folder);
	tree_write(hand, path, "ref: refs/heads/main\n", 1);
	(void)snprintf(path, sizeof(path), "%s/objects", folder);
	tree_folder(hand, path);
	(void)snprintf(path, sizeof(path), "%s/refs", folder);
	tree_folder(hand, path);
	(void)snprintf(path, sizeof(path), "%s/info/exclude", folder);
	write_rules(hand, seed, path);
	if (linked) {
		tree_write(hand, ".git", "gitdir: main.git/worktrees/w\n", 1);
		tree_write(hand, "main.git/worktrees/w/HEAD", "ref: refs/heads/w\n", 1);
		tree_write(hand, "main.git/worktrees/w/commondir", "../..\n", 1);
		tree_write(hand, "main.git/worktrees/w/gitdir", "../../../.git\n", 1);
		tree_write(hand, "main.git/worktrees/w/info/exclude", "*\n", 1);
	}
	if (made_random(seed, 3) == 0)
		(void)buf_adds(&config, made_random(seed, 2) ? "[core]\n\tignoreCase\n"
							     : "[Core] IGNORECASE = yes\n");
	if (made_random(seed, 3) == 0) {
		(void)buf_adds(&config, "[core]\n\texcludesFile = \"user rules\" ; here\n");
		write_rules(hand, seed, "user rules");
	}
	(void)snprintf(path, sizeof(path), "%s/config", folder);
	tree_write_bytes(hand, path, buf_str(&config), 1);
	buf_fini(&config);
}

/*
 * What git lists in one random tree is what the walk visits. Returns how many files that
 * are; *IGNORED gets how many are not listed.
 */
static size_t compare_with_git(struct hand *hand, uint64_t *seed, size_t *ignored)
{
	static const char *const list[] = {"git", "ls-files", "-o", "--exclude-standard",
					   "-z",  NULL};
	const uint64_t begun = *seed;
	unsigned budget = 60;
	struct buf out;
	char *git, *ours, *all;
	size_t count = 0;

	buf_init(&out, 1 << 20);
	make_repository(hand, seed);
	make_random_tree(hand, seed, "", 0, &budget);
	/* dev/bootstrap installs git */
	assert_int_equal(tree_program(hand, list, &out), 0);
	git = sorted_lines(buf_str(&out), '\0');
	ours = walk_lines(hand, ".", (struct walk_options){0}, NULL);
	all = walk_lines(hand, ".", (struct walk_options){.ignored_only = true}, NULL);
	if (strcmp(git, ours) != 0)
		fail_msg("GLOVEBOX_TEST_SEED=%" PRIu64 ": git lists\n%s\nand the walk\n%s",
			 begun, git, ours);
	for (const char *at = ours; *at; at++)
		count += *at == '\n';
	for (const char *at = all; *at; at++)
		*ignored += *at == '\n';
	free(git);
	free(ours);
	free(all);
	buf_fini(&out);
	return count;
}

static void lists_what_git_lists(void **state)
{
	enum { TREES = 120 };
	uint64_t seed = made_seed(88172645463325252);
	size_t listed = 0, ignored = 0;

	(void)state;
	for (unsigned i = 0; i < TREES; i++) {
		void *made;

		assert_int_equal(hand_set_up(&made), 0);
		listed += compare_with_git(made, &seed, &ignored);
		assert_int_equal(hand_tear_down(&made), 0);
	}
	/* Rules that leave out all or nothing would show nothing. */
	assert_in_range(listed, TREES * 10, TREES * 50);
	assert_in_range(ignored, TREES * 10, TREES * 50);
}

#define WALK_TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALK_TEST(finds_files_and_links_and_never_enters_git_folders),
		WALK_TEST(links_are_not_followed_whatever_they_lead_to),
		WALK_TEST(depth_and_under_bound_the_walk),
		WALK_TEST(what_is_ignored_and_what_is_not_are_the_whole),
		WALK_TEST(rules_above_the_start_hold_in_it_too),
		WALK_TEST(a_folder_asked_for_by_name_is_walked_though_it_is_ignored),
		WALK_TEST(a_nested_repository_begins_anew_with_its_own_exclude_file),
		WALK_TEST(an_ignore_file_that_is_a_link_is_not_read),
		WALK_TEST(any_number_of_threads_visits_each_file_once),
		WALK_TEST(a_gitignore_at_the_end_of_a_large_folder_holds),
		WALK_TEST(a_tree_deeper_than_any_path_ends_and_is_counted),
		WALK_TEST(a_folder_that_cannot_be_read_is_counted),
		WALK_TEST(stops_when_the_call_is_out_of_time),
		WALK_TEST(stops_at_its_own_bounds_and_says_which),
		WALK_TEST(a_folder_exchanged_for_a_link_leads_nowhere),
		WALK_TEST(lists_what_git_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
