/* model_search: asks the model, and shows its words and where they are from. */

#include "agent/tools/model_search.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/text/web_frame.h"
#include "base/value.h"
#include "session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	QUERY_MAX = 1000,
	WORDS_MAX = 20000, /* bytes of the answer, as web_fetch shows of a page */
	SOURCES_MAX = 20,
	TITLE_MAX = 200,
	ADDRESS_MAX = 2000,
	TIMEOUT_S = 600, /* the limits of the turn end it earlier */
};

static const struct row params[] = {
	{"query", ROW_TEXT, true, "What to search for, or a question", .min = 1,
	 .max = QUERY_MAX},
	{0},
};

/* Append the page at URL, which is called TITLE, as a line, and to the list of PAGES. */
static void add_source(struct str url, struct str title, size_t number,
		       struct value *pages, struct buf *out)
{
	(void)buf_addf(out, "%zu. ", number);
	text_add_name(out, str_part(title, 0, text_character_border(title, TITLE_MAX)));
	(void)buf_adds(out, title.size > 0 ? "\n   " : "");
	(void)buf_addstr(out, url);
	(void)buf_addc(out, '\n');
	value_append(pages, value_new_str(url));
}

static void show(const struct value *found, struct tool_result *result)
{
	const struct value *sources = value_member(found, "sources");
	const struct str words = value_str(value_member(found, "text"));
	struct value *pages = tool_details_list(result, "pages");
	struct buf *out = &result->text;
	const struct str part = str_part(words, 0, text_character_border(words, WORDS_MAX));
	struct web_frame frame;
	size_t shown = 0;

	web_frame_begin(&frame, "a search of the model's service", out);
	(void)buf_addc(out, '\n');
	text_add_paragraph(out, part);
	(void)buf_end_line(out);
	for (size_t i = 0; i < value_count(sources) && shown < SOURCES_MAX; i++) {
		const struct value *one = value_item(sources, i);
		const struct str url = value_str(value_member(one, "url"));

		if (url.size == 0 || url.size > ADDRESS_MAX ||
		    text_find_unseen(url) < url.size)
			continue;
		if (shown++ == 0)
			(void)buf_adds(out, "\nSources:\n");
		add_source(url, value_str(value_member(one, "title")), shown, pages, out);
	}
	web_frame_end(&frame, out);
	if (part.size < words.size)
		(void)buf_addf(out,
			       "[bytes 0 to %zu of %zu of what the service says; a narrower "
			       "query says less, and web_fetch reads a source]\n",
			       part.size, words.size);
	result->left_out_bytes += words.size - part.size;
	if (shown == 0)
		(void)buf_adds(out, "[The service names no source for this.]\n");
}

static void begin(void *keeper, struct running *running)
{
	struct agent *const *agent = keeper;
	const struct value *query = value_member(running_arguments(running), "query");
	auto_value struct value *found = NULL;
	struct tool_result result;
	struct err err = {0};

	tool_result_init(&result);
	if (*agent == NULL)
		(void)tool_fail(&result, "Only an agent at work has a model that searches.");
	else if (!agent_search(*agent, running_id(running), value_text(query), &found, &err))
		(void)tool_fail(&result, "The search was not done: %s.", err.text);
	else {
		show(found, &result);
		(void)tool_done(&result);
	}
	running_end(running, &result);
}

/* It ends within `begin`. */
static void stop(void *keeper, struct running *running)
{
	(void)keeper;
	(void)running;
}

struct tool *model_search_new(void)
{
	struct tool *tool = memory_alloc(sizeof(*tool));

	*tool = (struct tool){
		.name = "web_search",
		.title = "Search the web",
		.description =
			"Search the web by the service of your model: what the pages say, and their "
			"addresses. Read a page with web_fetch.",
		.example = "{\"query\": \"libcurl proxy tunnel timeout\"}",
		.aliases = "WebSearch search",
		.params = params,
		.effects = EFFECT_READS,
		.where = IN_FRONT,
		.in_runs = true,
		.fetches = true,
		.begin = begin,
		.stop = stop,
		.keeper = memory_alloc(sizeof(struct agent *)),
		.timeout_s = TIMEOUT_S,
	};
	return tool;
}

void model_search_free(struct tool *tool)
{
	if (tool == NULL)
		return;
	free(tool->keeper);
	free(tool);
}

void model_search_serve(struct tool *tool, struct agent *agent)
{
	struct agent **keeper = tool->keeper;

	*keeper = agent;
}
