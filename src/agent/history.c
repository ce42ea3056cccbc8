/*
 * history: builds the conversation from kept events, records events, and chooses where a
 * long conversation is cut.
 */

#include "agent/history.h"

#include "agent/tools/todo.h"
#include "agent/tools/tool_search.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "model/conversation.h"
#include "store/journal.h"
#include "tool/event.h"
#include "tool/picture.h"
#include "tool/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * Tokens for an answer and the results of its calls. The larger of the two
	 * amounts stays free.
	 */
	COMPACTION_FREE = 16000,
	COMPACTION_FREE_PERCENT = 15,
	/* Tokens at the end that stay word for word: the work of the last few steps. */
	COMPACTION_KEPT = 20000,
	/* Bytes of the person's prompts that stay word for word. */
	COMPACTION_PINNED_MAX = 64 << 10,
	/* Percent of the context from which on older results are told in short. */
	COMPACTION_SHORTENS_PERCENT = 70,
	/*
	 * Bytes of the first line of a result that is told in short, and of the line with
	 * which a command's result ends: it names the exit code and a path.
	 */
	SHORT_LINE_MAX = 200,
	SHORT_END_MAX = 500,
	/* Files that stand behind a summary: as many as one turn works with. */
	FILES_MAX = 40,
};

/*
 * Services refuse or misread an empty result, and the model should know that it was
 * empty.
 */
static const char empty_result[] = "(The tool gave no output.)";
static const char summary_begins[] =
	"The conversation up to here was too long to be kept. Above stand the user's own words "
	"from it; what else happened is summarised below. Go on from there.";
static const char lost_result[] =
	"No result: the session ended before this call was answered. It may have run in part.";

/*
 * In the order of enum part_kind. Results are not among them, because each result has its
 * own event.
 */
static const char *const part_names[] = {"text", "thinking", "call"};
enum { PART_NAMES = sizeof(part_names) / sizeof(part_names[0]) };

void history_init(struct history *history)
{
	*history = (struct history){0};
	conversation_init(&history->conversation);
	history->calls = value_new_object();
	history->handles = value_new_object();
	history->files = value_new_object();
}

static void history_drop_results(struct history *history)
{
	for (size_t i = 0; i < history->result_count; i++) {
		free(history->results[i].call);
		free(history->results[i].text);
		value_free(history->results[i].pictures);
	}
	free(history->results);
	history->results = NULL;
	history->result_count = 0;
}

void history_fini(struct history *history)
{
	history_drop_results(history);
	conversation_fini(&history->conversation);
	value_free(history->calls);
	value_free(history->handles);
	value_free(history->files);
	value_free(history->todo);
	free(history->numbers);
	free(history->prompts);
	free(history->instructions);
	free(history->style_name);
	free(history->style);
	free(history->remark);
	*history = (struct history){0};
}

static struct message *history_last(struct history *history)
{
	struct conversation *conversation = &history->conversation;

	if (conversation->message_count == 0)
		return NULL;
	return &conversation->messages[conversation->message_count - 1];
}

/* NUMBER: that of the event with which the message begins. */
static struct message *history_add(struct history *history, enum speaker speaker,
				   int64_t number)
{
	size_t count = history->conversation.message_count;

	history->numbers = memory_more(history->numbers, count, sizeof(*history->numbers));
	history->numbers[count] = number;
	return conversation_add(&history->conversation, speaker);
}

static struct message *history_user_message(struct history *history, int64_t number)
{
	struct message *last = history_last(history);

	if (last && last->speaker == SPEAKER_USER)
		return last;
	return history_add(history, SPEAKER_USER, number);
}

static const struct part *message_call(const struct message *message, const char *call)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_CALL && strcmp(part->call_id, call) == 0)
			return part;
	}
	return NULL;
}

bool history_has_call(const struct history *history, const char *call)
{
	return value_member(history->calls, call) != NULL;
}

static const struct history_result *history_result_of(const struct history *history,
						      const char *call)
{
	for (size_t i = 0; i < history->result_count; i++) {
		if (strcmp(history->results[i].call, call) == 0)
			return &history->results[i];
	}
	return NULL;
}

const struct part *history_call(const struct history *history, size_t at)
{
	const struct conversation *conversation = &history->conversation;
	const struct message *last;

	if (conversation->message_count == 0)
		return NULL;
	last = &conversation->messages[conversation->message_count - 1];
	if (last->speaker != SPEAKER_MODEL)
		return NULL;
	for (size_t i = 0; i < last->part_count; i++) {
		if (last->parts[i].kind == PART_CALL && at-- == 0)
			return &last->parts[i];
	}
	return NULL;
}

bool history_is_answered(const struct history *history, const char *call)
{
	return history_result_of(history, call) != NULL;
}

