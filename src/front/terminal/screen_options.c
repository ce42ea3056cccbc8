/* screen_options: finding the abilities of the terminal behind a descriptor. */
#include "front/terminal/screen.h"

#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool environment_says_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *locale = getenv(names[i]);

		if (locale && *locale)
			return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
	}
	return false;
}

/* Is the variable NAME set, and neither empty nor "0"? */
static bool is_on(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

/*
 * The number in the variable COLUMNS. 0: it has none, or FD is a terminal that knows its
 * columns.
 */
static size_t columns_said(int fd)
{
	const char *said = getenv("COLUMNS");
	uint64_t columns = 0;
	struct err err;

	if (!said || screen_columns_of(fd) != SIZE_MAX ||
	    !text_parse_count(said, SCREEN_COLUMNS_MAX, &columns, &err))
		return 0;
	return (size_t)columns;
}

struct screen_options screen_options_of(int fd)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool able = isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
	bool forced = is_on("CLICOLOR_FORCE") || is_on("FORCE_COLOR");

	return (struct screen_options){
		.terminal = able,
		.colour = (able || forced) && !(no_colour && *no_colour),
		.unicode = environment_says_utf8(),
		.columns = columns_said(fd),
	};
}

size_t screen_columns_of(int fd)
{
	struct winsize size = {0};

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
								    : SIZE_MAX;
}
