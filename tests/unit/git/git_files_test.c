/* Tests of git/git_config, git_index and git_text: the readers of git's own files. */
#include "../base/unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "git/git_config.h"
#include "git/git_index.h"
#include "git/git_text.h"
#include "places.h"

static char *active_of(const char *text)
{
	struct git_config config;

	git_config_init(&config);
	git_config_read(str_of(text), &config);
	char *active = memory_copy(config.active.data);
	git_config_fini(&config);
	return active;
}

static void assert_active(const char *text, const char *expected)
{
	auto_free char *active = active_of(text);

	assert_string_equal(active, expected);
}

static void what_git_writes_itself_is_inert(void **state)
{
	(void)state;
	assert_active("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"
		      "\tbare = false\n\tlogallrefupdates = true\n"
		      "[user]\n\tname = A \"B\" C\n"
		      "[remote \"origin\"]\n\turl = /a/b\n\tfetch = +refs/*:refs/*\n"
		      "[branch \"x.y\"]\n\tremote = origin\n\tmerge = refs/heads/x\n"
		      "[submodule \"s\"]\n\tactive = true\n\tupdate = rebase\n",
		      "");
}

static void programs_and_redirections_are_not(void **state)
{
	static const char *const texts[] = {
		"[core]\nhooksPath = x",
		"[core] fsmonitor = x",
		"[CORE]\nFSMonitor",
		"[core]\nsshCommand=x",
		"[core]\npager=x",
		"[core]\neditor=x",
		"[core]\ngitProxy=x",
		"[core]\nworktree=/x",
		"[core]\nattributesFile=x",
		"[diff \"d\"]\ncommand = x",
		"[diff \"d\"]\ntextconv = x",
		"[diff]\nexternal = x",
		"[filter \"f\"]\nclean = x",
		"[merge \"m\"]\ndriver = x",
		"[alias]\ns = !x",
		"[include]\npath = x",
		"[includeIf \"gitdir:/\"]\npath = x",
		"[credential]\nhelper = x",
		"[gpg]\nprogram = x",
		"[gpg \"ssh\"]\ndefaultKeyCommand = x",
		"[uploadpack]\npackObjectsHook = x",
		"[remote \"o\"]\nuploadpack = x",
		"[remote \"o\"]\nreceivepack = x",
		"[remote \"o\"]\nvcs = x",
		"[remote \"o\"]\nurl = ext::sh -c x",
		"[remote \"o\"]\nurl = --upload-pack=x",
		"[submodule \"s\"]\nupdate = !x",
		"[url \"x\"]\ninsteadOf = y",
		"[extensions]\nworktreeConfig = true",
		"[remote.o]\nuploadpack = x",
		"[trailer \"t\"]\ncommand = x",
		"[interactive]\ndiffFilter = x",
		"[gc]\nrecentObjectsHook = x",
		"[core]\nbare = true \\\n[x]\n[core] pager = x",
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		auto_free char *active = active_of(texts[i]);
		if (active[0] == '\0')
			fail_msg("inert: %s", texts[i]);
	}
}

static void a_value_is_read_as_git_reads_it(void **state)
{
	(void)state;
	assert_active("[a \"B\\\"c\"]\n\tK = \" x ; y\" z \\\n  w # note\n",
		      "a.B\"c.k= x ; y z   w\n");
	assert_active("\xef\xbb\xbf; c\n# c\n[a]b\nc = \\t\\\\\\\"", "a.b=\na.c=\t\\\"\n");
}

static void what_is_no_configuration_is_not_inert(void **state)
{
	static const char *const texts[] = {"key = value\n",
					    "[core\nbare = true\n",
					    "[core]\nbare = \"open\n",
					    "[core]\nbare = \\q\n",
					    "[core \"a\nb\"]\n",
					    "[core]\n1 = 2\n=\n",
					    "[]\n"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		auto_free char *active = active_of(texts[i]);
		if (active[0] == '\0')
			fail_msg("inert: %s", texts[i]);
	}
}

/* ---- index ---- */

struct links {
	struct buf text;
	size_t room;
};

static bool add_link(void *context, struct str path)
{
	struct links *links = context;

	(void)buf_addstr(&links->text, path);
	(void)buf_addc(&links->text, '\n');
	return links->room-- > 0;
}

static void read_seed(const char *name, struct buf *text)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", place_of_git_index, name);
	assert_true(fd_read_file(path, 1 << 20, text, NULL));
}

static void gitlinks_of_every_version_are_found(void **state)
{
	static const char *const names[] = {"v2-sha1", "v3-sha1", "v4-sha1", "v2-sha256"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		struct links links = {.room = 10};
		struct git_index_reader reader = {.sha256 = i == 3,
						  .link = add_link,
						  .context = &links};
		struct buf text;

		buf_init(&links.text, 1000);
		buf_init(&text, 1 << 20);
		read_seed(names[i], &text);
		assert_true(git_index_read(&reader, buf_str(&text), &err));
		assert_string_equal(links.text.data, "dir/sub\ndir/sub2/deep\n");
		assert_string_equal(reader.shared, "");
		buf_fini(&text);
		buf_fini(&links.text);
	}
}

