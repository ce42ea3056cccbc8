/* mask: the marks of a session, and the way back to the bytes. */
#include "../base/unit.h"

#include "tool/mask.h"
#include "tool/secret.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20 };

static void masked(struct mask *mask, struct str text, struct buf *out)
{
	struct mask_stream stream;

	buf_clear(out);
	mask_stream_init(&stream, mask);
	assert_true(mask_add(&stream, text, true, out));
	mask_stream_fini(&stream);
}

static void learn(void *context, struct str name, struct str value)
{
	mask_learn(context, name, value);
}

static struct mask *mask_of(const char *file)
{
	struct mask *mask = mask_new();

	secret_file_read(SECRET_FILE_LINES, str_of(file), learn, mask);
	return mask;
}

static const char some_file[] = "# of the shop\n"
				"export STRIPE_KEY='live-0011223344'\n"
				"DATABASE_URL=postgres://app:tr0ub4dor@db:5432/app\n"
				"ADMIN_PASSWORD = \"correct horse #1\" # comment\n"
				"PORT=8080\n"
				"SHORT_KEY=abc\n"
				"COPY_KEY=${STRIPE_KEY}\n"
				"DEBUG_TOKEN=true\n"
				"TOKEN_TTL=31536000\n"
				"//registry.npmjs.org/:_authToken=abcdefgh-ijkl\n";

static void values_of_files_have_marks(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{"STRIPE_KEY='live-0011223344'", "STRIPE_KEY='‹secret:STRIPE_KEY›'"},
		{"x tr0ub4dor y", "x ‹secret:DATABASE_URL› y"},
		{"https://u:tr0ub4dor@h/", "https://u:‹secret:DATABASE_URL›@h/"},
		{"correct horse #1", "‹secret:ADMIN_PASSWORD›"},
		{"8080 abc true 31536000 comment", "8080 abc true 31536000 comment"},
		{"abcdefgh-ijkl", "‹secret:_authToken›"},
		{"‹secret:STRIPE_KEY›", "‹‹secret:STRIPE_KEY›"},
		{"‹‹secret:", "‹‹‹‹secret:"},
		{"‹ live-0011223344", "‹ ‹secret:STRIPE_KEY›"},
		{"‹‹live-0011223344›", "‹‹‹‹‹secret:STRIPE_KEY››"},
		{"live-001122334", "live-001122334"},
	};
	struct mask *mask = mask_of(some_file);
	struct buf out, back;

	(void)state;
	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		masked(mask, str_of(rows[i].text), &out);
		assert_string_equal(out.data, rows[i].shown);
		assert_int_equal(mask_is_clean(mask, str_of(rows[i].text)),
				 strcmp(rows[i].text, rows[i].shown) == 0 &&
					 strstr(rows[i].text, "‹") == NULL);
		buf_clear(&back);
		if (mask_undo(mask, buf_str(&out), false, &back) == MASK_UNDONE)
			assert_string_equal(back.data, rows[i].text);
		else
			assert_string_equal(rows[i].text, rows[i].shown);
	}
	buf_fini(&back);
	buf_fini(&out);
	mask_free(mask);
}

static void keys_of_services_have_marks(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{"xAKIAQYLPMN5HHHFPZAM2", "xAKIAQYLPMN5HHHFPZAM2"},
		{"id AKIAQYLPMN5HHHFPZAM2.", "id ‹secret:aws-1›."},
		{"AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
		{"AKIAQYLPMN5HHHFPZAX23", "AKIAQYLPMN5HHHFPZAX23"},
		{"T=ghp_0123456789abcdefghijABCDEFGHIJ012345\n", "T=‹secret:github-1›\n"},
		{"ghp_0123456789abcdefghijABCDEFGHIJ012345 "
		 "ghp_9123456789abcdefghijABCDEFGHIJ012345",
		 "‹secret:github-1› ‹secret:github-2›"},
		{"redis://:s3cretpassw@h", "redis://:‹secret:url-1›@h"},
		{"redis://u:password@h", "redis://u:password@h"},
		{"http://h/a:b@c", "http://h/a:b@c"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
		 "‹secret:jwt-1›"},
		{"sk-very-long-class-name-of-a-style-sheet-of-ours",
		 "sk-very-long-class-name-of-a-style-sheet-of-ours"},
	};
	struct mask *mask = mask_new();
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		masked(mask, str_of(rows[i].text), &out);
		assert_string_equal(out.data, rows[i].shown);
	}
	buf_fini(&out);
	mask_free(mask);
}

