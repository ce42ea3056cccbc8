/* trusting: prints items and what has changed in them. */

#include "front/trusting.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/text/text.h"

enum { DIFF_MAX = 1 << 20, SHOWN_DIGITS = 12 };

static void print_visible(struct str text, FILE *out)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct buf shown;

		buf_init(&shown, 4 * line.size + 1); /* \xHH for every byte */
		text_add_name(&shown, line);
		(void)fprintf(out, "%s\n", shown.data);
		buf_fini(&shown);
	}
}

void trusting_show(const struct trust *trust, const struct brought *item, FILE *out)
{
	struct buf diff;

	buf_init(&diff, DIFF_MAX);
	if (trust != NULL && trust_of(trust, item) == TRUST_CHANGED &&
	    trust_diff(trust, item, &diff)) {
		(void)fprintf(out, "What has changed since you let it in:\n\n");
		print_visible(buf_str(&diff), out);
		(void)fprintf(out, "\nAll of it:\n\n");
	}
	print_visible(str_of(item->text), out);
	(void)fprintf(out, "\nThis is %s (%.*s).", item->file, SHOWN_DIGITS, item->hash);
	buf_fini(&diff);
}
