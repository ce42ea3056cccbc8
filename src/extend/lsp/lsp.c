/* lsp: keeps the language servers informed of files, and tells what they find. */

#include "extend/lsp/lsp.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "extend/lsp/lsp_message.h"
#include "extend/lsp/lsp_server.h"
#include "policy/policy.h"
#include "session/session.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_MAX = 1 << 20, /* bytes of a file that a server is told of */
	FILES_MAX = 32,     /* that one server knows at the same time */
	URI_MAX = 4 * PATH_MAX,
	TOLD_LINE_MAX = 4 << 10,
	/* The first look at a file may come after that at a whole project. */
	OPENED_MS = 10000,
	/* Not every server says anew what has not changed. */
	RESYNC_MS = 2000,
	SENT_MS = 10000,
	/*
	 * A server that names no version may still speak of the text before: what it says last in
	 * this time is taken.
	 */
	UNVERSIONED_MS = 1400,
};

static const double question_timeout_s = 30;
static const double idle_s = 600; /* unless the settings say otherwise */

/* One file as a server knows it. */
enum file_state {
	FILE_NEW,     /* the server is to be told of it */
	FILE_OPENED,  /* what was wrong before the change is awaited */
	FILE_SENT,    /* what the change has made wrong is awaited */
	FILE_SETTLED, /* what is wrong in `text` is known */
};

struct known_file {
	struct known_file *next;
	char *path, *uri;
	enum file_state state;
	bool absent;     /* it was not there before the change */
	int64_t version; /* of `text` at the server */
	char *text;      /* as the server has it, or will when it is told of the file */
	char *next_text; /* to be sent when FILE_OPENED is over; or NULL */
	int64_t sent_ms, patience_ms;
	struct lsp_findings found; /* in `text`; when settled */
	struct lsp_findings held;  /* that may be of this version or of the one before */
	bool is_held;
	/* Told to the model, or there before it changed anything. */
	struct lsp_findings told;
	char *told_text;
	bool has_news;
	bool awaited; /* by the call of lsp_diagnoses */
	bool checked; /* it still has `text`, seen while its news were told */
};

/* One server of the configuration. */
struct serving {
	struct serving *next;
	struct lsp *lsp;
	const char *name;
	const struct value *patterns;
	struct lsp_server *server;
	struct lsp_server_options options;
	struct known_file *files;
	size_t file_count;
	bool gone;         /* it has ended, and knows no file any more */
	bool told_trouble; /* the person knows that it is off */
};

enum question { ASKS_FINDINGS, ASKS_DEFINITION, ASKS_REFERENCES, ASKS_SYMBOLS };

/* A call of the tool. */
struct query {
	struct query *next;
	struct lsp *lsp;
	struct serving *serving;
	struct running *running;
	char *path;
	enum question question;
	uint32_t line, column; /* from 1 */
	bool sent;
};

struct lsp {
	struct lsp_options options;
	struct serving *first;
	struct loop *loop;       /* of the agent; NULL: it has no session */
	struct session *agent;   /* of the agent; NULL: there is none */
	struct session *session; /* of the servers; NULL: not opened yet */
	char *trouble;           /* why there is no such session; or NULL */
	bool told_trouble;
	struct tool tool, diagnoses;
	struct value *no_schema;
	struct agent_hooks hooks;
	struct timer timer;
	bool stepping, again;
	struct running *asked; /* of lsp_diagnoses; NULL: none */
	int64_t asked_until_ms;
	struct query *queries;
};

/* Something has changed: step looks at it in this turn of the loop. */
static void wake(struct lsp *lsp)
{
	if (lsp->stepping)
		lsp->again = true;
	else
		lsp->timer.due_ms = 0;
}

/* Files. */

static void file_free(struct known_file *file)
{
	lsp_findings_fini(&file->found);
	lsp_findings_fini(&file->held);
	lsp_findings_fini(&file->told);
	free(file->told_text);
	free(file->next_text);
	free(file->text);
	free(file->path);
	free(file->uri);
	free(file);
}

static void forget_files(struct serving *serving)
{
	while (serving->files) {
		struct known_file *file = serving->files;

		serving->files = file->next;
		file_free(file);
	}
	serving->file_count = 0;
	serving->gone = false;
}

static struct known_file *find_file(const struct serving *serving, const char *path)
{
	struct known_file *file = serving->files;

	while (file && strcmp(file->path, path) != 0)
		file = file->next;
	return file;
}

static struct value *identifier(const struct known_file *file)
{
	struct value *name = value_new_object();

	value_set_text(name, "uri", file->uri);
	return name;
}

