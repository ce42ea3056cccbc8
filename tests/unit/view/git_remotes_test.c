/* remotes: the addresses of a workspace's repository, and what is none. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "view/git_remotes.h"

/* A folder with a workspace in it. */
struct place {
	char folder[64], work[80];
	struct arena arena;
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.folder, sizeof(place.folder), "/tmp/remotes-XXXXXX");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	(void)snprintf(place.work, sizeof(place.work), "%s/project", place.folder);
	arena_init(&place.arena);
	*state = &place;
	return mkdir(place.work, 0700);
}

static int teardown(void **state)
{
	struct place *place = *state;

	arena_fini(&place->arena);
	tree_remove(place->folder);
	return 0;
}

/* Write TEXT to NAME in the place, whose folders are made. */
static void put(const struct place *place, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	for (const char *at = strchr(name, '/'); at != NULL; at = strchr(at + 1, '/')) {
		(void)snprintf(path, sizeof(path), "%s/%.*s", place->folder,
			       (int)(at - name), name);
		(void)mkdir(path, 0700);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", place->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What the remotes of the workspace are, each with a blank behind it, is WANTED. */
static void expect(struct place *place, const char *wanted)
{
	const char **found = git_remotes_read(place->work, &place->arena);
	char text[4096] = "";

	for (; *found != NULL; found++) {
		(void)strncat(text, *found, 200);
		(void)strncat(text, " ", 2);
	}
	assert_string_equal(text, wanted);
}

static void urls_and_pushurls_are_remotes(void **state)
{
	struct place *place = *state;

	put(place, "project/.git/config",
	    "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://a/b/c.git\n"
	    "\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tpushurl = \"git@a:d/e\"\n"
	    "[REMOTE \"x\"]\n\tURL = f:g/h # a comment\n"
	    "[branch \"main\"]\n\tremote = https://a/no/no\n"
	    "[submodule \"s\"]\n\turl = https://a/no/no\n");
	expect(place, "https://a/b/c.git f:g/h git@a:d/e ");
}

static void addresses_are_rewritten_as_git_does_it(void **state)
{
	struct place *place = *state;

	put(place, "project/.git/config",
	    "[url \"https://a/\"]\n\tinsteadOf = a:\n\tinsteadOf = x:\n"
	    "[url \"https://b/\"]\n\tinsteadOf = a:deep/\n"
	    "[url \"ssh://c/\"]\n\tpushInsteadOf = a:\n"
	    "[remote \"o\"]\n\turl = a:m/n\n\turl = a:deep/m/n\n\tpushurl = x:p/q\n");
	expect(place,
	       "https://a/m/n ssh://c/m/n https://b/m/n ssh://c/deep/m/n https://a/p/q ");
}

static void other_files_do_not_count(void **state)
{
	struct place *place = *state;
	char path[128], text[256];

	put(place, "more", "[remote \"m\"]\n\turl = https://a/m/m\n");
	put(place, "project/.git/config",
	    "[include]\n\tpath = ../../more\n\tpath = config\n[remote \"o\"]\n\turl = u\n");
	expect(place, "u ");
	/* a cycle of includes */
	put(place, "project/.git/config", "[include]\n\tpath = config\n");
	expect(place, "");
	/* a link */
	(void)snprintf(path, sizeof(path), "%s/project/.git/config", place->folder);
	(void)snprintf(text, sizeof(text), "%s/more", place->folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(text, path), 0);
	expect(place, "");
	/* a FIFO, which nobody writes to */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect(place, "");
	assert_int_equal(unlink(path), 0);
	expect(place, "");
}

static void a_repository_must_name_its_worktree_back(void **state)
{
	struct place *place = *state;
	char text[256];

	put(place, "other/.git/HEAD", "ref: refs/heads/main\n");
	put(place, "other/.git/config", "[remote \"o\"]\n\turl = https://a/b/c\n");
	put(place, "other/.git/worktrees/w/commondir", "../..\n");
	(void)snprintf(text, sizeof(text), "gitdir: %s/other/.git/worktrees/w\n",
		       place->folder);
	put(place, "project/.git", text);
	/* a command of a cell can write this file, but not the one that names it back */
	expect(place, "");
	(void)snprintf(text, sizeof(text), "%s/project/.git\n", place->folder);
	put(place, "other/.git/worktrees/w/gitdir", text);
	expect(place, "https://a/b/c ");
	(void)snprintf(text, sizeof(text), "gitdir: %s/other/.git\n", place->folder);
	put(place, "project/.git", text);
	expect(place, "");
}

static void a_large_configuration_has_no_remotes(void **state)
{
	enum { LARGE = 10 << 20 };
	static const char head[] = "[remote \"o\"]\n\turl = https://a/b/c\n\turl = ";
	struct place *place = *state;
	char *text = memory_alloc(LARGE + 1);

	memset(text, 'a', LARGE);
	memcpy(text, head, sizeof(head) - 1);
	put(place, "project/.git/config", text);
	expect(place, "");
	/* an address of that length is of no forge; the others count */
	text[GIT_CONFIG_MAX - 1] = '\0';
	put(place, "project/.git/config", text);
	expect(place, "https://a/b/c ");
	free(text);
}

static void so_many_remotes_are_too_many(void **state)
{
	enum { MANY = 2000 };
	struct place *place = *state;
	struct buf text;
	size_t count = 0;

	buf_init(&text, GIT_CONFIG_MAX);
	for (size_t i = 0; i < MANY; i++)
		(void)buf_addf(&text,
			       "[remote \"r%zu\"]\n\turl = a:b/%zu\n\tpushurl = c:d\n"
			       "[url \"x%zu\"]\n\tinsteadOf = a:\n",
			       i, i, i);
	put(place, "project/.git/config", text.data);
	for (const char **at = git_remotes_read(place->work, &place->arena); *at != NULL;
	     at++)
		count++;
	assert_int_equal(count, 2 * GIT_REMOTES_MAX);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(urls_and_pushurls_are_remotes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(addresses_are_rewritten_as_git_does_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(other_files_do_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(a_repository_must_name_its_worktree_back,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_large_configuration_has_no_remotes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(so_many_remotes_are_too_many, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