static void lines_of_a_private_key_keep_their_numbers(void **state)
{
	static const char text[] =
		"1\t-----BEGIN RSA PRIVATE KEY-----\n"
		"2\tMIIEpAIBAAKCAQEA04up8hoqzS1XRPnRFHWTm6iR1V1oLxQGBYXZVkYJ1mA=\n"
		"3\tzS1XRPnRFHWTm6iR1V1oLxQGBYXZVkYJ1mB\n"
		"4\t-----END RSA PRIVATE KEY-----\n"
		"5\tAnOrdinaryWordOfMoreThanSixteenLetters\n"
		"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIEvAIBADANBgkqhkiG9w0B\\nAQEFAASC"
		"BKYwggSiAgEAAoIBAQC7\\n-----END PRIVATE KEY-----\\n\"}";
	static const char shown[] =
		"1\t-----BEGIN RSA PRIVATE KEY-----\n"
		"2\t‹secret:private-key-1›\n"
		"3\t‹secret:private-key-2›\n"
		"4\t-----END RSA PRIVATE KEY-----\n"
		"5\tAnOrdinaryWordOfMoreThanSixteenLetters\n"
		"{\"k\":\"-----BEGIN PRIVATE KEY-----\\n‹secret:private-key-3›\\n"
		"‹secret:private-key-4›\\n-----END PRIVATE KEY-----\\n\"}";
	struct mask *mask = mask_new();
	struct buf out, back;

	(void)state;
	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	masked(mask, STR(text), &out);
	assert_string_equal(out.data, shown);
	assert_int_equal(mask_undo(mask, buf_str(&out), false, &back), MASK_UNDONE);
	assert_string_equal(back.data, text);
	buf_fini(&back);
	buf_fini(&out);
	mask_free(mask);
}

static void fragments_cut_at_each_byte_give_the_same(void **state)
{
	static const char text[] =
		"a live-0011223344 ‹‹secret:x› -----BEGIN PRIVATE KEY-----\n"
		"MIIEvAIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n‹‹live-0011223344 "
		"mysql://root:n0tAnExampl@h ghp_0123456789abcdefghijABCDEFGHIJ012345 ‹";
	struct buf whole, cut;

	(void)state;
	buf_init(&whole, OUT_MAX);
	buf_init(&cut, OUT_MAX);
	for (size_t at = 0; at <= sizeof(text) - 1; at++) {
		struct mask *one = mask_of(some_file), *other = mask_of(some_file);
		struct mask_stream stream;

		masked(one, STR(text), &whole);
		buf_clear(&cut);
		mask_stream_init(&stream, other);
		assert_true(mask_add(&stream, str_part(STR(text), 0, at), false, &cut));
		assert_null(strstr(cut.data != NULL ? cut.data : "", "live-"));
		assert_true(mask_add(&stream, str_part(STR(text), at, SIZE_MAX), false,
				     &cut));
		assert_true(mask_add(&stream, STR(""), true, &cut));
		assert_string_equal(cut.data, whole.data);
		mask_stream_fini(&stream);
		mask_free(one);
		mask_free(other);
	}
	buf_fini(&cut);
	buf_fini(&whole);
}

static void an_unknown_mark_is_refused_by_its_name(void **state)
{
	struct mask *mask = mask_of(some_file);
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	assert_int_equal(mask_undo(mask, STR("‹secret:github-7›"), false, &out),
			 MASK_UNKNOWN);
	assert_string_equal(out.data, "github-7");
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("‹‹secret:github-7›"), false, &out),
			 MASK_UNDONE);
	assert_string_equal(out.data, "‹secret:github-7›");
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("a‹secret: b"), false, &out), MASK_UNKNOWN);
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("‹secret:ADMIN_PASSWORD›"), true, &out),
			 MASK_UNDONE);
	assert_string_equal(out.data, "correct horse \\#1");
	buf_fini(&out);
	mask_free(mask);
}

/* A value behind the last of MASK_VALUES_MAX values is masked, and is not turned back. */
static void more_values_than_are_kept_are_masked(void **state)
{
	struct mask *mask = mask_new();
	char token[64];
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (int i = 0; i <= MASK_VALUES_MAX; i++) {
		(void)snprintf(token, sizeof(token), "ghp_%036d", i + 1);
		token[4] = 'a';
		token[10] = 'b';
		token[20] = 'c';
		token[30] = 'd';
		masked(mask, str_of(token), &out);
		assert_null(strstr(out.data, "ghp_"));
	}
	assert_string_equal(out.data, "‹secret:github-and-more›");
	buf_fini(&out);
	mask_free(mask);
}

/* Texts of pieces that marks, values and shapes are made of, in any order. */
/*
 * Of values that are beginnings of each other the longest counts, in whatever order they were
 * learnt. 600 such values once cost 600 searches for each byte.
 */
