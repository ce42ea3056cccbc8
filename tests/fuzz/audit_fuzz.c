/*
 * audit_fuzz: the bytes as the lines of an audit. A line that is taken follows the one before:
 * its number is the next one, and the same line is not taken twice. A line that is taken
 * alone can be gone on from, and the line that follows it is taken.
 */
#include "audit/chain.h"
#include "audit/span.h"

#include "base/buf.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A writer goes on from the place of CHECK. */
static void go_on(const struct chain_check *check)
{
	const struct chain_record record = chain_record_of(CHAIN_CUT);
	struct chain_check further = *check;
	struct buf body, line;

	if (check->seq == UINT64_MAX)
		return;
	buf_init(&body, CHAIN_LINE_MAX);
	buf_init(&line, CHAIN_LINE_MAX);
	assert(chain_print(&record, &body));
	assert(chain_seal(buf_str(&body), check->seq + 1, check->prev, check->key, &line));
	further.head_seq = 0;
	assert(chain_check_line(&further, str_part(buf_str(&line), 0, line.size - 1), NULL));
	assert(further.seq == check->seq + 1);
	buf_fini(&body);
	buf_fini(&line);
}

static void check_lines(struct str text, struct str key)
{
	struct chain_check check = {.key = key};
	struct str line;

	while (str_next_line(&text, &line)) {
		struct chain_check before = check, alone = {.key = key};
		struct chain_head head = {0};
		struct err err = {0};

		/* A head is no line of a chain, and a line of a chain is no head. */
		if (chain_read_head(line, key, &head, NULL)) {
			assert(head.file > 0 && (head.seq > 0) == (head.end > 0));
			assert(!chain_check_last(&alone, line, NULL));
		}

		if (!chain_check_line(&check, line, &err)) {
			assert(err.text[0] != '\0');
			assert(check.seq == before.seq);
			continue;
		}
		assert(head.file == 0);
		assert(before.seq == 0 || check.seq == before.seq + 1);
		before = check;
		assert(!chain_check_line(&check, line, &err));
		assert(chain_check_last(&alone, line, &err) && alone.seq == check.seq);
		go_on(&check);
	}
	(void)chain_check_end(&check, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	auto_free char *copy = memory_copy_str(text);
	struct chain_check check = {0};
	struct span_place place;
	struct buf out;
	bool sampled;

	check_lines(text, (struct str){0});
	check_lines(text, STR("0123456789abcdef"));
	(void)chain_check_head(&check, copy, NULL);
	/* A client and the environment say these. */
	(void)span_place_read(copy, &place, &sampled);
	buf_init(&out, 1 << 20);
	if (span_print_resource(NULL, copy, &out)) {
		auto_value struct value *value = NULL;

		assert(value_parse(buf_str(&out), 0, &value, NULL));
	}
	buf_fini(&out);
	return 0;
}
