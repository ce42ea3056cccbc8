/*
 * edit: the input is two bytes of sizes, an old text, a new text, and the file. Whatever
 * is found: nothing outside the places changes, a place has as many lines as the old
 * text, and an exact place is the old text itself.
 */
#include "base/memory.h"
#include "tools/edit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static size_t count_feeds(struct str text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += text.data[i] == '\n';
	return count;
}

static void check_match(struct str text, struct str old, struct str new, bool all)
{
	struct match match;
	size_t end = 0;

	match_init(&match);
	if (match_find(text, old, new, all, MATCH_LINE_NUMBERS, &match)) {
		require(match.level != MATCH_NONE && match.count > 0);
		for (size_t i = 0; i < match.count; i++) {
			struct match_span span = match.spans[i];
			struct str found =
				str_part(text, span.start, span.end - span.start);

			require(span.start <= span.end && span.end <= text.size);
			require(!all || span.start >= end);
			end = span.end;
			if (match.level == MATCH_EXACT)
				require(str_equal(found, old));
			/*
			 * A last line of the file may lack the end that the old text has.
			 */
			if (match.level != MATCH_INDENT && span.end < text.size)
				require(count_feeds(found) == count_feeds(old));
			else
				require(count_feeds(found) <= count_feeds(old));
		}
	} else {
		require(match.count == 0 && match.level == MATCH_NONE);
	}
	match_fini(&match);
}

/*
 * With one edit that was made: what stands before and after the place is what stood
 * there.
 */
static void check_edit(struct str text, struct str old, struct str new)
{
	const struct edit edit = {old, new, false};
	struct edit_outcome outcome;
	struct buf out, sentence;

	buf_init(&out, 1 << 24);
	buf_init(&sentence, 1 << 24);
	if (edit_apply("f", text, &edit, 1, false, &out, &outcome, &sentence)) {
		struct match match;

		match_init(&match);
		if (outcome.already) {
			require(str_equal(buf_str(&out), text));
		} else {
			require(match_find(text, old, new, false, MATCH_LINE_NUMBERS,
					   &match));
			require(match.count == 1);
			size_t before = match.spans[0].start;
			size_t after = text.size - match.spans[0].end;

			require(out.size >= before + after);
			require(memcmp(out.data, text.data, before) == 0);
			require(memcmp(out.data + out.size - after,
				       text.data + match.spans[0].end, after) == 0);
		}
		match_fini(&match);
	} else {
		require(sentence.size > 0);
	}
	buf_fini(&out);
	buf_fini(&sentence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str whole = {(const char *)data, size};
	struct str old, new, text;

	if (size < 2)
		return 0;
	old = str_part(whole, 2, data[0]);
	new = str_part(whole, 2 + old.size, data[1]);
	text = str_part(whole, 2 + old.size + new.size, size);
	if (old.size == 0)
		return 0;
	check_match(text, old, new, false);
	check_match(text, old, new, true);
	check_edit(text, old, new);
	return 0;
}
