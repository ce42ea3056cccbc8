/*
 * openai_chat_details: OpenRouter's reasoning details, which are streamed in pieces and
 * wanted back unchanged, in one.
 */
#include "model/providers/openai_chat.h"

#include "model/model.h"

static bool same_detail(const struct value *a, const struct value *b)
{
	static const char *const keys[] = {"type", "index", "id"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct value *mine = value_member(a, keys[i]);
		const struct value *other = value_member(b, keys[i]);

		if (i == 2 &&
		    (value_kind(mine) == VALUE_NULL || value_kind(other) == VALUE_NULL))
			continue;
		if (!mine || !other ? mine != other : !value_equal(mine, other))
			return false;
	}
	return true;
}

/*
 * One detail out of the COUNT pieces from FIRST on: KEY joined, of the rest what is not
 * null.
 */
static struct value *join_details(const struct value *list, size_t first, size_t count,
				  const char *key)
{
	struct value *joined = value_copy(value_item(list, first));
	struct buf text;

	buf_init(&text, MODEL_ANSWER_MAX);
	for (size_t i = first; i < first + count; i++) {
		const struct value *piece = value_item(list, i);

		(void)buf_addstr(&text, value_str(value_member(piece, key)));
		for (void *at = value_first(piece); at; at = value_next(piece, at)) {
			if (value_kind(value_at(at)) != VALUE_NULL)
				value_set(joined, value_key(at), value_ref(value_at(at)));
		}
	}
	value_set_str(joined, key, buf_str(&text));
	buf_fini(&text);
	return joined;
}

void openai_chat_settle_details(struct value *extra)
{
	struct value *list = value_ref(value_member(extra, CHAT_EXTRA_DETAILS));
	struct value *settled;
	size_t count = value_count(list);

	if (!list)
		return;
	settled = value_new_array();
	for (size_t first = 0, run; first < count; first += run) {
		struct value *item = value_item(list, first);
		const char *key = NULL;

		run = 1;
		if (str_is(value_str(value_member(item, "type")), "reasoning.text"))
			key = "text";
		if (str_is(value_str(value_member(item, "type")), "reasoning.summary"))
			key = "summary";
		while (key && first + run < count &&
		       same_detail(item, value_item(list, first + run)))
			run++;
		value_append(settled, run > 1 ? join_details(list, first, run, key)
					      : value_ref(item));
	}
	value_set(extra, CHAT_EXTRA_DETAILS, settled);
	value_free(list);
}
