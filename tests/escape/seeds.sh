#!/bin/sh
# seeds.sh - a box whose interpreter was forked into it from outside has the same walls.
#
# The promises of the other files are run again, unchanged, with a probe that such an interpreter
# executes. Those that only forks of one parent can break are in forks.sh.
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
place=seed

# A limit on the size of files and a terminal are not for a seed: such programs are executed. The other
# three are about the client's words or another keeper.
not_for_seeds='a_limit_on_file_sizes_binds a_terminal_of_a_box_is_its_own
	a_keeper_with_a_terminal_makes_no_boxes the_environment_is_made_from_nothing
	a_neighbours_memory_bomb_is_not_noticed'
names=$(for file in identity files kernel network neighbours; do tests_of "$here/$file.sh"; done)
for name in $not_for_seeds; do
	names=$(echo "$names" | grep -vx "$name")
done
run_these $names
