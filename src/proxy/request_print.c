/* request_print: prints the head that is passed on to the server. */
#include "proxy/head.h"
#include "proxy/request.h"

#include <string.h>

/*
 * Is NAME a header that is only for the proxy (RFC 9110, section 7.6.1), or that we print
 * anew?
 */
static bool stays_here(struct str name)
{
	static const char *const names[] = {"Host",
					    "Connection",
					    "Keep-Alive",
					    "Proxy-Connection",
					    "Proxy-Authorization",
					    "Proxy-Authenticate",
					    "TE",
					    "Upgrade",
					    "HTTP2-Settings"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (head_is_named(name, names[i]))
			return true;
	}
	return false;
}

bool request_print(struct str bytes, const struct http_request *request, struct buf *out)
{
	struct str rest = bytes, line, method, target, authority, path;
	struct head_field header;
	char host[NETWORK_TEXT_MAX];
	bool broken;

	if (!head_next_line(&rest, &line, &broken) ||
	    !head_split_first(line, &method, &target))
		return false;
	if (!head_split_url(target, &authority, &path))
		path = target; /* inside a tunnel */
	/* The part after # is for the client only. */
	size_t end = str_find(path, STR("#"), 0);
	path = str_part(path, 0, end);
	(void)network_print(&request->host, request->port, host);
	if (request->port == REQUEST_PORT_PLAIN)
		*strrchr(host, ':') = '\0';
	(void)buf_addf(out, "%.*s %s%.*s HTTP/1.1\r\nHost: %s\r\n", (int)method.size,
		       method.data,
		       path.size > 0 && (path.data[0] == '/' || path.data[0] == '*') ? ""
										     : "/",
		       (int)path.size, path.data, host);
	while (head_next_line(&rest, &line, &broken) && line.size > 0) {
		if (!head_split_field(line, &header) || stays_here(header.name))
			continue;
		(void)buf_addf(out, "%.*s: %.*s\r\n", (int)header.name.size,
			       header.name.data, (int)header.value.size, header.value.data);
	}
	(void)buf_adds(out, "Connection: close\r\n\r\n");
	return !out->overflowed;
}
