/* stream: the first byte that is no blank decides of which kind an answer is. */

#include "model/stream.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "model/provider.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of one event's data, and of one line. */
enum { SSE_EVENT_MAX = 16 << 20 };

/* Makes lines of pieces, fields of lines, and events of fields. */

/*
 * The longest event name that is kept; the names that we know have fewer than 40 bytes.
 */
enum { NAME_MAX_BYTES = 256 };

/* The longest id that is kept, which goes into a header; the most digits of a time. */
enum { ID_MAX_BYTES = 1024, RETRY_DIGITS = 9 };

struct sse {
	bool (*event)(void *context, struct str name, struct str data, struct err *err);
	void *context;
	struct buf line; /* the start of a line whose end has not come */
	struct buf data, name;
	struct buf id, next_id; /* of the last event, and of the one that is being read */
	int64_t retry_ms;
	bool has_data;
	bool has_id;
	bool after_cr;   /* an LF here belongs to the line end before it */
	bool in_comment; /* the rest of this line is not kept */
	bool past_first_line;
};

struct sse *sse_new(bool (*event)(void *context, struct str name, struct str data,
				  struct err *err),
		    void *context)
{
	struct sse *sse = memory_alloc(sizeof(*sse));

	sse->event = event;
	sse->context = context;
	buf_init(&sse->line, SSE_EVENT_MAX);
	buf_init(&sse->data, SSE_EVENT_MAX);
	buf_init(&sse->name, NAME_MAX_BYTES);
	buf_init(&sse->id, ID_MAX_BYTES);
	buf_init(&sse->next_id, ID_MAX_BYTES);
	sse->retry_ms = -1;
	return sse;
}

void sse_free(struct sse *sse)
{
	if (!sse)
		return;
	buf_fini(&sse->line);
	buf_fini(&sse->data);
	buf_fini(&sse->name);
	buf_fini(&sse->id);
	buf_fini(&sse->next_id);
	free(sse);
}

static bool sse_too_long(struct err *err)
{
	return err_set(err, EIO, "an event of the stream is longer than %d MiB",
		       SSE_EVENT_MAX >> 20);
}

static bool sse_dispatch(struct sse *sse, struct err *err)
{
	bool ok = true;

	if (sse->has_id)
		buf_swap(&sse->id, &sse->next_id);
	sse->has_id = false;
	if (sse->has_data)
		ok = sse->event(sse->context, buf_str(&sse->name), buf_str(&sse->data), err);
	buf_clear(&sse->data);
	buf_clear(&sse->name);
	sse->has_data = false;
	return ok;
}

static bool sse_add_data(struct sse *sse, struct str value, struct err *err)
{
	if (sse->has_data && !buf_addc(&sse->data, '\n'))
		return sse_too_long(err);
	if (!buf_addstr(&sse->data, value))
		return sse_too_long(err);
	sse->has_data = true;
	return true;
}

/* An id with a NUL, and an id or a time that is too long, are ignored. */
static void sse_take_id(struct sse *sse, struct str value)
{
	if (value.size > ID_MAX_BYTES || memchr(value.data, '\0', value.size))
		return;
	buf_clear(&sse->next_id);
	(void)buf_addstr(&sse->next_id, value);
	sse->has_id = true;
}

static void sse_take_retry(struct sse *sse, struct str value)
{
	int64_t ms = 0;

	if (value.size == 0 || value.size > RETRY_DIGITS)
		return;
	for (size_t i = 0; i < value.size; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return;
		ms = 10 * ms + (value.data[i] - '0');
	}
	sse->retry_ms = ms;
}

