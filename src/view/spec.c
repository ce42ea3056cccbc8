/* spec: fills a specification; its lists grow in an arena. */
#include "view/spec.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/value.h"

#include <stdarg.h>
#include <string.h>

void spec_init(struct cell_spec *spec)
{
	static const char *none[] = {NULL};

	*spec = (struct cell_spec){.mapping = {.fd = -1},
				   .workspace_tree = -1,
				   .home_lock = -1,
				   .cache_lock = -1,
				   .leftovers = none,
				   .writable = none,
				   .made = none,
				   .blocked = none,
				   .closed = none,
				   .network = none,
				   .environment = none};
	arena_init(&spec->arena);
}

void spec_fini(struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++)
		fd_close(&spec->view.entries[i].fd);
	sandbox_close_mapping(&spec->mapping);
	fd_close(&spec->workspace_tree);
	fd_close(&spec->home_lock);
	fd_close(&spec->cache_lock);
	value_free(spec->guard);
	value_free(spec->parsed);
	arena_fini(&spec->arena);
	spec_init(spec);
}

bool spec_is_sealed(const struct cell_spec *spec)
{
	return spec->built >= SANDBOX_SEALED;
}

static const char *keep(struct cell_spec *spec, const char *text)
{
	return text == NULL ? NULL : arena_copy(&spec->arena, str_of(text));
}

/*
 * Make a copy that is one item longer. That is good enough, because the lists are short
 * and made once.
 */
static void list_add(struct cell_spec *spec, const char ***list, size_t *count,
		     const char *text)
{
	const char **longer = arena_alloc(&spec->arena, (*count + 2) * sizeof(longer[0]));

	memcpy(longer, *list, *count * sizeof(longer[0]));
	longer[*count] = text;
	*list = longer;
	(*count)++;
}

struct view_entry *spec_add_entry(struct cell_spec *spec, enum view_kind kind,
				  const char *path, const char *source)
{
	struct view *view = &spec->view;

	if (view->count == spec->view_capacity) {
		size_t capacity = spec->view_capacity * 2 + 64;
		struct view_entry *more =
			arena_alloc(&spec->arena, capacity * sizeof(more[0]));
		if (view->count > 0)
			memcpy(more, view->entries, view->count * sizeof(more[0]));
		view->entries = more;
		spec->view_capacity = capacity;
	}
	struct view_entry *entry = &view->entries[view->count++];
	*entry = (struct view_entry){
		.kind = kind,
		.path = keep(spec, path),
		.source = keep(spec, source),
		.fd = -1,
		.layer = -1,
		.mode = 0755,
	};
	return entry;
}

void spec_add_root(struct cell_spec *spec, const char *path, bool writable,
		   const char *pattern)
{
	struct files_root *more =
		arena_alloc(&spec->arena, (spec->root_count + 1) * sizeof(more[0]));

	if (spec->root_count > 0)
		memcpy(more, spec->roots, spec->root_count * sizeof(more[0]));
	more[spec->root_count++] =
		(struct files_root){keep(spec, path), writable, keep(spec, pattern)};
	spec->roots = more;
}

void spec_add_writable(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->writable, &spec->writable_count, keep(spec, path));
}

void spec_add_blocked(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->blocked, &spec->blocked_count, keep(spec, path));
}

void spec_add_closed(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->closed, &spec->closed_count, keep(spec, path));
}

void spec_add_network(struct cell_spec *spec, const char *entry)
{
	list_add(spec, &spec->network, &spec->network_count, keep(spec, entry));
}

void spec_add_made(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->made, &spec->made_count, keep(spec, path));
}

void spec_add_leftover(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->leftovers, &spec->leftover_count, keep(spec, path));
}

void spec_add_environment(struct cell_spec *spec, const char *format, ...)
{
	va_list arguments;
	struct buf text;

	buf_init(&text, 1 << 20);
	va_start(arguments, format);
	bool ok = buf_addv(&text, format, arguments);
	for (size_t i = 0; ok && i < spec->environment_count; i++)
		ok = strcmp(spec->environment[i], text.data) != 0;
	if (ok)
		list_add(spec, &spec->environment, &spec->environment_count,
			 keep(spec, text.data));
	va_end(arguments);
	buf_fini(&text);
}

