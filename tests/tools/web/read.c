/* read: the page on standard input as web_fetch shows it; arguments: its address, and "text". */
#include "base/buf.h"
#include "base/fd.h"
#include "tools/web/fetch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_MAX = 8 << 20 };

int main(int argc, char **argv)
{
	struct buf page, text, title;
	struct err err;
	int code = 0;

	buf_init(&page, PAGE_MAX);
	buf_init(&text, PAGE_MAX);
	buf_init(&title, PAGE_MAX);
	if (argc < 2 || !fd_read_all(STDIN_FILENO, &page, "the page", &err) ||
	    !fetch_read_page(buf_str(&page), argv[1],
			     argc > 2 && strcmp(argv[2], "text") == 0, &text, &title, &err)) {
		(void)fprintf(stderr, "read: %s\n", argc < 2 ? "no address" : err.text);
		code = 1;
	} else if (title.size > 0) {
		(void)printf("Title: %s\n", title.data);
	}
	(void)fwrite(text.data, 1, text.size, stdout);
	buf_fini(&title);
	buf_fini(&text);
	buf_fini(&page);
	return code;
}
