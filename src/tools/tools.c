/* tools: the table, in the order in which models and people see them. */
#include "tools/tools.h"

#include "plugins/run.h"

#include <stddef.h>

const struct tool *const builtin_tools[] = {
	&bash_tool,
	&job_tool,
	&read_file_tool,
	&batch_read_tool,
	&write_file_tool,
	&edit_file_tool,
	&apply_patch_tool,
	&list_files_tool,
	&glob_tool,
	&grep_tool,
	&run_tests_tool,
	&database_schema_tool,
	&generate_patch_tool,
	/* internal: the front's own */
	&exec_tool,
	&checkpoint_tool,
	&restore_tool,
	&take_patch_tool,
	&commit_patch_tool,
	&git_contents_tool,
	&read_instructions_tool,
	&plugin_tool,
	&read_output_tool,
	&read_roles_tool,
	NULL,
};
