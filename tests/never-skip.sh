#!/bin/sh
# never-skip.sh RESULTS [NAME...] - prints what the list tests/never-skip forbids: a file of it that did not run,
# a test of it that was skipped. RESULTS is written by tests/run -r. With names: only files whose name contains
# one of them. Status 1: something was printed.
set -u
list=${NEVER_SKIP:-$(dirname "$0")/never-skip}
results=$1
shift

awk -F '\t' -v names="$*" '
	function is_wanted(file,    i, n, name) {
		n = split(names, name, " ")
		for (i = 1; i <= n; i++)
			if (index(file, name[i]))
				return 1
		return n == 0
	}
	FNR == NR { # the list
		if ($0 == "" || /^#/)
			next
		row = $0
		may = ""
		if (match(row, / except /)) {
			may = substr(row, RSTART + RLENGTH)
			row = substr(row, 1, RSTART - 1)
		}
		if (!match(row, /: /)) {
			print FILENAME ":" FNR ": not SUITE: FILE: " row
			bad = 1
			next
		}
		suite = substr(row, 1, RSTART - 1)
		file = substr(row, RSTART + RLENGTH)
		if (is_wanted(file)) {
			listed[file " (" suite ")"] = 1
			allowed[file " (" suite ")"] = may
		}
		next
	}
	{ # verdict, "FILE: TEST (SUITE)", reason
		if (!match($2, / \([^()]*\)$/))
			next
		suite = substr($2, RSTART)
		what = substr($2, 1, RSTART - 1)
		if (!match(what, /: /))
			next
		key = substr(what, 1, RSTART - 1) suite
		test = substr(what, RSTART + RLENGTH)
		if (!(key in listed))
			next
		if ($1 != "skip") {
			ran[key]++
		} else if (test != allowed[key]) {
			print key ": skipped: " test ": " $3
			bad = 1
		}
	}
	END {
		for (key in listed)
			if (!ran[key]) {
				print key ": did not run"
				bad = 1
			}
		exit bad
	}' "$list" "$results"