static struct value *params_of(const struct known_file *file)
{
	struct value *params = value_new_object();

	value_set(params, "textDocument", identifier(file));
	return params;
}

static void close_file(struct serving *serving, struct known_file *file)
{
	struct known_file **at = &serving->files;

	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	serving->file_count--;
	if (file->state != FILE_NEW && lsp_server_state(serving->server) == LSP_READY)
		lsp_server_tell(serving->server, "textDocument/didClose", params_of(file));
	file_free(file);
}

/* TEXT NULL: the file is not there yet. */
static struct known_file *add_file(struct serving *serving, const char *path,
				   const char *text)
{
	struct known_file *file = memory_alloc(sizeof(*file)), **end = &serving->files;
	struct buf uri;

	if (serving->file_count == FILES_MAX)
		close_file(serving, serving->files);
	buf_init(&uri, URI_MAX);
	(void)path_add_uri(path, &uri);
	file->uri = buf_take(&uri);
	file->path = memory_copy(path);
	file->absent = text == NULL;
	file->text = memory_copy(text ? text : "");
	file->told_text = memory_copy("");
	while (*end)
		end = &(*end)->next;
	*end = file;
	serving->file_count++;
	return file;
}

static void open_file(struct serving *serving, struct known_file *file, int64_t now)
{
	struct value *params = value_new_object(), *document = identifier(file);

	file->state = file->absent ? FILE_SENT : FILE_OPENED;
	file->version = 1;
	file->sent_ms = now;
	file->patience_ms = OPENED_MS;
	value_set_text(document, "languageId", lsp_message_language(file->path));
	value_set_integer(document, "version", file->version);
	value_set_text(document, "text", file->text);
	value_set(params, "textDocument", document);
	lsp_server_tell(serving->server, "textDocument/didOpen", params);
}

/* Send `next_text`. */
static void change_file(struct serving *serving, struct known_file *file, int64_t now)
{
	struct value *params = value_new_object(), *document = identifier(file);
	struct value *changes = value_new_array(), *change = value_new_object();

	free(file->text);
	file->text = file->next_text;
	file->next_text = NULL;
	file->version++;
	file->state = FILE_SENT;
	file->sent_ms = now;
	file->patience_ms = SENT_MS;
	file->is_held = false;
	value_set_integer(document, "version", file->version);
	value_set(params, "textDocument", document);
	value_set_text(change, "text", file->text);
	value_append(changes, change);
	value_set(params, "contentChanges", changes);
	lsp_server_tell(serving->server, "textDocument/didChange", params);
	lsp_server_tell(serving->server, "textDocument/didSave", params_of(file));
}

/* Nothing of what is wrong in the file now is news any more. */
static void take_as_told(struct known_file *file)
{
	lsp_findings_copy(&file->told, &file->found);
	free(file->told_text);
	file->told_text = memory_copy(file->text);
	file->has_news = false;
}

/* FINDINGS, which are moved, are what is wrong in the text of FILE. */
static void settle_file(struct known_file *file, struct lsp_findings *findings)
{
	const bool before = file->state == FILE_OPENED;

	lsp_findings_move(&file->found, findings);
	file->state = FILE_SETTLED;
	file->is_held = false;
	if (before)
		take_as_told(file);
	else
		file->has_news = true;
}

/* The file has TEXT, which no call of the agent has made: a command did, or a person. */
static void resync_file(struct serving *serving, struct known_file *file, const char *text)
{
	if (file->next_text || strcmp(file->text, text) == 0)
		return;
	if (file->state == FILE_NEW) {
		free(file->text);
		file->text = memory_copy(text);
		file->absent = false;
		return;
	}
	file->next_text = memory_copy(text);
	change_file(serving, file, clock_now_ms());
	file->state = FILE_OPENED;
	file->patience_ms = RESYNC_MS;
}

/* A call has changed the file to TEXT. */
static void edit_file(struct known_file *file, const char *text)
{
	if (file->state == FILE_NEW && file->absent) {
		free(file->text);
		file->text = memory_copy(text);
	} else if (file->next_text || strcmp(file->text, text) != 0) {
		free(file->next_text);
		file->next_text = memory_copy(text);
	}
}

