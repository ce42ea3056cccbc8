/*
 * running_network: a call's access to the network (outlet.h): granted, refused, taken
 * back.
 */
#include "cell/lookups.h"
#include "cell/outlet.h"
#include "session/session.h"
#include "tool/denial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* The result itself counts further ones. */
	REFUSED_MAX = 2 * DENIALS_MAX,
	/* bytes of a call's arguments and its result in which the port is searched */
	WORDS_MAX = 256 << 10,
};

/*
 * Does RUNNING run programs now? ENDING ran them until now, although it may not be busy
 * any more.
 */
static bool runs_programs(const struct running *running, const struct running *ending)
{
	return (running->state == RUNNING_BUSY || (ending != NULL && running == ending)) &&
	       running->tool != NULL && (running->tool->effects & EFFECT_RUNS) != 0;
}

static bool has_refused(const struct running *running, const char *target)
{
	for (size_t i = 0; i < value_count(running->refused); i++) {
		const struct value *item = value_item(running->refused, i);

		if (str_is(value_str(value_member(item, "target")), target))
			return true;
	}
	return false;
}

/*
 * REMEDY NULL: the host was looked up, and the remedy is chosen when the call's words are
 * there.
 */
static void refused_add(struct running *running, const char *target, const char *remedy,
			bool guessed)
{
	struct value *item;

	if (value_count(running->refused) >= REFUSED_MAX || has_refused(running, target))
		return;
	item = value_new_object();
	value_set_text(item, "target", target);
	if (remedy != NULL)
		value_set_text(item, "remedy", remedy);
	if (guessed)
		value_set_boolean(item, "guessed", true);
	if (running->refused == NULL)
		running->refused = value_new_array();
	value_append(running->refused, item);
}

void running_refused(void *context, uint64_t number, const char *target, const char *remedy)
{
	struct session *session = context;

	for (struct running *at = session->first; at != NULL; at = at->next) {
		if (number != 0 ? at->number == number : runs_programs(at, NULL))
			refused_add(at, target, remedy, false);
	}
}

struct hearing {
	struct session *session;
	const struct running *ending; /* or NULL */
};

/*
 * A datagram does not say which call sent it: when several calls run, the refusal is
 * marked as a guess.
 */
static void host_looked_up(void *context, const struct network_host *host)
{
	const struct hearing *hearing = context;
	size_t count = 0;

	for (const struct running *at = hearing->session->first; at != NULL; at = at->next)
		count += runs_programs(at, hearing->ending);
	for (struct running *at = hearing->session->first; at != NULL; at = at->next) {
		if (runs_programs(at, hearing->ending))
			refused_add(at, host->text, NULL, count > 1);
	}
}

/*
 * Read the hosts that were looked up until now. They belong to the calls that run now,
 * and to ENDING (or NULL).
 */
static void hear_lookups(struct session *session, const struct running *ending)
{
	struct hearing hearing = {session, ending};
	const int fd = session->cell != NULL ? cell_questions(session->cell) : -1;

	if (fd >= 0)
		lookups_read(fd, host_looked_up, &hearing);
}

/* How the words of a call say that it speaks to a host. */
struct said {
	uint16_t port; /* 0: no URL names the host */
	bool plain;    /* HTTP without TLS */
};

/* The port that follows "://HOST" in TEXT, and whether the URL is plain HTTP. */
static struct said url_said(struct str text, const char *host)
{
	const struct str name = str_of(host), mark = STR("://");

	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		struct str behind = str_part(text, at + mark.size, SIZE_MAX);
		struct said said = {.plain = str_ends(str_part(text, 0, at), STR("http"))};
		size_t digits = 1;

		if (!str_starts(behind, name))
			continue;
		behind = str_part(behind, name.size, SIZE_MAX);
		if (behind.size > 0 && behind.data[0] == ':') {
			while (digits < behind.size && behind.data[digits] >= '0' &&
			       behind.data[digits] <= '9')
				digits++;
			if (network_parse_port(str_part(behind, 1, digits - 1), &said.port))
				return said;
		} else if (behind.size == 0 ||
			   strchr("/ ?#'\"\\,;)\n", behind.data[0]) != NULL) {
			said.port = said.plain ? NETWORK_PORT_HTTP : NETWORK_PORT_TLS;
			return said;
		}
	}
	return (struct said){0};
}

/* The port of the entry of SPEC that lists HOST; 0: none does. */
static uint16_t port_listed(const struct cell_spec *spec, const struct network_host *host)
{
	struct network_entry entry;

	for (size_t i = 0; i < spec->network_count; i++) {
		if (network_parse_entry(str_of(spec->network[i]), &entry, NULL) &&
		    network_find(&entry, 1, host, entry.port) != NULL)
			return entry.port;
	}
	return 0;
}

