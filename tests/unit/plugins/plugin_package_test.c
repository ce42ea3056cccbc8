/* Tests of plugins/source: agent_plugin.json, well and badly. */
#include "../base/unit.h"

#include <errno.h>
#include <string.h>

#include "plugins/source.h"

static void scripts_prompts_and_resources_are_listed(void **state)
{
	static const char text[] =
		"{ // by hand\n\"bash_tools\":[{\"file\":\"a.bash\"},{\"file\":\"./sub/b.bash\"}],"
		"\"prompts\":[{\"file\":\"p.md\"}],"
		"\"resources\":[{\"uri\":\"test://x\",\"name\":\"x\"}]}";
	struct plugin_manifest manifest;
	struct err err = {0};

	(void)state;
	assert_true(plugin_manifest_parse(STR(text), &manifest, &err));
	assert_int_equal(value_count(manifest.files), 2);
	assert_string_equal(value_text(value_item(manifest.files, 1)), "./sub/b.bash");
	assert_int_equal(value_count(manifest.prompts), 1);
	assert_int_equal(value_count(manifest.resources), 1);
	assert_int_equal(value_count(manifest.resource_templates), 0);
	plugin_manifest_fini(&manifest);
}

static void what_is_wrong_is_refused(void **state)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{"", "agent_plugin.json"},
		{"[]", "must be an object"},
		{"{}", "lists nothing"},
		{"{\"bash_tool\":[]}", "did you mean \"bash_tools\""},
		{"{\"bash_tools\":{}}", "must be a list"},
		{"{\"bash_tools\":[\"a.bash\"]}", "must be an object"},
		{"{\"bash_tools\":[{}]}", "inside the package"},
		{"{\"bash_tools\":[{\"file\":\"/etc/passwd\"}]}", "inside the package"},
		{"{\"bash_tools\":[{\"file\":\"../x.bash\"}]}", "inside the package"},
		{"{\"bash_tools\":[{\"file\":\"a/../../x\"}]}", "inside the package"},
		{"{\"bash_tools\":[{\"file\":\".\"}]}", "inside the package"},
		{"{\"bash_tools\":[{\"file\":\"a\\u0000b\"}]}", "inside the package"},
		{"{\"resources\":[{\"file\":\"../../secret\"}]}", "inside the package"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct plugin_manifest manifest;
		struct err err = {0};

		assert_false(plugin_manifest_parse(str_of(rows[i].text), &manifest, &err));
		if (!strstr(err.text, rows[i].wanted))
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void a_toolbox_that_cannot_be_listed_says_why(void **state)
{
	struct plugin_manifest manifest;
	struct err err = {0};

	(void)state;
	assert_false(plugin_manifest_read("/nonexistent/tools", PLUGIN_TOOLBOX, &manifest,
					  &err));
	assert_int_equal(err.code, ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/tools: No such file"));
	plugin_manifest_fini(&manifest);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(scripts_prompts_and_resources_are_listed),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(a_toolbox_that_cannot_be_listed_says_why),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
