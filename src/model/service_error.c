/*
 * service_error: what the error objects of all the servers say, in the shapes they
 * have: {"error": {…}}, {"error": "…"}, {"detail": […]}, {"message": …}, lists of these.
 */
#include "model/service.h"

#include <stdlib.h>

#include "model/failure.h"

/* Longest error message looked at; what is shown of it is far less. */
enum { MESSAGE_MAX = 64 << 10 };

/* No model counts as far; sums of nonsense stay numbers. */
static const int64_t count_max = (int64_t)1 << 40;

struct str service_first_text(const struct value *object, const char *const *keys)
{
	for (; *keys; keys++) {
		struct str text = value_str(value_member(object, *keys));

		if (text.size > 0)
			return text;
	}
	return STR("");
}

uint64_t service_count(const struct value *object, const char *key)
{
	int64_t number = value_integer(value_member(object, key));

	if (number > count_max)
		number = count_max;
	return number > 0 ? (uint64_t)number : 0;
}

/* FastAPI's list of what did not validate. */
static bool add_detail_list(const struct value *list, struct buf *out)
{
	size_t before = out->size;

	for (size_t i = 0; i < value_count(list); i++) {
		struct str text = value_str(value_member(value_item(list, i), "msg"));

		if (text.size > 0 && out->size > before)
			(void)buf_adds(out, "; ");
		(void)buf_addstr(out, text);
	}
	return out->size > before;
}

/* The object that tells the error: inside "error", inside a list, or the body itself. */
static const struct value *error_object(const struct value *root)
{
	/* Gateways wrap the error of the one behind them, rarely more than twice. */
	for (int depth = 0; depth < 4; depth++) {
		const struct value *inner = value_member(root, "error");

		if (value_kind(root) == VALUE_ARRAY)
			inner = value_item(root, 0);
		else if (value_kind(inner) != VALUE_OBJECT)
			break;
		root = inner;
	}
	return root;
}

/* Append "MESSAGE (code or type), request ID" of the error in ROOT. */
static bool add_error_message(const struct value *root, struct buf *out)
{
	static const char *const message_keys[] = {"message",   "error",
						   "detail",    "msg",
						   "error_msg", "error_description",
						   NULL};
	static const char *const word_keys[] = {"code", "type", NULL};
	const struct value *error = error_object(root);
	struct str raw = value_str(value_member(value_member(error, "metadata"), "raw"));
	size_t before = out->size;
	struct str word = service_first_text(error, word_keys);
	struct str request = value_str(value_member(root, "request_id"));

	if (value_kind(error) == VALUE_STRING)
		return buf_addstr(out, value_str(error)) && out->size > before;
	(void)buf_addstr(out, service_first_text(error, message_keys));
	if (out->size == before && !add_detail_list(value_member(error, "detail"), out) &&
	    !add_detail_list(value_member(root, "detail"), out))
		return false;
	if (raw.size > 0) {
		(void)buf_adds(out, ": ");
		(void)buf_addstr(out, raw);
	}
	if (word.size > 0)
		(void)buf_addf(out, " (%.*s)", (int)word.size, word.data);
	if (request.size > 0)
		(void)buf_addf(out, ", request %.*s", (int)request.size, request.data);
	return true;
}

bool service_error(struct str body, struct buf *out)
{
	auto_value struct value *root = NULL;

	return value_parse(body, 0, &root, NULL) && add_error_message(root, out);
}

/*
 * The HTTP status an error object stands for, by number or by word; 0 when it says none.
 */
static int64_t error_status(const struct value *root)
{
	static const struct {
		const char *word;
		int status;
	} words[] = {
		{"rate_limit", 429}, {"overloaded", 503},  {"server_error", 500},
		{"internal", 500},   {"timeout", 408},     {"quota", 429},
		{"auth", 401},       {"api_key", 401},     {"permission", 403},
		{"billing", 402},    {"not_found", 404},   {"invalid", 400},
		{"exceed", 400},     {"unsupported", 400}, {"too_large", 413},
	};
	static const char *const number_keys[] = {"code", "status", "status_code"};
	static const char *const word_keys[] = {"code", "type"};
	const struct value *error = error_object(root);

	for (size_t i = 0; i < sizeof(number_keys) / sizeof(number_keys[0]); i++) {
		const struct value *number = value_member(error, number_keys[i]);
		int64_t status = value_integer(number);

		if (value_kind(number) == VALUE_STRING)
			status = strtol(value_text(number), NULL, 10);
		if (status >= 400 && status <= 599)
			return status;
	}
	for (size_t i = 0; i < sizeof(word_keys) / sizeof(word_keys[0]); i++) {
		struct str text = value_str(value_member(error, word_keys[i]));

		for (size_t n = 0; text.size > 0 && n < sizeof(words) / sizeof(words[0]);
		     n++) {
			if (str_find(text, str_of(words[n].word), 0) != (size_t)-1)
				return words[n].status;
		}
	}
	return 0;
}

bool service_is_error(const struct value *root)
{
	const struct value *error = value_member(root, "error");
	enum value_kind kind = value_kind(error);

	if (kind == VALUE_OBJECT || value_str(error).size > 0)
		return true;
	if (str_is(value_str(value_member(root, "object")), "error") ||
	    str_is(value_str(value_member(root, "type")), "error"))
		return true;
	return value_kind(root) == VALUE_ARRAY
		       ? service_is_error(value_item(root, 0))
		       : !value_member(root, "choices") &&
				 (value_text(value_member(root, "message")) ||
				  value_member(root, "detail"));
}

bool service_refuse(const struct value *root, struct err *err)
{
	struct buf message, shown;

	buf_init(&message, MESSAGE_MAX);
	buf_init(&shown, ERR_TEXT_MAX);
	if (!add_error_message(root, &message))
		(void)buf_adds(&message, "an error without a message");
	failure_quote(buf_str(&message), &shown);
	(void)err_set(err, failure_code(error_status(root), buf_str(&message)),
		      "the service ended the answer with an error: %s", shown.data);
	buf_fini(&message);
	buf_fini(&shown);
	return false;
}
