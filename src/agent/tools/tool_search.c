/* tool_search: finds definitions of deferred tools, and names the call that call_tool means. */

#include "agent/tools/tool_search.h"

#include "agent/tools/orchestra.h"
#include "base/memory.h"
#include "base/text/regex.h"
#include "base/text/text.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/deferred.h"
#include "tool/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUERY_MAX = 200,
	LIMIT = 5,
	LIMIT_MAX = 20,
	TERMS_MAX = 16,
	DEFINITIONS_MAX = 48 << 10, /* of one answer, unless its first is longer */
	DEFINITION_MAX = 1 << 20,
	ARGUMENTS_MAX = 16 << 20,
	NAMES_MAX = 8 << 10, /* in the prompt */
	/* the weight of a match: of the whole query, in a name, in a description */
	WHOLE = 4,
	IN_NAME = 3,
	IN_DESCRIPTION = 1,
};

/* The query as expressions: the first is all of it, the others are its words. */
struct terms {
	struct regex *items[TERMS_MAX];
	size_t count;
};

/* A text that is no expression is searched as it stands. */
static void add_term(struct terms *terms, struct str text)
{
	struct regex **regex = &terms->items[terms->count];
	struct err err;

	if (terms->count < TERMS_MAX &&
	    (regex_compile(text, REGEX_IGNORE_CASE, regex, &err) ||
	     regex_compile(text, REGEX_IGNORE_CASE | REGEX_LITERAL, regex, &err)))
		terms->count++;
}

static void terms_init(struct terms *terms, struct str query)
{
	struct str rest = query, word;

	*terms = (struct terms){0};
	add_term(terms, query);
	while (str_next_word(&rest, &word)) {
		if (word.size < query.size)
			add_term(terms, word);
	}
}

static void terms_fini(struct terms *terms)
{
	for (size_t i = 0; i < terms->count; i++)
		regex_free(terms->items[i]);
}

static bool is_in(const struct regex *regex, const char *text)
{
	struct regex_scratch *scratch = regex_scratch_new(regex);
	struct regex_span span;
	const bool found =
		regex_find(regex, scratch, str_of(text), 0, &span) == REGEX_FOUND;

	regex_scratch_free(scratch);
	return found;
}

static unsigned score_of(const struct terms *terms, const struct tool *tool)
{
	unsigned score = 0;

	for (size_t i = 0; i < terms->count; i++) {
		const unsigned weight = i == 0 ? WHOLE : 1;

		if (is_in(terms->items[i], tool->name))
			score += weight * IN_NAME;
		if (is_in(terms->items[i], tool->description))
			score += weight * IN_DESCRIPTION;
	}
	return score;
}

struct found {
	const struct tool *tool;
	unsigned score;
	size_t place; /* in the list of tools */
};

/* The best first, else in the order of the list. */
static int compare(const void *a, const void *b)
{
	const struct found *one = a, *other = b;

	if (one->score != other->score)
		return one->score > other->score ? -1 : 1;
	return one->place < other->place ? -1 : one->place > other->place;
}

/* The deferred tools of TOOLS that QUERY fits; the caller frees them. */
static struct found *find(const struct tool *const *tools, struct str query, size_t *count)
{
	const struct deferred deferred = deferred_of(tools);
	struct found *found;
	struct terms terms;
	size_t all = 0;

	while (tools[all] != NULL)
		all++;
	found = memory_array(all + 1, sizeof(*found));
	*count = 0;
	terms_init(&terms, query);
	for (size_t i = 0; i < all; i++) {
		const unsigned score =
			deferred_has(deferred, tools[i]) ? score_of(&terms, tools[i]) : 0;

		if (score > 0)
			found[(*count)++] = (struct found){tools[i], score, i};
	}
	terms_fini(&terms);
	qsort(found, *count, sizeof(*found), compare);
	return found;
}

