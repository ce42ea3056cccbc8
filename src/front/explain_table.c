/* explain_table: the object of explain.c as a table. */
#include "front/explain_table.h"

#include "base/buf.h"
#include "base/text.h"
#include "front/screen.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	CLEAN_MAX = 4 << 20, /* a path, all of it as escapes */
	PATH_COLUMN = 44,
};

static void print_head(const char *text, bool colour)
{
	(void)printf("%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

/* TEXT, with nothing in it that a terminal would obey, padded to WIDTH. */
static void print_cell(const char *text, size_t width)
{
	struct buf clean;

	buf_init(&clean, CLEAN_MAX);
	(void)text_clean(str_of(text), &clean);
	(void)printf("%-*s", (int)width, clean.data);
	buf_fini(&clean);
}

static void print_view(const struct value *list)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);
		const struct value *bytes = value_member(row, "bytes");
		char size[32];

		(void)printf("  %-8s", value_text(value_member(row, "access")));
		print_cell(value_text(value_member(row, "path")), PATH_COLUMN);
		(void)printf("  %s", value_text(value_member(row, "why")));
		if (bytes != NULL)
			(void)printf(", at most %s",
				     text_size((uint64_t)value_integer(bytes), size));
		(void)putchar('\n');
	}
}

static void print_limits(const struct value *limits)
{
	for (void *at = value_first(limits); at != NULL; at = value_next(limits, at)) {
		const struct value *row = value_at(at);
		const struct value *value = value_member(row, "value");
		const char *name = value_key(at);
		char text[32];

		if (value_kind(value) == VALUE_REAL && value_number(value) <= 0)
			(void)snprintf(text, sizeof(text), "none");
		else if (value_kind(value) == VALUE_REAL)
			(void)snprintf(text, sizeof(text), "%g s", value_number(value));
		else if (strstr(name, "pids") != NULL)
			(void)snprintf(text, sizeof(text), "%lld",
				       (long long)value_integer(value));
		else
			(void)text_size((uint64_t)value_integer(value), text);
		(void)printf("  %-12s%-12s%s\n", name, text,
			     value_text(value_member(row, "why")));
	}
}

static void print_words(const struct value *list)
{
	(void)printf(" ");
	for (size_t i = 0; i < value_count(list); i++)
		(void)printf(" %s", value_text(value_item(list, i)));
	(void)printf("%s\n", value_count(list) == 0 ? " nothing" : "");
}

/* What a cell without a view of its own cannot say of the files outside. */
static const char *files_head(int64_t level)
{
	if (level >= SANDBOX_SEALED)
		return "Files (what is not listed does not exist in the cell)";
	if (level == SANDBOX_RULES)
		return "Files (what is not listed cannot be opened in the cell)";
	return "Files (at this level none of yours is closed, listed or not)";
}

void explain_print_table(const struct value *report)
{
	bool colour = screen_options_of(STDOUT_FILENO).colour;
	const char *above = value_text(value_member(report, "repository_above"));

	(void)printf("Workspace ");
	print_cell(value_text(value_member(report, "workspace")), 0);
	(void)printf(", policy ");
	print_cell(value_text(value_member(report, "policy")), 0);
	(void)printf(", uid %lld, level L%lld\n",
		     (long long)value_integer(value_member(report, "uid")),
		     (long long)value_integer(value_member(report, "level")));
	if (above != NULL) {
		(void)printf("It lies in the repository ");
		print_cell(above, 0);
		(void)printf(
			", which git does not find in the cell; -C names another folder\n");
	}
	(void)putchar('\n');
	print_head(files_head(value_integer(value_member(report, "level"))), colour);
	print_view(value_member(report, "view"));
	(void)putchar('\n');
	print_head("Limits", colour);
	print_limits(value_member(report, "limits"));
	(void)putchar('\n');
	print_head("Network", colour);
	print_words(value_member(report, "network"));
	(void)putchar('\n');
	print_head("Variables", colour);
	print_words(value_member(report, "env"));
}
