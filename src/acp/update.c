/* update: makes the updates of the protocol from events. */

#include "acp/update.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/policy.h"
#include "session/approval.h"
#include "tool/event.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	/* Words are sent 30 times a second, output 4 times: more is not seen, and costs. */
	WORDS_MS = 33,
	OUTPUT_MS = 250,
	WORDS_MAX = 64 << 10, /* joined words that are sent at the latest */
	TAIL = 8 << 10,       /* the part of a call's output that is shown */
	TITLE_MAX = 200,
	PROMPT_TITLE_MAX = 80,
	/* Of a result the model reads no more; the client shows it. */
	RESULT_MAX = 64 << 10,
	INPUT_MAX = 256 << 10, /* arguments that are longer are not sent as they are */
	/* Content that is longer is given as text only. */
	DIFF_MAX = 256 << 10,
	DIFFS_MAX = 20, /* of one call */
	PICTURE_MAX = 8 << 20,
	ID_MAX = 32,
	DATE_MAX = 32,
};

/* A call that was announced and has not ended. */
struct shown {
	struct shown *next;
	char *id, *tool;
	struct value *arguments; /* or NULL */
	struct buf tail;         /* the end of its output */
	bool runs;               /* "in_progress" was sent */
	bool asks;               /* a person is asked about it */
	bool changed;            /* the next flush sends it */
	/* it is not shown: the hand-over of a turn, which is no call of the model, or a plan */
	bool ours;
};

struct acp_update {
	struct acp_update_options options;
	char *workspace;
	struct shown *calls;
	struct buf words;     /* that wait */
	enum event_kind said; /* EVENT_TEXT or EVENT_THINKING: what they are */
	bool streamed;        /* the present message came in fragments */
	/* of the calls that the last message makes: id -> the text of the arguments; or NULL */
	struct value *asked;
	uint64_t messages, notes, context, used;
	double money;
	bool money_known;
	int64_t words_ms, output_ms; /* when they were sent last */
	int64_t due_ms;
};

static const char plan_tool[] = "present_plan";

