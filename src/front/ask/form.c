/* form: asks for one field after the other. */

#include "front/ask/form.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "front/ask/desk.h"
#include "policy/address.h"
#include "tool/call.h"
#include "tool/validate.h"
#include "tui/console.h"
#include "tui/line.h"
#include "tui/region/choice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
	FIELDS_MAX = 32,
	TRIES_MAX = 5, /* of one field, until the form is given up */
	TEXT_MAX = 64 << 10,
	CHOICES_MAX = 4,
};

/* One question to the person, whose answers are added one by one. */
struct put {
	struct console *console;
	int wake_fd;
	struct choice choice;
	struct choice_option options[CHOICES_MAX];
};

static void add_option(struct put *put, const char *word, const char *means,
		       enum choice_way way)
{
	put->options[put->choice.count++] =
		(struct choice_option){.word = word, .means = means, .way = way};
}

/* The word of the answer. The last one that was added is the safe one. */
static const char *decide(struct put *put, struct str text, struct buf *words)
{
	put->choice.text = text;
	put->choice.options = put->options;
	put->choice.safe = put->choice.count - 1;
	return put
		->options[console_decide(put->console, &put->choice, put->wake_fd, words)]
		.word;
}

static struct value *answer_of(const char *action)
{
	struct value *answer = value_new_object();

	value_set_text(answer, "action", action);
	return answer;
}

/* WORDS as a value of the type that FIELD names; a list is separated by commas. */
static struct value *value_of(const struct value *field, struct str words)
{
	const struct str type = value_str(value_member(field, "type"));
	struct value *value = NULL;

	if (str_is(type, "array")) {
		value = value_new_array();
		while (words.size > 0) {
			const size_t comma = str_find(words, STR(","), 0);
			const size_t end = comma != SIZE_MAX ? comma : words.size;

			value_append(value,
				     value_new_str(str_trim(str_part(words, 0, end))));
			words = str_part(words, end + 1, SIZE_MAX);
		}
	} else if (!str_is(type, "string")) {
		(void)value_parse(words, 0, &value, NULL);
	}
	return value != NULL ? value : value_new_str(words);
}

/* Append the values that FIELD may have, where it names them. */
static void add_values(const struct value *field, struct buf *text)
{
	const struct value *items = value_member(field, "items");
	const struct value *from = items != NULL ? items : field;
	const struct value *values = value_member(from, "enum");
	const struct value *titled = value_member(from, items != NULL ? "anyOf" : "oneOf");

	for (size_t i = 0; i < value_count(values); i++) {
		(void)buf_adds(text, "\n  ");
		(void)buf_addstr(text, value_str(value_item(values, i)));
	}
	for (size_t i = 0; i < value_count(titled); i++) {
		const struct value *one = value_item(titled, i);

		(void)buf_adds(text, "\n  ");
		(void)buf_addstr(text, value_str(value_member(one, "const")));
		(void)buf_adds(text, "  ");
		(void)buf_addstr(text, value_str(value_member(one, "title")));
	}
	if (items != NULL)
		(void)buf_adds(text, "\nSeveral are separated by commas.");
}

static void add_field(const char *message, const char *name, const struct value *field,
		      const char *wrong, struct buf *text)
{
	const struct str title = value_str(value_member(field, "title"));
	const struct str description = value_str(value_member(field, "description"));

	(void)buf_addf(text, "%s\n\n", message);
	(void)buf_addstr(text, title.size > 0 ? title : str_of(name));
	if (description.size > 0) {
		(void)buf_adds(text, ": ");
		(void)buf_addstr(text, description);
	}
	add_values(field, text);
	if (wrong[0] != '\0')
		(void)buf_addf(text, "\n\nThis %s.", wrong);
}

enum told { TOLD, LEFT_OUT, DECLINED };

/*
 * Ask once for FIELD. *VALUE: what was told, or what stands there already. Words that do not fit
 * are no value, and WRONG says why.
 */
static enum told ask_once(const struct put *form, const struct value *field,
			  bool required, struct str text, struct value **value,
			  struct validate_problem *wrong)
{
	const struct value *initial = value_member(field, "default");
	const bool flag = str_is(value_str(value_member(field, "type")), "boolean");
	struct put put = *form;
	struct buf words, shown;
	const char *word;

	buf_init(&words, LINE_BYTES_MAX);
	buf_init(&shown, TEXT_MAX);
	if (initial != NULL && !flag && value_print(initial, 0, &shown))
		add_option(&put, "keep", shown.data, CHOICE_AT_ONCE);
	if (flag) {
		add_option(&put, "yes", NULL, CHOICE_AT_ONCE);
		add_option(&put, "no", NULL, CHOICE_AT_ONCE);
	} else {
		add_option(&put, "answer", "type it, then Enter", CHOICE_WITH_WORDS);
	}
	if (!required)
		add_option(&put, "leave", "leave it out", CHOICE_AT_ONCE);
	add_option(&put, "decline", "answer nothing at all", CHOICE_AT_ONCE);
	word = decide(&put, text, &words);
	if (flag && word[0] != 'd' && word[0] != 'l')
		*value = value_new_boolean(word[0] == 'y');
	else if (word[0] == 'k')
		*value = value_copy(initial);
	else if (word[0] == 'a')
		*value = value_of(field, str_trim(buf_str(&words)));
	buf_fini(&words);
	buf_fini(&shown);
	if (*value != NULL && !validate_value(field, *value, wrong)) {
		value_free(*value);
		*value = NULL;
	}
	return word[0] == 'd' ? DECLINED : word[0] == 'l' ? LEFT_OUT : TOLD;
}

