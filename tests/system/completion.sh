#!/bin/sh
# completion.sh - the completion scripts offer the commands and flags that exist.
. "$(dirname "$0")/lib.sh"
command -v bash >/dev/null || { echo "1..0 # SKIP no bash"; exit 0; }

# Prints the completions of bash for a command line with the cursor at its end.
offers() {
	"$ATOLL" completion bash >script
	bash -c '. ./script; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll; printf "%s\n" "${COMPREPLY[@]}"' \
		_ _ "$@"
}

bash_parses_its_completion_script() {
	"$ATOLL" completion bash | bash -n
	is "$(bash -c '. /dev/stdin; complete -p atoll' <<-END
	$("$ATOLL" completion bash)
	END
	)" "complete -o filenames -F _atoll atoll"
}

bash_completes_every_command() {
	said=$("$ATOLL" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | grep -vx atoll)
	is "$(offers atoll '')" "$said"
	is "$(offers atoll con)" config
	is "$(offers atoll help con)" config
	is "$(offers atoll xyz)" ""
}

bash_completes_every_flag_of_a_command() {
	for command in run config ps; do
		for flag in $("$ATOLL" $command -h | sed '/^Examples/,$d' | grep -oE -e '--[a-z][a-z-]+' | sort -u); do
			offers atoll $command "$flag" | grep -qx -e "$flag" || fail "$command $flag"
		done
	done
	is "$(offers atoll run --me)" --mem
}

bash_completes_arguments_and_files_by_position() {
	touch 'a file'
	is "$(offers atoll config ch)" check
	is "$(offers atoll completion z)" zsh
	is "$(offers atoll policy secc)" seccomp
	is "$(offers atoll run 'a f')" "a file"
	is "$(offers atoll run --report 'a')" "a file"
	is "$(offers atoll config check 'a')" "a file"
}

zsh_parses_its_completion_script() {
	"$ATOLL" completion zsh >script
	has "$(cat script)" "'config:show effective settings"
	command -v zsh >/dev/null || skip "no zsh"
	zsh -n script
}

fish_parses_its_completion_script() {
	"$ATOLL" completion fish >script
	has "$(cat script)" "-a config -d 'show effective settings"
	command -v fish >/dev/null || skip "no fish"
	fish -n script
}

an_unknown_shell_is_a_usage_error() {
	atoll completion tcsh
	is "$status" 2
	has "$err" "'tcsh' is not one of bash, zsh, fish"
	atoll completion
	is "$status" 2
}

run_tests
