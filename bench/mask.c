/*
 * mask ROUNDS: the scanner for secrets by itself, a row of microseconds for each round: 1,000
 * texts of 30 KB of source without a secret, 1,000 of them with one secret in each, and 1,000
 * of short lines that nearly are secrets.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "tool/mask.h"
#include "tool/secret.h"

enum { TIMES = 1000, TEXT_BYTES = 30000 };

static const char source[] =
	"static size_t greatest(const struct mask *mask, const char *base)\n{\n"
	"\tconst size_t size = strlen(base);\n\n"
	"\tfor (size_t i = 0; i < mask->count; i++) {\n"
	"\t\tif (strncmp(mask->secrets[i].name, base, size) != 0)\n\t\t\tcontinue;\n\t}\n"
	"\t/* See https://example.org/a/page: the least number wins -- or not. */\n"
	"\treturn size;\n}\n\n";
static const char nearly[] =
	"sk-1 ghp_x AKIA1 eyJh https://a:b\nlive-001 -----BEGIN x ‹ x\n";

static const uint8_t key[MASK_KEY];

/* Of this process: what others take from it is none of the scanner's. */
static int64_t used_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void fill(struct buf *text, const char *piece, const char *end)
{
	buf_init(text, TEXT_BYTES);
	while (text->size + 2 * strlen(piece) < TEXT_BYTES && buf_adds(text, piece))
		;
	(void)buf_adds(text, end);
}

/* As the session does it (session/masking.c). */
static int64_t mask_us(struct mask *mask, struct str text)
{
	const int64_t began = used_us();
	struct buf out;

	buf_init(&out, (size_t)2 * TEXT_BYTES);
	for (int i = 0; i < TIMES; i++) {
		struct mask_stream stream;

		if (mask_is_clean(mask, text))
			continue;
		buf_clear(&out);
		mask_stream_init(&stream, mask);
		(void)mask_add(&stream, text, true, &out);
		mask_stream_fini(&stream);
	}
	buf_fini(&out);
	return used_us() - began;
}

static void learn(void *context, struct str name, struct str value)
{
	mask_learn(context, name, value);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	struct mask *mask = mask_new(key);
	struct buf clean, one, hard;

	secret_file_read(SECRET_FILE_LINES,
			 STR("A_KEY=live-0011223344\nB_TOKEN=tr0ub4dor3\nC_SECRET=Zm9vYmFyZm9v\n"
			     "D_URL=postgres://app:pa55-of-the-app@db/app\n"),
			 learn, mask);
	fill(&clean, source, "");
	fill(&one, source, "key live-0011223344\n");
	fill(&hard, nearly, "");
	for (long i = 0; i < rounds; i++)
		(void)printf("%lld %lld %lld\n", (long long)mask_us(mask, buf_str(&clean)),
			     (long long)mask_us(mask, buf_str(&one)),
			     (long long)mask_us(mask, buf_str(&hard)));
	buf_fini(&clean);
	buf_fini(&one);
	buf_fini(&hard);
	mask_free(mask);
	return EXIT_SUCCESS;
}
