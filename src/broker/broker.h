/*
 * broker: the process that puts a key into a request, and the messages by which a front
 * steers it. A program of the cell sends plain HTTP to http://127.0.0.1:27183/NAME/PATH,
 * with a phantom in the place of the key. The broker judges the request, puts the key in,
 * sends it by TLS to the host of the credential NAME, and takes the key out of the answer
 * again. So no process of the cell ever has the key.
 *
 * The broker is a role of the same program, started as the proxy is (proxy/proxy.h): by
 * exec with an empty environment, for a cell that uses a credential. It has the network
 * and nothing else, and accepts on a listener that was made in the cell's network
 * namespace. It knows the credentials of one cell. The keys themselves stay with the
 * front, which reads them where the person keeps them; the broker asks for one when a
 * request needs it, and asks again for the next request, so that a login that was renewed
 * outside holds at once.
 *
 * A program that takes no other address for its service asks the proxy for a tunnel to the
 * host. Where the host is one of a credential, the proxy gives the client's socket to the
 * broker, which speaks TLS with the client in place of the host, by the certificates of the
 * cell's authority (broker/authority.h). So the same requests come by both doors.
 *
 *   front → broker   AUTHORITY, LISTENER and PROXY, then SECRET or NONE for each NEED
 *   broker → front   READY or FAILED, then NEED for each key, REFUSED for each refusal
 *
 * The certificate must lie in the cell's view before anything runs in it, and no file of a
 * view comes later. The broker writes it into a pipe, from which the cell's anchor reads it
 * as the last part of the view. So the cell is made while the broker loads its libraries and
 * makes the keys, and nobody waits for it sooner than needed.
 *
 * The control socket is a SOCK_SEQPACKET pair. The broker exits when it closes.
 *
 * The rules for a request are broker/request.h, and what leaves an answer is broker/scrub.h. A
 * service that is down, refuses, has a wrong certificate, or answers what is no HTTP makes
 * a JSON object with status 502 or 504, whose sentence says what to do.
 */
#pragma once

/* argv[0] of the role; its arguments: role_start_steered. */
#define BROKER_ROLE "glovebox-broker"

enum {
	/*
	 * The port of the cell's loopback. It is the same in each cell, because agents
	 * keep an address in their settings.
	 */
	BROKER_PORT = 27183,
};

/*
 * To be called in main() before anything else. When this process was started as a broker,
 * the function runs the broker and never returns.
 */
void broker_role(int argc, char **argv);
