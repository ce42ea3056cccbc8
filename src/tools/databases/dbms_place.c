/* dbms_place: where a database is, from its address; see dbms.h. */
#include "tools/databases/dbms.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Longest host name (RFC 1035) and more than any scheme has. */
enum { HOST_MAX = 253, SCHEME_SHOWN = 20 };

static const struct dbms_client *const clients[] = {&dbms_sqlite, &dbms_postgres,
						    &dbms_mariadb};

static const struct dbms_client *client_of(struct str scheme)
{
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		if (str_among(clients[i]->schemes, scheme))
			return clients[i];
	}
	return NULL;
}

/* Take what is before the first of MARKS off *REST, with the mark; all of it when there is none. */
static struct str take_until(struct str *rest, const char *marks, char *mark)
{
	size_t size = 0;
	struct str taken;

	while (size < rest->size && !strchr(marks, rest->data[size]))
		size++;
	taken = str_part(*rest, 0, size);
	*mark = size < rest->size ? rest->data[size] : '\0';
	*rest = str_part(*rest, size + 1, rest->size);
	return taken;
}

/* WHAT of an address, percent-decoded (RFC 3986); NULL stays for what is empty. */
static bool decode(struct str text, const char *what, char **decoded, struct err *err)
{
	struct buf out;
	bool sound = true;

	if (text.size == 0)
		return true;
	buf_init(&out, DBMS_ADDRESS_MAX);
	for (size_t i = 0; i < text.size && sound; i++) {
		char c = text.data[i];

		if (c == '%') {
			int high =
				i + 2 < text.size ? text_hex_digit(text.data[i + 1]) : -1;
			int low = high >= 0 ? text_hex_digit(text.data[i + 2]) : -1;

			sound = low >= 0;
			c = (char)(high * 16 + low);
			i += 2;
		}
		sound = sound && c != '\0' && buf_addc(&out, c);
	}
	if (!sound) {
		buf_fini(&out);
		return err_set(err, EINVAL,
			       "the %s in the address holds a %% without two digits of a byte "
			       "behind it; a %% itself is written %%25",
			       what);
	}
	*decoded = buf_take(&out);
	return true;
}

static bool host_is_sound(struct str host)
{
	if (host.size == 0 || host.size > HOST_MAX)
		return false;
	for (size_t i = 0; i < host.size; i++) {
		char c = host.data[i];

		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:",
			    c) ||
		    c == '\0')
			return false;
	}
	return true;
}

/* HOST, HOST:PORT or [ADDRESS]:PORT. */
static bool parse_host(struct str text, struct dbms_place *place, struct err *err)
{
	struct str host = text, port = {0};
	uint64_t number = place->client->port;

	if (str_starts(text, STR("["))) {
		size_t end = str_find(text, STR("]"), 0);

		if (end == (size_t)-1)
			return err_set(err, EINVAL, "the host's \"[\" has no \"]\"");
		host = str_part(text, 1, end - 1);
		port = str_part(text, end + 1, text.size);
	} else if (str_find(text, STR(":"), 0) != (size_t)-1) {
		host = str_part(text, 0, str_find(text, STR(":"), 0));
		port = str_part(text, host.size, text.size);
	}
	if (!host_is_sound(host))
		return err_set(err, EINVAL,
			       "the address names no host: %s://USER:PASSWORD@HOST:PORT/DATABASE",
			       strcmp(place->client->name, "PostgreSQL") == 0 ? "postgresql"
									      : "mariadb");
	if (port.size > 0) {
		auto_free char *digits = memory_copy_str(str_part(port, 1, port.size));

		if (port.data[0] != ':' ||
		    !text_parse_count(digits, UINT16_MAX, &number, NULL) || number == 0)
			return err_set(err, EINVAL, "the port is a number from 1 to 65535");
	}
	place->host = memory_copy_str(host);
	place->port = (uint16_t)number;
	return true;
}

