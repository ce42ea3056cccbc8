/* scrub: a secret is found in every form, wherever the reads are cut. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/scrub.h"

#define SECRET "sk-ant-api03-Zm9v/b\"r+\\q%7z"
enum { OUT_MAX = 1 << 16, ROUNDS = 4000 };

static struct scrub *scrub_of(struct str secret, const char *user)
{
	struct scrub *scrub = scrub_new();

	(void)scrub_learn(scrub, secret, user, 0);
	return scrub;
}

/* SCRUB over TEXT in pieces of at most STEP bytes. */
static void scrub_in_steps(const struct scrub *scrub, struct str text, size_t step,
			   struct buf *out)
{
	struct scrub_stream stream;

	scrub_stream_init(&stream, scrub);
	for (size_t at = 0; at < text.size; at += step)
		assert_true(scrub_add(&stream, str_part(text, at, step), out));
	assert_true(scrub_end(&stream, out));
	scrub_stream_fini(&stream);
}

static void a_secret_is_found_in_each_form(void **state)
{
	static const struct {
		const char *before, *covered, *after;
	} rows[] = {
		{"key ", SECRET, " is wrong"},
		/* in JSON, with and without the escapes that may be left out */
		{"{\"key\": \"", "sk-ant-api03-Zm9v/b\\\"r+\\\\q%7z", "\"}"},
		{"{\"key\": \"", "sk-ant-api03-Zm9v\\/b\\u0022r\\u002B\\u005cq%7z", "\"}"},
		{"\"", "\\u0073\\u006b-ant-api03-Zm9v/b\\\"r+\\\\q%7z", "\""},
		/* in a URL, in either case of the digits */
		{"?key=", "sk-ant-api03-Zm9v%2Fb%22r%2B%5Cq%257z", "&a=b"},
		{"?key=", "sk-ant-api03-Zm9v%2fb%22r%2b%5cq%257z", "&a=b"},
		{"?key=", "%73%6b-ant-api03-Zm9v%2fb%22r%2b%5cq%257z", "&a=b"},
		/* Base64: alone, with the user, and within something longer */
		{"", "c2stYW50LWFwaTAzLVptOXYvYiJyK1xxJTd6", "="},
		{"Basic ", "Z2l0OnNrLWFudC1hcGkwMy1abTl2L2IicitccSU3eg", "=="},
		{"eAp", "zay1hbnQtYXBpMDMtWm05di9iInIrXHElN3", "o="},
		{"eH", "NrLWFudC1hcGkwMy1abTl2L2IicitccSU3e", "nl5"},
		/* twice, and with its own beginning in front */
		{"sk-ant-api03-Zm", SECRET SECRET, ""},
		{"sk-ant-api03-Zm9v/b\"r+\\q%7", "", ""},
	};
	struct scrub *scrub = scrub_of(STR(SECRET), "git");
	char text[512], stars[512];
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		memset(stars, '*', sizeof(stars));
		(void)snprintf(text, sizeof(text), "%s%s%s", rows[i].before,
			       rows[i].covered, rows[i].after);
		for (size_t step = 1; step <= strlen(text); step++) {
			char wanted[512];

			(void)snprintf(wanted, sizeof(wanted), "%s%.*s%s", rows[i].before,
				       (int)strlen(rows[i].covered), stars, rows[i].after);
			buf_clear(&out);
			scrub_in_steps(scrub, str_of(text), step, &out);
			if (strcmp(out.data, wanted) != 0)
				fail_msg("row %zu in steps of %zu: %s", i, step, out.data);
		}
	}
	buf_fini(&out);
	scrub_free(scrub);
}

static void other_bytes_pass_at_once(void **state)
{
	struct scrub *scrub = scrub_of(STR(SECRET), NULL);
	struct scrub_stream stream;
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	scrub_stream_init(&stream, scrub);
	assert_true(scrub_add(&stream, STR("data: a\n\n"), &out));
	assert_string_equal(out.data, "data: a\n\n");
	/* Only the tail that begins a match stays. */
	assert_true(scrub_add(&stream, STR("the keys sk-ant"), &out));
	assert_string_equal(out.data, "data: a\n\nthe keys ");
	assert_true(scrub_add(&stream, STR("-other"), &out));
	assert_string_equal(out.data, "data: a\n\nthe keys sk-ant-other");
	/* A full buffer ends the stream. */
	buf_fini(&out);
	buf_init(&out, 4);
	assert_false(scrub_add(&stream, STR("12345"), &out));
	scrub_stream_fini(&stream);
	buf_fini(&out);
	scrub_free(scrub);
}

/* A second finder: tries each form as written out at each place, without states. */

static uint64_t chance(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return *seed >> 33;
}

/* Append SECRET, each character written in one of its ways. */
static void add_written(struct buf *text, struct str secret, uint64_t *seed)
{
	unsigned way = (unsigned)(chance(seed) % 4);

	for (size_t i = 0; i < secret.size; i++) {
		unsigned char c = (unsigned char)secret.data[i];
		bool escapes = chance(seed) % 3 == 0 || c == '%' || c == '\\';

		if (way == 1 && escapes)
			(void)buf_addf(text, chance(seed) % 2 ? "%%%02x" : "%%%02X", c);
		else if (way == 2 && escapes)
			(void)buf_addf(text, chance(seed) % 2 ? "\\u%04x" : "\\u%04X", c);
		else
			(void)buf_addc(text, (char)c);
	}
}

