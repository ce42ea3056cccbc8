/* compaction: bounds, the cut, and what is before it as text. */
#include "agent/compaction.h"

#include "base/text/text.h"

#include <string.h>

enum {
	/* Of one part in the text that is summarised: what happened, not every line of it. */
	TEXT_BYTES = 8 << 10,
	ARGUMENTS_BYTES = 2 << 10,
	RESULT_BYTES = 3 << 10,
	/* The summary's own request must fit: source text has at least so many a token. */
	BYTES_PER_TOKEN_LEAST = 2,
	PRINTED_MAX = 64 << 20,
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct compaction compaction_for(uint64_t context)
{
	uint64_t share = context / 100 * COMPACTION_FREE_PERCENT;
	uint64_t wanted = share > COMPACTION_FREE ? share : COMPACTION_FREE;
	uint64_t free = least_of(wanted, context / 2);

	return (struct compaction){
		.free = free,
		.kept = least_of(COMPACTION_KEPT, context / 4),
		.pinned_max = (size_t)least_of(COMPACTION_PINNED_MAX,
					       context / 4 * HISTORY_BYTES_PER_TOKEN),
		.text_max = (size_t)least_of(PRINTED_MAX,
					     (context - free) * BYTES_PER_TOKEN_LEAST),
	};
}

bool compaction_due(uint64_t context, uint64_t tokens)
{
	return context > 0 && tokens + compaction_for(context).free > context;
}

size_t compaction_cut(const struct history *history, const struct compaction *compaction,
		      uint64_t least)
{
	const struct conversation *conversation = &history->conversation;
	size_t cut = 0, kept = 0, gone = 0;

	for (size_t i = conversation->message_count; i > 1; i--) {
		const struct message *message = &conversation->messages[i - 1];

		kept += history_message_bytes(message);
		if (cut > 0 && kept / HISTORY_BYTES_PER_TOKEN > compaction->kept)
			break;
		/* An answer that the service broke off goes on in the next one. */
		if (message->speaker == SPEAKER_MODEL && message[-1].speaker == SPEAKER_USER)
			cut = i - 1;
	}
	for (size_t i = 1; i < cut; i++)
		gone += history_message_bytes(&conversation->messages[i]);
	return gone > 0 && gone / HISTORY_BYTES_PER_TOKEN >= least ? cut : 0;
}

/* The beginning and the end of TEXT, at most MAX bytes of it. */
static void add_part(struct buf *out, struct str text, size_t max)
{
	size_t head, tail;

	if (text.size <= max) {
		(void)buf_addstr(out, text);
		(void)buf_addc(out, '\n');
		return;
	}
	head = text_character_border(text, max / 3 * 2);
	tail = text.size - max / 3;
	while (tail < text.size && ((unsigned char)text.data[tail] & 0xc0) == 0x80)
		tail++;
	(void)buf_addf(out, "%.*s\n[… %zu bytes left out …]\n%.*s\n", (int)head,
		       text.data, tail - head, (int)(text.size - tail), text.data + tail);
}

static void print_part(const struct part *part, enum speaker speaker, struct buf *out)
{
	switch (part->kind) {
	case PART_TEXT:
		(void)buf_adds(out, speaker == SPEAKER_USER ? "\n# User\n" : "\n# Agent\n");
		add_part(out, str_of(part->text), TEXT_BYTES);
		break;
	case PART_CALL:
		(void)buf_addf(out, "\n# Call of %s\n", part->tool);
		add_part(out, str_of(part->arguments), ARGUMENTS_BYTES);
		break;
	case PART_RESULT:
		(void)buf_addf(out, "\n# Result of %s%s\n", part->tool,
			       part->is_error ? " (failed)" : "");
		add_part(out, str_of(part->text), RESULT_BYTES);
		break;
	default:
		break; /* reasoning led to what is here, and is not needed for it */
	}
}

void compaction_print(const struct conversation *conversation, size_t cut,
		      const struct compaction *compaction, struct buf *out)
{
	struct buf whole;

	buf_init(&whole, PRINTED_MAX);
	for (size_t i = 0; i < cut; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++)
			print_part(&message->parts[n], message->speaker, &whole);
	}
	add_part(out, buf_str(&whole), compaction->text_max);
	buf_fini(&whole);
}
