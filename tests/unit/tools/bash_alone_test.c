/* shell_alone: which texts are one program; bash_shell_test.c shows that they do the same. */
#include "hand.h"

#include "base/buf.h"
#include "base/fd.h"
#include "tools/shell.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *text;
	const char *path; /* NULL: it is not alone */
} rows[] = {
	{"/bin/true", "/bin/true"},
	{"  /bin/true  \n", "/bin/true"},
	{"/bin/ls *.c 'a b' ~ {x,y} \"c d\" -la", "/bin/ls"},
	{"./script with words", "./script"},
	{"# first a word\n/bin/true # and then one", NULL},
	{"true", NULL},
	{"echo x", NULL},
	{"time /bin/true", NULL},
	{"! /bin/true", NULL},
	{"cd /", NULL},
	{"/bin/true; /bin/true", NULL},
	{"/bin/true\n/bin/true", NULL},
	{"/bin/true &", NULL},
	{"/bin/true | /bin/true", NULL},
	{"/bin/true && /bin/true", NULL},
	{"/bin/true > file", NULL},
	{"(/bin/true)", NULL},
	{"a=b /bin/true", NULL},
	{"/bin/ls $HOME", NULL},
	{"/bin/ls $(pwd)", NULL},
	{"/bin/ls `pwd`", NULL},
	{"/bin/ls 'open", NULL},
	{"/bin/tr\\ue", NULL},
	{"\"/bin/true\"", NULL},
	{"/bin/t*ue", NULL},
	{"~/true", NULL},
	{"no-such-command", NULL},
	{"/no/such/file", NULL},
	{"./plain", NULL}, /* not executable */
	{"./asbash", NULL}, /* executable, but a text without a first line for the kernel */
	{"./folder", NULL},
	{"", NULL},
	{"\n", NULL},
};

static void make(const struct hand *hand, const char *name, const char *text, mode_t mode)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", hand->workspace, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), NULL));
}

static void only_one_program_of_plain_words_is_alone(void **state)
{
	struct hand *hand = *state;
	const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	char folder[PATH_MAX];
	struct buf path;

	make(hand, "script", "#!/bin/sh\n", 0755);
	make(hand, "plain", "#!/bin/sh\n", 0644);
	make(hand, "asbash", "echo hello\n", 0755);
	(void)snprintf(folder, sizeof(folder), "%s/folder", hand->workspace);
	assert_int_equal(mkdir(folder, 0755), 0);
	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool alone = shell_alone(str_of(rows[i].text), hand->workspace,
					       environment, &path);
		if (alone != (rows[i].path != NULL))
			fail_msg("%s", rows[i].text);
		if (alone)
			assert_string_equal(path.data, rows[i].path);
	}
	buf_fini(&path);
}

static void a_name_is_what_the_first_folder_of_path_has(void **state)
{
	struct hand *hand = *state;
	char first[PATH_MAX + 32], found[PATH_MAX + 32];
	const char *const environment[] = {first, NULL};
	const char *const here[] = {"PATH=.:/usr/bin", NULL};
	const char *const nowhere[] = {"HOME=/", NULL};
	struct buf path;

	make(hand, "sleep", "#!/bin/sh\n", 0755);
	(void)snprintf(first, sizeof(first), "PATH=%s:/usr/bin:/bin", hand->workspace);
	(void)snprintf(found, sizeof(found), "%s/sleep", hand->workspace);
	buf_init(&path, PATH_MAX);
	assert_true(shell_alone(STR("sleep 1"), "/", environment, &path));
	assert_string_equal(path.data, found);
	assert_false(shell_alone(STR("sleep 1"), hand->workspace, here, &path));
	assert_false(shell_alone(STR("sleep 1"), "/", nowhere, &path));
	buf_fini(&path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(only_one_program_of_plain_words_is_alone),
		TEST(a_name_is_what_the_first_folder_of_path_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
