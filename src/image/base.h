/*
 * base: the folders below a cell's view (`--base WORD`, `cell_base`), found by their word:
 *
 *   host              the folders of this machine, as without a base
 *   rootfs:DIR        one folder that holds a root file system
 *   image:REF         an image in the cache of images (store.h), by the name that `glovebox
 *                     base pull` was given; REF may end in @sha256:HEX
 *   oci:DIR:TAG       an image in an OCI layout, whose layers were unpacked into the cache
 *                     before; without :TAG the only image of that layout
 *   snapshot:NAME     the root of a cell on another base, as it was frozen (snapshot.h)
 *   devcontainer      the image that .devcontainer/devcontainer.json of the workspace names, else
 *   devcontainer:FILE .devcontainer.json, else FILE, with its variables (devcontainer/). FILE starts
 *                     at the workspace and lies in it, and on the way to it no link is followed; an
 *                     absolute one may name the place where the cell shows the workspace
 *
 * base_open takes a millisecond: it reads three small files and looks at one folder for each
 * layer. It never pulls, never unpacks and never waits. A base that is not in the cache yet is
 * an error with the line that puts it there.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "image/devcontainer/prepared.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	BASE_FOLDERS_MAX = 128,    /* layers of an image */
	BASE_WORD_MAX = 4096,      /* bytes of a word */
	BASE_DIGEST_ROOM = 80,     /* "sha256:" and 64 digits, with the NUL */
	BASE_VARIABLES_MAX = 1024, /* of an image's environment */
	BASE_NESTED_MAX = 16, /* snapshots over each other, with what is below them */
};

enum base_kind {
	BASE_HOST = 0, /* no folders: the view is that of this machine */
	BASE_ROOTFS,
	BASE_IMAGE, /* image: and oci: */
	BASE_SNAPSHOT,
	BASE_DEVCONTAINER,
};

/* The folders in which bases are found by their names; NULL: there is none. */
struct base_places {
	const char *images;    /* the cache of images (image_store_path of store.h) */
	const char *snapshots; /* snapshot_place of snapshot.h */
	const char *workspace; /* absolute: of `devcontainer`, and where its FILE starts */
	/*
	 * May the file PATH of the workspace (absolute, normal) be read for the base? False: ERR says
	 * why not, and the file is not opened. NULL: each may
	 */
	bool (*reads)(void *context, const char *path, struct err *err);
	void *context; /* of `reads` */
	/*
	 * where the cell shows the workspace besides its own path; NULL: where a devcontainer says
	 * (devcontainer.workspace_folder)
	 */
	const char *at;
};

/* The commands of a devcontainer. */
struct devcontainer;
/* Has a cell on the base everything that it wants? */
enum base_state {
	BASE_IS_READY,
	/*
	 * The commands of `devcontainer` have not been run for this content of file, image and
	 * files of locks: `folders` are those of the image only. A front runs them in a cell, and
	 * freezes its root as the snapshot `prepared`.
	 */
	BASE_IS_RAW,
};

/*
 * A base that was found. Texts and lists belong to the arena and live until base_close. Lists
 * end with NULL and are never NULL themselves.
 */
struct base {
	struct arena arena;
	enum base_kind kind;
	const char *word; /* as it was given */
	/*
	 * The folders of the host, absolute and real, the LOWEST ONE FIRST. Removed names are
	 * character devices 0:0 there, and a folder that hides what is below it has the attribute
	 * user.overlay.opaque: mount them as lower folders with `userxattr`. The folder of
	 * `rootfs:` is the person's own, the others are the cache's: nobody writes in either.
	 */
	const char *const *folders;
	size_t folder_count;
	size_t named; /* so many of them, the lowest ones, are folders that a person named */
	const char *below; /* the word of the base below a snapshot; NULL: it is none */
	/* "NAME=value", as the image sets them; each has a name, and no name stands twice */
	const char *const *environment;
	/* where programs start: absolute and normal; "/" when the image does not say */
	const char *workdir;
	/* USER of the image as it is written there: "", "app", "1000:1000" */
	const char *user;
	const char *const *entrypoint;
	const char *const *command; /* CMD: arguments behind the entrypoint, or a program */
	/*
	 * The digest of the manifest, or that of a snapshot and what is below it: "sha256:…". It
	 * names the content of the base for ever. Empty for a base that has none: a folder, and a
	 * snapshot over one.
	 */
	char digest[BASE_DIGEST_ROOM];
	/*
	 * For a snapshot that is made over the base: a word that finds it again from any folder of
	 * this machine, with any workspace; and the digest that it has then, also where a folder is
	 * below it (`mark`, as snapshot_add_layer takes it). A devcontainer is what was prepared of
	 * it, or its image.
	 */
	const char *lasting;
	char mark[BASE_DIGEST_ROOM];
	struct devcontainer *devcontainer; /* of that kind; else NULL */
	const char *file; /* of such a base: its file, relative to the workspace; else NULL */
	char file_digest[HASH_HEX + 1]; /* SHA-256 of the file */
	enum base_state state;
	/*
	 * the snapshot that has, or will have, what the commands have made (devcontainer/prepared.h); "": no
	 * commands
	 */
	char prepared[PREPARED_NAME_ROOM];
	/*
	 * Keep `glovebox base prune` from removing the folders (flock, shared), as long as they
	 * are open in some process. base_close closes them.
	 */
	int held[BASE_NESTED_MAX];
	size_t held_count;
};

/*
 * Find the base WORD in PLACES. BASE is filled in either case; call base_close. ERR.code: EINVAL
 * for a word of another form; ENOENT for a base that is missing, with the line that helps ("base
 * image:python:9 is not in the cache; run glovebox base pull image:python:9"); else the base is
 * damaged, and the sentence says how.
 */
bool base_open(const char *word, const struct base_places *places, struct base *base,
	       struct err *err);
void base_close(struct base *base);

/* The parts of a word. */
struct base_word {
	enum base_kind kind;
	bool is_layout; /* oci:, not image: */
	const char *folder; /* of rootfs:, oci: and devcontainer: ("": none), as it was written */
	/*
	 * the name of the image in its layout: of `image:` in full
	 * ("docker.io/library/python:3.12", "docker.io/library/python@sha256:…"); of `oci:` the
	 * TAG, or ""; of `snapshot:` its own
	 */
	const char *name;
};
/* Read WORD. Texts belong to ARENA. EINVAL: it is no word of a base. */
bool base_parse_word(const char *word, struct arena *arena, struct base_word *parsed,
		     struct err *err);

/* The words of the kinds for messages and JSON: "host", "rootfs", "image", "snapshot", "devcontainer". */
const char *base_kind_name(enum base_kind kind);
