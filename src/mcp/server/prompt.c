/* prompt: see prompt.h. */
#include "mcp/server/prompt.h"

#include "base/buf.h"
#include "base/front_matter.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "mcp/message.h"

#include <errno.h>
#include <string.h>

static const char *const known_keys[] = {"name",      "title",  "description",
					 "arguments", "prompt", NULL};
static const char *const argument_keys[] = {"name",     "title",  "description",
					    "required", "values", NULL};

enum { PROPOSALS_MAX = 100 };

static bool keys_are_known(const struct value *object, const char *const *known,
			   struct err *err)
{
	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		const char *const *name = known;

		while (*name != NULL && strcmp(*name, value_key(at)) != 0)
			name++;
		if (*name == NULL)
			return err_set(err, EINVAL,
				       "the key \"%.40s\" means nothing here%s%s",
				       value_key(at),
				       text_nearest(value_key(at), known) != NULL
					       ? "; did you mean "
					       : "",
				       text_nearest(value_key(at), known) != NULL
					       ? text_nearest(value_key(at), known)
					       : "");
	}
	return true;
}

static bool arguments_are_sound(const struct value *rows, struct err *err)
{
	if (rows == NULL)
		return true;
	if (value_kind(rows) != VALUE_ARRAY || value_count(rows) > PROMPT_ARGUMENTS_MAX)
		return err_set(err, EINVAL, "arguments must be a list of at most %d rows",
			       PROMPT_ARGUMENTS_MAX);
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (value_text(value_member(row, "name")) == NULL)
			return err_set(err, EINVAL, "argument %zu has no name", i + 1);
		if (!keys_are_known(row, argument_keys, err))
			return false;
	}
	return true;
}

static bool has_front_matter(struct str text)
{
	return str_starts(text, STR("---\n")) || str_starts(text, STR("---\r\n"));
}

bool prompt_read(struct str text, const char *name, struct value **prompt, struct err *err)
{
	struct value *made = NULL;

	if (text.size > PROMPT_TEXT_MAX)
		return err_set(err, EFBIG, "is larger than %d bytes", PROMPT_TEXT_MAX);
	if (!text_is_utf8(text))
		return err_set(err, EINVAL, "is not UTF-8");
	if (has_front_matter(text)) {
		if (!front_matter_parse(text, &made, err))
			return false;
	} else {
		made = value_new_object();
		value_set_str(made, "prompt", str_trim(text));
	}
	if (!keys_are_known(made, known_keys, err) ||
	    !arguments_are_sound(value_member(made, "arguments"), err)) {
		value_free(made);
		return false;
	}
	if (value_text(value_member(made, "name")) == NULL)
		value_set_text(made, "name", name);
	*prompt = made;
	return true;
}

static void copy_text(const struct value *from, const char *key, struct value *to)
{
	const char *text = value_text(value_member(from, key));

	if (text != NULL)
		value_set_text(to, key, text);
}

struct value *prompt_row(const struct value *prompt)
{
	const struct value *rows = value_member(prompt, "arguments");
	struct value *made = value_new_object();

	copy_text(prompt, "name", made);
	copy_text(prompt, "title", made);
	copy_text(prompt, "description", made);
	if (value_count(rows) > 0)
		value_set(made, "arguments", value_new_array());
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		struct value *shown = value_new_object();

		copy_text(row, "name", shown);
		copy_text(row, "title", shown);
		copy_text(row, "description", shown);
		value_set_boolean(shown, "required",
				  value_is_true(value_member(row, "required")));
		value_append(value_member(made, "arguments"), shown);
	}
	return made;
}

struct value *prompt_missing(const struct value *prompt, const struct value *arguments)
{
	const struct value *rows = value_member(prompt, "arguments");
	struct value *schema = NULL;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		const char *name = value_text(value_member(row, "name"));
		struct value *field;

		if (!value_is_true(value_member(row, "required")) ||
		    value_text(value_member(arguments, name)) != NULL)
			continue;
		if (schema == NULL) {
			schema = value_new_object();
			value_set_text(schema, "type", "object");
			value_set(schema, "properties", value_new_object());
			value_set(schema, "required", value_new_array());
		}
		field = value_new_object();
		value_set_text(field, "type", "string");
		copy_text(row, "title", field);
		copy_text(row, "description", field);
		value_set(value_member(schema, "properties"), name, field);
		value_append(value_member(schema, "required"), value_new_text(name));
	}
	return schema;
}

static void add_message(struct value *messages, struct value *take_content)
{
	struct value *message = value_new_object();

	value_set_text(message, "role", "user");
	value_set(message, "content", take_content);
	value_append(messages, message);
}

static void end_text(struct buf *text, struct value *messages)
{
	const struct str trimmed = str_trim(buf_str(text));
	struct value *content;

	if (trimmed.size > 0) {
		content = value_new_object();
		value_set_text(content, "type", "text");
		value_set_str(content, "text", trimmed);
		add_message(messages, content);
	}
	buf_clear(text);
}

/* The TARGET of a line that is ![words](target) and nothing else. */
static bool is_embedded(struct str line, struct str *target)
{
	const struct str trimmed = str_trim(line);
	const size_t at = str_find(trimmed, STR("]("), 0);

	if (!str_starts(trimmed, STR("![")) || at == (size_t)-1 ||
	    !str_ends(trimmed, STR(")")))
		return false;
	*target = str_part(trimmed, at + 2, trimmed.size - at - 3);
	return target->size > 0;
}

static bool embed_target(struct str target, const struct value *arguments,
			 const struct prompt_embed *embed, struct value *messages,
			 struct err *err)
{
	struct value *content;
	struct buf name;

	buf_init(&name, PROMPT_TEXT_MAX);
	(void)fill_add(target, arguments, &name);
	content = embed->content(embed->context, name.data, fill_has_place(target));
	if (content != NULL)
		add_message(messages, content);
	else
		(void)err_set(err, ENOENT,
			      "There is no %.200s, which the prompt wants to show.",
			      name.data);
	buf_fini(&name);
	return content != NULL;
}

bool prompt_messages(const struct value *prompt, const struct value *arguments,
		     const struct prompt_embed *embed, struct value **messages,
		     struct err *err)
{
	struct str rest = value_str(value_member(prompt, "prompt")), line, target;
	struct value *made = value_new_array();
	struct buf text;
	bool ok = true;

	buf_init(&text, VALUE_TEXT_MAX);
	/* Line by line as it was written: what an argument says is never taken for a target. */
	while (ok && str_next_line(&rest, &line)) {
		if (is_embedded(line, &target)) {
			end_text(&text, made);
			ok = embed_target(target, arguments, embed, made, err);
			continue;
		}
		(void)fill_add(line, arguments, &text);
		(void)buf_addc(&text, '\n');
	}
	end_text(&text, made);
	buf_fini(&text);
	if (ok)
		*messages = made;
	else
		value_free(made);
	return ok;
}

struct value *prompt_proposals(const struct value *arguments, const char *name,
			       struct str text)
{
	struct value *found = value_new_array();

	for (size_t i = 0; i < value_count(arguments); i++) {
		const struct value *row = value_item(arguments, i);
		const struct value *values = value_member(row, "values");

		if (!str_is(value_str(value_member(row, "name")), name))
			continue;
		for (size_t j = 0; j < value_count(values); j++) {
			const struct value *value = value_item(values, j);

			if (value_count(found) < PROPOSALS_MAX &&
			    str_starts(value_str(value), text))
				value_append(found, value_copy(value));
		}
	}
	return found;
}
