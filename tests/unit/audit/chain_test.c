/* Tests of audit/chain: every change of a chain is found, and at its line. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/chain.h"
#include "base/buf.h"
#include "base/memory.h"

#define ARGUMENTS_DIGITS \
	"0855bfc20eb6cfaa4be7d6b510c63dd22997718bddadcb1a4915cec3a16145b9"

enum { LINES = 6, TEXT_MAX = 64 << 10 };

static const char key_text[] = "0123456789abcdef0123456789abcdef";

/* Append COUNT lines with KEY to OUT. */
static void make_chain(struct str key, size_t count, struct buf *out)
{
	struct chain_check last = {0};
	struct buf body, line;

	buf_init(&body, CHAIN_LINE_MAX);
	buf_init(&line, CHAIN_LINE_MAX);
	for (size_t i = 0; i < count; i++) {
		struct chain_record record = chain_record_of(CHAIN_BEGIN);
		auto_value struct value *arguments = value_new_object();

		value_set_integer(arguments, "i", (int64_t)i);
		record.at_ms = 1795368145488 + (int64_t)i;
		record.cell = "c1";
		record.call = "m1";
		record.tool = "bash";
		record.arguments = arguments;
		record.verdict = "allow";
		buf_clear(&body);
		buf_clear(&line);
		assert_true(chain_print(&record, &body));
		assert_true(chain_seal(buf_str(&body), last.seq + 1, last.prev, key, &line));
		assert_true(buf_addstr(out, buf_str(&line)));
		assert_true(chain_check_line(&last,
					     str_part(buf_str(&line), 0, line.size - 1),
					     NULL));
	}
	buf_fini(&body);
	buf_fini(&line);
}

/* The number of the first broken line of TEXT; 0: all are sound. */
static size_t first_broken(struct str text, struct str key, struct err *err)
{
	struct chain_check check = {.key = key};
	struct str line;
	size_t number = 0;

	while (str_next_line(&text, &line)) {
		number++;
		if (!chain_check_line(&check, line, err))
			return number;
	}
	return 0;
}

static void a_line_has_its_members_in_order(void **state)
{
	struct chain_record record = chain_record_of(CHAIN_END);
	auto_value struct value *more = value_new_object();
	struct buf body;

	(void)state;
	buf_init(&body, CHAIN_LINE_MAX);
	value_set_text(more, "why", "a \"quote\"\n");
	record.at_ms = 1795368145488;
	record.token = "anna";
	record.cell = "build";
	record.call = "m7";
	record.tool = "bash";
	record.verdict = "deny";
	record.rule = "agents.default.commands";
	record.status = "denied";
	record.exit = 3;
	record.seconds = 0.25;
	record.more = more;
	assert_true(chain_print(&record, &body));
	assert_string_equal(
		body.data,
		"\"at\":\"2026-11-22T17:22:25.488Z\",\"event\":\"end\",\"token\":\"anna\","
		"\"cell\":\"build\",\"call\":\"m7\",\"tool\":\"bash\",\"verdict\":\"deny\","
		"\"rule\":\"agents.default.commands\",\"status\":\"denied\",\"exit\":3,"
		"\"seconds\":0.250000,\"why\":\"a \\\"quote\\\"\\n\"");
	buf_fini(&body);
}

static void arguments_are_hashed_whatever_their_order(void **state)
{
	static const char *const texts[] = {"{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1}"};
	struct buf bodies[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct chain_record record = chain_record_of(CHAIN_BEGIN);
		auto_value struct value *arguments = NULL;

		buf_init(&bodies[i], CHAIN_LINE_MAX);
		assert_true(value_parse(str_of(texts[i]), 0, &arguments, NULL));
		record.at_ms = 0;
		record.arguments = arguments;
		assert_true(chain_print(&record, &bodies[i]));
	}
	assert_string_equal(bodies[0].data, bodies[1].data);
	/* SHA-256 of {"a":1,"b":[2]} by sha256sum(1). */
	assert_non_null(
		strstr(bodies[0].data, "\"arguments_sha256\":\"" ARGUMENTS_DIGITS "\""));
	assert_null(strstr(bodies[0].data, "\"arguments\":"));
	buf_fini(&bodies[0]);
	buf_fini(&bodies[1]);
}

