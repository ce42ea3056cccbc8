/* wrap: profiles, how they extend each other, what is refused, and those that ship. */
#include "../base/unit.h"

#include "base/memory.h"
#include "front/embedded/embedded.h"
#include "front/wrap/profile.h"
#include "policy/autoexec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Profiles of a test: name, text, name, text, …, NULL. */
static bool find(void *context, const char *name, struct buf *text, struct buf *source,
		 struct err *err)
{
	for (const char *const *at = context; *at != NULL; at += 2)
		if (strcmp(at[0], name) == 0)
			return buf_adds(text, at[1]) && buf_addf(source, "%s.json", name);
	return err_set(err, ENOENT, "no %s", name);
}

static void refuses(const char *const *profiles, const char *words)
{
	struct wrap_profile profile;
	struct err err = {0};

	assert_false(wrap_profile_read(profiles[0], find, (void *)(uintptr_t)profiles,
				       &profile, &err));
	wrap_profile_fini(&profile);
	if (strstr(err.text, words) == NULL)
		fail_msg("%s\nlacks: %s", err.text, words);
}

static void reads(const char *const *profiles, struct wrap_profile *profile)
{
	struct err err = {0};

	if (!wrap_profile_read(profiles[0], find, (void *)(uintptr_t)profiles, profile, &err))
		fail_msg("%s", err.text);
}

static void every_key_is_read(void **state)
{
	static const char *const profiles[] = {
		"a",
		"{\"program\": \"agent\", \"tested\": \"1\", \"description\": \"An agent\","
		" \"root\": {\"env\": \"AGENT_HOME\", \"else\": \"~/.agent\"},"
		" \"show\": [\"/opt/agent\"], \"view\": [\"${ROOT}/settings\"],"
		" \"seed\": {\"~/.agent.json\": [\"theme\"], \"~/.b\": true},"
		" \"share\": [\"${ROOT}/s/${SLUG}\"], \"login\": [\"${ROOT}/login\"],"
		" \"files\": {\"~/.c\": \"text\", \"~/.d\": {\"e\": 1}},"
		" \"protect\": [\".agent\"], \"hosts\": [\"api.example.org\"],"
		" \"keys\": [\"AGENT_KEY\"], \"env\": {\"QUIET\": \"1\"},"
		" \"args\": [\"-x\", \"\"], \"auto\": [\"-y\"], \"limits\": {\"memory\": \"1G\"}}",
		NULL,
	};
	struct wrap_profile profile;

	(void)state;
	reads(profiles, &profile);
	assert_string_equal(profile.name, "a");
	assert_string_equal(profile.program, "agent");
	assert_string_equal(profile.root_variable, "AGENT_HOME");
	assert_string_equal(profile.root_folder, "~/.agent");
	assert_string_equal(profile.show.items[0], "/opt/agent");
	assert_string_equal(profile.view.items[0], "${ROOT}/settings");
	assert_int_equal(profile.seed_count, 2);
	assert_string_equal(profile.seeds[0].keys.items[0], "theme");
	assert_false(profile.seeds[1].keys.given);
	assert_string_equal(profile.share.items[0], "${ROOT}/s/${SLUG}");
	assert_string_equal(profile.login.items[0], "${ROOT}/login");
	assert_string_equal(profile.files[0].text, "text");
	assert_string_equal(profile.files[1].text, "{\n  \"e\": 1\n}\n");
	assert_string_equal(profile.protect.items[0], ".agent");
	assert_string_equal(profile.keys.items[0], "AGENT_KEY");
	assert_string_equal(profile.environment.items[0], "QUIET=1");
	assert_int_equal(profile.args.count, 2);
	assert_string_equal(profile.autos.items[0], "-y");
	auto_value struct value *policy = wrap_profile_policy(&profile);
	assert_int_equal(value_integer(value_member(value_member(policy, "limits"), "pids")),
			 2048);
	assert_string_equal(value_text(value_item(value_member(policy, "network"), 0)),
			    "api.example.org");
	wrap_profile_fini(&profile);
}

