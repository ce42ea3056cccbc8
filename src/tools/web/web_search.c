#include "tools/web/web_search.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/text/web_frame.h"
#include "base/value.h"
#include "tool/call.h"
#include "tools/tools.h"
#include "tools/web/fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	SEARCH_SHOWN = 8,
	SEARCH_MOST = 20,
	SEARCH_WORDS_MAX = 1000,
	SNIPPET_MAX = 400, /* bytes of what a service says of a page */
	TITLE_MAX = 200,
	KEY_MAX = 1024,
};

/* The request to a service, and where its answer has the pages. */
static const struct service {
	const char *name;
	const char *base; /* unless `url` says another one; NULL: it must */
	const char *path;
	const char *header;   /* before the key */
	const char *variable; /* of the key; NULL: there is none */
	/* posted; NULL: the words are in the address */
	const char *count; /* the name of the number of pages; NULL: it is not asked for */
	bool posts;
	const char *list, *snippet; /* in the answer */
} services[] = {
	{"searxng", NULL, "search?format=json&q=", NULL, NULL, NULL, false, "/results",
	 "content"},
	{"brave", "https://api.search.brave.com/",
	 "res/v1/web/search?q=", "X-Subscription-Token: ", "BRAVE_API_KEY", "count",
	 false, "/web/results", "description"},
	{"tavily", "https://api.tavily.com/", "search", "Authorization: Bearer ",
	 "TAVILY_API_KEY", "max_results", true, "/results", "content"},
	{"exa", "https://api.exa.ai/", "search", "x-api-key: ", "EXA_API_KEY",
	 "numResults", true, "/results", "text"},
};

static const struct row params[] = {
	{"query", ROW_TEXT, true, "What to search for", .min = 1, .max = SEARCH_WORDS_MAX},
	{"limit", ROW_COUNT, false, "Most pages that are named", .initial = "8", .min = 1,
	 .max = SEARCH_MOST},
	{0},
};

static const struct service *service_of(const struct value *settings)
{
	const char *name = value_text(value_member(settings, "provider"));

	for (size_t i = 0; name != NULL && i < sizeof(services) / sizeof(services[0]); i++) {
		if (strcmp(services[i].name, name) == 0)
			return &services[i];
	}
	return &services[0];
}

static void add_address(const struct service *service, const struct call *call,
			int64_t limit, struct buf *out)
{
	const char *base = value_text(value_member(call->carried, "url"));

	(void)buf_adds(out, base != NULL ? base : service->base);
	if (out->size > 0 && out->data[out->size - 1] != '/')
		(void)buf_addc(out, '/');
	(void)buf_adds(out, service->path);
	if (service->posts)
		return;
	(void)text_percent_add(call_str(call, "query"), "", out);
	if (service->count != NULL)
		(void)buf_addf(out, "&%s=%" PRId64, service->count, limit);
}

static void add_body(const struct service *service, const struct call *call,
		     int64_t limit, struct buf *out)
{
	auto_value struct value *body = value_new_object();

	value_set_str(body, "query", call_str(call, "query"));
	value_set_integer(body, service->count, limit);
	if (strcmp(service->name, "exa") == 0) {
		struct value *contents = value_new_object(), *text = value_new_object();

		value_set_integer(text, "maxCharacters", SNIPPET_MAX);
		value_set(contents, "text", text);
		value_set(body, "contents", contents);
	}
	(void)value_print(body, 0, out);
}

/* Append the header with the key, which the cell has as a phantom. False: it has none. */
static bool add_key(const struct service *service, const struct call *call, struct buf *out)
{
	const size_t size = strlen(service->variable);

	for (const char *const *at = call->environment; *at != NULL; at++) {
		if (strncmp(*at, service->variable, size) == 0 && (*at)[size] == '=' &&
		    (*at)[size + 1] != '\0' && strpbrk(*at, "\r\n") == NULL)
			return buf_addf(out, "%s%s", service->header, *at + size + 1);
	}
	return false;
}

/* Append at most MOST bytes of TEXT in one line, without tags. */
static void add_line(struct str text, size_t most, struct buf *out)
{
	const size_t end = out->size + most;
	bool blank = false, within = false;

	for (size_t i = 0; i < text.size && out->size < end;) {
		const size_t size = text_utf8_length(str_part(text, i, text.size));
		const struct str character = str_part(text, i, size > 0 ? size : 1);
		const char c = character.data[0];

		i += character.size;
		if (c == '<' || c == '>') {
			within = c == '<' && i < text.size && text.data[i] != ' ';
			continue;
		}
		if (within)
			continue;
		if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
			blank = true;
			continue;
		}
		if (blank && out->size + most > end)
			(void)buf_addc(out, ' ');
		blank = false;
		text_add_name(out, character);
	}
	if (out->size >= end)
		(void)buf_adds(out, " …");
}

static struct str text_of(const struct value *row, const char *key)
{
	return value_str(value_member(row, key));
}

