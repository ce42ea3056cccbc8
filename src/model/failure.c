/* failure: judges refusals of services by a table of wordings and a table of statuses. */

#include "model/failure.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Parts of the sentences in which services say that a request is longer than the context.
 * Nearly all these answers have status 400, so the status does not tell this error from
 * others.
 */
static const char *const overflow_words[] = {
	"available context size",  /* llama.cpp */
	"exceed_context_size",     /* llama.cpp, its type */
	"context_length_exceeded", /* OpenAI, its code */
	"context length exceeded",
	"maximum context length",  /* OpenAI, vLLM, OpenRouter, Mistral */
	"max context length",      /* Ollama */
	"than the context length", /* LM Studio */
	"with context length of",  /* LM Studio, older */
	"the context window",      /* OpenAI, Bedrock */
	"context window exceeds",  /* MiniMax */
	"context limit",
	"context_window_exceeded",
	"prompt is too long", /* Anthropic and gateways to it */
	"prompt too long",
	"input is too long", /* Bedrock */
	"input length exceeds",
	"maximum prompt length",            /* xAI */
	"maximum number of tokens allowed", /* Gemini */
	"maximum input length",
	"exceeded model token limit", /* Moonshot */
	"reduce the length of the",   /* Groq, OpenAI */
};

/*
 * The same times as in the official clients: 0.5 s, doubled to 8 s, up to a quarter less
 * by chance.
 */
static const double first_wait_s = 0.5;
static const double longest_wait_s = 8;
static const double jitter = 0.25;

static bool contains_word(struct str text, const char *word)
{
	struct str part = str_of(word);

	for (size_t at = 0; at + part.size <= text.size; at++) {
		if (strncasecmp(text.data + at, part.data, part.size) == 0)
			return true;
	}
	return false;
}

bool failure_is_overflow(struct str message)
{
	for (size_t i = 0; i < sizeof(overflow_words) / sizeof(overflow_words[0]); i++) {
		if (contains_word(message, overflow_words[i]))
			return true;
	}
	return false;
}

int failure_code(int64_t status, struct str message)
{
	switch (status) {
	case 401:
	case 403:
		return EACCES;
	case 429:
		return EBUSY;
	case 413:
		return E2BIG;
	default:
		break;
	}
	if (failure_is_overflow(message))
		return E2BIG;
	if (status == 408 || status == 409 || status >= 500 || status == 0)
		return EAGAIN;
	return EINVAL;
}

