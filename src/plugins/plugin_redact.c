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

void plugin_redact(const struct value *secrets, struct buf *text)
{
	struct buf out;
	size_t at = 0;

	if (value_count(secrets) == 0 || text->size == 0)
		return;
	buf_init(&out, text->max);
	while (at < text->size) {
		struct str rest = str_part(buf_str(text), at, text->size - at);
		size_t size = secret_at(secrets, rest);

		if (size > 0) {
			(void)buf_adds(&out, PLUGIN_REDACTED);
			at += size;
		} else {
			(void)buf_addc(&out, rest.data[0]);
			at++;
		}
	}
	buf_fini(text);
	*text = out;
}

void plugin_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets)
{
	stream->secrets = secrets;
	buf_init(&stream->held, PIECE_MAX);
}

static size_t longest_secret(const struct value *secrets)
{
	size_t longest = 0;

	for (size_t i = 0; i < value_count(secrets); i++) {
		size_t size = value_str(value_item(secrets, i)).size;

		longest = size > longest ? size : longest;
	}
	return longest;
}

void plugin_redact_piece(struct plugin_redact_stream *stream, struct str bytes,
			 struct buf *out)
{
	size_t longest = longest_secret(stream->secrets);

	buf_clear(out);
	/* An event is a glimpse: of more than this nothing is shown. */
	if (bytes.data != NULL && !buf_addstr(&stream->held, bytes))
		buf_clear(&stream->held);
	plugin_redact(stream->secrets, &stream->held);
	size_t keep = bytes.data != NULL && longest > 0 ? longest - 1 : 0;
	if (stream->held.size <= keep)
		return;
	size_t shown = stream->held.size - keep;
	(void)buf_add(out, stream->held.data, shown);
	buf_remove(&stream->held, 0, shown);
}

void plugin_redact_end(struct plugin_redact_stream *stream)
{
	buf_fini(&stream->held);
}