static struct said said_of(const struct running *running, const char *host)
{
	struct said said;
	struct buf words;

	buf_init(&words, WORDS_MAX);
	(void)value_print(running->arguments, 0, &words);
	(void)buf_addc(&words, '\n');
	(void)buf_addstr(&words, str_part(buf_str(&running->result.text), 0, WORDS_MAX / 2));
	said = url_said(buf_str(&words), host);
	buf_fini(&words);
	return said;
}

/*
 * Append to OUT the policy entry that lets programs of RUNNING reach TARGET. In a cell
 * with a proxy, programs ask the proxy to look names up. A program that looks a name up
 * itself does not use the proxy, and only a tcp:// entry helps. The same holds for plain
 * HTTP on a port on which the proxy passes none.
 */
static void remedy_add(const struct running *running, const char *target, struct buf *out)
{
	const struct cell_spec *spec = cell_spec(running->session->cell);
	const bool has_proxy = cell_outlet(running->session->cell) != NULL;
	const struct said said = said_of(running, target);
	char entry[NETWORK_TEXT_MAX], carried[NETWORK_TEXT_MAX + sizeof("tcp://")];
	char remedy[NETWORK_REMEDY_MAX];
	struct network_host host;
	uint16_t port = said.port;

	if (!network_parse_host(str_of(target), &host, NULL))
		return;
	if (port == 0 && has_proxy)
		port = port_listed(spec, &host);
	if (!has_proxy && !(said.plain && port != NETWORK_PORT_HTTP)) {
		network_print_entry(&host, port != 0 ? port : NETWORK_PORT_TLS, entry);
		(void)buf_adds(out, network_print_remedy(entry, remedy));
		return;
	}
	(void)snprintf(carried, sizeof(carried), "tcp://%s",
		       network_print(&host, port != 0 ? port : NETWORK_PORT_TLS, entry));
	(void)buf_addf(out, "%s%s%s",
		       has_proxy ? "this program does not ask the proxy (HTTP_PROXY): " : "",
		       network_print_remedy(carried, remedy),
		       port != 0 ? "" : " (or with the port that it wants)");
}

static void tell_refused(struct running *running)
{
	const struct cell *cell = running->session->cell;
	struct buf remedy;

	buf_init(&remedy, 2 * NETWORK_REMEDY_MAX);
	for (size_t i = 0; i < value_count(running->refused); i++) {
		const struct value *item = value_item(running->refused, i);
		const char *target = value_text(value_member(item, "target"));
		const char *said = value_text(value_member(item, "remedy"));

		buf_clear(&remedy);
		if (said == NULL)
			remedy_add(running, target, &remedy);
		denial_add(&running->result,
			   &(struct denial){
				   .kind = DENIAL_NET,
				   .target = target,
				   .rule = cell_spec(cell)->network_rule,
				   .remedy = said != NULL ? said : remedy.data,
				   .guessed = value_is_true(value_member(item, "guessed")),
			   });
	}
	buf_fini(&remedy);
}

enum claims_hosts session_weighs_hosts(const struct session *session,
				       const struct tool_result *result)
{
	if (session->cell == NULL || !claims_name_host(result))
		return CLAIMS_HOSTS_WRONG;
	if (spec_is_sealed(cell_spec(session->cell)))
		return cell_lost_route(session->cell) ? CLAIMS_HOSTS_LISTABLE
						      : CLAIMS_HOSTS_WRONG;
	return cell_spec(session->cell)->built >= SANDBOX_FILTER ? CLAIMS_HOSTS_CLOSED
								 : CLAIMS_HOSTS_WRONG;
}

void running_end_network(struct running *running)
{
	struct cell *cell = running->session->cell;
	struct outlet *outlet = cell != NULL ? cell_outlet(cell) : NULL;

	if (cell == NULL || !running->asks)
		return;
	running->asks = false;
	if (outlet != NULL) {
		outlet_revoke(outlet, running->number);
		outlet_hear(outlet);
	}
	hear_lookups(running->session, running);
	tell_refused(running);
	if (outlet != NULL && outlet_broken(outlet) != NULL)
		denial_add(&running->result,
			   &(struct denial){.kind = DENIAL_NET,
					    .target = "every host",
					    .rule = outlet_broken(outlet),
					    .remedy = "begin a new session"});
}

struct value *running_begin_network(struct running *running)
{
	struct outlet *outlet = cell_outlet(running->session->cell);
	struct value *list;

	if ((running->tool->effects & EFFECT_RUNS) == 0)
		return NULL;
	/* The look-ups that are waiting come from others: a job, a server. */
	hear_lookups(running->session, NULL);
	running->asks = true;
	if (outlet == NULL)
		return NULL;
	list = value_new_array();
	outlet_grant(outlet, running->number, list);
	return list;
}
