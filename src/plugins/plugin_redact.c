/* plugin_redact: see plugin_redact.h. */
#include "plugins/plugin_redact.h"

#include "plugins/describe.h"

#include <limits.h>
#include <string.h>

enum {
	PIECE_MAX = 1 << 20,
	NEEDLES_MAX = 2 * PLUGIN_KEYS_MAX, /* as it is, and as JSON has it */
};

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

/*
 * The secrets that a text is searched for. Texts may be large: BEGINS lets the search skip
 * most bytes.
 */
struct needles {
	struct str list[NEEDLES_MAX];
	size_t count;
	bool begins[UCHAR_MAX + 1]; /* with this byte one does */
};

static void needles_fill(struct needles *needles, const struct value *secrets)
{
	*needles = (struct needles){0};
	for (size_t i = 0; i < value_count(secrets) && i < NEEDLES_MAX; i++) {
		struct str secret = value_str(value_item(secrets, i));

		needles->list[needles->count++] = secret;
		needles->begins[(unsigned char)secret.data[0]] = true;
	}
}

/*
 * Length of the longest one at the begin of TEXT; 0: none. *LONGER: to its end TEXT may be the
 * beginning of one.
 */
static size_t needle_at(const struct needles *needles, struct str text, bool *longer)
{
	size_t longest = 0;

	*longer = false;
	for (size_t i = 0; i < needles->count; i++) {
		struct str needle = needles->list[i];

		if (needle.size > text.size)
			*longer = *longer || str_starts(needle, text);
		else if (needle.size > longest && str_starts(text, needle))
			longest = needle.size;
	}
	return longest;
}

/* Append TEXT without secrets; how much of it was taken. MORE of it may come. */
static size_t take(const struct value *secrets, struct str text, bool more, struct buf *out)
{
	struct needles needles;
	size_t at = 0, plain = 0; /* from there on nothing was added yet */

	needles_fill(&needles, secrets);
	while (at < text.size) {
		bool longer = false;
		size_t size = 0;

		if (needles.begins[(unsigned char)text.data[at]])
			size = needle_at(&needles, str_part(text, at, text.size - at),
					 &longer);
		if (more && longer)
			break;
		if (size > 0) {
			(void)buf_addstr(out, str_part(text, plain, at - plain));
			(void)buf_adds(out, PLUGIN_REDACTED);
			plain = at + size;
		}
		at += size > 0 ? size : 1;
	}
	(void)buf_addstr(out, str_part(text, plain, at - plain));
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
