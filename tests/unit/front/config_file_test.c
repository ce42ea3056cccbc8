/* config_file: whose files are believed, and what a missing one means. */
#include "../base/unit.h"

#include "front/config_file.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NOBODY = 65534 };

static char folder[PATH_BYTES];

static int make_folder(void **state)
{
	const char *temporary = getenv("TMPDIR");

	(void)state;
	(void)snprintf(folder, sizeof(folder), "%s/config_file_test.XXXXXX",
		       temporary ? temporary : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"/config.json", "/fifo",
					    "/glovebox/config.json", "/glovebox"};
	char path[PATH_BYTES + 64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", folder, names[i]);
		(void)remove(path);
	}
	return rmdir(folder);
}

static void write_file(const char *name, const char *text, mode_t mode,
		       char path[PATH_BYTES])
{
	struct err err = {0};

	(void)snprintf(path, PATH_BYTES, "%.4000s/%s", folder, name);
	(void)unlink(path);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), &err));
	assert_int_equal(fchmod(fd, mode), 0);
}

static void a_file_of_ones_own_is_read(void **state)
{
	auto_config struct config *config = NULL;
	struct err err = {0};
	char path[PATH_BYTES];

	(void)state;
	write_file("config.json", "{\"minimum_level\": \"L2\"}", 0644, path);
	if (!config_file_load(path, &config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(config_minimum_level(config), 2);
}

static void what_others_may_write_is_refused(void **state)
{
	static const mode_t modes[] = {0666, 0620, 0602};
	struct config *config = NULL;
	struct err err = {0};
	char path[PATH_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		write_file("config.json", "{}", modes[i], path);
		assert_false(config_file_load(path, &config, &err));
		assert_non_null(strstr(err.text, "may write to it; chmod go-w "));
	}
	assert_null(config);
}

/*
 * Makes *PATH another user's: root gives it away; who is not root takes a file of root's, seen
 * from a user namespace that knows this user alone and shows all others as NOBODY.
 */
static bool make_anothers(const char **path)
{
	char map[64];
	int size;

	if (geteuid() == 0)
		return chown(*path, NOBODY, NOBODY) == 0;
	*path = "/etc/passwd";
	size = snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid());
	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	auto_close int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return write(fd, map, (size_t)size) == size;
}

enum { NOT_MADE = 1, NOT_REFUSED, NOT_SAID };

static int load_anothers(const char *path)
{
	struct config *config = NULL;
	struct err err = {0};

	if (!make_anothers(&path))
		return NOT_MADE;
	if (config_file_load(path, &config, &err))
		return NOT_REFUSED;
	return strstr(err.text, "belongs to another user (uid 65534)") ? 0 : NOT_SAID;
}

static void what_belongs_to_another_is_refused(void **state)
{
	char path[PATH_BYTES];
	int status = -1;

	(void)state;
	write_file("config.json", "{}", 0644, path);
	/* A process of its own: it may change its user namespace. */
	pid_t pid = fork();
	if (pid == 0)
		_exit(load_anothers(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_missing_file_is_an_error_only_when_named(void **state)
{
	auto_config struct config *config = NULL;
	struct config *none = NULL;
	struct err err = {0};
	char path[PATH_BYTES];

	(void)state;
	(void)snprintf(path, sizeof(path), "%.4000s/missing.json", folder);
	assert_false(config_file_load(path, &none, &err));
	assert_non_null(strstr(err.text, "missing.json: No such file"));
	assert_int_equal(setenv("XDG_CONFIG_HOME", folder, 1), 0);
	assert_true(config_file_load(NULL, &config, &err));
	assert_int_equal(config_minimum_level(config), 3);
}

static void the_default_lies_in_the_config_directory(void **state)
{
	auto_config struct config *config = NULL;
	struct err err = {0};
	struct buf place;
	char path[PATH_BYTES];

	(void)state;
	(void)snprintf(path, sizeof(path), "%.4000s/glovebox", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file("glovebox/config.json", "// mine\n{\"minimum_level\": \"L0\"}", 0600,
		   path);
	assert_int_equal(setenv("XDG_CONFIG_HOME", folder, 1), 0);
	assert_true(config_file_load(NULL, &config, &err));
	assert_int_equal(config_minimum_level(config), 0);

	buf_init(&place, PATH_BYTES);
	assert_int_equal(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
	assert_int_equal(setenv("HOME", "/home/x", 1), 0);
	assert_true(config_file_beside("config.json", &place));
	assert_string_equal(place.data, "/home/x/.config/glovebox/config.json");
	buf_fini(&place);
}

static void a_fifo_and_a_folder_are_no_configuration(void **state)
{
	struct config *config = NULL;
	struct err err = {0};
	char path[PATH_BYTES];

	(void)state;
	assert_false(config_file_load(folder, &config, &err));
	assert_non_null(strstr(err.text, "is not a regular file"));
	(void)snprintf(path, sizeof(path), "%.4000s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(config_file_load(path, &config, &err));
	assert_non_null(strstr(err.text, "is not a regular file"));
}

static void what_is_wrong_inside_names_the_file(void **state)
{
	struct config *config = NULL;
	struct err err = {0};
	char path[PATH_BYTES];

	(void)state;
	write_file("config.json", "{\"agnets\": {}}", 0600, path);
	assert_false(config_file_load(path, &config, &err));
	assert_non_null(strstr(err.text, "/config.json: /: there is no key \"agnets\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_ones_own_is_read),
		cmocka_unit_test(what_others_may_write_is_refused),
		cmocka_unit_test(what_belongs_to_another_is_refused),
		cmocka_unit_test(a_missing_file_is_an_error_only_when_named),
		cmocka_unit_test(the_default_lies_in_the_config_directory),
		cmocka_unit_test(a_fifo_and_a_folder_are_no_configuration),
		cmocka_unit_test(what_is_wrong_inside_names_the_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
