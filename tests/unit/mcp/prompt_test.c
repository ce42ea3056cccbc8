/* Tests of mcp/prompt: Markdown in, messages out. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "mcp/server/mcp.h"

static const char whole[] = "---\n"
			    "title: Review\n"
			    "description: Looks at a change\n"
			    "arguments:\n"
			    "  - name: file\n"
			    "    description: What to look at\n"
			    "    required: true\n"
			    "    values: [main.c, make.c, util.c]\n"
			    "  - name: tone\n"
			    "---\n"
			    "Look at {{file}}, be {{tone}}.\n"
			    "\n"
			    "![a picture](shot.png)\n"
			    "\n"
			    "![it]({{file}})\n"
			    "Then say so.\n";

/* What was asked to be embedded, one a line. */
struct asked {
	char text[200];
};

static struct value *embed(void *context, const char *target, bool made)
{
	struct asked *asked = context;
	struct value *content = value_new_object();
	const size_t used = strlen(asked->text);

	(void)snprintf(asked->text + used, sizeof(asked->text) - used, "%s%s\n", target,
		       made ? " (made)" : "");
	value_set_text(content, "type", "image");
	return content;
}

static struct value *nothing(void *context, const char *target, bool made)
{
	(void)context;
	(void)target;
	(void)made;
	return NULL;
}

static struct value *read_whole(void)
{
	struct value *prompt = NULL;
	struct err err;

	if (!mcp_prompt_read(str_of(whole), "review", &prompt, &err))
		fail_msg("%s", err.text);
	return prompt;
}

static void the_row_names_arguments_but_not_their_values(void **state)
{
	auto_value struct value *prompt = read_whole();
	auto_value struct value *row = mcp_prompt_row(prompt);
	struct buf text;

	(void)state;
	buf_init(&text, 4096);
	assert_true(value_print(row, 0, &text));
	assert_string_equal(
		text.data,
		"{\"name\":\"review\",\"title\":\"Review\",\"description\":\"Looks at "
		"a change\",\"arguments\":[{\"name\":\"file\",\"description\":\"What "
		"to look at\",\"required\":true},{\"name\":\"tone\",\"required\":"
		"false}]}");
	buf_fini(&text);
}

static void without_front_matter_all_is_text(void **state)
{
	struct value *prompt = NULL;

	(void)state;
	assert_true(mcp_prompt_read(STR("Do it.\n"), "do", &prompt, NULL));
	assert_string_equal(value_text(value_member(prompt, "prompt")), "Do it.");
	assert_string_equal(value_text(value_member(prompt, "name")), "do");
	value_free(prompt);
}

static void a_wrong_key_is_named_with_the_right_one(void **state)
{
	struct value *prompt = NULL;
	struct err err;

	(void)state;
	assert_false(mcp_prompt_read(STR("---\ndescripton: x\n---\ny"), "n", &prompt, &err));
	assert_non_null(strstr(err.text, "descripton"));
	assert_non_null(strstr(err.text, "did you mean description"));
	assert_false(mcp_prompt_read(STR("---\narguments: [{title: x}]\n---\ny"), "n",
				     &prompt, &err));
	assert_non_null(strstr(err.text, "argument 1 has no name"));
	assert_false(mcp_prompt_read(STR("\xff"), "n", &prompt, &err));
}

static void texts_and_images_become_messages_in_their_order(void **state)
{
	auto_value struct value *prompt = read_whole();
	auto_value struct value *arguments = value_new_object();
	struct asked asked = {""};
	const struct mcp_prompt_embed way = {embed, &asked};
	struct value *messages = NULL;
	struct err err;

	(void)state;
	/* What an argument says is text, even where it looks like an image. */
	value_set_text(arguments, "file", "\n![x](/etc/passwd)\n");
	assert_true(mcp_prompt_messages(prompt, arguments, &way, &messages, &err));
	assert_int_equal(value_count(messages), 4);
	const struct value *first = value_member(value_item(messages, 0), "content");
	assert_string_equal(value_text(value_member(first, "text")),
			    "Look at \n![x](/etc/passwd)\n, be {{tone}}.");
	assert_string_equal(asked.text, "shot.png\n\n![x](/etc/passwd)\n (made)\n");
	value_free(messages);
}

static void what_cannot_be_shown_is_said(void **state)
{
	auto_value struct value *prompt = read_whole();
	const struct mcp_prompt_embed way = {nothing, NULL};
	struct value *messages = NULL;
	struct err err;

	(void)state;
	assert_false(mcp_prompt_messages(prompt, NULL, &way, &messages, &err));
	assert_non_null(strstr(err.text, "shot.png"));
}

static void what_is_missing_is_a_form(void **state)
{
	auto_value struct value *prompt = read_whole();
	auto_value struct value *given = value_new_object();
	auto_value struct value *schema = mcp_prompt_missing(prompt, given);

	(void)state;
	assert_int_equal(value_count(value_member(schema, "properties")), 1);
	assert_string_equal(value_text(value_item(value_member(schema, "required"), 0)),
			    "file");
	value_set_text(given, "file", "x");
	assert_null(mcp_prompt_missing(prompt, given));
}

static void proposals_begin_as_what_was_typed(void **state)
{
	auto_value struct value *prompt = read_whole();
	const struct value *arguments = value_member(prompt, "arguments");
	auto_value struct value *found = mcp_prompt_proposals(arguments, "file", STR("ma"));
	auto_value struct value *none = mcp_prompt_proposals(arguments, "tone", STR(""));

	(void)state;
	assert_int_equal(value_count(found), 2);
	assert_string_equal(value_text(value_item(found, 1)), "make.c");
	assert_int_equal(value_count(none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_row_names_arguments_but_not_their_values),
		cmocka_unit_test(without_front_matter_all_is_text),
		cmocka_unit_test(a_wrong_key_is_named_with_the_right_one),
		cmocka_unit_test(texts_and_images_become_messages_in_their_order),
		cmocka_unit_test(what_cannot_be_shown_is_said),
		cmocka_unit_test(what_is_missing_is_a_form),
		cmocka_unit_test(proposals_begin_as_what_was_typed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