static void the_longest_value_counts(void **state)
{
	enum { LEAST = 8, MOST = 600, STEPS = MOST - LEAST + 1 };
	static char text[3 * MOST + 2];
	char name[16], shown[64];
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (size_t factor = 1; factor <= 5; factor += 2) {
		struct mask *mask = mask_new();

		memset(text, 'q', sizeof(text));
		for (size_t i = 0; i < STEPS; i++) {
			const size_t size = LEAST + i * factor % STEPS;

			(void)snprintf(name, sizeof(name), "N%zu_KEY", size);
			/* A digit at the end of every other value: it begins no longer one. */
			text[size - 1] = size % 2 == 0 ? 'q' : '1';
			mask_learn(mask, str_of(name), (struct str){text, size});
			text[size - 1] = 'q';
		}
		for (size_t size = LEAST + 1; size <= MOST; size += 2) {
			text[size - 1] = '1';
			masked(mask, (struct str){text, size}, &out);
			(void)snprintf(shown, sizeof(shown), "‹secret:N%zu_KEY›", size);
			assert_string_equal(out.data, shown);
			masked(mask, (struct str){text, size - 1}, &out);
			(void)snprintf(shown, sizeof(shown), "‹secret:N%zu_KEY›", size - 1);
			assert_string_equal(out.data, shown);
			text[size - 1] = 'q';
		}
		mask_free(mask);
	}
	buf_fini(&out);
}

static void random_texts_come_back_byte_by_byte(void **state)
{
	static const char *const pieces[] = {
		"‹",
		"secret:",
		"›",
		"STRIPE_KEY",
		"live-0011223344",
		"live-00",
		"\n",
		" ",
		"AKIA",
		"QYLPMN5HHHFPZAM2",
		"://u:",
		"tr0ub4dor",
		"@",
		"-----BEGIN ",
		"PRIVATE KEY-----",
		"MIIEvAIBADANBgkqhkiG9w0B",
		"-----END ",
		"a",
		"\\n",
		"\xe2\x80",
		"1\t",
		"ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"-",
		"x1",
	};
	/* a million took two minutes with sanitizers, and found no more */
	enum { ROUNDS = 50000, PIECES = 8 };
	struct mask *mask = mask_of(some_file);
	struct buf text, out, back;
	uint64_t seed = 20;

	(void)state;
	buf_init(&text, OUT_MAX);
	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	for (int round = 0; round < ROUNDS; round++) {
		buf_clear(&text);
		for (int i = 0; i < PIECES; i++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			(void)buf_adds(&text, pieces[(seed >> 33) % UNIT_COUNT(pieces)]);
		}
		masked(mask, buf_str(&text), &out);
		assert_null(strstr(out.data, "live-0011223344"));
		buf_clear(&back);
		if (mask_undo(mask, buf_str(&out), false, &back) == MASK_PLAIN)
			(void)buf_addstr(&back, buf_str(&out));
		assert_string_equal(back.data, text.data);
	}
	buf_fini(&back);
	buf_fini(&out);
	buf_fini(&text);
	mask_free(mask);
}

static void files_are_known_by_their_names(void **state)
{
	static const struct {
		const char *name;
		enum secret_file kind;
	} rows[] = {
		{".env", SECRET_FILE_LINES},        {".env.local", SECRET_FILE_LINES},
		{".env.example", SECRET_FILE_NONE}, {".env.sample", SECRET_FILE_NONE},
		{".env.dist", SECRET_FILE_NONE},    {".env.template", SECRET_FILE_NONE},
		{"prod.tfvars", SECRET_FILE_LINES}, {".npmrc", SECRET_FILE_LINES},
		{".pypirc", SECRET_FILE_LINES},     {".netrc", SECRET_FILE_NETRC},
		{"env", SECRET_FILE_NONE},          {".envrc", SECRET_FILE_NONE},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		assert_int_equal(secret_file_of(rows[i].name), rows[i].kind);
}

static void a_netrc_has_passwords(void **state)
{
	struct mask *mask = mask_new();
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	secret_file_read(SECRET_FILE_NETRC,
			 STR("machine h login me\n  password hunter2hunter2\nmacdef x"),
			 learn, mask);
	masked(mask, STR("it is hunter2hunter2"), &out);
	assert_string_equal(out.data, "it is ‹secret:netrc-password›");
	buf_fini(&out);
	mask_free(mask);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_files_have_marks),
		cmocka_unit_test(keys_of_services_have_marks),
		cmocka_unit_test(lines_of_a_private_key_keep_their_numbers),
		cmocka_unit_test(fragments_cut_at_each_byte_give_the_same),
		cmocka_unit_test(an_unknown_mark_is_refused_by_its_name),
		cmocka_unit_test(more_values_than_are_kept_are_masked),
		cmocka_unit_test(the_longest_value_counts),
		cmocka_unit_test(random_texts_come_back_byte_by_byte),
		cmocka_unit_test(files_are_known_by_their_names),
		cmocka_unit_test(a_netrc_has_passwords),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
