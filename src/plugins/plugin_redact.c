/* plugin_redact: see plugin_redact.h. */
#include "plugins/plugin_redact.h"

#include <string.h>

enum { PIECE_MAX = 1 << 20 };

void plugin_redact_add(struct value *list, struct str secret)
{
	struct buf quoted;

	if (secret.size < PLUGIN_SECRET_MIN)
		return;
	value_append(list, value_new_str(secret));
	buf_init(&quoted, PIECE_MAX);
	/* Between its quotes. */
	if (value_quote(secret, &quoted) && quoted.size - 2 != secret.size)
		value_append(list,
			     value_new_str(str_part(buf_str(&quoted), 1, quoted.size - 2)));
	buf_fini(&quoted);
}

/* Length of the longest secret at the begin of TEXT; 0: none. */
static size_t secret_at(const struct value *secrets, struct str text)
{
	size_t longest = 0;

	for (size_t i = 0; i < value_count(secrets); i++) {
		struct str secret = value_str(value_item(secrets, i));

		if (secret.size > longest && str_starts(text, secret))
			longest = secret.size;
	}
	return longest;
}

/* May TEXT, to its end, be the beginning of one that is longer? */
static bool begins_one(const struct value *secrets, struct str text)
{
	for (size_t i = 0; i < value_count(secrets); i++) {
		struct str secret = value_str(value_item(secrets, i));

		if (secret.size > text.size && str_starts(secret, text))
			return true;
	}
	return false;
}

/* Append TEXT without secrets; how much of it was taken. MORE of it may come. */
static size_t take(const struct value *secrets, struct str text, bool more, struct buf *out)
{
	size_t at = 0;

	while (at < text.size) {
		struct str rest = str_part(text, at, text.size - at);
		size_t size = secret_at(secrets, rest);

		if (more && begins_one(secrets, rest))
			return at;
		if (size > 0)
			(void)buf_adds(out, PLUGIN_REDACTED);
		else
			(void)buf_addc(out, rest.data[0]);
		at += size > 0 ? size : 1;
	}
	return at;
}

void plugin_redact(const struct value *secrets, struct buf *text)
{
	struct buf out;

	if (value_count(secrets) == 0 || text->size == 0)
		return;
	buf_init(&out, text->max);
	(void)take(secrets, buf_str(text), false, &out);
	buf_fini(text);
	*text = out;
}

void plugin_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets)
{
	stream->secrets = secrets;
	buf_init(&stream->held, PIECE_MAX);
}

void plugin_redact_piece(struct plugin_redact_stream *stream, struct str bytes,
			 struct buf *out)
{
	size_t taken;

	buf_clear(out);
	/* An event is a glimpse: of more than this nothing is shown. */
	if (bytes.data != NULL && !buf_addstr(&stream->held, bytes))
		buf_clear(&stream->held);
	taken = take(stream->secrets, buf_str(&stream->held), bytes.data != NULL, out);
	buf_remove(&stream->held, 0, taken);
}

void plugin_redact_end(struct plugin_redact_stream *stream)
{
	buf_fini(&stream->held);
}