static void show_pages(const struct service *service, const struct call *call,
		       const struct value *list, int64_t limit, struct tool_result *result)
{
	struct buf *out = &result->text;
	struct value *pages = tool_details_list(result, "pages");
	struct web_frame frame;
	int64_t shown = 0;

	web_frame_begin(&frame, service->name, out);
	(void)buf_addc(out, '\n');
	for (size_t i = 0; i < value_count(list) && shown < limit; i++) {
		const struct value *row = value_item(list, i);
		const struct str url = text_of(row, "url");

		if (url.size == 0 || text_find_unseen(url) < url.size ||
		    url.size > FETCH_URL_MAX)
			continue;
		(void)buf_addf(out, "%" PRId64 ". ", ++shown);
		add_line(text_of(row, "title"), TITLE_MAX, out);
		(void)buf_adds(out, "\n   ");
		(void)buf_addstr(out, url);
		(void)buf_adds(out, "\n   ");
		add_line(text_of(row, service->snippet), SNIPPET_MAX, out);
		(void)buf_addc(out, '\n');
		value_append(pages, value_new_str(url));
	}
	web_frame_end(&frame, out);
	if (shown == 0)
		(void)buf_addf(out,
			       "[%s names no page for these words; try fewer or others.]\n",
			       service->name);
	(void)call;
}

static enum result_status show_answer(const struct service *service, struct call *call,
				      const struct fetched *fetched, int64_t limit,
				      struct tool_result *result)
{
	auto_value struct value *answer = NULL;
	struct buf text;
	struct err err = {0};
	bool ok;

	if (fetched->problem != NULL)
		return tool_fail(result, "%s.", fetched->problem);
	if (fetched->status == 401 || fetched->status == 403)
		return tool_fail(result,
				 "%s refuses the key of this agent (%" PRId64
				 "). Ask the user "
				 "to look at the credential %s.",
				 service->name, fetched->status, service->name);
	if (fetched->status == 429)
		return tool_fail(result,
				 "%s has answered too many requests (429). Wait a while, or go on "
				 "without a search.",
				 service->name);
	buf_init(&text, 2 * FETCH_MAX);
	ok = fetched->status < 400 &&
	     lseek(fetched->fd, (off_t)fetched->at, SEEK_SET) >= 0 &&
	     fd_read_all(fetched->fd, &text, service->name, &err) &&
	     value_parse(buf_str(&text), VALUE_SEARCHED, &answer, &err);
	buf_fini(&text);
	if (!ok)
		return tool_fail(result,
				 "%s answers %" PRId64
				 ", and not with what a search gives%s%s. %s",
				 fetched->url, fetched->status,
				 err.text[0] != '\0' ? ": " : "", err.text,
				 service->base == NULL
					 ? "Ask the user whether `search.url` is that of a SearXNG server "
					   "whose settings allow the format json."
					 : "Try again later.");
	show_pages(service, call, value_at_pointer(answer, service->list), limit, result);
	return tool_done(result);
}

static enum result_status execute(struct call *call, struct tool_result *result)
{
	const struct service *service = service_of(call->carried);
	const int64_t limit = call_count(call, "limit", SEARCH_SHOWN);
	struct buf url, key, body;
	struct fetched fetched;
	const char *headers[] = {NULL, NULL};
	enum result_status status;

	buf_init(&url, FETCH_URL_MAX);
	buf_init(&key, KEY_MAX);
	buf_init(&body, 4 * SEARCH_WORDS_MAX + 256);
	fetched_init(&fetched);
	add_address(service, call, limit, &url);
	if (service->posts)
		add_body(service, call, limit, &body);
	if (service->variable != NULL && !add_key(service, call, &key)) {
		status = tool_fail(result,
				   "%s wants a key (%s), which this agent has not. Ask the user to add "
				   "\"%s\" to `credentials` of the agent.",
				   service->name, service->variable, service->name);
	} else {
		const struct fetch_request request = {
			.url = url.data,
			.form = FETCH_RAW,
			.headers = headers,
			.body = service->posts ? buf_str(&body) : (struct str){0},
		};

		headers[0] = key.size > 0 ? key.data : NULL;
		status = fetch_run(call, &request, &fetched, result)
				 ? show_answer(service, call, &fetched, limit, result)
				 : result->status;
	}
	fetched_fini(&fetched);
	buf_fini(&body);
	buf_fini(&key);
	buf_fini(&url);
	return status;
}

/* It carries out the tools that web_search_new makes. */
const struct tool search_web_tool = {
	.name = "search_web",
	.description = "Carries out web_search.",
	.example = "{\"query\": \"x\"}",
	.params = params,
	.effects = EFFECT_READS,
	.fetches = true,
	.internal = true,
	.judged_as = "web_search",
	.timeout_s = FETCH_ASKED_SECONDS + FETCH_SECONDS,
	.execute = execute,
};

struct tool *web_search_new(const struct value *settings)
{
	struct tool *tool = memory_alloc(sizeof(*tool));

	*tool = (struct tool){
		.name = "web_search",
		.title = "Search the web",
		.description =
			"Search the web: titles, addresses and a line of each page. Read a page with "
			"web_fetch.",
		.example = "{\"query\": \"libcurl proxy tunnel timeout\"}",
		.aliases = "WebSearch search",
		.params = params,
		.carrier = "search_web",
		.carried = value_copy(settings),
		.effects = EFFECT_READS,
		.fetches = true,
		.timeout_s = FETCH_ASKED_SECONDS + FETCH_SECONDS,
	};
	return tool;
}

void web_search_free(struct tool *tool)
{
	if (tool == NULL)
		return;
	value_free(tool->carried);
	free(tool);
}