static void extending_appends_merges_and_takes_away(void **state)
{
	static const char *const profiles[] = {
		"c",
		"{\"extends\": \"b\", \"hosts\": [\"c.org\"], \"env\": {\"TWO\": null, \"FOUR\": \"4\"},"
		" \"auto\": null}",
		"b",
		"{\"extends\": \"a\", \"hosts\": [\"b.org\"], \"env\": {\"TWO\": \"2\"},"
		" \"program\": \"other\"}",
		"a",
		"{\"hosts\": [\"a.org\"], \"env\": {\"ONE\": \"1\"}, \"program\": \"agent\","
		" \"auto\": [\"-y\"]}",
		NULL,
	};
	struct wrap_profile profile;

	(void)state;
	reads(profiles, &profile);
	assert_int_equal(profile.hosts.count, 3);
	assert_string_equal(profile.hosts.items[0], "a.org");
	assert_string_equal(profile.hosts.items[2], "c.org");
	assert_string_equal(profile.program, "other");
	assert_int_equal(profile.environment.count, 2);
	assert_string_equal(profile.environment.items[0], "ONE=1");
	assert_string_equal(profile.environment.items[1], "FOUR=4");
	assert_int_equal(profile.autos.count, 0);
	wrap_profile_fini(&profile);
}

static void bad_profiles_are_refused_with_the_remedy(void **state)
{
	static const char *const bad[][2] = {
		{"{\"hots\": []}", "there is no key \"hots\" (did you mean \"hosts\"?)"},
		{"{\"hosts\": \"a.org\"}", "/hosts: must be a list of texts"},
		{"{\"hosts\": [\"127.1\"]}", "a.json: /network/0"},
		{"{\"view\": [\"/etc\"]}", "a path begins with ~/ or ${ROOT}/"},
		{"{\"view\": [\"~/../x\"]}", "has no .."},
		{"{\"share\": [\"relative\"]}", "/share/0: a path begins with"},
		{"{\"files\": {\"/etc/x\": \"\"}}",
		 "/files/~1etc~1x: a cell has the system's folders"},
		{"{\"files\": {\"~/x\": 1}}", "must be a text, or an object"},
		{"{\"seed\": {\"~/x\": []}}", "must be true (the whole file), or a list"},
		{"{\"protect\": [\"../x\"]}", "relative to the workspace"},
		{"{\"root\": {\"else\": \"/srv\"}}", "the folder begins with ~/"},
		{"{\"root\": {}}", "/root: needs \"else\""},
		{"{\"env\": {\"A B\": \"1\"}}", "a.json: /env"},
		{"{\"env\": {\"A\": 1}}", "must be text"},
		{"{\"limits\": {\"pidss\": 1}}", "did you mean \"pids\"?"},
		{"{\"hands\": \"other\"}", "/hands: must be one of"},
		{"{\"hands\": {}}", "/hands: needs a shell or a path"},
		{"{\"hands\": {\"shell\": [\"A=B\"]}}", "is no name of a variable"},
		{"{\"hands\": {\"shell\": [\"PATH\"]}}", "is no name of a variable"},
		{"{\"hands\": {\"path\": [\"sh\"]}}", "must be one of"},
		{"{\"hands\": {\"shell\": [\"S\"], \"returns\": [\"/etc/x\"]}}",
		 "/hands/returns/0: a name begins with ${TMPDIR}/"},
		{"{\"hands\": {\"shell\": [\"S\"], \"returns\": [\"${TMPDIR}/*/x\"]}}",
		 "wildcards in its last name only"},
		{"{\"hands\": {\"shell\": [\"S\"], \"returns\": [\"${TMPDIR}/../x\"]}}",
		 "no .."},
		{"[]", "must be an object"},
		{"{", "a.json"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
		const char *const profiles[] = {"a", bad[i][0], NULL};

		refuses(profiles, bad[i][1]);
	}
}

static void loops_and_depth_are_told(void **state)
{
	static const char *const loop[] = {"a", "{\"extends\": \"b\"}", "b",
					   "{\"extends\": \"a\"}", NULL};
	static const char *const deep[] = {
		"a",  "{\"extends\": \"b\"}", "b", "{\"extends\": \"c\"}",
		"c",  "{\"extends\": \"d\"}", "d", "{\"extends\": \"e\"}",
		"e",  "{\"extends\": \"f\"}", "f", "{}",
		NULL,
	};
	struct wrap_profile profile;

	(void)state;
	refuses(loop, "wrap: a extends b extends a: this goes round");
	refuses(deep, "4 deep at most");
	reads(deep + 2, &profile);
	wrap_profile_fini(&profile);
}

static void needs_change_with_what_is_needed_only(void **state)
{
	static const char *const one[] = {"a", "{\"hosts\": [\"a.org\"], \"tested\": \"1\"}",
					  NULL};
	static const char *const newer[] = {"a",
					    "{\"tested\": \"2\", \"hosts\": [\"a.org\"]}",
					    NULL};
	static const char *const more[] = {"a", "{\"hosts\": [\"a.org\", \"b.org\"]}", NULL};
	const char *const *const all[] = {one, newer, more};
	char hex[3][HASH_HEX + 1];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(all); i++) {
		struct wrap_profile profile;
		struct buf text;

		buf_init(&text, 1 << 20);
		reads(all[i], &profile);
		assert_true(wrap_profile_needs(&profile, &text, hex[i]));
		if (i == 2)
			assert_string_equal(text.data, "hosts \"a.org\"\nhosts \"b.org\"\n");
		wrap_profile_fini(&profile);
		buf_fini(&text);
	}
	assert_string_equal(hex[0], hex[1]);
	assert_string_not_equal(hex[0], hex[2]);
}