void spec_set_environment(struct cell_spec *spec, const char *entry)
{
	size_t length = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < spec->environment_count; i++) {
		if (strncmp(spec->environment[i], entry, length) == 0) {
			spec->environment[i] = keep(spec, entry);
			return;
		}
	}
	list_add(spec, &spec->environment, &spec->environment_count, keep(spec, entry));
}

static bool has_entry(const struct cell_spec *spec, enum view_kind kind, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == kind &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return true;
	}
	return false;
}

bool spec_is_layer(const struct cell_spec *spec, const char *path)
{
	return has_entry(spec, VIEW_OVERLAY, path);
}

bool spec_is_memory(const struct cell_spec *spec, const char *path)
{
	return has_entry(spec, VIEW_MEMORY, path);
}

void spec_set_writable(struct cell_spec *spec)
{
	struct buf list;

	buf_init(&list, SPEC_BYTES_MAX);
	(void)buf_adds(&list, SPEC_WRITABLE "=");
	const size_t begin = list.size;
	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];

		if ((root->writable || spec_is_layer(spec, root->path)) &&
		    root->pattern == NULL && root->path != NULL &&
		    strchr(root->path, ':') == NULL)
			(void)buf_addf(&list, "%s%s", list.size > begin ? ":" : "",
				       root->path);
	}
	spec_set_environment(spec, list.data);
	buf_fini(&list);
}

void spec_widen(struct cell_spec *spec, const struct cell_spec *addition)
{
	for (size_t i = 0; i < addition->view.count; i++) {
		const struct view_entry *from = &addition->view.entries[i];
		struct view_entry *entry =
			spec_add_entry(spec, from->kind, from->path, from->source);

		entry->writable = from->writable;
		entry->detached = from->detached;
		entry->why = keep(spec, from->why);
	}
	for (size_t i = 0; i < addition->root_count; i++)
		spec_add_root(spec, addition->roots[i].path, addition->roots[i].writable,
			      NULL);
	for (size_t i = 0; i < addition->writable_count; i++)
		spec_add_writable(spec, addition->writable[i]);
	if (addition->guard != NULL) {
		value_free(spec->guard);
		spec->guard = value_ref(addition->guard);
	}
	spec_set_writable(spec);
}

static void right_add(struct value *list, const char *path)
{
	auto_free char *key = path_key(path);

	value_append(list, value_new_text(key));
}

/*
 * The kind of storage behind PATH in the view: the host's files, a layer over them, or
 * memory of the cell.
 */
static enum view_kind kind_at(const struct cell_spec *spec, const char *path)
{
	const struct view_entry *deepest = NULL;

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if ((entry->kind == VIEW_TREE || entry->kind == VIEW_MEMORY ||
		     entry->kind == VIEW_OVERLAY) &&
		    path_within(path, entry->path) &&
		    (deepest == NULL || strlen(entry->path) >= strlen(deepest->path)))
			deepest = entry;
	}
	return deepest != NULL ? deepest->kind : VIEW_TREE;
}

static struct value *rights_roots(const struct cell_spec *spec)
{
	struct value *roots = value_new_array();

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];
		auto_free char *key = path_key(root->path);

		/*
		 * The folder for temporary files ends with its session, and has another
		 * name in each one.
		 */
		if (spec->temp != NULL && path_within(root->path, spec->temp))
			continue;
		/* In another session, the same path may be a folder of the host. */
		if (kind_at(spec, root->path) == VIEW_MEMORY)
			continue;
		struct value *item = value_new_object();
		value_set_text(item, "path", key);
		value_set_boolean(item, "writable",
				  root->writable && kind_at(spec, root->path) == VIEW_TREE);
		if (root->pattern != NULL)
			value_set_text(item, "pattern", root->pattern);
		value_append(roots, item);
	}
	return roots;
}

struct value *spec_rights(const struct cell_spec *spec)
{
	struct value *rights = value_new_object();
	struct value *hidden = value_new_array(), *closed = value_new_array();
	const struct value *files = value_member(spec->guard, "files");

	for (size_t i = 0; i < spec->blocked_count; i++)
		right_add(hidden, spec->blocked[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK)
			right_add(hidden, entry->path);
		else if (entry->kind == VIEW_PIN && !entry->writable)
			right_add(closed, entry->path);
	}
	for (size_t i = 0; i < value_count(files); i++)
		value_append(closed, value_ref(value_item(files, i)));
	value_set(rights, "roots", rights_roots(spec));
	value_set(rights, "hidden", hidden);
	value_set(rights, "closed", closed);
	return rights;
}