static void long_arguments_are_left_out(void **state)
{
	struct chain_record record = chain_record_of(CHAIN_BEGIN);
	auto_value struct value *arguments = value_new_object();
	auto_free char *text = memory_alloc(CHAIN_ARGUMENTS_MAX + 1);
	struct buf body;

	(void)state;
	buf_init(&body, CHAIN_LINE_MAX);
	memset(text, 'x', CHAIN_ARGUMENTS_MAX);
	value_set_text(arguments, "text", text);
	record.arguments = arguments;
	record.shows_arguments = true;
	assert_true(chain_print(&record, &body));
	assert_non_null(strstr(body.data, "\"arguments_left_out\":262155"));
	assert_true(body.size < 1024);
	buf_fini(&body);
}

/* Each single bit of a chain, with and without a key, and with the key unknown. */
static void a_flipped_bit_is_found_at_its_line(void **state)
{
	const struct str keys[] = {{0}, STR(key_text)};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct buf chain;
		size_t number = 1;

		buf_init(&chain, TEXT_MAX);
		make_chain(keys[k > 0], LINES, &chain);
		assert_int_equal(first_broken(buf_str(&chain), keys[k == 1], NULL), 0);
		for (size_t at = 0; at + 1 < chain.size; at++) {
			const bool is_end = chain.data[at] == '\n';

			for (int bit = 0; bit < 8; bit++) {
				size_t found;

				chain.data[at] = (char)(chain.data[at] ^ (1 << bit));
				found = first_broken(buf_str(&chain), keys[k == 1], NULL);
				chain.data[at] = (char)(chain.data[at] ^ (1 << bit));
				if (found != number)
					fail_msg("bit %d of byte %zu in line %zu: %zu",
						 bit, at, number, found);
			}
			number += is_end;
		}
		buf_fini(&chain);
	}
}

/* The lines of a chain, in the ORDER of their numbers. */
static void arrange(struct str chain, const size_t *order, size_t count, struct buf *out)
{
	struct str lines[LINES];
	size_t have = 0;

	while (have < LINES && str_next_line(&chain, &lines[have]))
		have++;
	for (size_t i = 0; i < count; i++) {
		(void)buf_addstr(out, lines[order[i] - 1]);
		(void)buf_addc(out, '\n');
	}
}

static void a_line_out_of_place_is_found_where_it_stands(void **state)
{
	static const struct {
		size_t order[LINES + 1], count, broken;
		const char *why;
	} rows[] = {
		{{1, 2, 3, 4, 5, 6}, 6, 0, NULL},
		{{1, 3, 4, 5, 6}, 5, 2, "lines between them are missing"},
		{{1, 2, 3, 5, 6}, 5, 4, "lines between them are missing"},
		{{2, 3, 4, 5, 6}, 5, 1, "lines before it are missing"},
		{{1, 2, 2, 3, 4, 5, 6}, 7, 3, "doubled or moved"},
		{{1, 2, 3, 2, 4, 5, 6}, 7, 4, "doubled or moved"},
		{{1, 3, 2, 4, 5, 6}, 6, 2, "lines between them are missing"},
		{{1, 2, 3, 4, 6, 5}, 6, 5, "lines between them are missing"},
		{{6, 5, 4, 3, 2, 1}, 6, 1, "lines before it are missing"},
		/* A cut end leaves no trace. */
		{{1, 2, 3}, 3, 0, NULL},
	};
	struct buf chain;

	(void)state;
	buf_init(&chain, TEXT_MAX);
	make_chain(STR(key_text), LINES, &chain);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct buf text;

		buf_init(&text, TEXT_MAX);
		arrange(buf_str(&chain), rows[i].order, rows[i].count, &text);
		assert_int_equal(first_broken(buf_str(&text), STR(key_text), &err),
				 rows[i].broken);
		if (rows[i].why != NULL)
			assert_non_null(strstr(err.text, rows[i].why));
		buf_fini(&text);
	}
	buf_fini(&chain);
}