static void random_borders_change_nothing(void **state)
{
	static const char *const secrets[] = {"aab", "abababac", "%25\\u0061",
					      "\\\\a\\\\b", SECRET};
	uint64_t seed = 20261128;
	struct buf text, whole, cut;

	(void)state;
	buf_init(&text, OUT_MAX);
	buf_init(&whole, OUT_MAX);
	buf_init(&cut, OUT_MAX);
	for (size_t round = 0; round < ROUNDS; round++) {
		struct str secret = str_of(secrets[round % UNIT_COUNT(secrets)]);
		struct scrub *scrub = scrub_of(secret, round % 2 ? "u" : NULL);
		struct scrub_stream stream;

		buf_clear(&text);
		buf_clear(&whole);
		buf_clear(&cut);
		for (size_t part = chance(&seed) % 12; part > 0; part--) {
			switch (chance(&seed) % 4) {
			case 0:
				add_written(&text, secret, &seed);
				break;
			case 1: /* a beginning of it */
				(void)buf_addstr(&text,
						 str_part(secret, 0,
							  chance(&seed) % (secret.size + 1)));
				break;
			case 2:
				(void)buf_base64_add(secret, &text);
				break;
			default:
				(void)buf_addf(&text, "%c%c",
					       "ab%\\u0 \n"[chance(&seed) % 8],
					       "ab%\\u0 \n"[chance(&seed) % 8]);
			}
		}
		assert_true(scrub_whole(scrub, buf_str(&text), &whole));
		assert_int_equal(whole.size, text.size);
		assert_int_equal(str_find(buf_str(&whole), secret, 0), (size_t)-1);
		scrub_stream_init(&stream, scrub);
		for (size_t at = 0; at < text.size;) {
			size_t step = 1 + chance(&seed) % 7;

			assert_true(scrub_add(&stream, str_part(buf_str(&text), at, step),
					      &cut));
			at += step;
		}
		assert_true(scrub_end(&stream, &cut));
		scrub_stream_fini(&stream);
		if (strcmp(whole.data, cut.data) != 0)
			fail_msg("round %zu: %s: %s, cut: %s", round, text.data,
				 whole.data, cut.data);
		scrub_free(scrub);
	}
	buf_fini(&cut);
	buf_fini(&whole);
	buf_fini(&text);
}

/* What is no part of the secret stays, in text that has a lot in common with it. */
static void all_that_is_written_is_covered_and_no_more(void **state)
{
	uint64_t seed = 7;
	struct buf text, wanted, out;
	struct scrub *scrub = scrub_of(STR(SECRET), NULL);

	(void)state;
	buf_init(&text, OUT_MAX);
	buf_init(&wanted, OUT_MAX);
	buf_init(&out, OUT_MAX);
	for (size_t round = 0; round < ROUNDS; round++) {
		buf_clear(&text);
		buf_clear(&wanted);
		buf_clear(&out);
		for (size_t part = 0; part < 6; part++) {
			(void)buf_addf(&text, "%zu=", part);
			(void)buf_addf(&wanted, "%zu=", part);
			if (chance(&seed) % 2 == 0) {
				size_t from = text.size;

				add_written(&text, STR(SECRET), &seed);
				while (from++ < text.size)
					(void)buf_addc(&wanted, '*');
			}
		}
		assert_true(scrub_whole(scrub, buf_str(&text), &out));
		if (strcmp(out.data, wanted.data) != 0)
			fail_msg("%s: %s", text.data, out.data);
	}
	scrub_free(scrub);
	buf_fini(&out);
	buf_fini(&wanted);
	buf_fini(&text);
}

static void a_secret_is_forgotten_after_its_life(void **state)
{
	struct scrub *scrub = scrub_new();
	struct buf out;
	char secret[32];
	bool room = true;

	(void)state;
	buf_init(&out, OUT_MAX);
	(void)scrub_learn(scrub, STR("living-secret"), NULL, 60 * 1000);
	/* Dead ones make room for each other, and for living ones. */
	for (int i = 0; i < 2 * SCRUB_SECRETS_MAX; i++) {
		(void)snprintf(secret, sizeof(secret), "dead-secret-%03d", i);
		assert_true(scrub_learn(scrub, str_of(secret), NULL, 0));
	}
	assert_true(scrub_whole(scrub, STR("living-secret dead-secret-000"), &out));
	assert_string_equal(out.data, "************* dead-secret-000");
	/* Before a living one has to go it is told. */
	for (int i = 2; room; i++) {
		(void)snprintf(secret, sizeof(secret), "long-secret-%03d", i);
		room = scrub_learn(scrub, str_of(secret), NULL, 60 * 1000);
		assert_int_equal(room, i + SCRUB_SPARE <= SCRUB_SECRETS_MAX);
	}
	buf_clear(&out);
	assert_true(scrub_whole(scrub, STR("living-secret long-secret-002"), &out));
	assert_string_equal(out.data, "************* ***************");
	scrub_free(scrub);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_is_found_in_each_form),
		cmocka_unit_test(other_bytes_pass_at_once),
		cmocka_unit_test(random_borders_change_nothing),
		cmocka_unit_test(all_that_is_written_is_covered_and_no_more),
		cmocka_unit_test(a_secret_is_forgotten_after_its_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