char *history_last_words(const struct history *history)
{
	const struct conversation *conversation = &history->conversation;
	const struct message *message = NULL;
	struct buf words;

	for (size_t i = conversation->message_count; i > 0 && message == NULL; i--) {
		if (conversation->messages[i - 1].speaker == SPEAKER_MODEL)
			message = &conversation->messages[i - 1];
	}
	if (message == NULL)
		return NULL;
	buf_init(&words, EVENT_JSON_MAX);
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i].kind == PART_TEXT)
			(void)buf_adds(&words, message->parts[i].text);
	}
	return buf_take(&words);
}

/* The number of bytes that PART has in a request. */
static size_t part_bytes(const struct part *part)
{
	size_t bytes = part->text ? strlen(part->text) : 0;
	struct buf extra;

	if (part->arguments)
		bytes += strlen(part->tool) + strlen(part->arguments);
	bytes += value_count(part->pictures) * HISTORY_PICTURE_TOKENS *
		 HISTORY_BYTES_PER_TOKEN;
	if (part->extra) {
		buf_init(&extra, EVENT_JSON_MAX);
		(void)value_print(part->extra, 0, &extra);
		bytes += extra.size;
		buf_fini(&extra);
	}
	return bytes;
}

size_t history_message_bytes(const struct message *message)
{
	size_t bytes = 0;

	for (size_t i = 0; i < message->part_count; i++)
		bytes += part_bytes(&message->parts[i]);
	return bytes;
}

uint64_t history_tokens(const struct history *history, size_t fixed_bytes)
{
	size_t bytes = history->bytes + fixed_bytes;

	if (history->counted_tokens > 0)
		bytes = history->bytes - history->counted_bytes;
	return history->counted_tokens + bytes / HISTORY_BYTES_PER_TOKEN;
}

/*
 * Does a service take ITEM as a picture? One that is damaged, or of another format than it
 * says, would make a service refuse the whole conversation from then on. Plugins, other
 * servers and the journal are foreign.
 */
static bool is_sound_picture(const struct value *item)
{
	const struct str data = value_str(value_member(item, "data"));
	struct picture picture;
	struct buf bytes;

	if (!str_is(value_str(value_member(item, "type")), "image") || data.size == 0)
		return false;
	buf_init(&bytes, RESULT_CONTENT_BYTES_MAX);
	const bool sound = buf_base64_read(data, &bytes) &&
			   picture_read(buf_str(&bytes), &picture, NULL) &&
			   picture_fits(&picture, bytes.size) &&
			   str_is(value_str(value_member(item, "mimeType")), picture.mime);
	buf_fini(&bytes);
	return sound;
}

/* The first pictures in CONTENT, a list for the caller to free; NULL: there are none. */
static struct value *pictures_of(const struct value *content)
{
	struct value *pictures = NULL;

	for (size_t i = 0;
	     i < value_count(content) && value_count(pictures) < HISTORY_PICTURES; i++) {
		struct value *item = value_item(content, i);

		if (!is_sound_picture(item))
			continue;
		if (pictures == NULL)
			pictures = value_new_array();
		value_append(pictures, value_ref(item));
	}
	return pictures;
}

/* Remove the pictures that are too old, or for which there is no room any more. */
static void history_drop_pictures(struct history *history)
{
	struct conversation *conversation = &history->conversation;
	size_t count = 0, bytes = 0;

	for (size_t i = conversation->message_count; i > 0; i--) {
		struct message *message = &conversation->messages[i - 1];

		for (size_t n = message->part_count; n > 0; n--) {
			struct part *part = &message->parts[n - 1];

			for (size_t at = 0; at < value_count(part->pictures); at++) {
				struct value *item = value_item(part->pictures, at);

				count++;
				bytes += value_str(value_member(item, "data")).size;
			}
			if (part->pictures == NULL ||
			    (count <= HISTORY_PICTURES && bytes <= HISTORY_PICTURE_BYTES))
				continue;
			history->bytes -= part_bytes(part);
			value_free(part->pictures);
			part->pictures = NULL;
			history->bytes += part_bytes(part);
		}
	}
	/* The last count had them, and the next one corrects it. */
	if (history->counted_bytes > history->bytes)
		history->counted_bytes = history->bytes;
}

/* Note the file that has the whole output of the call, and the files that it knows now. */
static void history_note(struct history *history, const struct event *event)
{
	const struct value *details = value_member(event->data, "details");
	const struct value *seen = value_member(event->data, "seen");
	const char *handle = value_text(value_member(details, "spill"));
	struct value *todo = value_member(details, "todo");

	if (handle != NULL && event->call != NULL)
		value_set_text(history->handles, event->call, handle);
	for (void *at = value_first(seen); at != NULL; at = value_next(seen, at)) {
		/* The key of the folder of the next command is empty (tool/call.h). */
		if (value_key(at)[0] == '\0')
			continue;
		value_remove(history->files, value_key(at));
		if (value_count(history->files) == FILES_MAX)
			value_remove(history->files, value_key(value_first(history->files)));
		value_set_boolean(history->files, value_key(at), true);
	}
	if (todo == NULL || event->tool == NULL || strcmp(event->tool, todo_tool.name) != 0)
		return;
	value_free(history->todo);
	history->todo = value_ref(todo);
}

