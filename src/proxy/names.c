/*
 * names: reads two old formats and skips lines that it does not understand, as other
 * programs do.
 */
#include "proxy/names.h"

#include "base/memory.h"

#include <string.h>

/* Few hosts are listed by the policy. A longer list of them is cut off here. */
enum { HOSTS_MAX = 4096 };

void names_init(struct names *names)
{
	*names = (struct names){.port = NETWORK_PORT_DNS};
}

void names_fini(struct names *names)
{
	free(names->hosts);
	names_init(names);
}

static bool parse_address(struct str text, struct network_host *host)
{
	char bracketed[NETWORK_TEXT_MAX];
	struct str whole = text;

	/* In these files an IPv6 address has no brackets. */
	if (memchr(text.data, ':', text.size) != NULL && text.size < sizeof(bracketed) - 2) {
		bracketed[0] = '[';
		memcpy(bracketed + 1, text.data, text.size);
		bracketed[text.size + 1] = ']';
		whole = (struct str){bracketed, text.size + 2};
	}
	return network_parse_host(whole, host, NULL) && host->kind != NETWORK_NAME;
}

/* Words are separated by blanks or tabs; # begins a comment. */
static bool next_word(struct str *rest, struct str *word)
{
	while (rest->size > 0 && strchr(" \t\r", rest->data[0]) != NULL &&
	       rest->data[0] != '\0')
		*rest = str_part(*rest, 1, rest->size);
	*word = (struct str){rest->data, 0};
	while (word->size < rest->size && strchr(" \t\r#", rest->data[word->size]) == NULL)
		word->size++;
	*rest = word->size < rest->size && rest->data[word->size] == '#'
			? (struct str){"", 0}
			: str_part(*rest, word->size, rest->size);
	return word->size > 0;
}

static void add_search(struct names *names, struct str words)
{
	struct network_host suffix;
	struct str word;

	names->search_count = 0; /* the last line counts */
	while (names->search_count < NAMES_SEARCH_MAX && next_word(&words, &word)) {
		if (str_ends(word, STR(".")))
			word.size--;
		if (network_parse_host(word, &suffix, NULL) && suffix.kind == NETWORK_NAME)
			memcpy(names->search[names->search_count++], suffix.text,
			       sizeof(suffix.text));
	}
}

void names_read_servers(struct names *names, struct str text)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		if (!next_word(&line, &word))
			continue;
		if (str_is(word, "nameserver") &&
		    names->server_count < NAMES_SERVERS_MAX && next_word(&line, &word) &&
		    parse_address(word, &names->servers[names->server_count]))
			names->server_count++;
		else if (str_is(word, "search") || str_is(word, "domain"))
			add_search(names, line);
	}
	/* The default that resolv.conf(5) documents. */
	if (names->server_count == 0 && parse_address(STR("127.0.0.1"), &names->servers[0]))
		names->server_count = 1;
}

bool names_set_server(struct names *names, const char *text)
{
	struct network_host host;
	uint16_t port;

	if (!network_parse_authority(str_of(text), NETWORK_PORT_DNS, &host, &port, NULL) ||
	    host.kind == NETWORK_NAME)
		return false;
	names->servers[0] = host;
	names->port = port;
	names->server_count = 1;
	return true;
}

static bool is_listed(const char *name, const struct network_entry *entries, size_t count)
{
	struct network_host host = {.kind = NETWORK_NAME};

	memcpy(host.text, name, strlen(name) + 1);
	for (size_t i = 0; i < count; i++) {
		if (entries[i].carried
			    ? network_same_host(&entries[i].host, &host)
			    : network_find(&entries[i], 1, &host, entries[i].port) != NULL)
			return true;
	}
	return false;
}

void names_read_hosts(struct names *names, struct str text,
		      const struct network_entry *entries, size_t count)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		struct network_host address, host;

		if (!next_word(&line, &word) || !parse_address(word, &address))
			continue;
		while (names->host_count < HOSTS_MAX && next_word(&line, &word)) {
			if (!network_parse_host(word, &host, NULL) ||
			    host.kind != NETWORK_NAME ||
			    !is_listed(host.text, entries, count))
				continue;
			names->hosts = memory_grow(names->hosts, names->host_count + 1,
						   sizeof(names->hosts[0]));
			struct names_host *added = &names->hosts[names->host_count++];
			memcpy(added->name, host.text, sizeof(added->name));
			added->address = address;
		}
	}
}
