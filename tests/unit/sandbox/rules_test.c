/*
 * rules: a view as a Landlock ruleset, on this kernel and as older ones would take it. Each
 * ruleset is entered by a child, which then tries.
 */
#include "../base/unit.h"

#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/view.h"

enum { PATH_ROOM = 128, NEWEST_HERE = 7 };

struct tree {
	char root[32];
	char work[PATH_ROOM], outside[PATH_ROOM], shown[PATH_ROOM], hidden[PATH_ROOM];
	struct view_entry entries[3];
	struct view view;
};

static void write_file(const char *folder, const char *name)
{
	char path[2 * PATH_ROOM];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
}

static void make_tree(struct tree *tree)
{
	memset(tree, 0, sizeof(*tree));
	(void)snprintf(tree->root, sizeof(tree->root), "/tmp/glovebox-rules-XXXXXX");
	assert_non_null(mkdtemp(tree->root));
	(void)snprintf(tree->work, PATH_ROOM, "%s/work", tree->root);
	(void)snprintf(tree->outside, PATH_ROOM, "%s/outside", tree->root);
	(void)snprintf(tree->shown, PATH_ROOM, "%s/shown", tree->root);
	(void)snprintf(tree->hidden, PATH_ROOM, "%s/shown/hidden", tree->root);
	assert_int_equal(mkdir(tree->work, 0755), 0);
	assert_int_equal(mkdir(tree->outside, 0755), 0);
	assert_int_equal(mkdir(tree->shown, 0755), 0);
	assert_int_equal(mkdir(tree->hidden, 0755), 0);
	write_file(tree->work, "f");
	write_file(tree->outside, "f");
	write_file(tree->shown, "f");
	write_file(tree->hidden, "f");
	tree->entries[0] = (struct view_entry){.kind = VIEW_TREE,
					       .path = tree->work,
					       .source = tree->work,
					       .fd = -1,
					       .writable = true};
	tree->entries[1] = (struct view_entry){.kind = VIEW_TREE,
					       .path = tree->shown,
					       .source = tree->shown,
					       .fd = -1};
	tree->entries[2] =
		(struct view_entry){.kind = VIEW_MASK, .path = tree->hidden, .fd = -1};
	tree->view = (struct view){tree->entries, 3};
}

static bool opens(const char *folder, int flags)
{
	char path[2 * PATH_ROOM];

	(void)snprintf(path, sizeof(path), "%s/f", folder);
	int fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

/* The number of the first thing that is not as it must be, 0: none. */
static int try_out(const struct tree *tree, int rules)
{
	struct err err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || !landlock_enter(rules, &err))
		return 1;
	if (!opens(tree->work, O_RDWR) || !opens(tree->shown, O_RDONLY))
		return 2;
	if (opens(tree->shown, O_WRONLY) || opens(tree->outside, O_RDONLY))
		return 3;
	if (opens(tree->hidden, O_RDONLY))
		return 4;
	/* Its list of names would show what is in the hidden folder as well. */
	if (open(tree->shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0)
		return 5;
	return 0;
}

static void every_abi_closes_what_is_outside(void **state)
{
	int here = landlock_abi();
	struct tree tree;

	(void)state;
	if (here == 0)
		unit_skip("this kernel has no Landlock");
	make_tree(&tree);
	for (int abi = 1; abi <= here && abi <= NEWEST_HERE; abi++) {
		struct err err = {0};
		int rules = -1, status = -1;

		assert_true(landlock_rules_make(&tree.view, abi, &rules, &err));
		pid_t pid = fork();
		if (pid == 0)
			_exit(try_out(&tree, rules));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		(void)close(rules);
	}
	fd_folder_remove(tree.root);
}

static void what_is_hidden_in_a_writable_folder_is_refused(void **state)
{
	struct err err = {0};
	struct tree tree;
	int rules = -1;

	(void)state;
	if (landlock_abi() == 0)
		unit_skip("this kernel has no Landlock");
	make_tree(&tree);
	tree.entries[1].writable = true;
	assert_false(landlock_rules_make(&tree.view, 1, &rules, &err));
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.text, "hidden"));
	fd_folder_remove(tree.root);
}

static void an_older_kernel_is_asked_for_less(void **state)
{
	(void)state;
	assert_int_equal(landlock_rules_handled(1).handled_access_fs & KERNEL_ACCESS_REFER,
			 0);
	assert_int_not_equal(landlock_rules_handled(2).handled_access_fs &
				     KERNEL_ACCESS_REFER,
			     0);
	assert_int_equal(landlock_rules_handled(2).handled_access_fs & KERNEL_ACCESS_TRUNCATE,
			 0);
	assert_int_not_equal(landlock_rules_handled(3).handled_access_fs &
				     KERNEL_ACCESS_TRUNCATE,
			     0);
	assert_int_equal(landlock_rules_handled(3).handled_access_net, 0);
	assert_int_equal(landlock_rules_handled(4).handled_access_net, KERNEL_LANDLOCK_TCP);
	assert_int_equal(landlock_rules_handled(4).handled_access_fs &
				 KERNEL_ACCESS_IOCTL_DEV,
			 0);
	assert_int_equal(landlock_rules_handled(5).scoped, 0);
	assert_int_not_equal(landlock_rules_handled(6).scoped, 0);
	assert_int_equal(landlock_rules_handled(8).handled_access_fs &
				 KERNEL_ACCESS_RESOLVE_UNIX,
			 0);
	assert_int_not_equal(landlock_rules_handled(9).handled_access_fs &
				     KERNEL_ACCESS_RESOLVE_UNIX,
			     0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_abi_closes_what_is_outside),
		cmocka_unit_test(what_is_hidden_in_a_writable_folder_is_refused),
		cmocka_unit_test(an_older_kernel_is_asked_for_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