/* Do the work that has come due for FILE at NOW. */
static void step_file(struct serving *serving, struct known_file *file, int64_t now)
{
	const bool late = now >= file->sent_ms + file->patience_ms;
	struct lsp_findings same = {0};

	if (file->state == FILE_NEW)
		open_file(serving, file, now);
	else if (file->is_held && now >= file->sent_ms + UNVERSIONED_MS)
		settle_file(file, &file->held);
	else if (late && (file->state == FILE_OPENED || file->state == FILE_SENT)) {
		/* A server that says nothing has seen nothing new. */
		const bool news = file->has_news;

		lsp_findings_copy(&same, &file->told);
		settle_file(file, &same);
		file->has_news = news && file->has_news;
	}
	if (file->next_text && file->state != FILE_OPENED)
		change_file(serving, file, now);
}

/* When step_file is to be called next. */
static int64_t due_of(const struct known_file *file)
{
	if (file->state != FILE_OPENED && file->state != FILE_SENT)
		return CLOCK_NEVER;
	return file->sent_ms + (file->is_held ? UNVERSIONED_MS : file->patience_ms);
}

/* Reading a file, as the cell of the servers sees it. */

/* False: it is not there (ABSENT), or no text that a server can be told of. */
static bool read_file(struct lsp *lsp, const char *path, struct buf *text, bool *absent)
{
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = "fs_read",
					.arguments = arguments,
					.by_front = true,
					.quiet = true};
	struct tool_result result;
	struct buf uri;
	bool fine;

	buf_init(&uri, URI_MAX);
	(void)path_add_uri(path, &uri);
	value_set_text(arguments, "what", "content");
	value_set_str(arguments, "uri", buf_str(&uri));
	value_set_integer(arguments, "size", TEXT_MAX + 1);
	session_call(lsp->session, &request, &result);
	*absent = value_integer(value_member(result.details, "code")) == ENOENT;
	fine = result.status == RESULT_DONE &&
	       buf_base64_read(buf_str(&result.text), text) &&
	       strlen(text->data) == text->size && text_is_utf8(buf_str(text));
	tool_result_fini(&result);
	buf_fini(&uri);
	return fine;
}

/* Servers know files by the workspace's own path. */
static bool own_path(const struct lsp *lsp, const char *path, struct buf *out)
{
	return lsp->agent != NULL ? policy_normal(session_policy(lsp->agent),
						  lsp->options.workspace, path, out)
				  : path_normal(lsp->options.workspace, path, out);
}

/* The server for PATH; NULL: none. */
static struct serving *serving_of(const struct lsp *lsp, const char *path)
{
	const char *name = path_relative(path, lsp->options.workspace);

	if (!path_within(path, lsp->options.workspace))
		return NULL;
	for (struct serving *at = lsp->first; at; at = at->next) {
		for (size_t i = 0; i < value_count(at->patterns); i++) {
			if (pattern_match(value_str(value_item(at->patterns, i)),
					  str_of(name), PATTERN_BRACES | PATTERN_BASENAME))
				return at;
		}
	}
	return NULL;
}

/* Have SERVING's program run. False: it cannot. */
static bool start(struct serving *serving)
{
	struct lsp *lsp = serving->lsp;
	struct err err = {0};

	if (!lsp->loop || lsp->trouble)
		return false;
	if (serving->gone)
		forget_files(serving);
	if (!lsp->session &&
	    !lsp->options.open_cell(lsp->options.context, lsp->loop, &lsp->session, &err)) {
		struct buf text;

		buf_init(&text, 2 * ERR_TEXT_MAX);
		(void)buf_addf(&text, "There are no language servers in this session: %s",
			       err.text);
		lsp->trouble = buf_take(&text);
		return false;
	}
	lsp_server_start(serving->server, lsp->session);
	return lsp_server_state(serving->server) != LSP_BROKEN;
}

/* The model's tool ends. */

static void unlink_query(struct query *query)
{
	struct query **at = &query->lsp->queries;

	while (*at && *at != query)
		at = &(*at)->next;
	if (*at)
		*at = query->next;
	lsp_server_forget(query->serving->server, query);
	free(query->path);
	free(query);
}

/* End the call of QUERY with RESULT. */
static void end_query(struct query *query, struct tool_result *take_result)
{
	struct running *running = query->running;

	unlink_query(query);
	running_end(running, take_result);
}

static void fail_query(struct query *query, const char *why)
{
	struct tool_result result;

	tool_result_init(&result);
	(void)tool_fail(&result, "%s", why);
	end_query(query, &result);
}

/* A line for FINDING, without its end. */
static void add_finding(const struct serving *serving, const struct known_file *file,
			const struct lsp_finding *finding, struct buf *out)
{
	const uint32_t column =
		lsp_message_column(str_of(file->text), finding->line, finding->units,
				   lsp_server_in_bytes(serving->server));

	text_add_name(out,
		      str_of(path_relative(file->path, serving->lsp->options.workspace)));
	(void)buf_addf(out, ":%u:%u: %s", finding->line + 1, column, finding->message);
}