static void history_add_result(struct history *history, const struct event *event)
{
	struct message *last = history_last(history);
	const struct value *content = value_member(event->data, "content");
	const char *status = value_text(value_member(event->data, "status"));
	struct history_result *result;
	struct buf text;

	if (!event->call || !last || last->speaker != SPEAKER_MODEL ||
	    !message_call(last, event->call) || history_result_of(history, event->call))
		return;
	buf_init(&text, 2 * RESULT_TEXT_MAX + RESULT_CONTENT_BYTES_MAX);
	(void)buf_addstr(&text, value_str(value_member(event->data, "text")));
	tool_add_content_text(content, &text);
	if (str_trim(buf_str(&text)).size == 0) {
		buf_clear(&text);
		(void)buf_adds(&text, empty_result);
	}
	history->results = memory_grow(history->results, history->result_count + 1,
				       sizeof(*history->results));
	result = &history->results[history->result_count++];
	result->call = memory_copy(event->call);
	result->text = buf_take(&text);
	result->pictures = pictures_of(content);
	result->is_error = !status || strcmp(status, result_status_name(RESULT_DONE)) != 0;
}

void history_settle(struct history *history)
{
	struct conversation *conversation = &history->conversation;
	struct message *last = history_last(history);
	struct message *answers = NULL;
	bool has_pictures = false;
	size_t asked;

	if (!last || last->speaker != SPEAKER_MODEL)
		return;
	asked = conversation->message_count - 1;
	for (size_t i = 0; i < conversation->messages[asked].part_count; i++) {
		const struct part *part = &conversation->messages[asked].parts[i];
		const struct history_result *result;

		if (part->kind != PART_CALL)
			continue;
		/*
		 * This may move the messages, so LAST is no longer valid; their parts
		 * stay in place.
		 */
		if (!answers)
			answers = history_add(history, SPEAKER_USER,
					      history->numbers[asked]);
		result = history_result_of(history, part->call_id);
		message_add_result(answers, part->call_id, part->tool,
				   result ? result->text : lost_result,
				   result ? result->is_error : true)
			->pictures = result ? value_ref(result->pictures) : NULL;
		has_pictures = has_pictures || (result && result->pictures != NULL);
	}
	if (answers)
		history->bytes += history_message_bytes(answers);
	/* Only new pictures push out old ones: nothing else walks the whole conversation. */
	if (has_pictures)
		history_drop_pictures(history);
	history_drop_results(history);
}

/* The call that PART means, and by which tool it says so where that is another one. */
static void history_call_value(const struct part *part, struct value *item)
{
	struct meant meant;

	tool_search_meant(part, &meant);
	value_set_text(item, "call", part->call_id);
	value_set_text(item, "tool", meant.tool);
	value_set_text(item, "arguments", meant.arguments ? meant.arguments : "");
	if (meant.tool != part->tool)
		value_set_text(item, "through", part->tool);
	meant_fini(&meant);
}

/* A call as the model said it, for which ITEM of the record stands. */
static struct part *history_add_call(struct message *message, const struct value *item)
{
	const char *call = value_text(value_member(item, "call"));
	const char *tool = value_text(value_member(item, "tool"));
	const char *arguments = value_text(value_member(item, "arguments"));
	const char *through = value_text(value_member(item, "through"));
	auto_free char *within = NULL;

	if (!call || !tool || !arguments)
		return NULL;
	if (!through)
		return message_add_call(message, call, tool, arguments);
	within = tool_search_arguments(tool, arguments);
	return message_add_call(message, call, through, within);
}

struct value *history_message_value(const struct message *message)
{
	struct value *data = value_new_object();
	struct value *parts = value_new_array();

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		struct value *item;

		if ((size_t)part->kind >= PART_NAMES)
			continue;
		item = value_new_object();
		value_set_text(item, "kind", part_names[part->kind]);
		if (part->kind == PART_CALL) {
			history_call_value(part, item);
		} else {
			value_set_text(item, "text", part->text ? part->text : "");
		}
		if (part->extra)
			value_set(item, "extra", value_copy(part->extra));
		value_append(parts, item);
	}
	value_set(data, "parts", parts);
	return data;
}

static bool history_add_part(struct message *message, const struct value *item,
			     struct err *err)
{
	const char *kind = value_text(value_member(item, "kind"));
	const char *text = value_text(value_member(item, "text"));
	const struct value *extra = value_member(item, "extra");
	struct part *part = NULL;

	if (kind && strcmp(kind, part_names[PART_TEXT]) == 0 && text)
		part = message_add_text(message, text);
	else if (kind && strcmp(kind, part_names[PART_THINKING]) == 0 && text)
		part = message_add_thinking(message, text, NULL);
	else if (kind && strcmp(kind, part_names[PART_CALL]) == 0)
		part = history_add_call(message, item);
	if (!part)
		return err_set(err, EPROTO,
			       "a message holds a part that is none of ours (%s)",
			       kind ? kind : "without a kind");
	if (extra)
		part->extra = value_copy(extra);
	return true;
}