/* Append the definition of TOOL. The description is of the server, and cannot end its frame. */
static void add_definition(const struct tool *tool, struct buf *out)
{
	auto_value struct value *schema = schema_of_tool(tool);
	struct buf text;

	buf_init(&text, DEFINITION_MAX);
	(void)buf_addf(&text, "%s\n", tool->name);
	orchestra_quote(str_trim(str_of(tool->description)), &text);
	(void)buf_end_line(&text);
	(void)buf_adds(&text, "Arguments: ");
	if (value_print(schema, 0, &text))
		(void)buf_adds(&text, "\n\n");
	if (text.overflowed)
		(void)buf_addf(out, "%s\n(Its definition is longer than 1 MiB.)\n\n",
			       tool->name);
	else
		(void)buf_addstr(out, buf_str(&text));
	buf_fini(&text);
}

static enum result_status nothing_found(const struct tool *const *tools, struct str query,
					struct tool_result *result)
{
	(void)buf_adds(&result->text, "No tool fits \"");
	text_add_name(&result->text, query);
	(void)buf_adds(&result->text, "\". Search for other words of what it does.\n");
	tool_search_prompt(tools, &result->text);
	return tool_done(result);
}

static enum result_status search_execute(struct call *call, struct tool_result *result)
{
	const struct tool *const *tools = session_tools(orchestra_of(call)->session);
	const struct str query =
		str_trim(value_str(value_member(call->arguments, "query")));
	const size_t limit = (size_t)value_integer(value_member(call->arguments, "limit"));
	size_t count, shown = 0;
	auto_free struct found *found = find(tools, query, &count);
	struct buf definitions;

	if (count == 0)
		return nothing_found(tools, query, result);
	buf_init(&definitions, DEFINITION_MAX + DEFINITIONS_MAX);
	for (; shown < count && shown < limit; shown++) {
		const size_t before = definitions.size;

		add_definition(found[shown].tool, &definitions);
		if (shown > 0 && definitions.size > DEFINITIONS_MAX) {
			buf_truncate(&definitions, before);
			break;
		}
	}
	(void)buf_addf(&result->text,
		       "%zu of %zu that fit, the best first. Call one by %s.\n\n", shown,
		       count, call_tool_tool.name);
	(void)buf_addstr(&result->text, buf_str(&definitions));
	for (size_t i = shown; i < count && i < LIMIT_MAX + shown; i++)
		(void)buf_addf(&result->text, "%s%s", i == shown ? "Not shown: " : ", ",
			       found[i].tool->name);
	(void)buf_end_line(&result->text);
	buf_fini(&definitions);
	return tool_done(result);
}

static const struct row search_params[] = {
	{"query", ROW_TEXT, true,
	 "Words of the name or the description, or an expression (PCRE2)",
	 .aliases = "pattern name", .min = 1, .max = QUERY_MAX},
	{"limit", ROW_COUNT, false, "Most definitions", .aliases = "max_results",
	 .min = 1, .max = LIMIT_MAX, .initial = "5"},
	{0},
};

const struct tool tool_search_tool = {
	.name = "tool_search",
	.description = "Find tools of servers: their names, what they do, and the schema of "
		       "their arguments.",
	.example = "{\"query\": \"create issue\"}",
	.params = search_params,
	.where = IN_FRONT,
	.in_runs = true,
	.stands_in = true,
	.timeout_s = 10,
	.execute = search_execute,
};

static const struct row call_params[] = {
	{"name", ROW_TEXT, true, "Which tool, by its whole name",
	 .aliases = "tool tool_name", .min = 1, .max = QUERY_MAX},
	{"arguments", ROW_VALUES, false, "Its arguments, as its schema wants them",
	 .aliases = "args input parameters"},
	{0},
};

/* The loop has taken every call out of its arguments but one of call_tool itself. */
static enum result_status call_execute(struct call *call, struct tool_result *result)
{
	return tool_fail(result,
			 "%s calls other tools, and not itself: name the tool of a server.",
			 call->tool->name);
}

