/* screen_options: what the terminal behind a descriptor can do; see screen.h. */
#include "front/screen.h"

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

struct screen_options screen_options_of(int fd)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool able = isatty(fd) && term && *term && strcmp(term, "dumb") != 0;

	return (struct screen_options){
		.terminal = able,
		.colour = able && !(no_colour && *no_colour),
		.unicode = environment_says_utf8(),
	};
}

size_t screen_columns_of(int fd)
{
	struct winsize size = {0};

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
								    : SIZE_MAX;
}
