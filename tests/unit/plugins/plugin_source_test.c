/* Tests of plugins/source: every form of an entry, and the placeholders. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/source.h"

static const char *const environment[] = {"NAME=value", "NAMED=other", "EMPTY=", NULL};
static const struct plugin_places places = {"/etc/me", "/project", environment};

static void each_form_is_read(void **state)
{
	static const struct {
		const char *entry, *wanted; /* KIND NAME, or "!" and what the refusal says */
	} rows[] = {
		{"{\"bash_tool\":{\"file\":\"./t.bash\"}}", "1 /etc/me/t.bash"},
		{"{\"bash_tool\":{\"path\":\"../tools\"}}", "2 /etc/tools"},
		{"{\"bash_tool\":{\"path\":\"/abs//x\"}}", "2 /abs/x"},
		{"\"bash:./dir\"", "3 /etc/me/dir"},
		{"\"bash:${WORKING_DIR}/${env:NAME}\"", "3 /project/value"},
		{"\"bash:${CONFIG_DIR}/x\"", "3 /etc/me/x"},
		{"{\"bash_tool\":{\"git\":\"https://h/x.git\",\"ref\":\"v0.1.0\"}}",
		 "4 https://h/x.git#v0.1.0"},
		{"{\"bash_tool\":{\"git\":\"https://h/x.git\"}}", "4 https://h/x.git"},
		{"\"bash+git:https://h/x.git#v1\"", "4 https://h/x.git#v1"},
		{"\"bash+git:https://h/x.git\"", "4 https://h/x.git"},
		{"\"bash+git:file:///srv/x.git#main\"", "4 file:///srv/x.git#main"},
		{"{\"toolbox\":{\"file\":\"./t\"}}", "1 /etc/me/t"},
		{"{\"toolbox\":{\"path\":\"./t\"}}", "2 /etc/me/t"},
		{"\"toolbox:./t\"", "3 /etc/me/t"},
		{"{\"toolbox\":{}}", "!one of file and path"},
		{"{\"toolbox\":{\"file\":\"a\",\"path\":\"b\"}}", "!one of file and path"},
		{"{\"toolbox\":{\"file\":\"a\"},\"bash_tool\":{\"file\":\"a\"}}",
		 "!one of bash_tool and toolbox"},
		{"\"path:./x\"", "!\"bash:./x\""},
		{"\"./x\"", "!bash:./folder"},
		{"{\"bash_tool\":{}}", "!one of file, path and git"},
		{"{\"bash_tool\":{\"file\":\"a\",\"git\":\"b\"}}",
		 "!one of file, path and git"},
		{"{\"bash_tool\":{\"file\":\"a\",\"ref\":\"b\"}}", "!ref is for git"},
		{"\"bash+git:ssh://h/x\"", "!https://"},
		{"\"bash+git:ext::sh -c id\"", "!https://"},
		{"\"bash+git:--upload-pack=id\"", "!https://"},
		{"\"bash+git:https://h/x#--upload-pack=id\"", "!the ref is"},
		{"\"bash+git:https://h/x#a b\"", "!the ref is"},
		{"\"bash+git:https://h/x#a..b\"", "!the ref is"},
		{"\"bash+git:https://h/x#\"", "!the ref is"},
		{"{\"bash_tool\":{\"git\":\"https://h/x\",\"ref\":\"\"}}", "!the ref is"},
		{"\"bash:${env:MISSING}\"", "!MISSING"},
		{"\"bash:${HOME}\"", "!the placeholders are"},
		{"\"bash:${env:NAME\"", "!without its"},
		{"\"bash:../../../../x\"", "!no path"},
		{"7", "!a text, or an object"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct value *entry = NULL;
		struct plugin_source source;
		struct err err = {0};
		struct buf name;

		assert_true(value_parse(str_of(rows[i].entry), 0, &entry, NULL));
		bool ok = plugin_source_parse(&places, entry, &source, &err);
		value_free(entry);
		if (rows[i].wanted[0] == '!') {
			assert_false(ok);
			if (!strstr(err.text, rows[i].wanted + 1))
				fail_msg("%s: %s", rows[i].entry, err.text);
			continue;
		}
		assert_true(ok);
		buf_init(&name, 4096);
		(void)buf_addf(&name, "%d ", source.kind);
		plugin_source_name(&source, &name);
		assert_string_equal(name.data, rows[i].wanted);
		buf_fini(&name);
		plugin_source_fini(&source);
	}
}

static void placeholders_are_filled_in_everywhere(void **state)
{
	static const char text[] = "{\"a\":[\"${env:NAME}\",{\"b\":\"<${env:EMPTY}>\"}],"
				   "\"c\":\"$${env:NAME} $NAME {}\",\"d\":1}";
	auto_value struct value *value = NULL;
	auto_value struct value *expanded = NULL;
	struct buf out;
	struct err err = {0};

	(void)state;
	assert_true(value_parse(STR(text), 0, &value, NULL));
	assert_true(source_expand_value(&places, value, &expanded, &err));
	buf_init(&out, 4096);
	(void)value_print(expanded, 0, &out);
	assert_string_equal(out.data,
			    "{\"a\":[\"value\",{\"b\":\"<>\"}],\"c\":\"${env:NAME} $NAME "
			    "{}\",\"d\":1}");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(each_form_is_read),
		cmocka_unit_test(placeholders_are_filled_in_everywhere),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
