/* Tests of base/mounts. */
#include "unit.h"

#include "base/fd.h"

static void a_line_gives_root_point_type_and_options(void **state)
{
	struct str rest = STR("24 30 0:22 / /proc rw,nosuid - proc proc rw\n"
			      "31 23 0:28 /a /sys/fs/cgroup rw shared:9 master:2 - cgroup "
			      "cgroup rw,memory\n");
	struct mount mount;

	(void)state;
	assert_true(fd_mounts_next(&rest, &mount));
	assert_true(str_is(mount.root, "/"));
	assert_true(str_is(mount.point, "/proc"));
	assert_true(str_is(mount.type, "proc"));
	assert_true(str_is(mount.super, "rw"));
	assert_true(fd_mounts_next(&rest, &mount));
	assert_true(str_is(mount.root, "/a"));
	assert_true(str_is(mount.point, "/sys/fs/cgroup"));
	assert_true(str_is(mount.type, "cgroup"));
	assert_true(str_is(mount.super, "rw,memory"));
	assert_false(fd_mounts_next(&rest, &mount));
}

static void a_broken_line_is_passed_over(void **state)
{
	struct str rest = STR("1 2 3\n - \n\n1 2 3 / /cg rw - cgroup\n1 2 3 / - - ext4");
	struct mount mount;

	(void)state;
	assert_true(fd_mounts_next(&rest, &mount));
	assert_true(str_is(mount.point, "/cg"));
	assert_true(str_is(mount.type, "cgroup"));
	assert_int_equal(mount.super.size, 0);
	assert_true(fd_mounts_next(&rest, &mount));
	assert_true(str_is(mount.point, "-"));
	assert_true(str_is(mount.type, "ext4"));
	assert_false(fd_mounts_next(&rest, &mount));
}

static void blanks_in_a_path_come_back(void **state)
{
	static const struct {
		const char *written, *path;
	} cases[] = {
		{"/a", "/a"},         {"/a\\040b\\134c\\011", "/a b\\c\t"},
		{"/a\\04", "/a\\04"}, {"/a\\089", "/a\\089"},
		{"\\377", "\377"},    {"", ""},
	};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		buf_init(&out, 64);
		assert_true(fd_mounts_add_path(str_of(cases[i].written), &out));
		assert_string_equal(out.data, cases[i].path);
		buf_fini(&out);
	}
	buf_init(&out, 3);
	assert_false(fd_mounts_add_path(STR("/abcd"), &out));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_gives_root_point_type_and_options),
		cmocka_unit_test(a_broken_line_is_passed_over),
		cmocka_unit_test(blanks_in_a_path_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