static bool parse_options(struct str rest, struct dbms_place *place, struct err *err)
{
	struct buf unused;
	bool ok = true;
	char mark;

	buf_init(&unused, DBMS_ADDRESS_MAX);
	while (ok && rest.size > 0) {
		struct str value = take_until(&rest, "&", &mark);
		struct str name = take_until(&value, "=", &mark);

		if (str_is(name, "sslmode") && !place->sslmode) {
			ok = decode(value, "sslmode", &place->sslmode, err);
		} else if (name.size > 0) {
			if (unused.size > 0)
				(void)buf_adds(&unused, ", ");
			text_add_name(&unused, name);
		}
	}
	if (unused.size > 0)
		place->unused = buf_take(&unused);
	buf_fini(&unused);
	return ok;
}

/* Read REST, the part of a server's address behind SCHEME://, into PLACE. */
static bool parse_server(struct str rest, struct dbms_place *place, struct err *err)
{
	size_t at = (size_t)-1;
	struct str authority, path;
	char mark, colon;

	authority = take_until(&rest, "/?", &mark);
	path = mark == '/' ? take_until(&rest, "?", &mark) : (struct str){0};
	for (size_t i = 0; i < authority.size; i++) {
		if (authority.data[i] == '@')
			at = i;
	}
	if (at != (size_t)-1) {
		struct str password = str_part(authority, 0, at);
		struct str user = take_until(&password, ":", &colon);

		authority = str_part(authority, at + 1, authority.size);
		if (!decode(user, "user", &place->user, err) ||
		    !decode(password, "password", &place->password, err))
			return false;
	}
	return parse_host(authority, place, err) &&
	       decode(path, "database", &place->name, err) &&
	       (mark != '?' || parse_options(rest, place, err));
}

static bool parse_file(struct str path, struct dbms_place *place, struct err *err)
{
	if (str_starts(path, STR("//")))
		return err_set(
			err, EINVAL,
			"a file is named by its path: sqlite:data/app.db, or data/app.db");
	if (path.size == 0)
		return err_set(err, EINVAL, "the address names no file");
	place->client = &dbms_sqlite;
	place->path = memory_copy_str(path);
	return true;
}

static bool parse(struct str address, struct dbms_place *place, struct err *err)
{
	size_t colon = str_find(address, STR(":"), 0);
	struct str scheme = str_part(address, 0, colon);
	struct buf shown;

	if (address.size > DBMS_ADDRESS_MAX)
		return err_set(err, EINVAL, "the address may have %d bytes",
			       DBMS_ADDRESS_MAX);
	if (memchr(address.data, '\0', address.size))
		return err_set(err, EINVAL, "the address holds a NUL byte");
	/* A path may hold a colon; what has slashes behind it is a URL. */
	if (colon == (size_t)-1)
		return parse_file(address, place, err);
	place->client = client_of(scheme);
	if (place->client == &dbms_sqlite)
		return parse_file(str_part(address, colon + 1, address.size), place, err);
	if (!str_starts(str_part(address, colon, 3), STR("://")))
		return parse_file(address, place, err);
	if (place->client)
		return parse_server(str_part(address, colon + 3, address.size), place, err);
	buf_init(&shown, ERR_TEXT_MAX);
	text_add_name(&shown, str_part(scheme, 0, SCHEME_SHOWN));
	(void)err_set(err, EINVAL,
		      "%s:// is no kind of database that is known here: sqlite:PATH, "
		      "postgresql://…, mariadb://…",
		      shown.data);
	buf_fini(&shown);
	return false;
}

bool dbms_place_parse(struct str address, struct dbms_place *place, struct err *err)
{
	*place = (struct dbms_place){0};
	if (parse(address, place, err))
		return true;
	dbms_place_fini(place);
	return false;
}

void dbms_place_fini(struct dbms_place *place)
{
	if (place->password)
		explicit_bzero(place->password, strlen(place->password));
	free(place->path);
	free(place->host);
	free(place->user);
	free(place->password);
	free(place->name);
	free(place->sslmode);
	free(place->unused);
	*place = (struct dbms_place){0};
}
