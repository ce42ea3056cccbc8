/* Tests of the look-ups of cell/outlet: which datagrams ask for a host, and the kernel's count of a network. */
#include "../base/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cell/outlet.h"
#include "proxy/resolver.h"

enum { IP_HEADER = 20, UDP_HEADER = 8, TYPE_AT_END = 4, TYPE_SRV = 33 };

/* A question for NAME as a raw socket hands it out, with OPTIONS bytes of IP options. */
static struct str packet_of(const char *name, size_t options, char room[512])
{
	const size_t headers = IP_HEADER + options + UDP_HEADER;

	memset(room, 0, headers);
	room[0] = (char)(0x40 | (IP_HEADER + options) / 4);
	return (struct str){room,
			    headers + resolver_dns_print_question(name, DNS_A, 7,
								  (unsigned char *)room +
									  headers)};
}

static void a_question_is_taken_out_of_its_packet(void **state)
{
	static const char *const names[] = {"a.example.org", "single", "A-1.Example"};
	struct network_host host;
	char room[512];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		for (size_t options = 0; options <= 40; options += 4) {
			assert_true(outlet_parse_lookup(packet_of(names[i], options, room),
							&host));
			assert_int_equal(host.kind, NETWORK_NAME);
			assert_int_equal(strcasecmp(host.text, names[i]), 0);
		}
	}
}

static void what_no_policy_could_list_is_no_question(void **state)
{
	static const char *const names[] = {"localhost", "a.localhost",
					    "glovebox",  "_http._tcp.example.org",
					    "a..b",      "127.0.0.1"};
	struct network_host host;
	struct str packet;
	char room[512];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++)
		assert_false(outlet_parse_lookup(packet_of(names[i], 0, room), &host));
	packet = packet_of("a.example", 0, room);
	room[packet.size - TYPE_AT_END + 1] = TYPE_SRV;
	assert_false(outlet_parse_lookup(packet, &host));
	packet = packet_of("a.example", 0, room);
	room[IP_HEADER + UDP_HEADER + 2] = (char)0x80; /* an answer */
	assert_false(outlet_parse_lookup(packet, &host));
	packet = packet_of("a.example", 0, room);
	room[0] = 0x65; /* IPv6 */
	assert_false(outlet_parse_lookup(packet, &host));
}

static void a_packet_that_is_cut_anywhere_is_none(void **state)
{
	struct network_host host;
	char room[512];
	struct str packet = packet_of("a.example", 0, room);

	(void)state;
	for (size_t size = 0; size < packet.size; size++) {
		char *part = malloc(size + 1);

		memcpy(part, packet.data, size);
		assert_false(outlet_parse_lookup((struct str){part, size}, &host));
		free(part);
	}
}

static void count_host(void *context, const struct network_host *host)
{
	assert_string_equal(host->text, "a.example");
	(*(int *)context)++;
}

static void everything_that_waits_is_read_and_nothing_is_waited_for(void **state)
{
	char room[512];
	struct str packet = packet_of("a.example", 0, room);
	int ends[2], count = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
	outlet_read_lookups(ends[0], count_host, &count);
	assert_int_equal(count, 0);
	assert_int_equal(send(ends[1], packet.data, packet.size, 0), packet.size);
	assert_int_equal(send(ends[1], "x", 1, 0), 1);
	assert_int_equal(send(ends[1], packet.data, packet.size, 0), packet.size);
	outlet_read_lookups(ends[0], count_host, &count);
	assert_int_equal(count, 2);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void the_count_of_a_process_that_is_there_can_be_read(void **state)
{
	auto_close int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	uint64_t count = UINT64_MAX;

	(void)state;
	assert_true(self >= 0);
	assert_true(outlet_count_unrouted(self, &count));
	assert_true(count < UINT64_MAX);
	assert_false(outlet_count_unrouted(-1, &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_taken_out_of_its_packet),
		cmocka_unit_test(what_no_policy_could_list_is_no_question),
		cmocka_unit_test(a_packet_that_is_cut_anywhere_is_none),
		cmocka_unit_test(everything_that_waits_is_read_and_nothing_is_waited_for),
		cmocka_unit_test(the_count_of_a_process_that_is_there_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