static void answer_findings(struct query *query, const struct known_file *file)
{
	struct tool_result result;

	tool_result_init(&result);
	for (size_t i = 0; i < file->found.count && i < LSP_LIST_MAX; i++) {
		const struct lsp_finding *finding = &file->found.items[i];

		(void)buf_addf(&result.text, "%s: ", lsp_severity_name(finding->severity));
		add_finding(query->serving, file, finding, &result.text);
		(void)buf_addc(&result.text, '\n');
	}
	if (file->found.count > LSP_LIST_MAX)
		(void)buf_addf(&result.text, "… and %zu more\n",
			       file->found.count - LSP_LIST_MAX);
	if (file->found.count == 0)
		(void)buf_addf(&result.text, "%s finds nothing wrong in this file.\n",
			       query->serving->name);
	result.status = RESULT_DONE;
	end_query(query, &result);
}

/* The answer of the server to QUERY. */
static void answered(void *context, const struct value *found, const char *why)
{
	struct query *query = context;
	struct tool_result result;
	struct buf text;

	if (why) {
		fail_query(query, why);
		return;
	}
	buf_init(&text, LSP_TEXT_MAX);
	if (query->question == ASKS_SYMBOLS)
		lsp_message_symbols(found, &text);
	else
		lsp_message_places(found, query->lsp->options.workspace, &text);
	tool_result_init(&result);
	if (text.size > 0)
		(void)buf_addstr(&result.text, buf_str(&text));
	else if (query->question == ASKS_SYMBOLS)
		(void)buf_adds(&result.text, "There are no symbols in this file.\n");
	else
		(void)buf_addf(&result.text,
			       "%s knows nothing at line %u, column %u. Both count from 1: "
			       "give the place of a character of the name itself.\n",
			       query->serving->name, query->line, query->column);
	buf_fini(&text);
	result.status = RESULT_DONE;
	end_query(query, &result);
}

static void ask_server(struct query *query, const struct known_file *file)
{
	static const char *const methods[] = {
		[ASKS_DEFINITION] = "textDocument/definition",
		[ASKS_REFERENCES] = "textDocument/references",
		[ASKS_SYMBOLS] = "textDocument/documentSymbol",
	};
	struct lsp_server *server = query->serving->server;
	struct value *params = params_of(file);

	if (query->question != ASKS_SYMBOLS) {
		struct value *position = value_new_object();

		value_set_integer(position, "line", query->line - 1);
		value_set_integer(position, "character",
				  lsp_message_units(str_of(file->text), query->line - 1,
						    query->column,
						    lsp_server_in_bytes(server)));
		value_set(params, "position", position);
	}
	if (query->question == ASKS_REFERENCES) {
		struct value *context = value_new_object();

		value_set_boolean(context, "includeDeclaration", true);
		value_set(params, "context", context);
	}
	query->sent = true;
	if (!lsp_server_ask(server, methods[query->question], params, answered, query))
		fail_query(query, "Too many questions to the language server are open.");
}

/* Ask or answer QUERY. False: it has to wait. Else it, and others, may be gone. */
static bool step_query(struct query *query)
{
	const struct serving *serving = query->serving;
	const struct known_file *file = find_file(serving, query->path);
	const char *trouble = lsp_server_trouble(serving->server);

	if (query->sent)
		return false;
	if (!file || trouble) {
		fail_query(query, trouble ? trouble
					  : "The language server has ended; ask again.");
		return true;
	}
	if (file->state == FILE_NEW || file->next_text)
		return false;
	if (query->question != ASKS_FINDINGS)
		ask_server(query, file);
	else if (file->state == FILE_SETTLED)
		answer_findings(query, file);
	else
		return false;
	return true;
}

static void step_queries(struct lsp *lsp)
{
	struct query *query = lsp->queries;

	while (query)
		query = step_query(query) ? lsp->queries : query->next;
}

/* The text that is told after the calls of an answer. */

/* The news of FILE. The caller frees the list, which has a member for each finding. */
static bool *news_of(const struct known_file *file)
{
	bool *is_new = memory_array(file->found.count + 1, sizeof(*is_new));

	if (file->has_news)
		lsp_findings_compare(&file->told, str_of(file->told_text), &file->found,
				     str_of(file->text), is_new);
	return is_new;
}

static bool is_tellable(const struct known_file *file)
{
	return file->state == FILE_SETTLED && file->has_news && !file->next_text;
}