/* Take the token count of the last answer from USAGE, if the service sent one. */
static void history_count(struct history *history, const struct value *usage)
{
	int64_t tokens = value_integer(value_member(usage, "input"));

	if (tokens <= 0)
		return;
	tokens += value_integer(value_member(usage, "output"));
	history->counted_tokens = (uint64_t)tokens;
	history->counted_bytes = history->bytes;
}

static bool history_add_message(struct history *history, const struct event *event,
				struct err *err)
{
	const struct value *parts = value_member(event->data, "parts");
	struct message *message;
	bool sound = true;

	if (value_kind(parts) != VALUE_ARRAY)
		return err_set(err, EPROTO, "a message without its list of parts");
	history_settle(history);
	message = history_add(history, SPEAKER_MODEL, event->number);
	for (size_t i = 0; i < value_count(parts) && sound; i++) {
		sound = history_add_part(message, value_item(parts, i), err);
		if (sound && message->parts[i].kind == PART_CALL)
			value_set_boolean(history->calls, message->parts[i].call_id, true);
	}
	history->bytes += history_message_bytes(message);
	if (!sound)
		return false;
	history_count(history, value_member(event->data, "usage"));
	return true;
}

static struct message *history_add_text(struct history *history, struct str text,
					int64_t number)
{
	auto_free char *copy = memory_copy_str(text);
	struct message *message;

	history_settle(history);
	message = history_user_message(history, number);
	message_add_text(message, copy);
	history->bytes += text.size;
	return message;
}

static void history_pin(struct history *history, size_t message, size_t part)
{
	history->prompts = memory_grow(history->prompts, history->prompt_count + 1,
				       sizeof(*history->prompts));
	history->prompts[history->prompt_count++] = (struct history_prompt){message, part};
}

/*
 * The pictures that came with a prompt, behind their names, which a model that takes no
 * pictures is sent alone.
 */
static void history_add_shown(struct history *history, const struct event *event)
{
	const struct value *items = value_member(event->data, "pictures");
	struct message *message;
	struct part *part;
	struct buf text;

	if (value_count(items) == 0)
		return;
	buf_init(&text, 2 * RESULT_TEXT_MAX);
	(void)buf_adds(&text, "Pictures that come with this prompt:");
	for (size_t i = 0; i < value_count(items); i++) {
		(void)buf_adds(&text, "\n- ");
		(void)buf_addstr(&text,
				 value_str(value_member(value_item(items, i), "text")));
	}
	message = history_add_text(history, buf_str(&text), event->number);
	part = &message->parts[message->part_count - 1];
	history->bytes -= part_bytes(part);
	part->pictures = pictures_of(items);
	history->bytes += part_bytes(part);
	history_drop_pictures(history);
	buf_fini(&text);
}

/* Add the files that a prompt names, and the commands that the person has run. */
static void history_add_attached(struct history *history, const struct event *event)
{
	const struct value *items = value_member(event->data, "attached");

	for (size_t i = 0; i < value_count(items); i++) {
		const struct value *item = value_item(items, i);
		struct buf text;

		buf_init(&text, 2 * RESULT_TEXT_MAX);
		(void)buf_addstr(&text, value_str(value_member(item, "name")));
		(void)buf_adds(&text, ":\n");
		(void)buf_addstr(&text, value_str(value_member(item, "text")));
		(void)history_add_text(history, buf_str(&text), event->number);
		buf_fini(&text);
	}
}

static void history_add_prompt(struct history *history, const struct event *event)
{
	struct message *message = history_add_text(history, event->text, event->number);

	history_pin(history, history->conversation.message_count - 1,
		    message->part_count - 1);
	history_add_shown(history, event);
	history_add_attached(history, event);
	if (history->remark)
		(void)history_add_text(history, str_of(history->remark), event->number);
	free(history->remark);
	history->remark = NULL;
}

/* Choose the prompts that stay: one boolean for each of the first COUNT prompts. */
static bool *history_choose(const struct history *history, size_t count, size_t max)
{
	bool *stays = memory_array(count + 1, sizeof(*stays));
	size_t used = 0;

	for (size_t i = count; i > 0; i--) {
		const struct history_prompt *prompt = &history->prompts[i - 1];
		const struct message *message =
			&history->conversation.messages[prompt->message];

		used += strlen(message->parts[prompt->part].text);
		stays[i - 1] = used <= max || i == 1;
	}
	return stays;
}

void history_compact(struct history *history, size_t from, struct str summary,
		     struct str behind, size_t pinned_max)
{
	struct conversation *conversation = &history->conversation;
	auto_free char *copy = memory_copy_str(summary);
	auto_free char *rest = memory_copy_str(behind);
	struct message head = {.speaker = SPEAKER_USER};
	size_t before = 0, kept = 0;

