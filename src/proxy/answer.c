/* answer: sentences for the client, reports for the front. */
#include "proxy/proxy_parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char *reason_of(int code)
{
	switch (code) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 407:
		return "Proxy Authentication Required";
	case 504:
		return "Gateway Timeout";
	default:
		return "Bad Gateway";
	}
}

void answer_error(struct connection *connection, int code, const char *sentence)
{
	struct stream *in = &connection->in;

	(void)buf_addf(&in->pending,
		       "HTTP/1.1 %d %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n"
		       "Proxy-Connection: close\r\n\r\n%s\n",
		       code, reason_of(code),
		       code == 407 ? "Proxy-Authenticate: Basic realm=\"glovebox\"\r\n" : "",
		       strlen(sentence) + 1, sentence);
	in->ended = true;
	connection->state = LEAVING;
	connection_set_deadline(connection, LEAVE_MS);
	if (!relay_flush(connection->client.fd, in))
		connection_end(connection);
	else
		relay_settle(connection);
}

/*
 * Report a refusal to the front. A call's later refusals are dropped after REPORTS_MAX.
 */
static void report(struct connection *connection, const char *target, const char *remedy)
{
	struct proxy *proxy = connection->proxy;
	struct grant *grant = grants_of(proxy, connection->call);
	struct proxy_message message = {.kind = PROXY_REFUSED, .call = connection->call};
	unsigned *reports = grant != NULL ? &grant->reports : &proxy->carried_reports;

	if (*reports >= REPORTS_MAX)
		return;
	(*reports)++;
	(void)snprintf(message.text, sizeof(message.text), "%s", target);
	(void)snprintf(message.remedy, sizeof(message.remedy), "%s", remedy);
	(void)proxy_send(proxy->control.fd, &message, -1);
}

void answer_refusal(struct connection *connection, int code, const char *target,
		    const char *remedy)
{
	char sentence[2 * PROXY_REMEDY_MAX];

	/* Tell the front before the client: after the answer the command can end. */
	report(connection, target, remedy);
	if (code == 0) {
		connection_end(connection);
		return;
	}
	(void)snprintf(sentence, sizeof(sentence), "refused: %s (%s); %s", target,
		       connection->proxy->rule, remedy);
	answer_error(connection, code, sentence);
}