/* How each tool of ours is shown; every other one by its name, as "other". */
static const struct {
	const char *tool, *kind, *verb;
	const char *argument; /* which one stands behind the verb; NULL: none */
} rows[] = {
	{"bash", "execute", "", "command"},
	{"job", "execute", "Job: ", "action"},
	{"run_tests", "execute", "Run tests", NULL},
	{"read_file", "read", "Read ", "path"},
	{"batch_read", "read", "Read files", NULL},
	{"list_files", "read", "List ", "path"},
	{"database_schema", "read", "Read the schema of ", "database"},
	{"write_file", "edit", "Write ", "path"},
	{"edit_file", "edit", "Edit ", "path"},
	{"edit_notebook", "edit", "Edit ", "path"},
	{"apply_patch", "edit", "Apply a patch", NULL},
	{"glob", "search", "Find ", "pattern"},
	{"grep", "search", "Search ", "pattern"},
	{"generate_patch", "think", "Hand over the changes", NULL},
	{plan_tool, "switch_mode", "The plan", NULL},
	{"delegate_agent", "think", "Delegate to ", "agent"},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static size_t row_of(const char *tool)
{
	size_t at = 0;

	while (at < ROWS && (tool == NULL || strcmp(rows[at].tool, tool) != 0))
		at++;
	return at;
}

struct acp_update *acp_update_new(const struct acp_update_options *options)
{
	struct acp_update *update = memory_alloc(sizeof(*update));

	update->options = *options;
	update->workspace = memory_copy(options->workspace);
	update->due_ms = CLOCK_NEVER;
	buf_init(&update->words, WORDS_MAX);
	return update;
}

static void shown_free(struct shown *call)
{
	free(call->id);
	free(call->tool);
	value_free(call->arguments);
	buf_fini(&call->tail);
	free(call);
}

void acp_update_free(struct acp_update *update)
{
	if (update == NULL)
		return;
	while (update->calls != NULL) {
		struct shown *next = update->calls->next;

		shown_free(update->calls);
		update->calls = next;
	}
	value_free(update->asked);
	buf_fini(&update->words);
	free(update->workspace);
	free(update);
}

void acp_update_set_context(struct acp_update *update, uint64_t tokens)
{
	update->context = tokens;
}

/* Building the parts of updates. */

static struct value *new_update(const char *kind)
{
	struct value *made = value_new_object();

	value_set_text(made, "sessionUpdate", kind);
	return made;
}

static void send(struct acp_update *update, struct value *take_made)
{
	update->options.send(update->options.context, take_made);
}

static struct value *text_block(struct str text)
{
	struct value *block = value_new_object();

	value_set_text(block, "type", "text");
	value_set_str(block, "text", text);
	return block;
}

/* Put the content block TAKE_BLOCK into the list CONTENT of a call. */
static void add_block(struct value *content, struct value *take_block)
{
	struct value *item = value_new_object();

	value_set_text(item, "type", "content");
	value_set(item, "content", take_block);
	value_append(content, item);
}

/* The longest run of back quotes in TEXT. */
static size_t longest_fence(struct str text)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < text.size; i++) {
		run = text.data[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/*
 * Add TEXT as a block of code, because clients read text as Markdown, and what a program
 * printed or a file holds is none.
 */
static void add_code(struct value *content, struct str text)
{
	const size_t fence = longest_fence(text) < 3 ? 3 : longest_fence(text) + 1;
	struct buf code;

	if (str_trim(text).size == 0)
		return;
	buf_init(&code, SIZE_MAX);
	for (size_t i = 0; i < fence; i++)
		(void)buf_addc(&code, '`');
	(void)buf_addc(&code, '\n');
	(void)buf_addstr(&code, text);
	(void)buf_end_line(&code);
	for (size_t i = 0; i < fence; i++)
		(void)buf_addc(&code, '`');
	add_block(content, text_block(buf_str(&code)));
	buf_fini(&code);
}

/* PATH as an absolute one. */
static struct value *absolute(const struct acp_update *update, const char *path)
{
	struct value *made;
	struct buf text;

	if (path[0] == '/')
		return value_new_text(path);
	buf_init(&text, 2 * PATH_MAX);
	(void)buf_addf(&text, "%s/%s", update->workspace,
		       strncmp(path, "./", 2) == 0 ? path + 2 : path);
	made = value_new_str(buf_str(&text));
	buf_fini(&text);
	return made;
}

static void add_location(const struct acp_update *update, struct value *locations,
			 const char *path, int64_t line)
{
	struct value *location;

	if (path == NULL || path[0] == '\0')
		return;
	location = value_new_object();
	value_set(location, "path", absolute(update, path));
	if (line > 0)
		value_set_integer(location, "line", line);
	value_append(locations, location);
}

/* OLD NULL: the file is new. */
static void add_diff(const struct acp_update *update, struct value *content,
		     const char *path, const struct str *old, struct str new)
{
	struct value *diff;

	if (value_count(content) >= DIFFS_MAX || new.size > DIFF_MAX ||
	    (old != NULL && old->size > DIFF_MAX))
		return;
	diff = value_new_object();
	value_set_text(diff, "type", "diff");
	value_set(diff, "path", absolute(update, path));
	value_set(diff, "oldText", old != NULL ? value_new_str(*old) : value_new_null());
	value_set_str(diff, "newText", new);
	value_append(content, diff);
}

/* Add each hunk of the unified diff TEXT of PATH as the two texts that it compares. */
static void add_hunks(const struct acp_update *update, struct value *content,
		      const char *path, struct str text, bool created)
{
	struct str rest = text, line;
	struct buf old, new;
	bool in_hunk = false;

	buf_init(&old, DIFF_MAX + 1);
	buf_init(&new, DIFF_MAX + 1);
	while (true) {
		const bool more = str_next_line(&rest, &line);
		const bool begins = more && str_starts(line, STR("@@ "));

		if (in_hunk && (!more || begins)) {
			const struct str before = buf_str(&old);

			add_diff(update, content, path, created ? NULL : &before,
				 buf_str(&new));
			buf_clear(&old);
			buf_clear(&new);
		}
		if (!more)
			break;
		in_hunk = in_hunk || begins;
		if (!in_hunk || begins || line.size == 0)
			continue;
		const struct str shown = str_part(line, 1, SIZE_MAX);

		if (line.data[0] == ' ' || line.data[0] == '-') {
			(void)buf_addstr(&old, shown);
			(void)buf_addc(&old, '\n');
		}
		if (line.data[0] == ' ' || line.data[0] == '+') {
			(void)buf_addstr(&new, shown);
			(void)buf_addc(&new, '\n');
		}
	}
	buf_fini(&old);
	buf_fini(&new);
}

/* Calls. */

static struct shown *find_call(const struct acp_update *update, const char *id)
{
	struct shown *call = update->calls;

	while (call != NULL && (id == NULL || strcmp(call->id, id) != 0))
		call = call->next;
	return call;
}

static struct value *title_of(const char *tool, const struct value *arguments)
{
	const size_t row = row_of(tool);
	struct value *made;
	struct str argument, line = {0};
	struct buf title;

	if (row == ROWS)
		return value_new_text(tool != NULL && tool[0] != '\0' ? tool
								      : "Unknown tool");
	buf_init(&title, TITLE_MAX + 8);
	(void)buf_adds(&title, rows[row].verb);
	argument = str_trim(value_str(value_member(arguments, rows[row].argument != NULL
								      ? rows[row].argument
								      : "")));
	(void)str_next_line(&argument, &line);
	line = str_part(line, 0, text_character_border(line, TITLE_MAX - title.size));
	(void)buf_addstr(&title, line);
	if (argument.size > 0)
		(void)buf_adds(&title, " …");
	made = value_new_str(title.size > 0 ? buf_str(&title) : str_of(tool));
	buf_fini(&title);
	return made;
}

/* The change that a call would make, as far as its arguments say it. */
static void add_wanted(const struct acp_update *update, const struct shown *call,
		       struct value *content)
{
	const char *path = value_text(value_member(call->arguments, "path"));
	const struct value *edits = value_member(call->arguments, "edits");

	if (path == NULL)
		return;
	if (strcmp(call->tool, "write_file") == 0)
		add_diff(update, content, path, NULL,
			 value_str(value_member(call->arguments, "content")));
	if (strcmp(call->tool, "edit_file") != 0)
		return;
	for (size_t i = 0; i < value_count(edits); i++) {
		const struct value *edit = value_item(edits, i);
		const struct str old = value_str(value_member(edit, "old"));

		add_diff(update, content, path, &old, value_str(value_member(edit, "new")));
	}
}

static void add_places(const struct acp_update *update, const struct value *arguments,
		       struct value *locations)
{
	const struct value *files = value_member(arguments, "files");

	add_location(update, locations, value_text(value_member(arguments, "path")),
		     value_integer(value_member(arguments, "start_line")));
	for (size_t i = 0; i < value_count(files); i++)
		add_location(update, locations,
			     value_text(value_member(value_item(files, i), "path")),
			     value_integer(value_member(value_item(files, i), "start_line")));
}

/* Set the members of MADE that tell what CALL is. */
static void describe(const struct acp_update *update, const struct shown *call,
		     struct value *made)
{
	const size_t row = row_of(call->tool);
	struct value *content = value_new_array(), *locations = value_new_array();
	struct buf input;

	value_set_text(made, "toolCallId", call->id);
	value_set(made, "title", title_of(call->tool, call->arguments));
	value_set_text(made, "name", call->tool);
	value_set_text(made, "kind", row < ROWS ? rows[row].kind : "other");
	buf_init(&input, INPUT_MAX);
	if (call->arguments != NULL && value_print(call->arguments, 0, &input))
		value_set(made, "rawInput", value_copy(call->arguments));
	buf_fini(&input);
	add_places(update, call->arguments, locations);
	add_wanted(update, call, content);
	if (value_count(locations) > 0)
		value_set(made, "locations", locations);
	else
		value_free(locations);
	if (value_count(content) > 0)
		value_set(made, "content", content);
	else
		value_free(content);
}

static struct shown *announce(struct acp_update *update, const struct value *event)
{
	struct shown *call = memory_alloc(sizeof(*call));
	const struct value *arguments = value_member(event, "arguments");
	const char *tool = value_text(value_member(event, "tool"));
	struct value *made = new_update("tool_call");

	if (tool == NULL)
		tool = value_text(value_member(event, "tool_asked"));
	call->id = memory_copy(value_text(value_member(event, "call")));
	call->tool = memory_copy(tool != NULL ? tool : "");
	/* A call that does not start has only the arguments that the model wrote. */
	if (arguments != NULL)
		call->arguments = value_copy(arguments);
	else
		(void)value_parse(value_str(value_member(update->asked, call->id)),
				  VALUE_REPAIR, &call->arguments, NULL);
	call->changed = true;
	buf_init(&call->tail, 2 * TAIL);
	call->next = update->calls;
	update->calls = call;
	/* A turn's hand-over is no call of the model; a list of things to do is the plan. */
	call->ours = (strcmp(call->tool, "generate_patch") == 0 &&
		      value_member(update->asked, call->id) == NULL) ||
		     strcmp(call->tool, "todo") == 0;
	describe(update, call, made);
	if (call->tool[0] != '\0')
		value_set_text(made, "name", call->tool);
	value_set_text(made, "status", "pending");
	if (call->ours)
		value_free(made);
	else
		send(update, made);
	return call;
}

/* Send what is new of CALL, which goes on. */
static void tell_progress(struct acp_update *update, struct shown *call)
{
	struct value *made, *content;

	if (!call->changed || call->asks || call->ours)
		return;
	call->changed = false;
	call->runs = true;
	made = new_update("tool_call_update");
	value_set_text(made, "toolCallId", call->id);
	value_set_text(made, "status", "in_progress");
	if (call->tail.size > 0) {
		content = value_new_array();
		add_code(content, buf_str(&call->tail));
		value_set(made, "content", content);
	}
	send(update, made);
}

static void add_output(struct shown *call, struct str text)
{
	text = str_part(text, text.size > TAIL ? text.size - TAIL : 0, SIZE_MAX);
	(void)buf_addstr(&call->tail, text);
	if (call->tail.size > TAIL) {
		size_t from = call->tail.size - TAIL;

		/* Begin with a whole character. */
		while (from < call->tail.size &&
		       ((unsigned char)call->tail.data[from] & 0xc0) == 0x80)
			from++;
		buf_remove(&call->tail, 0, from);
	}
	call->changed = true;
}

/* Add the files that DETAILS of a result say were changed. */
static void add_changes(const struct acp_update *update, const struct value *details,
			struct value *content, struct value *locations)
{
	const struct value *files = value_member(details, "files");
	const char *path = value_text(value_member(details, "path"));
	const struct str diff = value_str(value_member(details, "diff"));
	int64_t line = 0;

	if (path != NULL && diff.size > 0) {
		line = value_integer(
			value_member(value_item(value_member(details, "edits"), 0), "line"));
		add_hunks(update, content, path, diff,
			  value_is_true(value_member(details, "created")));
		add_location(update, locations, path, line);
	}
	for (size_t i = 0; i < value_count(files); i++) {
		const struct value *file = value_item(files, i);
		const char *name = value_text(value_member(file, "path"));

		if (name == NULL || value_member(file, "diff") == NULL)
			continue;
		add_hunks(update, content, name, value_str(value_member(file, "diff")),
			  value_is_true(value_member(file, "created")));
		add_location(update, locations, name, 0);
	}
}

static void add_pictures(const struct value *event, struct value *content)
{
	const struct value *items = value_member(event, "content");

	for (size_t i = 0; i < value_count(items); i++) {
		const struct value *item = value_item(items, i);

		if (str_is(value_str(value_member(item, "type")), "image") &&
		    value_str(value_member(item, "data")).size <= PICTURE_MAX)
			add_block(content, value_copy(item));
	}
}

static struct value *raw_output(const struct value *event)
{
	static const char *const names[] = {"status", "exit_code", "signal", "seconds",
					    NULL};
	struct value *made = value_new_object();

	value_set_members(made, event, names);
	return made;
}

static void take_call(struct acp_update *update, const struct shown *call)
{
	struct shown **at = &update->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

/* The list ITEMS of things to do is the plan; NULL: the call had none. */
static void tell_plan(struct acp_update *update, const struct value *items)
{
	struct value *made, *entries;

	if (items == NULL)
		return;
	made = new_update("plan");
	entries = value_new_array();
	for (size_t i = 0; i < value_count(items); i++) {
		const struct value *item = value_item(items, i);
		const struct str state = value_str(value_member(item, "state"));
		struct value *entry = value_new_object();

		value_set(entry, "content",
			  value_new_str(value_str(value_member(item, "text"))));
		value_set_text(entry, "priority", "medium");
		value_set_text(entry, "status",
			       str_is(state, "done")     ? "completed"
			       : str_is(state, "active") ? "in_progress"
							 : "pending");
		value_append(entries, entry);
	}
	value_set(made, "entries", entries);
	send(update, made);
}

static void end_call(struct acp_update *update, const struct value *event)
{
	struct shown *call = find_call(update, value_text(value_member(event, "call")));
	const struct str text = value_str(value_member(event, "text"));
	struct value *made, *content, *locations;

	/* A call that was answered without running was not announced. */
	if (call == NULL)
		call = announce(update, event);
	take_call(update, call);
	tell_plan(update, value_member(value_member(event, "details"), "todo"));
	if (call->ours) {
		shown_free(call);
		return;
	}
	made = new_update("tool_call_update");
	content = value_new_array();
	locations = value_new_array();
	value_set_text(made, "toolCallId", call->id);
	value_set_text(made, "status",
		       str_is(value_str(value_member(event, "status")), "done")
			       ? "completed"
			       : "failed");
	add_changes(update, value_member(event, "details"), content, locations);
	add_code(content, str_part(text, 0, text_character_border(text, RESULT_MAX)));
	add_pictures(event, content);
	value_set(made, "content", content);
	if (value_count(locations) > 0)
		value_set(made, "locations", locations);
	else
		value_free(locations);
	value_set(made, "rawOutput", raw_output(event));
	send(update, made);
	shown_free(call);
}

/* Words. */

static void send_chunk(struct acp_update *update, const char *kind, struct str text,
		       const char *message)
{
	struct value *made = new_update(kind);

	value_set(made, "content", text_block(text));
	value_set_text(made, "messageId", message);
	send(update, made);
}

/* A chunk of what the agent says, of the message that is being said. */
static void send_words(struct acp_update *update, enum event_kind kind, struct str text)
{
	char id[ID_MAX];

	if (text.size == 0)
		return;
	(void)snprintf(id, sizeof(id), "%c%" PRIu64, kind == EVENT_THINKING ? 't' : 'm',
		       update->messages);
	send_chunk(update,
		   kind == EVENT_THINKING ? "agent_thought_chunk" : "agent_message_chunk",
		   text, id);
}

static void flush_words(struct acp_update *update, int64_t now_ms)
{
	if (update->words.size > 0)
		send_words(update, update->said, buf_str(&update->words));
	buf_clear(&update->words);
	update->words_ms = now_ms;
}

static void add_words(struct acp_update *update, enum event_kind kind, struct str text,
		      int64_t now_ms)
{
	if (update->said != kind)
		flush_words(update, now_ms);
	update->said = kind;
	update->streamed = true;
	if (!buf_addstr(&update->words, text)) {
		flush_words(update, now_ms);
		send_words(update, kind, text);
	}
}

static void add_usage(struct acp_update *update, const struct value *usage)
{
	if (usage == NULL)
		return;
	update->used = (uint64_t)(value_integer(value_member(usage, "input")) +
				  value_integer(value_member(usage, "output")));
	update->money += value_number(value_member(usage, "money"));
	update->money_known = value_is_true(value_member(usage, "money_known"));
}

static void tell_usage(struct acp_update *update)
{
	struct value *made, *cost;

	if (update->context == 0)
		return;
	made = new_update("usage_update");
	value_set_integer(made, "used", (int64_t)update->used);
	value_set_integer(made, "size", (int64_t)update->context);
	if (update->money_known) {
		cost = value_new_object();
		value_set_real(cost, "amount", update->money);
		value_set_text(cost, "currency", "USD");
		value_set(made, "cost", cost);
	}
	send(update, made);
}

static void add_asked(struct acp_update *update, const struct value *part)
{
	const char *id = value_text(value_member(part, "call"));

	if (id != NULL)
		value_set_str(update->asked, id, value_str(value_member(part, "arguments")));
}

/* The model's whole message: its words were sent already where they came in fragments. */
static void end_message(struct acp_update *update, const struct value *event)
{
	const struct value *parts = value_member(event, "parts");

	value_free(update->asked);
	update->asked = value_new_object();
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		const struct str kind = value_str(value_member(part, "kind"));
		const struct str text = value_str(value_member(part, "text"));

		if (str_is(kind, "call"))
			add_asked(update, part);
		else if (update->streamed)
			continue;
		else if (str_is(kind, "text"))
			send_words(update, EVENT_TEXT, text);
		else if (str_is(kind, "thinking"))
			send_words(update, EVENT_THINKING, text);
	}
	add_usage(update, value_member(event, "usage"));
	update->messages++;
	update->streamed = false;
}

void acp_update_say(struct acp_update *update, struct str text)
{
	char id[ID_MAX];

	(void)snprintf(id, sizeof(id), "n%" PRIu64, update->notes++);
	send_chunk(update, "agent_message_chunk", text, id);
}

/* A sentence of the program itself. */
static void tell(struct acp_update *update, const char *severity, struct str sentence)
{
	struct value *made;

	if (str_trim(sentence).size == 0)
		return;
	if (update->options.notices) {
		made = new_update("notice");
		value_set_text(made, "severity", severity);
		value_set_str(made, "title", sentence);
		send(update, made);
		return;
	}
	acp_update_say(update, sentence);
}

void acp_update_tell(struct acp_update *update, const char *sentence)
{
	flush_words(update, update->words_ms);
	tell(update, "warning", str_of(sentence));
}

static void tell_compaction(struct acp_update *update)
{
	char id[ID_MAX];
	struct value *made;

	if (!update->options.compactions) {
		tell(update, "info",
		     STR("The older part of this conversation was summarised."));
		return;
	}
	(void)snprintf(id, sizeof(id), "c%" PRIu64, update->notes++);
	made = new_update("compaction_update");
	value_set_text(made, "compactionId", id);
	value_set_text(made, "status", "completed");
	send(update, made);
}

/* The first prompt is the title of its session. */
static void tell_title(struct acp_update *update, struct str prompt, int64_t wall_ms)
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	char date[DATE_MAX];
	struct value *made;
	struct tm parts;
	struct str line = {0};

	if (update->options.titled)
		return;
	update->options.titled = true;
	prompt = str_trim(prompt);
	(void)str_next_line(&prompt, &line);
	line = str_part(line, 0, text_character_border(line, PROMPT_TITLE_MAX));
	made = new_update("session_info_update");
	value_set_str(made, "title", line);
	if (gmtime_r(&seconds, &parts) != NULL &&
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
		value_set_text(made, "updatedAt", date);
	send(update, made);
}

/* The PICTURES of a prompt, which was sent as the message ID. */
static void show_pictures(struct acp_update *update, const struct value *pictures,
			  const char *id)
{
	for (size_t i = 0; i < value_count(pictures); i++) {
		const struct value *picture = value_item(pictures, i);
		struct value *made = new_update("user_message_chunk");
		struct value *block = value_new_object();

		value_set_text(block, "type", "image");
		value_set(block, "data",
			  value_new_str(value_str(value_member(picture, "data"))));
		value_set(block, "mimeType",
			  value_new_str(value_str(value_member(picture, "mimeType"))));
		value_set(made, "content", block);
		value_set_text(made, "messageId", id);
		send(update, made);
	}
}

static void begin_turn(struct acp_update *update, const struct value *event, bool kept)
{
	const struct str text = value_str(value_member(event, "text"));
	char id[ID_MAX];

	update->messages++;
	update->streamed = false;
	(void)snprintf(id, sizeof(id), "u%" PRIu64, update->messages);
	if (kept) {
		send_chunk(update, "user_message_chunk", text, id);
		show_pictures(update, value_member(event, "pictures"), id);
	}
	tell_title(update, text, value_integer(value_member(event, "time_ms")));
}

/* The words that the person sent to a turn under way are a message of its own. */
static void show_steered(struct acp_update *update, struct str text)
{
	char id[ID_MAX];

	(void)snprintf(id, sizeof(id), "s%" PRIu64, update->notes++);
	send_chunk(update, "user_message_chunk", text, id);
}

/* A delegate works on a call: its own calls are lines of that call's output. */
static void show_child(struct acp_update *update, const struct value *event)
{
	struct shown *call = find_call(update, value_text(value_member(event, "call")));
	const struct value *own = value_member(event, "event_of");
	struct buf line;

	if (call == NULL || !str_is(value_str(value_member(own, "event")),
				    event_kind_name(EVENT_TOOL_BEGAN)))
		return;
	auto_value struct value *title = title_of(value_text(value_member(own, "tool")),
						  value_member(own, "arguments"));

	buf_init(&line, TAIL);
	(void)buf_addstr(&line, value_str(value_member(event, "agent")));
	(void)buf_adds(&line, ": ");
	(void)buf_addstr(&line, value_str(title));
	(void)buf_addc(&line, '\n');
	add_output(call, buf_str(&line));
	buf_fini(&line);
}

static void set_asks(struct acp_update *update, const struct value *event, bool asks)
{
	struct shown *call = find_call(update, value_text(value_member(event, "call")));

	if (call == NULL)
		return;
	call->asks = asks;
	call->changed = !asks;
}

/* Events. */

static void take_event(struct acp_update *update, enum event_kind kind,
		       const struct value *event, bool kept)
{
	struct shown *call = find_call(update, value_text(value_member(event, "call")));

	switch (kind) {
	case EVENT_TURN_BEGAN:
		begin_turn(update, event, kept);
		break;
	case EVENT_STEERED:
		if (kept)
			show_steered(update, value_str(value_member(event, "text")));
		break;
	case EVENT_MESSAGE:
		end_message(update, event);
		break;
	case EVENT_TOOL_BEGAN:
		if (call == NULL && value_text(value_member(event, "call")) != NULL)
			(void)announce(update, event);
		break;
	case EVENT_TOOL_OUTPUT:
		if (call != NULL)
			add_output(call, value_str(value_member(event, "text")));
		break;
	case EVENT_CHILD:
		show_child(update, event);
		break;
	case EVENT_TOOL_ENDED:
		if (value_text(value_member(event, "call")) != NULL)
			end_call(update, event);
		break;
	case EVENT_APPROVAL_WANTED:
		set_asks(update, event, true);
		break;
	case EVENT_APPROVAL_GIVEN:
		set_asks(update, event, false);
		break;
	case EVENT_NOTICE:
		if (!kept)
			tell(update, "info", value_str(value_member(event, "text")));
		break;
	case EVENT_COMPACTED:
		tell_compaction(update);
		break;
	case EVENT_TURN_ENDED:
		if (!kept)
			tell_usage(update);
		break;
	default:
		break;
	}
}

/* Decide when the next flush is due. */
static void plan(struct acp_update *update)
{
	update->due_ms = update->words.size > 0 ? update->words_ms + WORDS_MS : CLOCK_NEVER;
	for (const struct shown *call = update->calls; call != NULL; call = call->next) {
		if (call->changed && !call->asks && !call->ours &&
		    update->output_ms + OUTPUT_MS < update->due_ms)
			update->due_ms = update->output_ms + OUTPUT_MS;
	}
}

void acp_update_event(struct acp_update *update, const struct value *event, bool kept,
		      int64_t now_ms)
{
	const char *name = value_text(value_member(event, "event"));
	enum event_kind kind;

	if (name == NULL || !event_kind_parse(name, &kind))
		return;
	if (kind == EVENT_TEXT || kind == EVENT_THINKING) {
		add_words(update, kind, value_str(value_member(event, "text")), now_ms);
		if (now_ms >= update->words_ms + WORDS_MS)
			flush_words(update, now_ms);
	} else {
		/* Nothing may overtake the words that came before it. */
		flush_words(update, now_ms);
		if (kind == EVENT_TOOL_BEGAN && update->calls == NULL)
			update->output_ms = now_ms;
		take_event(update, kind, event, kept);
	}
	plan(update);
}

int64_t acp_update_due(const struct acp_update *update)
{
	return update->due_ms;
}

void acp_update_flush(struct acp_update *update, int64_t now_ms)
{
	if (now_ms >= update->words_ms + WORDS_MS)
		flush_words(update, now_ms);
	if (now_ms >= update->output_ms + OUTPUT_MS) {
		for (struct shown *call = update->calls; call != NULL; call = call->next)
			tell_progress(update, call);
		update->output_ms = now_ms;
	}
	plan(update);
}

void acp_update_settle(struct acp_update *update)
{
	flush_words(update, update->words_ms);
	while (update->calls != NULL) {
		struct shown *call = update->calls;
		struct value *made = new_update("tool_call_update");

		update->calls = call->next;
		value_set_text(made, "toolCallId", call->id);
		value_set_text(made, "status", "failed");
		if (call->ours)
			value_free(made);
		else
			send(update, made);
		shown_free(call);
	}
	plan(update);
}

/* Questions. */

static void add_option(struct value *options, const char *id, const char *kind,
		       struct str name)
{
	struct value *option = value_new_object();

	value_set_text(option, "optionId", id);
	value_set_str(option, "name", name);
	value_set_text(option, "kind", kind);
	value_append(options, option);
}

/* The call that EVENT is about, as it was announced, or by its id only. */
static struct value *about_call(struct acp_update *update, const struct value *event)
{
	const struct shown *call =
		find_call(update, value_text(value_member(event, "call")));
	struct value *about = value_new_object();

	if (call != NULL)
		describe(update, call, about);
	else
		value_set(about, "toolCallId", value_copy(value_member(event, "call")));
	if (value_member(about, "content") == NULL)
		value_set(about, "content", value_new_array());
	value_set_text(about, "status", "pending");
	return about;
}

bool acp_update_is_plan(const struct value *event)
{
	return str_is(value_str(value_member(event, "tool")), plan_tool);
}

struct value *acp_update_plan(struct acp_update *update, const struct value *event)
{
	struct value *made = value_new_object(), *options = value_new_array();
	struct value *about = about_call(update, event);

	flush_words(update, update->words_ms);
	add_block(value_member(about, "content"),
		  text_block(value_str(
			  value_member(value_member(event, "request"), "message"))));
	add_option(options, policy_modes[MODE_AUTO].name, "allow_always",
		   STR("Carry it out"));
	add_option(options, policy_modes[MODE_ASK].name, "allow_once",
		   STR("Carry it out, and ask before each write and command"));
	add_option(options, policy_modes[MODE_PLAN].name, "reject_once",
		   STR("Go on planning"));
	value_set(made, "toolCall", about);
	value_set(made, "options", options);
	return made;
}

struct value *acp_update_permission(struct acp_update *update, const struct value *event)
{
	struct value *made = value_new_object(), *options = value_new_array();
	struct value *about = about_call(update, event);
	struct buf name;

	add_code(value_member(about, "content"),
		 value_str(value_member(value_member(event, "request"), "message")));
	buf_init(&name, APPROVAL_SUBJECT_MAX);
	(void)buf_adds(&name, "Allow for this session: ");
	(void)buf_addstr(&name, value_str(value_member(event, "scope")));
	add_option(options, "once", "allow_once", STR("Allow once"));
	add_option(options, "session", "allow_always", buf_str(&name));
	add_option(options, "no", "reject_once", STR("Refuse"));
	buf_fini(&name);
	value_set(made, "toolCall", about);
	value_set(made, "options", options);
	return made;
}