	while (before < history->prompt_count && history->prompts[before].message < from)
		before++;
	auto_free bool *stays = history_choose(history, before, pinned_max);
	for (size_t i = 0; i < history->prompt_count; i++) {
		struct history_prompt prompt = history->prompts[i];

		if (i >= before)
			prompt.message -= from - 1;
		else if (stays[i]) {
			const char *text =
				conversation->messages[prompt.message].parts[prompt.part].text;
			message_add_text(&head, text);
			prompt = (struct history_prompt){0, head.part_count - 1};
		}
		if (i >= before || stays[i])
			history->prompts[kept++] = prompt;
	}
	history->prompt_count = kept;
	message_add_text(&head, summary_begins);
	message_add_text(&head, copy);
	if (behind.size > 0)
		message_add_text(&head, rest);
	history->shortened = false;
	conversation_replace(conversation, from, &head);
	memmove(history->numbers + 1, history->numbers + from,
		(conversation->message_count - 1) * sizeof(*history->numbers));
	history->numbers[0] = 0;
	history->bytes = history->counted_bytes = history->counted_tokens = 0;
	for (size_t i = 0; i < conversation->message_count; i++)
		history->bytes += history_message_bytes(&conversation->messages[i]);
}

/* The line with which a tool says how a command ended, or nothing. */
static struct str last_line(struct str text)
{
	const struct str trimmed = str_trim(text);
	const char *end = memrchr(trimmed.data, '\n', trimmed.size);
	struct str line = STR("");

	if (end != NULL)
		line = str_part(trimmed, (size_t)(end + 1 - trimmed.data), trimmed.size);
	return line.size <= SHORT_END_MAX && str_starts(line, STR("[")) ? line : STR("");
}

/*
 * PART, a result, in short; the caller frees it. A text that is no longer than OVER stays: of
 * a picture it says what it shows.
 */
static char *short_result(const struct history *history, const struct part *part, size_t over)
{
	const struct str text = str_of(part->text);
	const struct str end = last_line(text);
	const char *handle = value_text(value_member(history->handles, part->call_id));
	struct str rest = text, first = STR("");
	struct buf out;

	if (text.size <= over)
		return memory_copy(part->text);
	(void)str_next_line(&rest, &first);
	first.size = text_character_border(first, SHORT_LINE_MAX);
	buf_init(&out, COMPACTION_RESULT + PATH_MAX);
	(void)buf_addstr(&out, first);
	(void)buf_addf(&out,
		       "\n[… %zu bytes left out, because this conversation grew long; ",
		       text.size - first.size - end.size);
	if (handle != NULL)
		(void)buf_addf(&out, "all of the output was kept in %s]", handle);
	else
		(void)buf_adds(&out, "make this call again if you need them]");
	if (end.size > 0)
		(void)buf_addc(&out, '\n');
	(void)buf_addstr(&out, end);
	return buf_take(&out);
}

size_t history_shorten(struct history *history, size_t from, size_t over, bool only_count,
		       size_t *bytes)
{
	size_t count = 0;

	*bytes = 0;
	for (size_t i = 0; i < from && i < history->conversation.message_count; i++) {
		const struct message *message = &history->conversation.messages[i];

		for (size_t n = 0; n < message->part_count; n++) {
			struct part *part = &message->parts[n];
			const size_t before = part_bytes(part);

			if (part->kind != PART_RESULT || before <= over)
				continue;
			auto_free char *text = short_result(history, part, over);
			const size_t after = strlen(text);

			if (after >= before)
				continue;
			count++;
			*bytes += before - after;
			if (only_count)
				continue;
			free(part->text);
			part->text = memory_copy(text);
			value_free(part->pictures);
			part->pictures = NULL;
		}
	}
	return count;
}

/* Subtract from the counts what was taken out of messages that the service has counted. */
static void history_uncount(struct history *history, size_t bytes)
{
	const uint64_t tokens = bytes / HISTORY_BYTES_PER_TOKEN;

	history->bytes -= bytes;
	if (history->counted_tokens > tokens && history->counted_bytes >= bytes) {
		history->counted_tokens -= tokens;
		history->counted_bytes -= bytes;
	} else {
		history->counted_tokens = history->counted_bytes = 0;
	}
}

/* The message of the model that begins with the event NUMBER; 0: there is none. */
static size_t history_message_at(const struct history *history, int64_t number)
{
	const struct conversation *conversation = &history->conversation;

	for (size_t i = 1; i < conversation->message_count; i++) {
		if (conversation->messages[i].speaker == SPEAKER_MODEL &&
		    history->numbers[i] == number)
			return i;
	}
	return 0;
}

static void history_take_shorter(struct history *history, const struct event *event)
{
	const int64_t over = value_integer(value_member(event->data, "over"));
	size_t from, bytes;

	history_settle(history);
	from = history_message_at(history, value_integer(value_member(event->data, "from")));
	(void)history_shorten(history, from, over > 0 ? (size_t)over : SIZE_MAX, false,
			      &bytes);
	history_uncount(history, bytes);
	history->shortened = true;
}

