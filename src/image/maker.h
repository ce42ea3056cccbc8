/*
 * maker: decides whether an entry of an archive may be made beneath one folder, and makes it.
 * Everything that unpacks foreign archives makes its entries here: layers of images, and the
 * trees that a caller of `glovebox serve` sends. unpack.h reads the archive.
 *
 * Nothing is ever made, changed or followed outside of the folder. A name is walked one
 * component after the other, each opened without following a link. A `..`, an absolute name of a
 * hard link, and a link in the middle of a name are resolved as if the folder were the root of
 * a machine (layers), or refused (trees). The kernel holds this as well where the caller runs
 * behind walls.
 *
 * Owners are dropped: everything belongs to the calling user. Set-id bits, devices, attributes
 * other than `user.…`, and every attribute of an overlay that the archive brings are dropped and
 * counted. The owner can always read and write what was made, as root could in a container.
 *
 * Order of calls: maker_open; for each entry maker_begin, maker_attribute and maker_write as often
 * as wanted, maker_end; then maker_finish; maker_close in any case.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Limits unless others are given. */
#define MAKER_BYTES_MAX   (UINT64_C(64) << 30) /* of all files together, holes included */
#define MAKER_ENTRIES_MAX (UINT64_C(2) << 20)
enum {
	MAKER_DEPTH_MAX = 128, /* folders in each other */
	MAKER_LINKS_MAX = 40,  /* links in one name, the kernel's own limit */
	MAKER_NAME_MAX = 4095, /* bytes of a name with its folders */
};

enum maker_entry_kind {
	MAKER_FILE,
	MAKER_FOLDER,
	MAKER_LINK,  /* a symbolic link to `target`, which is stored as it is */
	MAKER_AGAIN, /* a hard link to the entry `target` that was made before */
	MAKER_PIPE,
	MAKER_DEVICE, /* a device, a socket, anything else: dropped and counted */
};

struct maker_entry {
	enum maker_entry_kind kind;
	const char *path;        /* as in the archive: "usr/bin/x", "./usr", "/usr" */
	const char *target;      /* of links */
	mode_t mode;             /* permissions; the kind's bits are ignored */
	uint64_t size;           /* of a file; what no maker_write fills is a hole */
	struct timespec changed; /* st_mtim */
};

enum maker_rules {
	/*
	 * A tree for a program: a name or link that leaves the folder, by itself or through a
	 * link, is an error. Files that are there are replaced, folders are kept.
	 */
	MAKER_TREE,
	/* The same, but links are stored as they are: the tree is a copy of one of the caller's. */
	MAKER_COPY,
	/*
	 * A layer of an image (image-spec, layer.md) in a folder that was empty: `.wh.NAME` makes
	 * the removed name of an overlay, `.wh..wh..opq` hides the folder below. Names and links in
	 * the middle of names are resolved inside. A hard link to a file that only a layer below
	 * has becomes a symbolic link to it, and is counted.
	 */
	MAKER_LAYER,
};

struct maker_limits {
	uint64_t bytes, entries; /* 0: the ones above */
	size_t depth;
};

/* Counts of things that were made, and that were left out of the archive; `bytes` are of files. */
struct maker_counts {
	uint64_t entries, bytes, files, folders, links;
	uint64_t removed; /* names that a layer removes, and folders that it hides */
	uint64_t devices; /* dropped */
	uint64_t set_id;  /* files that lost a set-user-id or set-group-id bit */
	uint64_t owners; /* entries of others than user 0, which belong to the caller now */
	uint64_t attributes; /* dropped */
	uint64_t outside;    /* layers: names that led out by `..`, resolved inside */
	uint64_t across;     /* layers: hard links to files of layers below */
};

/* Add MORE to SUM. */
void maker_counts_add(struct maker_counts *sum, const struct maker_counts *more);

struct maker;

/*
 * FOLDER (borrowed, open for reading) is where entries are made. LIMITS and COUNTS (kept up to date
 * while entries are made; may be shared memory) are borrowed; LIMITS NULL: the ones above.
 */
struct maker *maker_open(int folder, enum maker_rules rules,
			 const struct maker_limits *limits, struct maker_counts *counts);
void maker_close(struct maker *maker); /* NULL is fine */

/*
 * Make ENTRY. False: it may not be made or cannot be, and ERR names it. After false the archive
 * is not read further. True also for an entry that was dropped: its data is ignored.
 */
bool maker_begin(struct maker *maker, const struct maker_entry *entry, struct err *err);
/* Add BYTES of the file at OFFSET; bytes past its size are an error. */
bool maker_write(struct maker *maker, uint64_t offset, struct str bytes, struct err *err);
/* Give the file or folder the attribute NAME, or drop and count it. */
bool maker_attribute(struct maker *maker, const char *name, struct str value,
		     struct err *err);
/* The entry belonged to another user than 0: count it. */
void maker_note_owner(struct maker *maker);
bool maker_end(struct maker *maker, struct err *err);
/*
 * All entries are there: give the folders their times, and take out removed names in folders that hide
 * what is below.
 */
void maker_finish(struct maker *maker);
