/* mask: the marks of a session, and the way back to the bytes. */
#include "../base/unit.h"

#include "tool/mask.h"
#include "tool/secret.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20 };

static const uint8_t key[MASK_KEY];

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
	struct mask *mask = mask_new(key);

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
		{"STRIPE_KEY='live-0011223344'", "STRIPE_KEY='‹secret:STRIPE_KEY-6o7ibv›'"},
		{"x tr0ub4dor y", "x ‹secret:DATABASE_URL-paxfbr› y"},
		{"https://u:tr0ub4dor@h/", "https://u:‹secret:DATABASE_URL-paxfbr›@h/"},
		{"correct horse #1", "‹secret:ADMIN_PASSWORD-3yqcd4›"},
		{"8080 abc true 31536000 comment", "8080 abc true 31536000 comment"},
		{"abcdefgh-ijkl", "‹secret:_authToken-aexgf6›"},
		{"‹secret:STRIPE_KEY-6o7ibv›", "‹‹secret:STRIPE_KEY-6o7ibv›"},
		{"‹‹secret:", "‹‹‹‹secret:"},
		{"‹ live-0011223344", "‹ ‹secret:STRIPE_KEY-6o7ibv›"},
		{"‹‹live-0011223344›", "‹‹‹‹‹secret:STRIPE_KEY-6o7ibv››"},
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
		{"id AKIAQYLPMN5HHHFPZAM2.", "id ‹secret:aws-fjrqar›."},
		{"AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
		{"AKIAQYLPMN5HHHFPZAX23", "AKIAQYLPMN5HHHFPZAX23"},
		{"T=ghp_0123456789abcdefghijABCDEFGHIJ012345\n",
		 "T=‹secret:github-zlklch›\n"},
		{"ghp_0123456789abcdefghijABCDEFGHIJ012345 "
		 "ghp_9123456789abcdefghijABCDEFGHIJ012345",
		 "‹secret:github-zlklch› ‹secret:github-sz4htv›"},
		{"redis://:s3cretpassw@h", "redis://:‹secret:url-h4bypt›@h"},
		{"redis://u:password@h", "redis://u:password@h"},
		{"http://h/a:b@c", "http://h/a:b@c"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
		 "‹secret:jwt-o7nuv4›"},
		{"sk-very-long-class-name-of-a-style-sheet-of-ours",
		 "sk-very-long-class-name-of-a-style-sheet-of-ours"},
	};
	struct mask *mask = mask_new(key);
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
		"2\t‹secret:private-key-2vstmq›\n"
		"3\t‹secret:private-key-2z67cb›\n"
		"4\t-----END RSA PRIVATE KEY-----\n"
		"5\tAnOrdinaryWordOfMoreThanSixteenLetters\n"
		"{\"k\":\"-----BEGIN PRIVATE KEY-----\\n‹secret:private-key-tqhg5k›\\n"
		"‹secret:private-key-7ipwtz›\\n-----END PRIVATE KEY-----\\n\"}";
	struct mask *mask = mask_new(key);
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
	assert_int_equal(mask_undo(mask,
				   STR("{\"k\": \"\\u2039secret:STRIPE_KEY-6o7ibv\\u203a\"}"),
				   false, &out),
			 MASK_ESCAPED);
	assert_string_equal(out.data, "STRIPE_KEY-6o7ibv");
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("\\u2039secret:github-7"), false, &out),
			 MASK_PLAIN);
	assert_true(mask_is_named(mask, STR("a ‹secret:STRIPE_KEY-6o7ibv› b")));
	assert_false(mask_is_named(mask, STR("a ‹secret:STRIPE_KEY› b")));
	assert_false(mask_is_named(mask, STR("a ‹secret:STRIPE_KEY-6o7ibv")));
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("a‹secret: b"), false, &out), MASK_UNKNOWN);
	buf_clear(&out);
	assert_int_equal(mask_undo(mask, STR("‹secret:ADMIN_PASSWORD-3yqcd4›"), true, &out),
			 MASK_UNDONE);
	assert_string_equal(out.data, "correct horse \\#1");
	buf_fini(&out);
	mask_free(mask);
}

/*
 * A mark is that of a value, not of a name: another session with the same key gives the same
 * mark to the same value, and takes none for another value of that name.
 */