/* A summary up to an unknown message is refused, and the conversation stays whole. */
static bool history_take_summary(struct history *history, const struct event *event,
				 struct err *err)
{
	int64_t number = value_integer(value_member(event->data, "from"));
	int64_t pinned_max = value_integer(value_member(event->data, "pinned_max"));
	size_t from;

	history_settle(history);
	from = history_message_at(history, number);
	if (from == 0)
		return err_set(err, EPROTO,
			       "a summary up to event %lld, which is no message of the model's",
			       (long long)number);
	history_compact(history, from, event->text,
			value_str(value_member(event->data, "behind")),
			pinned_max > 0 ? (size_t)pinned_max : 0);
	return true;
}

void history_add_behind(const struct history *history, const char *workspace, struct buf *out)
{
	const size_t length = strlen(workspace);
	const char *before =
		"\nFiles that you have read or written, the newest last (what they "
		"hold is no longer above: read again what you need): ";

	if (value_count(history->todo) > 0) {
		(void)buf_adds(out, "\nThe list of your tasks (todo):\n");
		todo_print(history->todo, out);
	}
	for (void *at = value_first(history->files); at != NULL;
	     at = value_next(history->files, at)) {
		const char *path = value_key(at);

		if (strncmp(path, workspace, length) == 0 && path[length] == '/')
			path += length + 1;
		(void)buf_adds(out, before);
		text_add_name(out, str_of(path));
		before = ", ";
	}
	if (value_count(history->files) > 0)
		(void)buf_addc(out, '\n');
}

static void history_take_text(char **place, struct str text)
{
	free(*place);
	*place = text.size > 0 ? memory_copy_str(text) : NULL;
}

bool history_event(struct history *history, const struct event *event, struct err *err)
{
	switch (event->kind) {
	case EVENT_SESSION_RESUMED:
		history_take_text(&history->remark, event->text);
		return true;
	case EVENT_INSTRUCTIONS:
		history_take_text(&history->instructions, event->text);
		return true;
	case EVENT_STYLED:
		history_take_text(&history->style, event->text);
		history_take_text(&history->style_name,
				  value_str(value_member(event->data, "style")));
		return true;
	case EVENT_TURN_BEGAN:
	case EVENT_STEERED:
		if (!value_is_true(value_member(event->data, "refused")))
			history_add_prompt(history, event);
		return true;
	case EVENT_HOOK:
		if (event->text.size > 0)
			(void)history_add_text(history, event->text, event->number);
		return true;
	case EVENT_NOTICE:
	case EVENT_CHECK_ENDED:
		if (value_is_true(value_member(event->data, "to_model")))
			(void)history_add_text(history, event->text, event->number);
		return true;
	case EVENT_MODE_CHANGED:
		(void)history_add_text(history, event->text, event->number);
		return true;
	case EVENT_SHORTENED:
		history_take_shorter(history, event);
		return true;
	case EVENT_COMPACTED:
		return history_take_summary(history, event, err);
	case EVENT_MESSAGE:
		return history_add_message(history, event, err);
	case EVENT_TOOL_ENDED:
		history_note(history, event);
		history_add_result(history, event);
		return true;
	default:
		return true;
	}
}

void rewound_fini(struct rewound *rewound)
{
	free(rewound->ranges);
	*rewound = (struct rewound){0};
}

bool rewound_has(const struct rewound *rewound, int64_t number)
{
	for (size_t i = 0; i < rewound->count; i++) {
		if (number >= rewound->ranges[i].from && number <= rewound->ranges[i].to)
			return true;
	}
	return false;
}

bool history_replay(struct history *history, const struct rewound *rewound,
		    const struct event *event, struct err *err)
{
	/* The program, the project's texts and the style are not taken back. */
	if (event->kind != EVENT_INSTRUCTIONS && event->kind != EVENT_SESSION_RESUMED &&
	    event->kind != EVENT_STYLED && rewound_has(rewound, event->number))
		return true;
	return history_event(history, event, err) ||
	       err_while(err, "event %lld", (long long)event->number);
}

/*
 * Gives each event its number, then passes it to the journal, the listener and the front,
 * in this order.
 */

struct recorder {
	struct journal *journal;
	struct event_sink front, listener;
	struct recorder_permits permits;
	char session[JOURNAL_ID + 1];
	int64_t last_number;
	struct buf json;
	bool failed;
	struct err why;
};

struct recorder *recorder_new(struct journal *journal, struct event_sink front)
{
	struct recorder *recorder = memory_alloc(sizeof(*recorder));

	recorder->journal = journal;
	recorder->front = front;
	buf_init(&recorder->json, EVENT_JSON_MAX);
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	buf_fini(&recorder->json);
	free(recorder);
}

void recorder_set_journal(struct recorder *recorder, struct journal *journal)
{
	recorder->journal = journal;
}

struct journal *recorder_journal(const struct recorder *recorder)
{
	return recorder ? recorder->journal : NULL;
}