static bool sse_take_line(struct sse *sse, struct str line, struct err *err)
{
	const char *colon;
	struct str field = line, value = {"", 0};

	if (!sse->past_first_line && str_starts(line, STR("\xef\xbb\xbf")))
		line = field = str_part(line, 3, line.size);
	sse->past_first_line = true;
	if (line.size == 0)
		return sse_dispatch(sse, err);

	colon = memchr(line.data, ':', line.size);
	if (colon) {
		size_t at = (size_t)(colon - line.data);

		field = str_part(line, 0, at);
		value = str_part(line, at + 1, line.size);
		if (str_starts(value, STR(" ")))
			value = str_part(value, 1, value.size);
	}
	if (str_is(field, "data"))
		return sse_add_data(sse, value, err);
	if (str_is(field, "event")) {
		buf_clear(&sse->name);
		(void)buf_addstr(&sse->name, value);
	} else if (str_is(field, "id")) {
		sse_take_id(sse, value);
	} else if (str_is(field, "retry")) {
		sse_take_retry(sse, value);
	}
	return true;
}

static bool sse_end_line(struct sse *sse, struct str rest, struct err *err)
{
	bool ok = true;

	if (sse->in_comment) {
		sse->in_comment = false;
	} else if (sse->line.size == 0) {
		ok = sse_take_line(sse, rest, err);
	} else {
		ok = buf_addstr(&sse->line, rest)
			     ? sse_take_line(sse, buf_str(&sse->line), err)
			     : sse_too_long(err);
	}
	buf_clear(&sse->line);
	return ok;
}

/* Keep the beginning of a line. Of a comment nothing is kept, however long it is. */
static bool sse_keep(struct sse *sse, struct str rest, struct err *err)
{
	if (rest.size == 0 || sse->in_comment)
		return true;
	if (sse->line.size == 0 && rest.data[0] == ':') {
		sse->in_comment = true;
		sse->past_first_line = true;
		return true;
	}
	if (!buf_addstr(&sse->line, rest))
		return sse_too_long(err);
	return true;
}

bool sse_feed(struct sse *sse, struct str bytes, struct err *err)
{
	size_t from = 0;

	for (size_t at = 0; at < bytes.size; at++) {
		char c = bytes.data[at];

		if (c != '\n' && c != '\r') {
			sse->after_cr = false;
			continue;
		}
		if (c == '\n' && sse->after_cr) {
			sse->after_cr = false;
			from = at + 1;
			continue;
		}
		sse->after_cr = c == '\r';
		if (!sse_end_line(sse, str_part(bytes, from, at - from), err))
			return false;
		from = at + 1;
	}
	return sse_keep(sse, str_part(bytes, from, bytes.size), err);
}

bool sse_end(struct sse *sse, struct err *err)
{
	auto_value struct value *whole = NULL;
	struct str data;

	if (sse->line.size > 0 && !sse_end_line(sse, STR(""), err))
		return false;
	data = buf_str(&sse->data);
	if (!sse->has_data)
		return true;
	if (str_is(str_trim(data), "[DONE]") || value_parse(data, 0, &whole, NULL))
		return sse_dispatch(sse, err);
	return true;
}

const char *sse_last_id(const struct sse *sse)
{
	return sse->id.data;
}

int64_t sse_retry_ms(const struct sse *sse)
{
	return sse->retry_ms;
}

/*
 * Marks of tool calls that a server passes on as text, because it does not know how its
 * model writes them. An answer that ends in such a mark did nothing, although it looks
 * complete. These are the marks that models are trained on.
 */

static const struct {
	const char *begin, *end; /* END is what the text ends with */
} marks[] = {
	{"<tool_call>", "</tool_call>"}, /* Hermes, Qwen, GLM */
	{"<function=", "</function>"},   /* Llama, Qwen's coders … */
	{"<function=", "</tool_call>"},  /* … which often forget the beginning */
	{"[TOOL_CALLS]", "]"},           /* Mistral … */
	{"[TOOL_CALLS]", "}"},           /* … and its newer models */
	{"<|python_tag|>", "}"},         /* Llama 3 */
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, /* Kimi */
	{"<\xef\xbd\x9ctool\xe2\x96\x81"
	 "calls\xe2\x96\x81"
	 "begin\xef\xbd\x9c>",
	 "<\xef\xbd\x9ctool\xe2\x96\x81"
	 "calls\xe2\x96\x81"
	 "end\xef\xbd\x9c>"},                         /* DeepSeek */
	{"<|channel|>commentary to=functions.", "}"}, /* gpt-oss */
};