static void a_mark_is_bound_to_its_value(void **state)
{
	static const uint8_t other_key[MASK_KEY] = {1};
	static const char first_file[] = "A_KEY=first-one-1\n";
	static const char second_file[] = "A_KEY=second-one-2\nB_KEY=first-one-1\n";
	static const char third_file[] = "X=1\nA_KEY=first-one-1\n";
	struct mask *first = mask_of(first_file), *second = mask_of(second_file);
	struct mask *third = mask_of(third_file), *stranger = mask_new(other_key);
	struct buf mark, out;

	(void)state;
	buf_init(&mark, OUT_MAX);
	buf_init(&out, OUT_MAX);
	masked(first, STR("first-one-1"), &mark);
	assert_int_equal(mask_undo(third, buf_str(&mark), false, &out), MASK_UNDONE);
	assert_string_equal(out.data, "first-one-1");
	buf_clear(&out);
	assert_int_equal(mask_undo(second, buf_str(&mark), false, &out), MASK_UNKNOWN);
	assert_non_null(strstr(mark.data, out.data));
	mask_learn(stranger, STR("A_KEY"), STR("first-one-1"));
	buf_clear(&out);
	assert_int_equal(mask_undo(stranger, buf_str(&mark), false, &out), MASK_UNKNOWN);
	/* The names of shapes have no numbers that another order would change. */
	masked(first, STR("ghp_0123456789abcdefghijABCDEFGHIJ012345"), &mark);
	masked(second, STR("ghp_9123456789abcdefghijABCDEFGHIJ012345"), &out);
	buf_clear(&out);
	assert_int_equal(mask_undo(second, buf_str(&mark), false, &out), MASK_UNKNOWN);
	buf_fini(&out);
	buf_fini(&mark);
	mask_free(stranger);
	mask_free(third);
	mask_free(second);
	mask_free(first);
}

static void two_values_of_one_key_have_two_marks(void **state)
{
	struct mask *mask = mask_of("A_KEY-18446744073709551615=one-value-1\n"
				    "A_KEY=two-values-2\nA_KEY=three-values-3\n");
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	masked(mask, STR("one-value-1 two-values-2 three-values-3"), &out);
	assert_string_equal(out.data, "‹secret:A_KEY-18446744073709551615-edsjv7› "
				      "‹secret:A_KEY-fmoloc› ‹secret:A_KEY-nvk4wr›");
	buf_fini(&out);
	mask_free(mask);
}

static void token_make(int i, char token[64])
{
	(void)snprintf(token, 64, "ghp_%036d", i + 1);
	token[4] = 'a';
	token[10] = 'b';
	token[20] = 'c';
	token[30] = 'd';
}

/*
 * A value behind the last of MASK_SHAPES_MAX with a shape is masked, and is not turned back.
 * Values of names have their room beside them, and then take that of the oldest.
 */
static void more_values_than_are_kept_are_masked(void **state)
{
	struct mask *mask = mask_new(key);
	char token[64], first[64], name[32];
	struct buf out, back;

	(void)state;
	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	for (int i = 0; i <= MASK_SHAPES_MAX; i++) {
		token_make(i, token);
		masked(mask, str_of(token), &out);
		assert_null(strstr(out.data, "ghp_"));
	}
	assert_string_equal(out.data, "‹secret:github-and-more›");
	for (int i = 0; i < 2 * MASK_VALUES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "N%d_KEY", i);
		(void)snprintf(token, sizeof(token), "value-of-%d-", i);
		/* The shapes and values that came first lose their places only when all are taken. */
		assert_int_equal(mask_learn(mask, str_of(name), str_of(token)),
				 i < MASK_VALUES_MAX - MASK_SHAPES_MAX);
		masked(mask, str_of(token), &out);
		assert_null(strstr(out.data, "value-of"));
		buf_clear(&back);
		assert_int_equal(mask_undo(mask, buf_str(&out), false, &back), MASK_UNDONE);
		assert_string_equal(back.data, token);
	}
	/* The first ones are forgotten; the mark of one of them is unknown, not another's. */
	token_make(0, first);
	masked(mask, str_of(first), &out);
	assert_string_equal(out.data, "‹secret:github-and-more›");
	masked(mask, STR("value-of-7-"), &out);
	assert_string_equal(out.data, "value-of-7-");
	buf_fini(&back);
	buf_fini(&out);
	mask_free(mask);
}

/* Shown as `masked` gives it, with the tag of each mark cut off. */
static void shows(const char *file, const char *text, const char *shown)
{
	struct mask *mask = mask_of(file);
	struct buf out;
	char *at;

	buf_init(&out, OUT_MAX);
	masked(mask, str_of(text), &out);
	/* "-", six letters and the three bytes of the bracket become ">". */
	while (out.data != NULL && (at = strstr(out.data, "›")) != NULL) {
		at[-7] = '>';
		memmove(at - 6, at + 3, strlen(at + 3) + 1);
	}
	assert_string_equal(out.data, shown);
	buf_fini(&out);
	mask_free(mask);
}