/* A line that somebody made anew, with a right sum, but without the key. */
static void only_the_key_tells_a_forged_line(void **state)
{
	struct buf real, forged;
	struct err err = {0};

	(void)state;
	buf_init(&real, TEXT_MAX);
	buf_init(&forged, TEXT_MAX);
	make_chain(STR(key_text), 2, &real);
	make_chain(STR("another key of thirty-two bytes."), 2, &forged);
	assert_int_equal(first_broken(buf_str(&forged), (struct str){0}, &err), 0);
	assert_int_equal(first_broken(buf_str(&forged), STR(key_text), &err), 1);
	assert_non_null(strstr(err.text, "does not fit the key"));
	buf_clear(&forged);
	make_chain((struct str){0}, 2, &forged);
	assert_int_equal(first_broken(buf_str(&forged), STR(key_text), &err), 1);
	assert_non_null(strstr(err.text, "has no hmac"));
	/* A true line behind a forged one names the line that was there. */
	buf_fini(&real);
	buf_fini(&forged);
}

static void a_told_head_shows_a_cut_end(void **state)
{
	struct chain_check whole = {0};
	struct buf chain;
	struct str text, line;
	struct err err = {0};
	char head[HASH_HEX + 8];

	(void)state;
	buf_init(&chain, TEXT_MAX);
	make_chain((struct str){0}, LINES, &chain);
	for (text = buf_str(&chain); str_next_line(&text, &line);)
		assert_true(chain_check_line(&whole, line, &err));
	(void)snprintf(head, sizeof(head), "%d:%s", LINES, whole.prev);
	for (size_t kept = 1; kept <= LINES; kept++) {
		struct chain_check check = {0};
		size_t count = 0;

		assert_true(chain_check_head(&check, head, &err));
		text = buf_str(&chain);
		while (count < kept && str_next_line(&text, &line)) {
			assert_true(chain_check_line(&check, line, &err));
			count++;
		}
		assert_int_equal(chain_check_end(&check, &err), kept == LINES);
		assert_true(kept == LINES || strstr(err.text, "cut off") != NULL);
	}
	head[strlen(head) - 1] = head[strlen(head) - 1] == '0' ? '1' : '0';
	struct chain_check other = {0};
	size_t number = 0;

	assert_true(chain_check_head(&other, head, &err));
	for (text = buf_str(&chain); str_next_line(&text, &line);) {
		if (!chain_check_line(&other, line, &err))
			break;
		number++;
	}
	assert_int_equal(number, LINES - 1);
	assert_non_null(strstr(err.text, "told as the head"));
	buf_fini(&chain);
}

static void a_chain_that_begins_behind_the_head_is_refused(void **state)
{
	struct chain_check check = {.seq = 7, .first = 5, .head_seq = 4};
	struct err err = {0};

	(void)state;
	assert_false(chain_check_end(&check, &err));
	assert_non_null(strstr(err.text, "behind number 4"));
	check.head_seq = 5;
	assert_true(chain_check_end(&check, &err));
}

static void a_head_is_a_number_and_digits(void **state)
{
	static const char *const wrong[] = {"",
					    "1",
					    "1:",
					    "0:"
					    "aa",
					    "1:abc",
					    ":abc",
					    "x:y",
					    "1:zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
					    "zzzzzzzzzzzzzzzzzz"};
	struct chain_check check = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(chain_check_head(&check, wrong[i], NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_its_members_in_order),
		cmocka_unit_test(arguments_are_hashed_whatever_their_order),
		cmocka_unit_test(long_arguments_are_left_out),
		cmocka_unit_test(a_flipped_bit_is_found_at_its_line),
		cmocka_unit_test(a_line_out_of_place_is_found_where_it_stands),
		cmocka_unit_test(only_the_key_tells_a_forged_line),
		cmocka_unit_test(a_told_head_shows_a_cut_end),
		cmocka_unit_test(a_chain_that_begins_behind_the_head_is_refused),
		cmocka_unit_test(a_head_is_a_number_and_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
