/* credentials: base64 of "glovebox:" and a token, and nothing else. */
#include "proxy/credentials.h"

#include "base/buf.h"

#include <string.h>
#include <strings.h>

enum { CREDENTIALS_MAX = sizeof(PROXY_USER ":") - 1 + PROXY_TOKEN, GROUP = 4 };

void credentials_read(struct str value, char token[PROXY_TOKEN + 1])
{
	static const struct str scheme = STR("Basic ");
	static const struct str user = STR(PROXY_USER ":");
	struct buf padded, text;

	if (value.size <= scheme.size ||
	    strncasecmp(value.data, scheme.data, scheme.size) != 0)
		return;
	value = str_trim(str_part(value, scheme.size, value.size));
	buf_init(&padded, 2 * CREDENTIALS_MAX);
	buf_init(&text, CREDENTIALS_MAX);
	(void)buf_addstr(&padded, value);
	/* Some clients omit the padding. */
	while (padded.size % GROUP != 0 && buf_addc(&padded, '='))
		;
	if (!padded.overflowed && base64_read(buf_str(&padded), &text) &&
	    text.size == CREDENTIALS_MAX && str_starts(buf_str(&text), user)) {
		memcpy(token, text.data + user.size, PROXY_TOKEN);
		token[PROXY_TOKEN] = '\0';
	}
	buf_fini(&text);
	buf_fini(&padded);
}