/* A key is a secret by one of its words, not by letters within one. */
static void the_words_of_a_key_say_that_its_value_is_a_secret(void **state)
{
	static const char *const secrets[] = {
		"API_KEY",    "APIKEY",       "apiKey",          "DB_PASS",
		"DBPASS",     "PGPASSWORD",   "AUTH_TOKEN",      "authToken",
		"_auth",      "OAUTH_X",      "SECRET_KEY_BASE", "PASSWORD1",
		"KEYS",       "AWSAccessKey", "PRIVATE_KEY",     "SESSION_SALT",
		"SENTRY_DSN", "HOOK_WEBHOOK", "COOKIES",         "DB_PWD"};
	static const char *const others[] = {
		"MONKEY",  "KEYBOARD_LAYOUT", "BYPASS_CACHE",   "TURKEY",
		"COMPASS", "AUTHOR",          "TOKENIZER",      "KEY_PATH",
		"KEYFILE", "AUTH_ENABLED",    "API_KEY_HEADER", "TOKEN_TYPE",
		"BASALT",  "HOTKEY",          "COOKIE_NAME"};
	char line[128];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(secrets); i++) {
		(void)snprintf(line, sizeof(line), "%s=val-1-abc\n", secrets[i]);
		struct mask *mask = mask_of(line);
		if (mask_is_clean(mask, STR("val-1-abc")))
			print_error("%s is no secret\n", secrets[i]);
		assert_false(mask_is_clean(mask, STR("val-1-abc")));
		mask_free(mask);
	}
	for (size_t i = 0; i < UNIT_COUNT(others); i++) {
		(void)snprintf(line, sizeof(line), "%s=val-1-abc\n", others[i]);
		struct mask *mask = mask_of(line);
		if (!mask_is_clean(mask, STR("val-1-abc")))
			print_error("%s is a secret\n", others[i]);
		assert_true(mask_is_clean(mask, STR("val-1-abc")));
		mask_free(mask);
	}
	/* A word of a language is one only where it is a password. */
	shows("A_KEY=internal_network\n", "internal_network", "internal_network");
	shows("A_PASSWORD=correcthorse\n", "correcthorse", "‹secret:A_PASSWORD>");
}

/* The head of a private key in code makes no secrets of the words behind it. */
static void a_head_within_a_line_begins_no_private_key(void **state)
{
	static const char *const texts[] = {
		"const head = \"-----BEGIN RSA PRIVATE KEY-----\"\nloadConfigurationFile\n",
		"if (x == '-----BEGIN PRIVATE KEY-----')\n\treturn internationalization\n",
		("-----BEGIN PRIVATE KEY-----\nfunc main() {\n\tload(nil)\n}\n\n"
		 "loadConfigurationFile\n"),
		"-----BEGIN PRIVATE KEY-----\nx := loadConfigurationFile(nil)\n",
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++)
		shows("", texts[i], texts[i]);
	shows("",
	      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
	      "DEK-Info: AES-128-CBC,00\n\nMIIEvAIBADANBgkqhkiG9w0B\n"
	      "AQEFAASCBKYwggSiAgEAAoIBAQC7\nshort\n-----END RSA PRIVATE KEY-----\n",
	      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
	      "DEK-Info: AES-128-CBC,00\n\n‹secret:private-key>\n"
	      "‹secret:private-key>\nshort\n-----END RSA PRIVATE KEY-----\n");
	shows("", "K=\"-----BEGIN PRIVATE KEY-----\\nMIIEvAIBADANBgkqhkiG9w0B\\n\"",
	      "K=\"-----BEGIN PRIVATE KEY-----\\n‹secret:private-key>\\n\"");
	shows("", "-----BEGIN PRIVATE KEY----- MIIEvAIBADANBgkqhkiG9w0B -----END",
	      "-----BEGIN PRIVATE KEY----- ‹secret:private-key> -----END");
}

/* Is TEXT BEGIN, a tag and the end of a mark? */
static bool is_one_mark(struct str text, const char *begin)
{
	return str_starts(text, str_of(begin)) &&
	       text.size == strlen(begin) + 6 + sizeof("›") - 1 && str_ends(text, STR("›"));
}

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
		struct mask *mask = mask_new(key);

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
			(void)snprintf(shown, sizeof(shown), "‹secret:N%zu_KEY-", size);
			assert_true(is_one_mark(buf_str(&out), shown));
			masked(mask, (struct str){text, size - 1}, &out);
			(void)snprintf(shown, sizeof(shown), "‹secret:N%zu_KEY-", size - 1);
			assert_true(is_one_mark(buf_str(&out), shown));
			text[size - 1] = 'q';
		}
		mask_free(mask);
	}
	buf_fini(&out);
}

/* Texts of pieces that marks, values and shapes are made of, in any order. */
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
	struct mask *mask = mask_new(key);
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	secret_file_read(SECRET_FILE_NETRC,
			 STR("machine h login me\n  password hunter2hunter2\nmacdef x"),
			 learn, mask);
	masked(mask, STR("it is hunter2hunter2"), &out);
	assert_string_equal(out.data, "it is ‹secret:netrc-password-gwerto›");
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
		cmocka_unit_test(a_mark_is_bound_to_its_value),
		cmocka_unit_test(two_values_of_one_key_have_two_marks),
		cmocka_unit_test(the_words_of_a_key_say_that_its_value_is_a_secret),
		cmocka_unit_test(a_head_within_a_line_begins_no_private_key),
		cmocka_unit_test(more_values_than_are_kept_are_masked),
		cmocka_unit_test(the_longest_value_counts),
		cmocka_unit_test(random_texts_come_back_byte_by_byte),
		cmocka_unit_test(files_are_known_by_their_names),
		cmocka_unit_test(a_netrc_has_passwords),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