static void placeholders_are_filled_in(void **state)
{
	static const struct wrap_places places = {"/home/me", "/home/me/.agent",
						  "/srv/a.b/c_\xc3\xa9\xf0\x9f\x98\x80 1"};
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_true(wrap_places_expand(&places, "~/x", &out));
	assert_true(wrap_places_expand(&places, " ${ROOT}/s/${SLUG} ~/ $", &out));
	assert_string_equal(out.data, "/home/me/x /home/me/.agent/s/-srv-a-b-c-----1 ~/ $");
	buf_clear(&out);
	assert_true(wrap_places_expand(&places, "${TMPDIR}/a-??", &out));
	assert_string_equal(out.data, "/tmp/a-??");
	buf_fini(&out);
	buf_init(&out, 4);
	assert_false(wrap_places_expand(&places, "~/x", &out));
	buf_fini(&out);
}

static void names_are_short_words(void **state)
{
	static const char *const bad[] = {"",    "a/b",
					  "..",  "a.b",
					  "a b", "a23456789012345678901234567890123"};

	(void)state;
	assert_true(wrap_profile_name_is_valid("a-B_9"));
	for (size_t i = 0; i < UNIT_COUNT(bad); i++)
		assert_false(wrap_profile_name_is_valid(bad[i]));
}

static bool find_shipped(void *context, const char *name, struct buf *text,
			 struct buf *source, struct err *err)
{
	(void)context;
	(void)buf_addf(source, "wrap/%s.json", name);
	return buf_addstr(text, embedded_text(source->data)) ||
	       err_set(err, ENOENT, "no %s", name);
}

static bool is_protected(const char *name)
{
	for (const struct autoexec *row = autoexec_names; row->name != NULL; row++)
		if (strcmp(row->name, name) == 0)
			return row->care == AUTOEXEC_PROTECTED;
	return false;
}

/* Every cell protects the names that a shipped profile protects: they are one list. */
static void shipped_profiles_are_sound(void **state)
{
	struct str names = STR(WRAP_SHIPPED), word;
	size_t named = 0;
	size_t shipped = 0;

	(void)state;
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++)
		shipped += strncmp(file->name, "wrap/", 5) == 0;
	while (str_next_word(&names, &word)) {
		auto_free char *name = memory_copy_str(word);
		struct wrap_profile profile;
		struct err err = {0};

		if (!wrap_profile_read(name, find_shipped, NULL, &profile, &err))
			fail_msg("%s", err.text);
		assert_non_null(profile.description);
		for (size_t j = 0; j < profile.protect.count; j++)
			if (!is_protected(profile.protect.items[j]))
				fail_msg("%s: %s is not in autoexec", name,
					 profile.protect.items[j]);
		wrap_profile_fini(&profile);
		named++;
	}
	assert_int_equal(shipped, named);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(extending_appends_merges_and_takes_away),
		cmocka_unit_test(bad_profiles_are_refused_with_the_remedy),
		cmocka_unit_test(loops_and_depth_are_told),
		cmocka_unit_test(needs_change_with_what_is_needed_only),
		cmocka_unit_test(placeholders_are_filled_in),
		cmocka_unit_test(names_are_short_words),
		cmocka_unit_test(shipped_profiles_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
