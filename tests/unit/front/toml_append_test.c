/* Tests of front/toml_append: when may a table be added, and where does a text go wrong? */
#include "front/verbs/mcp_install.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static enum toml_answer look(const char *text, struct err *err)
{
	return mcp_install_toml_look(str_of(text), "mcp_servers", "box", err);
}

static void a_table_is_added_once(void **state)
{
	static const struct {
		const char *text;
		enum toml_answer answer;
	} rows[] = {
		{"", TOML_FREE},
		{"# only a remark", TOML_FREE},
		{"a = 1\n[b]\nc.d = \"x\" # e\n\n[[f]]\ng = [\n 1, # two\n {h = 3},\n]\n",
		 TOML_FREE},
		{"[mcp_servers]\n", TOML_FREE},
		{"[mcp_servers.other]\nbox = 1\n[box]\nmcp_servers = 1\n", TOML_FREE},
		{"a = \"\"\"\n[mcp_servers.box]\n\\\"\"\"\"\"\nb = ''\n", TOML_FREE},
		{"a = '''\n[mcp_servers.box]'''\n", TOML_FREE},
		{"a = '\\'\r\nb = 1979-05-27T07:32:00Z\r\n", TOML_FREE},
		{"[mcp_servers.box]\n", TOML_IS_THERE},
		{"[ mcp_servers . \"box\" ]\n", TOML_IS_THERE},
		{"['mcp_servers'.box.env]\nA = \"b\"\n", TOML_IS_THERE},
		{"mcp_servers.box.command = 1\n", TOML_IS_THERE},
		{"[mcp_servers]\nbox = {command = \"x\"}\n", TOML_IS_THERE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};

		if (look(rows[i].text, &err) != rows[i].answer)
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void what_cannot_be_read_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"a\n", "line 1: behind a name should be ="},
		{"a = 1\nb =\n", "line 2: here should be a value"},
		{"= 1\n", "line 1: here should be a name"},
		{"[a\n", "line 1: a header is not closed"},
		{"[[a]\n", "line 1: a header is not closed"},
		{"[a] b\n", "line 1: something stands behind the end"},
		{"a = [1,\n2\n", "line 3: a bracket is not closed"},
		{"a = 1]\n", "line 1: a bracket closes nothing"},
		{"a = \"b\n", "line 1: a string has no end"},
		{"a = \"\"\"b\n", "line 2: a string has no end"},
		{"\n\nmcp_servers = {}\n", "line 3: \"mcp_servers\" is a value"},
		{"[[mcp_servers]]\n", "line 1: \"mcp_servers\" is a value"},
		{"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q = 1\n",
		 "line 1: a name has too many parts"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};

		assert_int_equal(look(rows[i].text, &err), TOML_REFUSED);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_added_once),
		cmocka_unit_test(what_cannot_be_read_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
