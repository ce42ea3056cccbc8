/* Tests of guard/git_config: what is inert in a configuration. */
#include "../base/unit.h"

#include "base/memory.h"
#include "guard/readers.h"

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

static void assert_not_inert(const char *text)
{
	auto_free char *active = active_of(text);

	if (active[0] == '\0')
		fail_msg("inert: %s", text);
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
		"[extensions]\nrefStorage = files:///x",
		"[branch \"b\"]\nremote = ext::sh -c x",
		"[branch \"b\"]\npushRemote = ext::sh -c x",
		"[remote]\npushDefault = ext::sh -c x",
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
	for (size_t i = 0; i < UNIT_COUNT(texts); i++)
		assert_not_inert(texts[i]);
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
	for (size_t i = 0; i < UNIT_COUNT(texts); i++)
		assert_not_inert(texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_git_writes_itself_is_inert),
		cmocka_unit_test(programs_and_redirections_are_not),
		cmocka_unit_test(a_value_is_read_as_git_reads_it),
		cmocka_unit_test(what_is_no_configuration_is_not_inert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