static void a_split_index_names_its_other_part(void **state)
{
	struct links links = {.room = 10};
	struct git_index_reader reader = {.link = add_link, .context = &links};
	struct err err;
	struct buf text;

	(void)state;
	buf_init(&links.text, 1000);
	buf_init(&text, 1 << 20);
	read_seed("split", &text);
	assert_true(git_index_read(&reader, buf_str(&text), &err));
	assert_int_equal(strlen(reader.shared), 40);
	buf_fini(&text);
	buf_fini(&links.text);
}

static void a_cut_index_is_an_error_at_every_byte(void **state)
{
	struct err err;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	read_seed("v2-sha1", &text);
	for (size_t size = 0; size + 40 < text.size; size++) {
		struct links links = {.room = 10};
		struct git_index_reader reader = {.link = add_link, .context = &links};

		buf_init(&links.text, 1000);
		(void)git_index_read(&reader, str_part(buf_str(&text), 0, size), &err);
		if (size < 200)
			assert_false(git_index_read(&reader,
						    str_part(buf_str(&text), 0, size),
						    &err));
		buf_fini(&links.text);
	}
	buf_fini(&text);
}

static void too_many_gitlinks_are_an_error(void **state)
{
	struct links links = {.room = 1};
	struct git_index_reader reader = {.link = add_link, .context = &links};
	struct err err;
	struct buf text;

	(void)state;
	buf_init(&links.text, 1000);
	buf_init(&text, 1 << 20);
	read_seed("v2-sha1", &text);
	assert_false(git_index_read(&reader, buf_str(&text), &err));
	assert_non_null(strstr(err.text, "too many"));
	buf_fini(&text);
	buf_fini(&links.text);
}

/* ---- small files ---- */

static void a_pointer_is_one_path(void **state)
{
	struct str path;

	(void)state;
	assert_true(git_text_pointer(STR("gitdir: ../a b\r\n"), &path));
	assert_true(str_is(path, "../a b"));
	assert_false(git_text_pointer(STR("gitdir: \n"), &path));
	assert_false(git_text_pointer(STR("gitdir: a\nb\n"), &path));
	assert_false(git_text_pointer(STR("gitdir:a\n"), &path));
	assert_false(git_text_pointer(STR("x gitdir: a\n"), &path));
	assert_false(git_text_pointer(STR("gitdir: a\0b\n"), &path));
}

static void a_work_list_that_executes_is_not_inert(void **state)
{
	(void)state;
	assert_true(git_text_todo_is_inert(
		STR("pick 1 a\nf -C 2 b\n# exec x\n\nlabel l\n"
		    "reset l\nmerge -C 1 l # m\nu refs/heads/x\n")));
	assert_false(git_text_todo_is_inert(STR("pick 1 a\nexec make\n")));
	assert_false(git_text_todo_is_inert(STR(" x make")));
	assert_false(git_text_todo_is_inert(STR("exec\tmake")));
	assert_false(git_text_todo_is_inert(STR("nobody-knows 1\n")));
	assert_false(git_text_todo_is_inert(STR("pick 1 a\0\nexec x\n")));
}

static void only_strategies_of_git_are_its_own(void **state)
{
	(void)state;
	assert_true(git_text_strategy_is_own(STR("ort\n")));
	assert_false(git_text_strategy_is_own(STR("evil\n")));
	assert_false(git_text_strategy_is_own(STR("")));
	assert_false(git_text_strategy_is_own(STR("ort evil")));
}

static void comments_are_nothing(void **state)
{
	(void)state;
	assert_true(git_text_is_empty(STR("# a\n\n \t\n#b")));
	assert_false(git_text_is_empty(STR("# a\n*.c diff=x\n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_git_writes_itself_is_inert),
		cmocka_unit_test(programs_and_redirections_are_not),
		cmocka_unit_test(a_value_is_read_as_git_reads_it),
		cmocka_unit_test(what_is_no_configuration_is_not_inert),
		cmocka_unit_test(gitlinks_of_every_version_are_found),
		cmocka_unit_test(a_split_index_names_its_other_part),
		cmocka_unit_test(a_cut_index_is_an_error_at_every_byte),
		cmocka_unit_test(too_many_gitlinks_are_an_error),
		cmocka_unit_test(a_pointer_is_one_path),
		cmocka_unit_test(a_work_list_that_executes_is_not_inert),
		cmocka_unit_test(only_strategies_of_git_are_its_own),
		cmocka_unit_test(comments_are_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