static bool recorder_take(void *context, const struct event *event, struct err *err)
{
	struct event numbered = *event;

	return recorder_event(context, &numbered, err);
}

struct event_sink recorder_sink(struct recorder *recorder)
{
	return (struct event_sink){.event = recorder_take, .context = recorder};
}

void recorder_set_listener(struct recorder *recorder, struct event_sink listener)
{
	recorder->listener = listener;
}

void recorder_set_permits(struct recorder *recorder, struct recorder_permits permits)
{
	recorder->permits = permits;
}

bool recorder_begin(struct recorder *recorder, const char *workspace, const char *agent,
		    const char *model, struct err *err)
{
	if (!recorder->journal)
		return true;
	return journal_new_session(recorder->journal, workspace, agent, model,
				   recorder->session, err);
}

struct retelling {
	bool (*line)(void *context, const char *kind, struct str json, struct err *err);
	void *context;
	int64_t last_number;
	bool refused;
	struct err *err;
};

static bool recorder_read(void *context, int64_t number, const char *kind,
			  int64_t wall_ms, struct str json)
{
	struct retelling *reading = context;

	(void)wall_ms;
	reading->last_number = number;
	reading->refused = !reading->line(reading->context, kind, json, reading->err);
	return !reading->refused;
}

static const char no_journal[] = "there is no journal to go on from";

bool recorder_retell(const struct recorder *recorder,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err)
{
	struct retelling reading = {.line = line, .context = context, .err = err};

	if (!recorder->journal)
		return err_set(err, ENOENT, no_journal);
	return journal_read(recorder->journal, recorder->session, NULL, recorder_read,
			    &reading, err) &&
	       !reading.refused;
}

static bool recorder_take_back(void *context, int64_t number, const char *kind,
			       int64_t wall_ms, struct str json)
{
	struct rewound *rewound = context;
	auto_value struct value *event = NULL;

	(void)kind;
	(void)wall_ms;
	if (!value_parse(json, 0, &event, NULL))
		return true;
	rewound->ranges =
		memory_grow(rewound->ranges, rewound->count + 1, sizeof(*rewound->ranges));
	rewound->ranges[rewound->count++] = (struct rewound_range){
		.from = value_integer(value_member(event, "from")),
		.to = number,
	};
	return true;
}

bool recorder_rewound(const struct recorder *recorder, const char *session,
		      struct rewound *rewound, struct err *err)
{
	if (!recorder->journal)
		return err_set(err, ENOENT, no_journal);
	return journal_read(recorder->journal, session, event_kind_name(EVENT_REWOUND),
			    recorder_take_back, rewound, err);
}

bool recorder_resume(struct recorder *recorder, const char *session,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err)
{
	struct retelling reading = {.line = line, .context = context, .err = err};

	if (!recorder->journal)
		return err_set(err, ENOENT, no_journal);
	if (!journal_claim(recorder->journal, session, err) ||
	    !journal_read(recorder->journal, session, NULL, recorder_read, &reading, err) ||
	    reading.refused)
		return err_while(err, "resuming session %.40s", session);
	(void)snprintf(recorder->session, sizeof(recorder->session), "%s", session);
	recorder->last_number = reading.last_number;
	return true;
}

const char *recorder_session_id(const struct recorder *recorder)
{
	return recorder->session;
}

bool recorder_failed(const struct recorder *recorder, struct err *err)
{
	if (recorder->failed)
		(void)err_set(err, recorder->why.code, "%s", recorder->why.text);
	return recorder->failed;
}

static bool recorder_keep(struct recorder *recorder, const struct event *event,
			  struct err *err)
{
	if (!recorder->session[0])
		return true;
	buf_clear(&recorder->json);
	if (!event_print(event, &recorder->json))
		return err_set(err, 0, "event %lld (%s) is too large to be recorded",
			       (long long)event->number, event_kind_name(event->kind));
	return journal_append(recorder->journal, recorder->session, event->number,
			      event_kind_name(event->kind), event->wall_ms,
			      buf_str(&recorder->json), err);
}

static void recorder_pass(struct event_sink sink, const struct event *event)
{
	if (sink.event)
		(void)sink.event(sink.context, event, NULL);
}

static bool recorder_take_event(struct recorder *recorder, struct event *event,
				struct err *err)
{
	bool kept = event_is_kept(event->kind);

	event->wall_ms = clock_wall_ms();
	event->number = 0;
	if (kept) {
		if (recorder_failed(recorder, err))
			return false;
		event->number = recorder->last_number + 1;
		if (!recorder_keep(recorder, event, &recorder->why)) {
			(void)err_while(&recorder->why, "recording the session");
			recorder->failed = true;
			(void)recorder_failed(recorder, err);
			return false;
		}
		recorder->last_number = event->number;
		recorder_pass(recorder->listener, event);
	}
	recorder_pass(recorder->front, event);
	return true;
}