static size_t count_news(const struct lsp *lsp)
{
	size_t count = 0;

	for (const struct serving *at = lsp->first; at; at = at->next) {
		for (const struct known_file *file = at->files; file; file = file->next) {
			auto_free bool *is_new = news_of(file);

			for (size_t i = 0; is_tellable(file) && i < file->found.count; i++)
				count += is_new[i];
		}
	}
	return count;
}

/* The lines that are told. */
struct telling {
	struct buf *out;
	size_t told, most;
};

static void tell_file(struct serving *serving, struct known_file *file,
		      struct telling *telling)
{
	auto_free bool *is_new = news_of(file);
	struct buf line;

	buf_init(&line, TOLD_LINE_MAX);
	for (size_t i = 0; i < file->found.count; i++) {
		if (!is_new[i] || telling->told == telling->most)
			continue;
		buf_clear(&line);
		(void)buf_addf(&line, "%s: ", serving->name);
		add_finding(serving, file, &file->found.items[i], &line);
		(void)buf_addc(&line, '\n');
		/* Room for the words about the rest stays. */
		if (telling->out->size + line.size + 32 > LSP_BYTES_MAX) {
			telling->most = telling->told;
			break;
		}
		(void)buf_addstr(telling->out, buf_str(&line));
		telling->told++;
	}
	buf_fini(&line);
	take_as_told(file);
}

/* A file whose news come late, and of which nobody has seen whether it is still the same. */
static struct known_file *unchecked(const struct lsp *lsp, struct serving **serving)
{
	for (*serving = lsp->first; *serving; *serving = (*serving)->next) {
		for (struct known_file *file = (*serving)->files; file; file = file->next) {
			if (is_tellable(file) && !file->awaited && !file->checked)
				return file;
		}
	}
	return NULL;
}

static void check_late(struct lsp *lsp)
{
	struct known_file *file;
	struct serving *serving;

	while ((file = unchecked(lsp, &serving)) != NULL) {
		auto_free char *path = memory_copy(file->path);
		struct buf text;
		bool absent, fine;

		file->checked = true;
		buf_init(&text, TEXT_MAX);
		fine = read_file(lsp, path, &text, &absent);
		/* The loop has turned meanwhile. */
		file = find_file(serving, path);
		if (file && !fine)
			close_file(serving, file);
		else if (file)
			resync_file(serving, file, text.data);
		buf_fini(&text);
	}
}

static void tell_news(struct lsp *lsp, struct buf *out)
{
	struct telling telling = {.out = out, .most = LSP_LINES_MAX};
	size_t count;

	check_late(lsp);
	count = count_news(lsp);
	if (count > LSP_LINES_MAX)
		telling.most = LSP_LINES_MAX - 1;
	for (struct serving *at = lsp->first; at; at = at->next) {
		for (struct known_file *file = at->files; file; file = file->next) {
			file->awaited = file->checked = false;
			if (is_tellable(file))
				tell_file(at, file, &telling);
		}
	}
	if (count > telling.told)
		(void)buf_addf(out, "… and %zu more errors\n", count - telling.told);
}

static void add_trouble(struct tool_result *result, const char *trouble, bool *told)
{
	if (!trouble || *told)
		return;
	*told = true;
	value_append(tool_details_list(result, "notices"), value_new_text(trouble));
}

/* Is something awaited that may still come? */
static bool is_awaited(const struct lsp *lsp)
{
	for (const struct serving *at = lsp->first; at; at = at->next) {
		for (const struct known_file *file = at->files; file; file = file->next) {
			if (file->awaited &&
			    (file->state != FILE_SETTLED || file->next_text))
				return true;
		}
	}
	return false;
}

static void end_asked(struct lsp *lsp)
{
	struct running *running = lsp->asked;
	struct tool_result result;

	tool_result_init(&result);
	tell_news(lsp, &result.text);
	add_trouble(&result, lsp->trouble, &lsp->told_trouble);
	for (struct serving *at = lsp->first; at; at = at->next)
		add_trouble(&result, lsp_server_trouble(at->server), &at->told_trouble);
	result.status = RESULT_DONE;
	/* The call may have been cancelled while the loop turned. */
	if (lsp->asked == running) {
		lsp->asked = NULL;
		running_end(running, &result);
	} else {
		tool_result_fini(&result);
	}
}

/* Steps. */

static void step_serving(struct serving *serving, int64_t now, int64_t *due_ms)
{
	const enum lsp_state state = lsp_server_state(serving->server);

	if (serving->gone)
		forget_files(serving);
	for (struct known_file *file = serving->files; file && state == LSP_READY;
	     file = file->next) {
		step_file(serving, file, now);
		if (due_of(file) < *due_ms)
			*due_ms = due_of(file);
	}
}