/* Ask for the field NAME until it fits, and put it in CONTENT. False: the form is declined. */
static bool ask_field(const struct put *form, const struct value *request,
		      const char *name, const struct value *field, struct value *content)
{
	const struct value *required =
		value_member(value_member(request, "schema"), "required");
	const char *message = value_text(value_member(request, "message"));
	struct validate_problem wrong = {0};
	struct value *value = NULL;
	enum told told = TOLD;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	for (size_t i = 0; i < TRIES_MAX && told == TOLD && value == NULL; i++) {
		buf_clear(&text);
		add_field(message != NULL ? message : "", name, field, wrong.rule, &text);
		told = ask_once(form, field, value_has_text(required, name),
				buf_str(&text), &value, &wrong);
	}
	buf_fini(&text);
	if (value != NULL)
		value_set(content, name, value);
	return told == LEFT_OUT || value != NULL;
}

static struct value *ask_form(const struct put *form, const struct value *request)
{
	const struct value *fields =
		value_member(value_member(request, "schema"), "properties");
	auto_value struct value *content = value_new_object();
	struct value *answer;

	if (value_count(fields) > FIELDS_MAX)
		return answer_of("decline");
	for (void *at = value_first(fields); at != NULL; at = value_next(fields, at)) {
		if (!ask_field(form, request, value_key(at), value_at(at), content))
			return answer_of("decline");
	}
	answer = answer_of("accept");
	value_set(answer, "content", value_ref(content));
	return answer;
}

/* An address is opened by a key alone; the person may also have opened it by hand. */
static struct value *ask_address(const struct put *form, const struct value *request)
{
	const struct str url = value_str(value_member(request, "url"));
	struct put put = *form;
	struct address address;
	struct err err;
	struct buf text, words;
	const char *word;
	bool fine;

	buf_init(&text, TEXT_MAX);
	buf_init(&words, LINE_BYTES_MAX);
	(void)buf_addstr(&text, value_str(value_member(request, "message")));
	(void)buf_adds(&text, "\n\n");
	(void)buf_addstr(&text, url);
	if (address_parse(url, &address, &err))
		add_option(&put, "open", "open this address in the browser", CHOICE_AT_ONCE);
	add_option(&put, "yes", "go on: you have opened it yourself", CHOICE_AT_ONCE);
	add_option(&put, "decline", NULL, CHOICE_AT_ONCE);
	word = decide(&put, buf_str(&text), &words);
	fine = word[0] == 'y' ||
	       (word[0] == 'o' && desk_open_browser((const char *const *)(uintptr_t)environ,
						    address.text, &err));
	buf_fini(&text);
	buf_fini(&words);
	return answer_of(fine ? "accept" : "decline");
}

/* A server wants the model to be asked: the person reads all of it. */
static struct value *ask_sampling(const struct put *form, const struct value *request)
{
	const struct str asked = value_str(value_member(request, "text"));
	struct put put = *form;
	struct buf text, words;
	bool agreed = false;

	if (asked.size == 0)
		return answer_of("decline");
	buf_init(&text, TEXT_MAX + asked.size);
	buf_init(&words, LINE_BYTES_MAX);
	(void)buf_addf(&text, "%s\n\n",
		       value_text(value_member(request, "message")) != NULL
			       ? value_text(value_member(request, "message"))
			       : "");
	if (buf_addstr(&text, asked)) {
		add_option(&put, "yes", "ask the model this, once", CHOICE_AT_ONCE);
		add_option(&put, "decline", NULL, CHOICE_AT_ONCE);
		agreed = decide(&put, buf_str(&text), &words)[0] == 'y';
	}
	buf_fini(&text);
	buf_fini(&words);
	return answer_of(agreed ? "accept" : "decline");
}

static struct value *ask_one(const struct put *form, const char *kind,
			     const struct value *request)
{
	if (kind != NULL && strcmp(kind, "form") == 0)
		return ask_form(form, request);
	if (kind != NULL && strcmp(kind, "url") == 0)
		return ask_address(form, request);
	if (kind != NULL && strcmp(kind, CALL_ASK_SAMPLING) == 0)
		return ask_sampling(form, request);
	return answer_of("decline");
}

struct value *form_ask(struct console *console, int wake_fd, const char *kind,
		       const struct value *request)
{
	const struct put form = {.console = console,
				 .wake_fd = wake_fd,
				 .choice = {.head = "A question of a tool:"}};
	const struct value *requests = value_member(request, "requests");
	struct value *answer, *answers;

	if (!console_shows(console))
		return answer_of("decline");
	if (kind == NULL || strcmp(kind, "several") != 0)
		return ask_one(&form, kind, request);
	answers = value_new_object();
	for (void *at = value_first(requests); at != NULL; at = value_next(requests, at))
		value_set(answers, value_key(at),
			  ask_one(&form, value_text(value_member(value_at(at), "kind")),
				  value_at(at)));
	answer = answer_of("accept");
	value_set(answer, "content", answers);
	return answer;
}
