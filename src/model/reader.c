/* reader: the first byte that is no blank decides what kind of answer it is. */
#include "model/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "model/sse.h"
#include "model/stray_call.h"

/* A page's title is in its head; what follows is read past. */
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

	/* Events after the closing one belong to no answer. */
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

/* Blanks and a BOM before the answer mean nothing in any shape. */
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

/* A line that is not complete yet waits in the body. */
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

/* The text between <title> and what ends it, or nothing. */
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

/* An answer that ends in a call which nobody read would pass for done. */
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
		/* Half a line says only that the stream is torn, which is told below. */
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
