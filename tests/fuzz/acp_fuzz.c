/*
 * Fuzzes what comes to the Agent Client Protocol: each line of the input is an event of a
 * session (acp/update.c), and, where it is a list, the blocks of a prompt and the servers of
 * an editor (acp/prompt.c). The order of the updates must hold: a call is announced once,
 * changes only until it has ended, and has ended when the turn is settled.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "acp/prompt.h"
#include "acp/update.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct value *calls; /* id -> has it ended? */
	size_t open;
};

static void take(void *context, struct value *take_update)
{
	struct seen *seen = context;
	const char *kind = value_text(value_member(take_update, "sessionUpdate"));
	const char *id = value_text(value_member(take_update, "toolCallId"));
	const struct str status = value_str(value_member(take_update, "status"));
	const struct value *before = id != NULL ? value_member(seen->calls, id) : NULL;

	assert(kind != NULL);
	if (strcmp(kind, "tool_call") == 0) {
		assert(id != NULL && (before == NULL || value_is_true(before)));
		assert(value_text(value_member(take_update, "title"))[0] != '\0');
		value_set_boolean(seen->calls, id, false);
		seen->open++;
	} else if (strcmp(kind, "tool_call_update") == 0) {
		assert(before != NULL && !value_is_true(before));
		if (str_is(status, "completed") || str_is(status, "failed")) {
			value_set_boolean(seen->calls, id, true);
			seen->open--;
		}
	}
	value_free(take_update);
}

static void take_list(const struct value *list)
{
	struct value *servers = NULL;
	struct err err = {0};
	struct buf text;

	buf_init(&text, ACP_PROMPT_MAX);
	auto_value struct value *pictures = value_new_array();
	auto_value struct value *links = value_new_array();

	if (acp_prompt_read(list, &text, pictures, links, &err))
		assert(text.size > 0 && strlen(text.data) == text.size);
	else
		assert(err.text[0] != '\0');
	if (!acp_prompt_servers(list, &servers, &err))
		assert(servers == NULL && err.text[0] != '\0');
	value_free(servers);
	buf_fini(&text);
}

static void take_line(struct acp_update *update, struct str line, bool kept, int64_t now_ms)
{
	auto_value struct value *value = NULL;

	if (!value_parse(line, 0, &value, NULL))
		return;
	if (value_kind(value) == VALUE_ARRAY)
		take_list(value);
	acp_update_event(update, value, kept, now_ms);
	auto_value struct value *question = acp_update_permission(update, value);
	assert(value_count(value_member(question, "options")) == 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;
	struct seen seen = {.calls = value_new_object()};
	struct acp_update *update = acp_update_new(&(struct acp_update_options){
		.workspace = "/work",
		.notices = size % 2 == 0,
		.compactions = size % 3 == 0,
		.send = take,
		.context = &seen,
	});
	int64_t now_ms = 0;

	while (str_next_line(&rest, &line)) {
		now_ms += (int64_t)(line.size % 100);
		take_line(update, line, size % 5 == 0, now_ms);
		if (acp_update_due(update) <= now_ms)
			acp_update_flush(update, now_ms);
	}
	acp_update_settle(update);
	assert(seen.open == 0);
	assert(acp_update_due(update) == CLOCK_NEVER);
	acp_update_free(update);
	value_free(seen.calls);
	return 0;
}
