/* ollama_request: a conversation as the body of one request to Ollama. */
#include "model/providers/ollama.h"

#include <inttypes.h>

#include "base/value.h"
#include "model/conversation.h"
#include "model/providers/openai_chat.h"

static void begin_message(const char *role, struct buf *body)
{
	bool is_first = str_ends(buf_str(body), STR("["));

	(void)buf_addf(body, "%s{\"role\":\"%s\",\"content\":", is_first ? "" : ",", role);
}

/* All text, or all thinking that came from here, of MESSAGE. */
static void join(const struct message *message, enum part_kind kind, struct buf *joined)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		struct str field = value_str(value_member(part->extra, CHAT_EXTRA_FIELD));

		if (part->kind == kind &&
		    (kind == PART_TEXT || str_is(field, OLLAMA_THINKING)))
			(void)buf_addstr(joined, str_of(part->text));
	}
}

static void write_model_message(const struct message *message, struct buf *body)
{
	struct buf text, thinking;

	buf_init(&text, body->max);
	buf_init(&thinking, body->max);
	join(message, PART_TEXT, &text);
	join(message, PART_THINKING, &thinking);
	begin_message("assistant", body);
	(void)value_quote(buf_str(&text), body);
	if (thinking.size > 0) {
		(void)buf_adds(body, ",\"thinking\":");
		(void)value_quote(buf_str(&thinking), body);
	}
	request_add_calls(message, "", NULL, request_add_arguments, body);
	(void)buf_addc(body, '}');
	body->overflowed = body->overflowed || text.overflowed || thinking.overflowed;
	buf_fini(&text);
	buf_fini(&thinking);
}

static void write_user_message(const struct message *message, struct buf *body)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_RESULT) {
			begin_message("tool", body);
			(void)value_quote(str_of(request_result_text(part)), body);
			(void)buf_adds(body, ",\"tool_name\":");
			(void)value_quote(str_of(part->tool), body);
			(void)buf_adds(body, ",\"tool_call_id\":");
			(void)value_quote(str_of(part->call_id), body);
			(void)buf_addc(body, '}');
		} else if (part->kind == PART_TEXT && !request_is_blank(part->text)) {
			begin_message("user", body);
			(void)value_quote(str_of(part->text), body);
			(void)buf_addc(body, '}');
		}
	}
}

static void write_messages(const struct conversation *conversation, struct buf *body)
{
	(void)buf_adds(body, ",\"messages\":[");
	if (!request_is_blank(conversation->system_prompt)) {
		begin_message("system", body);
		(void)value_quote(str_of(conversation->system_prompt), body);
		(void)buf_addc(body, '}');
	}
	for (size_t i = 0; i < conversation->message_count; i++) {
		const struct message *message = &conversation->messages[i];

		if (message->speaker == SPEAKER_USER)
			write_user_message(message, body);
		else if (message->part_count > 0)
			write_model_message(message, body);
	}
	(void)buf_addc(body, ']');
}

bool ollama_write(const struct provider_settings *settings,
		  const struct model_request *request, struct buf *body, struct err *err)
{
	const char *separator = "";

	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	write_messages(request->conversation, body);
	openai_chat_write_tools(request, body);
	(void)buf_adds(body, ",\"stream\":true,\"options\":{");
	if (settings->context > 0) {
		(void)buf_addf(body, "\"num_ctx\":%" PRIu64, settings->context);
		separator = ",";
	}
	if (settings->temperature >= 0) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_addf(body, "%s\"temperature\":", separator);
		(void)value_print(number, 0, body);
	}
	(void)buf_adds(body, "}}");
	return request_fits(body, err);
}
