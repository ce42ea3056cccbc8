/* openai_responses_items: items of a response's output as parts of an answer. */
#include "model/providers/openai_responses.h"

#include <string.h>

/* A namespace that models write for the tools that have none. */
#define NO_NAMESPACE "functions"

enum item_kind {
	ITEM_MESSAGE,
	ITEM_REASONING,
	ITEM_FUNCTION,
	ITEM_CUSTOM,
	ITEM_BUILT_IN, /* a call of a tool that the service knows and nobody offered */
	ITEM_OTHER,    /* hosted calls and their results, compaction, and what is new */
};

static enum item_kind item_kind(const struct value *item)
{
	struct str type = value_str(value_member(item, "type"));

	if (str_is(type, "message"))
		return ITEM_MESSAGE;
	if (str_is(type, "reasoning"))
		return ITEM_REASONING;
	if (str_is(type, "function_call"))
		return ITEM_FUNCTION;
	if (str_is(type, "custom_tool_call"))
		return ITEM_CUSTOM;
	/* Only what waits for an answer has this id. */
	if (str_ends(type, STR("_call")) &&
	    value_str(value_member(item, "call_id")).size > 0)
		return ITEM_BUILT_IN;
	return ITEM_OTHER;
}

static enum part_kind part_kind(enum item_kind kind)
{
	switch (kind) {
	case ITEM_MESSAGE:
		return PART_TEXT;
	case ITEM_FUNCTION:
	case ITEM_CUSTOM:
	case ITEM_BUILT_IN:
		return PART_CALL;
	default:
		return PART_THINKING;
	}
}

enum part_kind openai_responses_part_kind(const struct value *item)
{
	return part_kind(item_kind(item));
}

/* The id that events use for ITEM; a call of llama.cpp has only the id of the call. */
static struct str item_key(const struct value *item)
{
	struct str id = value_str(value_member(item, "id"));

	return id.size > 0 ? id : value_str(value_member(item, "call_id"));
}

/* The tool that a call means: NAME, in its namespace if it has one. */
static void name_tool(struct answer *answer, struct answer_part *part,
		      enum item_kind kind, const struct value *item)
{
	struct str id = value_str(value_member(item, "call_id"));
	struct str name = value_str(value_member(item, "name"));
	struct str space = value_str(value_member(item, "namespace"));
	struct str type = value_str(value_member(item, "type"));
	struct buf whole;

	if (kind == ITEM_BUILT_IN)
		name = str_part(type, 0, type.size - strlen("_call"));
	if (name.size == 0 || space.size == 0 || str_is(space, NO_NAMESPACE)) {
		answer_part_call(answer, part, id, name);
		return;
	}
	buf_init(&whole, MODEL_ANSWER_MAX);
	(void)buf_addstr(&whole, space);
	if (!str_ends(space, STR("_")))
		(void)buf_addc(&whole, '_');
	(void)buf_addstr(&whole, name);
	answer_part_call(answer, part, id, buf_str(&whole));
	buf_fini(&whole);
}

void openai_responses_begin_item(struct answer *answer, int64_t index,
				 const struct value *item)
{
	enum item_kind kind = item_kind(item);
	struct answer_part *part =
		answer_part(answer, part_kind(kind), index, item_key(item));

	if (part_kind(kind) == PART_CALL)
		name_tool(answer, part, kind, item);
}

/* Append to OUT the texts named KEY of all in LIST, with BETWEEN between them. */
static void join_texts(const struct value *list, const char *key, const char *between,
		       struct buf *out)
{
	for (size_t i = 0; i < value_count(list); i++) {
		struct str text = value_str(value_member(value_item(list, i), key));

		if (text.size > 0 && out->size > 0)
			(void)buf_adds(out, between);
		(void)buf_addstr(out, text);
	}
}

/* The words of a message; a refusal among them ends the answer as one. */
static void take_words(struct answer *answer, const struct value *content, struct buf *out)
{
	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *piece = value_item(content, i);
		struct str refusal = value_str(value_member(piece, "refusal"));

		(void)buf_addstr(out, value_str(value_member(piece, "text")));
		(void)buf_addstr(out, refusal);
		if (refusal.size > 0)
			answer_set_finish(answer, MODEL_FINISH_REFUSED);
	}
	/* By the API a list; as text it is read, too. */
	(void)buf_addstr(out, value_str(content));
}

/* A free text is no JSON: it becomes the one argument of an object, unless it is one. */
static void take_input(const struct value *input, struct buf *out)
{
	auto_value struct value *parsed = NULL;
	struct str text = value_str(input);

	if (value_parse(text, 0, &parsed, NULL) && value_kind(parsed) == VALUE_OBJECT) {
		(void)buf_addstr(out, text);
		return;
	}
	(void)buf_adds(out, "{\"input\":");
	(void)value_quote(text, out);
	(void)buf_addc(out, '}');
}

/* The text of ITEM's part: words, thoughts or arguments. */
static void item_text(struct answer *answer, enum item_kind kind,
		      const struct value *item, struct buf *out)
{
	const struct value *arguments = value_member(item, "arguments");
	const struct value *action = value_member(item, "action");

	switch (kind) {
	case ITEM_MESSAGE:
		take_words(answer, value_member(item, "content"), out);
		break;
	case ITEM_REASONING:
		join_texts(value_member(item, "summary"), "text", RESPONSES_PARAGRAPH, out);
		if (out->size == 0)
			join_texts(value_member(item, "content"), "text",
				   RESPONSES_PARAGRAPH, out);
		break;
	case ITEM_FUNCTION:
		if (value_kind(arguments) == VALUE_OBJECT)
			(void)value_print(arguments, 0, out);
		else
			(void)buf_addstr(out, value_str(arguments));
		break;
	case ITEM_CUSTOM:
		take_input(value_member(item, "input"), out);
		break;
	case ITEM_BUILT_IN:
		if (!action)
			action = value_member(item, "operation");
		if (action)
			(void)value_print(action, 0, out);
		break;
	case ITEM_OTHER:
		break;
	}
}

/*
 * A copy of ITEM without the members that the part holds itself, for the caller to free;
 * NULL when nothing is to be kept.
 */
static struct value *item_rest(enum item_kind kind, const struct value *item)
{
	struct value *rest;

	/* Nobody has the answer that it waits for: it goes back as a call of a function. */
	if (kind == ITEM_BUILT_IN)
		return NULL;
	rest = value_copy(item);
	if (kind == ITEM_MESSAGE) {
		value_remove(rest, "content");
	} else if (kind == ITEM_FUNCTION) {
		value_remove(rest, "arguments");
		if (!value_member(rest, "namespace"))
			value_remove(rest, "name");
	}
	if (kind == ITEM_FUNCTION || kind == ITEM_CUSTOM)
		value_remove(rest, "call_id");
	return rest;
}

void openai_responses_take_item(struct answer *answer, int64_t index,
				const struct value *item, size_t size)
{
	enum item_kind kind = item_kind(item);
	struct answer_part *part;
	struct value *rest;
	struct buf text;

	if (value_kind(item) != VALUE_OBJECT)
		return;
	part = answer_part(answer, part_kind(kind), index, item_key(item));
	if (answer_part_is_settled(part))
		return;
	buf_init(&text, MODEL_ANSWER_MAX);
	item_text(answer, kind, item, &text);
	if (part_kind(kind) == PART_CALL)
		name_tool(answer, part, kind, item);
	answer_part_settle(answer, part, buf_str(&text));
	rest = item_rest(kind, item);
	if (rest)
		answer_part_keep(answer, part, RESPONSES_EXTRA, rest, size);
	buf_fini(&text);
}