/* Does MARK stand at the beginning of a line of TEXT? */
static bool begins_a_line(struct str text, struct str mark)
{
	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		if (at == 0 || text.data[at - 1] == '\n')
			return true;
	}
	return false;
}

/*
 * When TEXT ends in a call, the mark with which that call begins; else NULL. A mark
 * counts only at the beginning of a line: a text about such marks has them inside a
 * sentence.
 */
static const char *stray_call_in(struct str text)
{
	text = str_trim(text);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (str_ends(text, str_of(marks[i].end)) &&
		    begins_a_line(text, str_of(marks[i].begin)))
			return marks[i].begin;
	}
	return NULL;
}

/* A page's title is in its head, so the rest of the page is skipped. */
enum { PAGE_MAX = 64 << 10, TITLE_MAX = 100 };

enum shape { SHAPE_UNKNOWN, SHAPE_STREAM, SHAPE_LINES, SHAPE_WHOLE, SHAPE_PAGE };

struct reader {
	const struct provider *provider;
	struct answer *answer;
	enum shape shape;
	struct sse *sse;
	struct buf body;
	bool ended;
};

static bool reader_take_event(void *context, struct str name, struct str data,
			      struct err *err)
{
	struct reader *reader = context;

	/* Events after the last one of the answer are ignored. */
	if (reader->ended)
		return true;
	return reader->provider->event(reader->answer, name, data, &reader->ended, err) &&
	       answer_fits(reader->answer, err);
}

struct reader *reader_new(const struct provider *provider, struct answer *answer)
{
	struct reader *reader = memory_alloc(sizeof(*reader));

	reader->provider = provider;
	reader->answer = answer;
	reader->sse = sse_new(reader_take_event, reader);
	buf_init(&reader->body, MODEL_ANSWER_MAX);
	return reader;
}

void reader_free(struct reader *reader)
{
	if (!reader)
		return;
	sse_free(reader->sse);
	buf_fini(&reader->body);
	free(reader);
}

/* Blanks and a BOM before the answer have no meaning in any form. */
static struct str skip_blank(struct str bytes)
{
	size_t at = 0;

	while (at < bytes.size) {
		unsigned char c = (unsigned char)bytes.data[at];

		if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != 0xef &&
		    c != 0xbb && c != 0xbf)
			break;
		at++;
	}
	return str_part(bytes, at, bytes.size);
}

static enum shape shape_of(const struct provider *provider, char first)
{
	if (first == '{' && provider->streams_lines)
		return SHAPE_LINES;
	if (first == '{' || first == '[')
		return SHAPE_WHOLE;
	return first == '<' ? SHAPE_PAGE : SHAPE_STREAM;
}

static bool keep(struct reader *reader, struct str bytes, struct err *err)
{
	return buf_addstr(&reader->body, bytes) ||
	       err_set(err, EIO, "the answer is longer than %d MiB and was refused",
		       MODEL_ANSWER_MAX >> 20);
}

/* An incomplete line waits in the body. */
static bool feed_lines(struct reader *reader, struct str bytes, struct err *err)
{
	size_t end;

	while ((end = str_find(bytes, STR("\n"), 0)) != (size_t)-1) {
		if (!keep(reader, str_part(bytes, 0, end), err) ||
		    !reader_take_event(reader, STR(""), buf_str(&reader->body), err))
			return false;
		buf_clear(&reader->body);
		bytes = str_part(bytes, end + 1, bytes.size);
	}
	return keep(reader, bytes, err);
}