const struct tool call_tool_tool = {
	.name = "call_tool",
	.description = "Call a tool of a server that tool_search has found.",
	.example = "{\"name\": \"tracker_create_issue\", \"arguments\": {\"title\": \"x\"}}",
	.params = call_params,
	.where = IN_FRONT,
	.in_runs = true,
	.stands_in = true,
	.timeout_s = 10,
	.execute = call_execute,
};

void tool_search_meant(const struct part *part, struct meant *meant)
{
	auto_value struct value *capped = NULL;
	const struct value *arguments;
	struct buf sentence;
	bool fits;

	*meant = (struct meant){.tool = part->tool, .arguments = part->arguments};
	buf_init(&meant->printed, ARGUMENTS_MAX);
	if (strcmp(part->tool, call_tool_tool.name) != 0)
		return;
	buf_init(&sentence, RESULT_TEXT_MAX);
	fits = schema_parse_arguments(&call_tool_tool, str_of(part->arguments),
				      &meant->within, &sentence) &&
	       schema_fit(&call_tool_tool, meant->within, &capped, &sentence);
	buf_fini(&sentence);
	arguments = value_member(meant->within, "arguments");
	if (!fits || (arguments != NULL && !value_print(arguments, 0, &meant->printed)))
		return;
	meant->tool = value_text(value_member(meant->within, "name"));
	meant->arguments = arguments != NULL ? meant->printed.data : "{}";
}

void meant_fini(struct meant *meant)
{
	value_free(meant->within);
	buf_fini(&meant->printed);
}

char *tool_search_arguments(const char *tool, const char *arguments)
{
	auto_value struct value *made = value_new_object();
	struct value *within = NULL;
	struct buf text;

	if (!value_parse(str_of(arguments), VALUE_REPAIR | VALUE_WIDE, &within, NULL))
		within = value_new_object();
	value_set_text(made, "name", tool);
	value_set(made, "arguments", within);
	buf_init(&text, ARGUMENTS_MAX);
	(void)value_print(made, 0, &text);
	return buf_take(&text);
}

/* Append the names of the deferred tools of SERVER in one line. */
static void add_names(const struct tool *const *tools, struct deferred deferred,
		      const char *server, struct buf *out)
{
	size_t left_out = 0, told = 0;

	for (; *tools != NULL; tools++) {
		if (!deferred_has(deferred, *tools) || strcmp((*tools)->server, server) != 0)
			continue;
		if (out->size > NAMES_MAX)
			left_out++;
		else
			(void)buf_addf(out, "%s%s", told++ > 0 ? ", " : "", (*tools)->name);
	}
	if (left_out > 0)
		(void)buf_addf(out, "%s%zu more", told > 0 ? " and " : "", left_out);
	(void)buf_addc(out, '\n');
}

/* Has a tool before AT the same server, and is it deferred? */
static bool server_is_told(const struct tool *const *tools, const struct tool *const *at,
			   struct deferred deferred)
{
	while (tools < at && (!deferred_has(deferred, *tools) ||
			      strcmp((*tools)->server, (*at)->server) != 0))
		tools++;
	return tools < at;
}

void tool_search_prompt(const struct tool *const *tools, struct buf *out)
{
	const struct deferred deferred = deferred_of(tools);
	struct buf names;

	if (!deferred.any)
		return;
	buf_init(&names, DEFINITION_MAX);
	for (const struct tool *const *at = tools; *at != NULL; at++) {
		if (!deferred_has(deferred, *at) || server_is_told(tools, at, deferred))
			continue;
		(void)buf_addf(&names, "- %s: ", (*at)->server);
		add_names(tools, deferred, (*at)->server, &names);
	}
	(void)buf_addf(out,
		       "There are more tools, of servers, whose definitions %s finds. Call them "
		       "by %s. By server:\n%s",
		       tool_search_tool.name, call_tool_tool.name, names.data);
	buf_fini(&names);
}
