/* credentials: base64 of "glovebox:" and a token, and nothing else. */
#include "proxy/credentials.h"

#include <string.h>
#include <strings.h>

enum { CREDENTIALS_MAX = sizeof(PROXY_USER ":") - 1 + PROXY_TOKEN };

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	return found != NULL ? (int)(found - digits) : -1;
}

void credentials_read(struct str value, char token[PROXY_TOKEN + 1])
{
	static const struct str scheme = STR("Basic ");
	static const struct str user = STR(PROXY_USER ":");
	char text[CREDENTIALS_MAX + 3];
	size_t size = 0, bits = 0;
	unsigned held = 0;

	if (value.size <= scheme.size ||
	    strncasecmp(value.data, scheme.data, scheme.size) != 0)
		return;
	value = str_trim(str_part(value, scheme.size, value.size));
	while (value.size > 0 && value.data[value.size - 1] == '=')
		value.size--;
	for (size_t i = 0; i < value.size; i++) {
		int digit = base64_digit(value.data[i]);

		if (digit < 0 || size == sizeof(text))
			return;
		held = held << 6 | (unsigned)digit;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			text[size++] = (char)(held >> bits & 0xff);
		}
	}
	if (size != CREDENTIALS_MAX || !str_starts((struct str){text, size}, user))
		return;
	memcpy(token, text + user.size, PROXY_TOKEN);
	token[PROXY_TOKEN] = '\0';
}