bool recorder_event(struct recorder *recorder, struct event *event, struct err *err)
{
	const struct recorder_permits *permits = &recorder->permits;
	auto_value struct value *data = NULL;
	const char *by = NULL;

	if (event->kind == EVENT_APPROVAL_WANTED && permits->decides != NULL)
		by = permits->decides(permits->context, event);
	if (by == NULL)
		return recorder_take_event(recorder, event, err);
	data = value_copy(event->data);
	value_set_text(data, "decided", by);
	event->data = data;
	if (!recorder_take_event(recorder, event, err))
		return false;
	permits->answers(permits->context, event);
	return true;
}

/* Chooses where a conversation is cut, and makes a text of the part before the cut. */

enum {
	/*
	 * Bytes of one part in the text to be summarised: the summary needs the events,
	 * not every line.
	 */
	TEXT_BYTES = 8 << 10,
	ARGUMENTS_BYTES = 2 << 10,
	RESULT_BYTES = 3 << 10,
	/*
	 * The request for the summary must fit into the context. Source text has at least
	 * so many bytes a token.
	 */
	BYTES_PER_TOKEN_LEAST = 2,
	PRINTED_MAX = 64 << 20,
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct compaction compaction_for(uint64_t context)
{
	uint64_t share = context / 100 * COMPACTION_FREE_PERCENT;
	uint64_t wanted = share > COMPACTION_FREE ? share : COMPACTION_FREE;
	uint64_t free = least_of(wanted, context / 2);

	return (struct compaction){
		.free = free,
		.kept = least_of(COMPACTION_KEPT, context / 4),
		.pinned_max = (size_t)least_of(COMPACTION_PINNED_MAX,
					       context / 4 * HISTORY_BYTES_PER_TOKEN),
		.text_max = (size_t)least_of(PRINTED_MAX,
					     (context - free) * BYTES_PER_TOKEN_LEAST),
	};
}

bool compaction_due(uint64_t context, uint64_t tokens)
{
	return context > 0 && tokens + compaction_for(context).free > context;
}

bool compaction_shortens(uint64_t context, uint64_t tokens)
{
	return compaction_due(context, tokens) ||
	       (context > 0 && tokens > context / 100 * COMPACTION_SHORTENS_PERCENT);
}

size_t compaction_cut(const struct history *history, const struct compaction *compaction,
		      uint64_t least)
{
	const struct conversation *conversation = &history->conversation;
	size_t cut = 0, kept = 0, gone = 0;

	for (size_t i = conversation->message_count; i > 1; i--) {
		const struct message *message = &conversation->messages[i - 1];

		kept += history_message_bytes(message);
		if (cut > 0 && kept / HISTORY_BYTES_PER_TOKEN > compaction->kept)
			break;
		/*
		 * An answer that the service broke off continues in the next message, so
		 * do not cut between them.
		 */
		if (message->speaker == SPEAKER_MODEL && message[-1].speaker == SPEAKER_USER)
			cut = i - 1;
	}
	for (size_t i = 1; i < cut; i++)
		gone += history_message_bytes(&conversation->messages[i]);
	return gone > 0 && gone / HISTORY_BYTES_PER_TOKEN >= least ? cut : 0;
}

/* Append the beginning and the end of TEXT, at most MAX bytes of it. */
static void add_part(struct buf *out, struct str text, size_t max)
{
	size_t head, tail;

	if (text.size <= max) {
		(void)buf_addstr(out, text);
		(void)buf_addc(out, '\n');
		return;
	}
	head = text_character_border(text, max / 3 * 2);
	tail = text.size - max / 3;
	while (tail < text.size && ((unsigned char)text.data[tail] & 0xc0) == 0x80)
		tail++;
	(void)buf_addf(out, "%.*s\n[… %zu bytes left out …]\n%.*s\n", (int)head,
		       text.data, tail - head, (int)(text.size - tail), text.data + tail);
}

static void print_part(const struct part *part, enum speaker speaker, struct buf *out)
{
	switch (part->kind) {
	case PART_TEXT:
		(void)buf_adds(out, speaker == SPEAKER_USER ? "\n# User\n" : "\n# Agent\n");
		add_part(out, str_of(part->text), TEXT_BYTES);
		break;
	case PART_CALL:
		(void)buf_addf(out, "\n# Call of %s\n", part->tool);
		add_part(out, str_of(part->arguments), ARGUMENTS_BYTES);
		break;
	case PART_RESULT:
		(void)buf_addf(out, "\n# Result of %s%s\n", part->tool,
			       part->is_error ? " (failed)" : "");
		add_part(out, str_of(part->text), RESULT_BYTES);
		break;
	default:
		/*
		 * the reasoning led to the parts above, and the summary does not need it
		 */
		break;
	}
}

void compaction_print(const struct conversation *conversation, size_t cut,
		      const struct compaction *compaction, struct buf *out)
{
	struct buf whole;

	buf_init(&whole, PRINTED_MAX);
	for (size_t i = 0; i < cut; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++)
			print_part(&message->parts[n], message->speaker, &whole);
	}
	add_part(out, buf_str(&whole), compaction->text_max);
	buf_fini(&whole);
}
