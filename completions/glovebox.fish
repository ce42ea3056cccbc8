# fish completion of glovebox: the program itself knows its verbs, options and names.
function __glovebox_complete
	set -l words (commandline --current-process --tokenize --cut-at-cursor)
	set -l last (commandline --current-token --cut-at-cursor)
	set -l told ($words[1] complete -- $words[2..] $last 2>/dev/null)

	if set -q told[1]
		printf '%s\n' $told
	else
		__fish_complete_path $last
	end
end
complete --command glovebox --no-files --arguments '(__glovebox_complete)'