bool failure_may_pass(int code)
{
	switch (code) {
	case EAGAIN:
	case EBUSY:
	case EPROTO:
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

double failure_wait_s(int tries, double chance)
{
	double wait_s = first_wait_s;

	for (int i = 0; i < tries && wait_s < longest_wait_s; i++)
		wait_s *= 2;
	return wait_s * (1 - jitter * chance);
}

int failure_public_code(int code)
{
	switch (code) {
	case EACCES:
	case E2BIG:
	case EBUSY:
	case EPROTO:
	case ENODATA:
	case ECANCELED:
	case ETIMEDOUT:
		return code;
	case EBADMSG:
		return EPROTO;
	case EAGAIN:
	case ECONNREFUSED:
	case EHOSTUNREACH:
		return EAGAIN;
	default:
		return EIO;
	}
}

/* Append advice for the person about an answer of STATUS that means CODE. */
static void add_advice(const struct failure_place *place, int64_t status, int code,
		       struct buf *out)
{
	if (code == EACCES && place->has_key)
		(void)buf_addf(out, "; check the key in %s", place->key_name);
	else if (code == EACCES)
		(void)buf_addf(out, "; set %s to a key of this service", place->key_name);
	else if (code == E2BIG)
		(void)buf_adds(out,
			       "; the conversation is larger than the model's context: "
			       "begin a new session, or give the server a larger one");
	else if (code == EBUSY)
		(void)buf_adds(out, "; wait, or see the limits of your account");
	else if (status == 404 || status == 405)
		(void)buf_addf(out,
			       "; check the model's name (%s) and the base URL "
			       "(most end in /v1)",
			       place->model);
	else if (status >= 300 && status <= 399)
		(void)buf_adds(out,
			       "; redirects are not followed: give the base URL it leads to");
	else if (status == 402)
		(void)buf_adds(out, "; see the balance of your account");
	else if (code == EINVAL)
		(void)buf_adds(out, "; the request would be refused again: check the model's "
				    "name and what it supports");
	else if (code == EAGAIN)
		(void)buf_adds(out, "; the fault is with the service: try again later");
}

bool failure_refuse(const struct failure_place *place, int64_t status, struct str message,
		    struct str body, struct err *err)
{
	int code = failure_code(status, message);
	struct buf text;

	buf_init(&text, ERR_TEXT_MAX);
	(void)buf_addf(&text, "%s answered %lld", place->host, (long long)status);
	if (message.size > 0) {
		(void)buf_adds(&text, ": ");
		failure_quote(message, &text);
	} else if (str_starts(str_trim(body), STR("<"))) {
		(void)buf_adds(&text, " with a web page");
	} else if (body.size > 0) {
		(void)buf_adds(&text, ": ");
		failure_quote(body, &text);
	}
	add_advice(place, status, code, &text);
	(void)err_set(err, code, "%s", text.data);
	buf_fini(&text);
	return false;
}

void failure_quote(struct str message, struct buf *out)
{
	struct buf clean;

	buf_init(&clean, 8 * FAILURE_QUOTE_MAX);
	message = str_trim(message);
	/*
	 * Escaping makes at most four bytes of one, so this much room is always enough.
	 */
	message = str_part(message, 0, text_character_border(message, FAILURE_QUOTE_MAX));
	(void)text_clean(message, &clean);
	for (size_t i = 0; i < clean.size; i++) {
		if (clean.data[i] == '\n' || clean.data[i] == '\t')
			clean.data[i] = ' ';
	}
	if (clean.size > FAILURE_QUOTE_MAX)
		buf_truncate(&clean,
			     text_character_border(buf_str(&clean), FAILURE_QUOTE_MAX));
	(void)buf_addstr(out, str_trim(buf_str(&clean)));
	buf_fini(&clean);
}

/*
 * Finds the message in the error objects of all servers, in the forms that they have:
 * {"error": {…}}, {"error": "…"}, {"detail": […]}, {"message": …}, lists of these.
 */

/* The longest error message that is read. Only a small part of it is shown. */
enum { MESSAGE_MAX = 64 << 10 };

/* No model counts this far, and sums of wrong numbers cannot overflow. */
static const int64_t count_max = (int64_t)1 << 40;

struct str failure_first_text(const struct value *object, const char *const *keys)
{
	for (; *keys; keys++) {
		struct str text = value_str(value_member(object, *keys));

		if (text.size > 0)
			return text;
	}
	return STR("");
}

uint64_t failure_count(const struct value *object, const char *key)
{
	int64_t number = value_integer(value_member(object, key));

	if (number > count_max)
		number = count_max;
	return number > 0 ? (uint64_t)number : 0;
}

/* Append FastAPI's list of validation errors. */
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

/* The object with the error: inside "error", inside a list, or the body itself. */
static const struct value *error_object(const struct value *root)
{
	/* A gateway wraps the error of the next gateway, rarely more than twice. */
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
	struct str word = failure_first_text(error, word_keys);
	struct str request = value_str(value_member(root, "request_id"));

	if (value_kind(error) == VALUE_STRING)
		return buf_addstr(out, value_str(error)) && out->size > before;
	(void)buf_addstr(out, failure_first_text(error, message_keys));
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

bool failure_error(struct str body, struct buf *out)
{
	auto_value struct value *root = NULL;

	return value_parse(body, 0, &root, NULL) && add_error_message(root, out);
}

/* The HTTP status in an error object, as a number or a word; 0: there is none. */
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

bool failure_is_error(const struct value *root)
{
	const struct value *error = value_member(root, "error");
	enum value_kind kind = value_kind(error);

	if (kind == VALUE_OBJECT || value_str(error).size > 0)
		return true;
	if (str_is(value_str(value_member(root, "object")), "error") ||
	    str_is(value_str(value_member(root, "type")), "error"))
		return true;
	return value_kind(root) == VALUE_ARRAY
		       ? failure_is_error(value_item(root, 0))
		       : !value_member(root, "choices") &&
				 (value_text(value_member(root, "message")) ||
				  value_member(root, "detail"));
}

bool failure_refuse_status(const struct value *root, struct err *err)
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

/* Makes the JSON of services readable where that can be done. */

/*
 * The escaped half of a surrogate pair at AT, as proxies cut such pairs apart; 0: there
 * is none.
 */
static unsigned surrogate_at(struct str text, size_t at)
{
	char digits[5] = "";
	unsigned long code;

	if (at + 6 > text.size || text.data[at] != '\\' || text.data[at + 1] != 'u')
		return 0;
	memcpy(digits, text.data + at + 2, 4);
	code = strtoul(digits, NULL, 16);
	return code >= 0xd800 && code <= 0xdfff ? (unsigned)code : 0;
}

/*
 * Append TEXT with U+FFFD for invalid UTF-8 and for each half of a surrogate pair that
 * stands without its other half.
 */
static void repair_characters(struct str text, struct buf *out)
{
	size_t at = 0;

	while (at < text.size) {
		size_t length = text_utf8_length(str_part(text, at, 4));
		unsigned half = surrogate_at(text, at);

		if (length == 0) {
			(void)buf_adds(out, "\xef\xbf\xbd");
			at++;
		} else if (half && half < 0xdc00 && surrogate_at(text, at + 6) >= 0xdc00) {
			(void)buf_add(out, text.data + at, 12);
			at += 12;
		} else if (half) {
			(void)buf_adds(out, "\\ufffd");
			at += 6;
		} else if (text.data[at] == '\\' && at + 1 < text.size) {
			/*
			 * Take both characters together, because the second one may be a
			 * backslash too.
			 */
			(void)buf_add(out, text.data + at, 1);
			at++;
			if ((unsigned char)text.data[at] < 0x80) {
				(void)buf_add(out, text.data + at, 1);
				at++;
			}
		} else {
			(void)buf_add(out, text.data + at, length);
			at += length;
		}
	}
}

bool failure_parse(struct str text, const char *complaint, struct value **root,
		   struct err *err)
{
	struct buf repaired, shown;
	struct err why = {0};
	bool ok;

	if (value_parse(text, 0, root, &why))
		return true;
	buf_init(&repaired, VALUE_TEXT_MAX);
	repair_characters(text, &repaired);
	ok = !repaired.overflowed && value_parse(buf_str(&repaired), 0, root, NULL);
	buf_fini(&repaired);
	if (ok)
		return true;
	buf_init(&shown, ERR_TEXT_MAX);
	failure_quote(str_of(why.text), &shown);
	(void)err_set(err, EPROTO, "%s (%s)", complaint, shown.data);
	buf_fini(&shown);
	return false;
}

bool failure_parse_event(struct str data, struct value **root, bool *end, struct err *err)
{
	data = str_trim(data);
	if (data.size == 0)
		return true;
	if (str_is(data, "[DONE]")) {
		*end = true;
		return true;
	}
	return failure_parse(data, "an event of the stream is no JSON", root, err);
}

bool failure_parse_whole(struct str body, struct value **root, struct err *err)
{
	if (!failure_parse(body, "the answer is neither a stream nor JSON", root, err))
		return false;
	return !failure_is_error(*root) || failure_refuse_status(*root, err);
}
