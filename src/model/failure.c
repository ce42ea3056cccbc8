/* failure: one table of wordings, one of statuses. */
#include "model/failure.h"

#include <errno.h>
#include <stddef.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text/text.h"

/*
 * Parts of the sentences in which services say that a request is longer than the context.
 * Nearly all come with status 400, so that the status alone tells nothing.
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

/* As the official clients: 0.5 s, doubled to 8 s, up to a quarter less by chance. */
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
	 * Escaping makes four bytes of one at most, so this is enough and never too much.
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