bool reader_feed(struct reader *reader, struct str bytes, bool *enough, struct err *err)
{
	bool ok = true;

	if (reader->shape == SHAPE_UNKNOWN) {
		bytes = skip_blank(bytes);
		if (bytes.size > 0)
			reader->shape = shape_of(reader->provider, bytes.data[0]);
	}
	switch (reader->shape) {
	case SHAPE_UNKNOWN:
		break;
	case SHAPE_STREAM:
		ok = sse_feed(reader->sse, bytes, err);
		break;
	case SHAPE_LINES:
		ok = feed_lines(reader, bytes, err);
		break;
	case SHAPE_WHOLE:
		ok = keep(reader, bytes, err);
		break;
	case SHAPE_PAGE:
		if (reader->body.size < PAGE_MAX)
			(void)buf_addstr(&reader->body,
					 str_part(bytes, 0, PAGE_MAX - reader->body.size));
		reader->ended = reader->body.size == PAGE_MAX;
		break;
	}
	*enough = reader->ended;
	return ok;
}

/* The text between <title> and the end of the title, or nothing. */
static struct str page_title(struct str page)
{
	size_t from = str_find(page, STR("<title"), 0);
	size_t to;

	if (from == (size_t)-1)
		return STR("");
	from = str_find(page, STR(">"), from);
	if (from == (size_t)-1)
		return STR("");
	to = str_find(page, STR("<"), ++from);
	if (to == (size_t)-1)
		return STR("");
	return str_trim(str_part(page, from, to - from));
}

static bool reader_refuse_page(struct reader *reader, struct err *err)
{
	struct str title = page_title(buf_str(&reader->body));
	struct buf shown;

	buf_init(&shown, 4 * TITLE_MAX);
	title = str_part(title, 0, text_character_border(title, TITLE_MAX));
	(void)text_clean(title, &shown);
	(void)err_set(err, EBADMSG,
		      "a web page came%s%s%s, not the answer of a model: "
		      "check the base URL (most end in /v1)",
		      shown.size > 0 ? " (\"" : "", shown.data,
		      shown.size > 0 ? "\")" : "");
	buf_fini(&shown);
	return false;
}

static bool reader_check_stream(struct reader *reader, bool cut, struct err *err)
{
	if (!sse_end(reader->sse, err) || !answer_fits(reader->answer, err))
		return false;
	if (reader->ended || answer_is_finished(reader->answer))
		return true;
	if (!cut && answer_calls_are_whole(reader->answer))
		return true;
	return err_set(err, EPROTO,
		       answer_has_content(reader->answer)
			       ? "the stream ended in the middle of the answer"
			       : "the stream ended before the answer began");
}

/*
 * An answer that ends in a call which was not recognised would look like a finished one.
 */
static bool reader_check_words(const struct reader *reader, struct err *err)
{
	const char *mark = stray_call_in(answer_last_words(reader->answer));

	if (!mark)
		return true;
	return err_set(err, EPROTO,
		       "the server passed the model's call of a tool on as text (%s…): start "
		       "llama-server with --jinja, vLLM with --enable-auto-tool-choice and the "
		       "model's --tool-call-parser, or use another server",
		       mark);
}

bool reader_end(struct reader *reader, bool cut, struct err *err)
{
	switch (reader->shape) {
	case SHAPE_UNKNOWN:
		return err_set(err, EPROTO, "an empty answer came");
	case SHAPE_PAGE:
		return reader_refuse_page(reader, err);
	case SHAPE_WHOLE:
		if (!reader->provider->whole(reader->answer, buf_str(&reader->body), err) ||
		    !answer_fits(reader->answer, err))
			return false;
		break;
	case SHAPE_LINES:
		/*
		 * An incomplete line only shows that the stream is torn; this is reported
		 * below.
		 */
		if (!cut && !reader->ended &&
		    !reader_take_event(reader, STR(""), buf_str(&reader->body), err))
			return false;
		if (!reader_check_stream(reader, cut, err))
			return false;
		break;
	case SHAPE_STREAM:
		if (!reader_check_stream(reader, cut, err))
			return false;
		break;
	}
	if (reader->provider->done)
		reader->provider->done(reader->answer);
	if (answer_has_content(reader->answer) || answer_is_refused(reader->answer))
		return reader_check_words(reader, err);
	return err_set(err, ENODATA, "the model said nothing and asked for nothing");
}
