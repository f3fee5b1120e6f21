#!/bin/sh
# zygotes.sh - a box whose interpreter was forked from a zygote has the same isolation.
#
# The tests of the other files are run again, unchanged, with a probe that such an interpreter executes.
# Tests that apply only to forks of one zygote are in forks.sh.
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || { echo "1..0 # SKIP no python3"; exit 0; }
need_keeper
loading=yes
eval "$(sed -n '/^run_tests() {/,/^}/{s/^run_tests/run_these/;p}' "$here/../system/lib.sh")"
need_keeper() { :; }
run_tests() { :; }
for file in identity files kernel network neighbours; do
	. "$here/$file.sh"
done
place=zygote

# Programs with a file size limit or a terminal do not use a warm interpreter: they are executed. The other
# three tests are about the arguments of the client or another keeper.
not_for_zygotes='the_file_size_limit_is_enforced a_box_has_its_own_terminals
	a_keeper_with_a_controlling_terminal_creates_no_boxes the_environment_has_nothing_of_the_host
	a_memory_bomb_does_not_affect_another_box'
names=$(for file in identity files kernel network neighbours; do tests_of "$here/$file.sh"; done)
for name in $not_for_zygotes; do
	names=$(echo "$names" | grep -vx "$name")
done
run_these $names