static void step(struct lsp *lsp)
{
	int64_t now, due_ms = CLOCK_NEVER;

	if (lsp->stepping) {
		lsp->again = true;
		return;
	}
	lsp->stepping = true;
	lsp->again = false;
	now = clock_now_ms();
	for (struct serving *at = lsp->first; at; at = at->next)
		step_serving(at, now, &due_ms);
	step_queries(lsp);
	if (lsp->asked && (now >= lsp->asked_until_ms || !is_awaited(lsp)))
		end_asked(lsp);
	if (lsp->asked && lsp->asked_until_ms < due_ms)
		due_ms = lsp->asked_until_ms;
	lsp->stepping = false;
	lsp->timer.due_ms = lsp->again ? 0 : due_ms;
}

static void timer_due(struct timer *timer)
{
	step(timer->context);
}

/* Servers tell something: OWNER is a struct serving. */

static void ready(void *owner)
{
	const struct serving *serving = owner;

	wake(serving->lsp);
}

static void ended(void *owner, const char *why)
{
	struct serving *serving = owner;
	struct query *query = serving->lsp->queries;

	serving->gone = true;
	while (query) {
		struct query *next = query->next;

		if (query->serving == serving)
			fail_query(query, why);
		query = next;
	}
	wake(serving->lsp);
}

static void published(void *owner, const struct value *params)
{
	struct serving *serving = owner;
	struct lsp_findings findings;
	struct known_file *file = NULL;
	struct str uri;
	int64_t version;
	struct buf path;

	if (!lsp_findings_read(params, &uri, &version, &findings))
		return;
	buf_init(&path, PATH_MAX);
	if (!serving->gone && path_of_uri(uri, &path))
		file = find_file(serving, path.data);
	buf_fini(&path);
	if (file && file->state != FILE_NEW && (version < 0 || version == file->version)) {
		file->is_held = version < 0 && file->state == FILE_SENT &&
				clock_now_ms() < file->sent_ms + UNVERSIONED_MS;
		if (file->is_held)
			lsp_findings_move(&file->held, &findings);
		else
			settle_file(file, &findings);
		wake(serving->lsp);
	}
	lsp_findings_fini(&findings);
}

/* Before a call that changes files. */

static void touch(void *context, const char *path)
{
	struct lsp *lsp = context;
	struct serving *serving = NULL;
	struct known_file *file;
	struct buf absolute, text;
	bool absent = false, fine;

	buf_init(&absolute, PATH_MAX);
	buf_init(&text, TEXT_MAX);
	if (path && own_path(lsp, path, &absolute))
		serving = serving_of(lsp, absolute.data);
	if (serving && start(serving)) {
		fine = read_file(lsp, absolute.data, &text, &absent);
		file = find_file(serving, absolute.data);
		if (file && fine)
			resync_file(serving, file, text.data);
		else if (!file && (fine || absent))
			(void)add_file(serving, absolute.data, fine ? text.data : NULL);
		wake(lsp);
	}
	buf_fini(&text);
	buf_fini(&absolute);
}

static void before(void *context, const struct hook_moment *moment,
		   struct hook_answer *answer)
{
	const struct tool *tool = moment->tool;

