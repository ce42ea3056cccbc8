/*
 * saved: what a layer in memory holds, as the bytes of one file. The disk below may keep neither
 * attributes nor device nodes, so the shapes of the upper folders (files/overlay.h) are written
 * down here: removed names, folders that hide what is below, attributes, permissions, owners,
 * times, holes, and several names of one file. An undo log (files/record.h) has no place for most
 * of that, and grows with each step; this file is written anew each time.
 *
 * The file begins with SAVED_MAGIC. Then come chunks: a tag and a length (4 bytes each, the
 * lowest first), and so many bytes:
 *
 *   SAVED_ENTRY  a name in the folder that is open, and what it is. A folder or file is open
 *                until its SAVED_CLOSE. The outermost folders are trees, called by their number,
 *                in order
 *   SAVED_EXTRA  an attribute of the innermost open folder or file
 *   SAVED_DATA   bytes of the open file; the places between them are holes
 *   SAVED_CLOSE
 *   SAVED_END    the mark (base/hash.h) of everything before; nothing follows
 *
 * Each file in it was written by a process that had read what a cell's programs have left. It is
 * foreign: names are single names, nothing is larger than a ceiling, and a shape that the kernel
 * does not make in a cell is refused. The mark finds damage; it is no proof of who wrote it.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define SAVED_MAGIC "glovebox layer 1\n"

enum {
	SAVED_DEPTH_MAX = 512, /* folders in each other, the tree's own counted */
	SAVED_TREES_MAX = 64,
	SAVED_ENTRIES_MAX = 2000000,
	SAVED_DATA_MAX = 256 << 10, /* bytes of one chunk of a file */
	SAVED_EXTRA_MAX = 64 << 10, /* bytes of one attribute: the kernel's own limit */
};

enum saved_tag {
	SAVED_ENTRY = 0x4e4c4247, /* "GBLN" */
	SAVED_EXTRA = 0x584c4247,
	SAVED_DATA = 0x444c4247,
	SAVED_CLOSE = 0x434c4247,
	SAVED_END = 0x454c4247,
};

enum saved_kind {
	SAVED_FOLDER,
	SAVED_FILE,
	SAVED_LINK,
	SAVED_PIPE,
	SAVED_SOCKET,
	SAVED_REMOVED, /* the layer has removed the name */
	SAVED_AGAIN,   /* another name of an entry before with the same `number` */
	SAVED_KINDS,
};

struct saved_entry {
	enum saved_kind kind;
	mode_t mode; /* the permission bits */
	uid_t user;
	gid_t group;
	uint64_t size;            /* of a file */
	uint64_t number;          /* of an entry with several names; 0: it has one */
	struct timespec times[2]; /* of the last access and change, as for utimensat(2) */
	struct str name;          /* read back, it ends in NUL, as all texts do */
	struct str target;        /* of a link */
};

struct saved_item {
	enum saved_tag tag;
	struct saved_entry entry; /* SAVED_ENTRY */
	struct str attribute;     /* SAVED_EXTRA */
	uint64_t offset;          /* SAVED_DATA */
	struct str bytes;         /* SAVED_EXTRA, SAVED_DATA */
};

/* Is NAME, of an attribute, saved? Others give rights, or belong to options we do not use. */
bool saved_has_extra(const char *name);

/* A file being written. Zero but for `fd`, which is borrowed and written from where it is. */
struct saved_writer {
	int fd;
	struct buf out;
	struct hash *hash;
};
/*
 * Append ITEM; nothing of it is checked. SAVED_END ends the writer, and so does a failure. Returns
 * 0, or a number of errno.h.
 */
int saved_write(struct saved_writer *writer, const struct saved_item *item);

struct saved_reader {
	/* Takes an item, which is valid during the call. Returns 0, or a number that ends it. */
	int (*take)(void *context, const struct saved_item *item);
	void *context;
	uint64_t bytes_most; /* of contents and attributes */
	uint64_t trees;      /* result: the trees that were read; bit N for the tree N */
	size_t entries;      /* result */
	uint64_t bytes;      /* result */
};
/* The file is damaged, or it is none of ours. */
#define SAVED_UNSOUND EBADMSG
/* There are more bytes than wanted. */
#define SAVED_OVER EOVERFLOW
/*
 * Read FD from its beginning to its end. Returns 0 when all of it is sound: what was taken before
 * may be unsound as a whole, and counts only then. Otherwise SAVED_UNSOUND, SAVED_OVER, a number
 * that `take` has returned, or one of the reading.
 */
int saved_read(struct saved_reader *reader, int fd);
