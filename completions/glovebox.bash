# bash completion of glovebox: the program itself knows its verbs, options and names.
_glovebox()
{
	local line=${COMP_LINE:0:COMP_POINT} word before
	local -a words

	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	word=${words[-1]}
	# bash completes what stands behind these alone, and so puts it in their place.
	before=${word%"${word##*[:=]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		COMPREPLY+=("${word#"$before"}")
	done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o bashdefault -o default -F _glovebox glovebox