	(void)answer;
	if (moment->kind != HOOK_BEFORE_CALL || !tool ||
	    (tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != EFFECT_WRITES)
		return;
	tool_visit_paths(tool, moment->arguments, touch, context);
}

/* After all calls of an answer. */

static void take_edited(struct lsp *lsp, const char *path)
{
	struct serving *serving = path ? serving_of(lsp, path) : NULL;
	struct known_file *file;
	struct buf text;
	bool absent;

	if (!serving || !start(serving))
		return;
	buf_init(&text, TEXT_MAX);
	if (read_file(lsp, path, &text, &absent)) {
		file = find_file(serving, path);
		/* Nobody knows what was wrong before: all of it counts as old. */
		if (!file)
			file = add_file(serving, path, text.data);
		else
			edit_file(file, text.data);
		file->awaited = true;
	} else {
		file = find_file(serving, path);
		if (file)
			close_file(serving, file);
	}
	buf_fini(&text);
}

/* For struct tool: KEEPER is the struct lsp. */
static void begin_diagnoses(void *keeper, struct running *running)
{
	struct lsp *lsp = keeper;
	const struct value *files = value_member(running_arguments(running), "files");

	lsp->asked = running;
	lsp->stepping = true;
	for (size_t i = 0; i < value_count(files) && lsp->asked; i++)
		take_edited(lsp, value_text(value_item(files, i)));
	lsp->stepping = false;
	lsp->asked_until_ms = clock_now_ms() + LSP_WAIT_MS;
	step(lsp);
}

static void stop(void *keeper, struct running *running)
{
	struct lsp *lsp = keeper;
	struct query *query = lsp->queries;

	if (lsp->asked == running)
		lsp->asked = NULL;
	while (query && query->running != running)
		query = query->next;
	if (query)
		unlink_query(query);
}

/* The tool of the model. */

static const struct row tool_params[] = {
	{"action", ROW_CHOICE, true, "What is wanted",
	 .choices = "diagnostics definition references symbols"},
	{"path", ROW_PATH, true, "File, relative to the workspace",
	 .aliases = "file_path file"},
	{"line", ROW_COUNT, false, "Line of the name, from 1, for definition and references",
	 .min = 1, .max = INT32_MAX},
	{"column", ROW_COUNT, false, "Column of a character of the name, from 1",
	 .min = 1, .max = INT32_MAX},
	{0},
};

static enum question question_of(const struct value *arguments)
{
	const struct str action = value_str(value_member(arguments, "action"));

	return str_is(action, "definition")   ? ASKS_DEFINITION
	       : str_is(action, "references") ? ASKS_REFERENCES
	       : str_is(action, "symbols")    ? ASKS_SYMBOLS
					      : ASKS_FINDINGS;
}

/* Append the patterns of all servers. */
static void add_patterns(const struct lsp *lsp, struct buf *out)
{
	for (const struct serving *at = lsp->first; at; at = at->next) {
		for (size_t i = 0; i < value_count(at->patterns); i++) {
			(void)buf_adds(out, out->size > 0 ? ", " : "");
			text_add_name(out, value_str(value_item(at->patterns, i)));
		}
	}
}

/* Why a question about PATH cannot be asked, with the next step; or NULL. */
static bool refuse(const struct lsp *lsp, const struct serving *serving, const char *path,
		   const struct query *query, struct tool_result *result)
{
	struct buf patterns;

	if (!serving) {
		buf_init(&patterns, TOLD_LINE_MAX);
		add_patterns(lsp, &patterns);
		(void)tool_fail(result,
				"No language server is configured for %.200s; there are some "
				"for %s.",
				path, patterns.data);
		buf_fini(&patterns);
		return true;
	}
	if ((query->question == ASKS_DEFINITION || query->question == ASKS_REFERENCES) &&
	    (query->line == 0 || query->column == 0)) {
		(void)tool_fail(result,
				"Give line and column of the name, both from 1 (grep shows "
				"lines).");
		return true;
	}
	return false;
}

/* Make the file of QUERY known to the server. False: RESULT says why not. */
static bool show_file(struct query *query, struct tool_result *result)
{
	struct serving *serving = query->serving;
	struct lsp *lsp = query->lsp;
	struct known_file *file;
	struct buf text;
	bool absent, fine;

	if (!start(serving)) {
		const char *trouble = lsp_server_trouble(serving->server);

		(void)tool_fail(result, "%s",
				trouble        ? trouble
				: lsp->trouble ? lsp->trouble
					       : "Language servers run only for agents.");
		return false;
	}
	buf_init(&text, TEXT_MAX);
	fine = read_file(lsp, query->path, &text, &absent);
	file = find_file(serving, query->path);
	if (!fine)
		(void)tool_fail(result,
				absent ? "There is no such file."
				       : "The file is no UTF-8 text of up to 1 MiB.");
	else if (file)
		resync_file(serving, file, text.data);
	else
		(void)add_file(serving, query->path, text.data);
	buf_fini(&text);
	return fine;
}

static void begin_tool(void *keeper, struct running *running)
{
	struct lsp *lsp = keeper;
	const struct value *arguments = running_arguments(running);
	const char *path = value_text(value_member(arguments, "path"));
	struct query *query = memory_alloc(sizeof(*query));
	struct tool_result result;
	struct buf absolute;

	tool_result_init(&result);
	buf_init(&absolute, PATH_MAX);
	(void)own_path(lsp, path, &absolute);
	*query = (struct query){
		.lsp = lsp,
		.serving = serving_of(lsp, absolute.data),
		.running = running,
		.path = buf_take(&absolute),
		.question = question_of(arguments),
		.line = (uint32_t)value_integer(value_member(arguments, "line")),
		.column = (uint32_t)value_integer(value_member(arguments, "column")),
	};
	if (refuse(lsp, query->serving, path, query, &result)) {
		free(query->path);
		free(query);
		running_end(running, &result);
		return;
	}
	/* The call may be cancelled while the file is read: `stop` finds it here. */
	query->next = lsp->queries;
	lsp->queries = query;
	lsp->stepping = true;
	const bool shown = show_file(query, &result);
	lsp->stepping = false;
	if (shown || lsp->queries != query)
		tool_result_fini(&result);
	else
		end_query(query, &result);
	/* Others wait for what has come while the file was read. */
	if (shown)
		step(lsp);
	else
		wake(lsp);
}

/* Life. */

static struct serving *serving_new(struct lsp *lsp, const char *name,
				   const struct value *settings)
{
	struct serving *serving = memory_alloc(sizeof(*serving));

	const struct value *idle = value_member(settings, "idle_s");

	serving->lsp = lsp;
	serving->name = name;
	serving->patterns = value_member(settings, "files");
	serving->options = (struct lsp_server_options){
		.name = name,
		.command = value_member(settings, "command"),
		.idle_s = idle ? value_number(idle) : idle_s,
		.workspace = lsp->options.workspace,
		.ready = ready,
		.published = published,
		.ended = ended,
		.owner = serving,
	};
	serving->server = lsp_server_new(&serving->options);
	return serving;
}

struct lsp *lsp_new(const struct lsp_options *options)
{
	struct lsp *lsp = memory_alloc(sizeof(*lsp));
	struct serving **end = &lsp->first;

	lsp->options = *options;
	lsp->no_schema = value_new_object();
	lsp->tool = (struct tool){
		.name = "lsp",
		.title = "Ask the language server",
		.description =
			"Ask the language server of a file: what is wrong in it, where a name is "
			"defined or used, which symbols it has.",
		.example = "{\"action\": \"definition\", \"path\": \"src/main.c\", \"line\": 12, "
			   "\"column\": 5}",
		.params = tool_params,
		.effects = EFFECT_READS,
		.timeout_s = question_timeout_s,
		.where = IN_FRONT,
		.in_runs = true,
		.begin = begin_tool,
		.stop = stop,
	};
	lsp->diagnoses = (struct tool){
		.name = "diagnostics",
		.schema = lsp->no_schema,
		.effects = EFFECT_READS,
		.where = IN_FRONT,
		.internal = true,
		.begin = begin_diagnoses,
		.stop = stop,
		.keeper = lsp,
	};
	lsp->hooks = (struct agent_hooks){.ask = before, .context = lsp};
	lsp->timer =
		(struct timer){.due_ms = CLOCK_NEVER, .due = timer_due, .context = lsp};
	for (void *at = value_first(options->settings); at;
	     at = value_next(options->settings, at)) {
		*end = serving_new(lsp, value_key(at), value_at(at));
		end = &(*end)->next;
	}
	return lsp;
}

void lsp_free(struct lsp *lsp)
{
	if (!lsp)
		return;
	lsp_end(lsp);
	while (lsp->first) {
		struct serving *serving = lsp->first;

		lsp->first = serving->next;
		lsp_server_free(serving->server);
		free(serving);
	}
	value_free(lsp->no_schema);
	free(lsp->trouble);
	free(lsp);
}

const struct tool *lsp_tool(const struct lsp *lsp)
{
	return &lsp->tool;
}

void lsp_serve(struct lsp *lsp)
{
	lsp->tool.keeper = lsp;
}

void lsp_begin(struct lsp *lsp, struct session *session)
{
	lsp->loop = session_loop(session);
	lsp->agent = session;
	loop_add_timer(lsp->loop, &lsp->timer);
}

void lsp_end(struct lsp *lsp)
{
	struct query *next;

	if (!lsp)
		return;
	/* No call is under way any more, but one that became too late for its agent. */
	lsp->asked = NULL;
	for (struct query *query = lsp->queries; query; query = next) {
		next = query->next;
		fail_query(query, "The session ends.");
	}
	for (struct serving *at = lsp->first; at; at = at->next) {
		lsp_server_stop(at->server);
		forget_files(at);
	}
	session_close(lsp->session);
	lsp->session = NULL;
	lsp->agent = NULL;
	loop_remove_timer(&lsp->timer);
	lsp->loop = NULL;
}

const struct tool *lsp_diagnoses(const struct lsp *lsp)
{
	return &lsp->diagnoses;
}

const struct agent_hooks *lsp_hooks(const struct lsp *lsp)
{
	return &lsp->hooks;
}
