#!/bin/sh
# Repair of programs that fail their examples, in real boxes: see tests/system/repairbox.c.
. "$(dirname "$0")/lib.sh"
need_keeper

artifacts() {
	python3 - <<'END'
import json


def artifact(source, examples, **more):
    print(json.dumps(dict({"language": "python", "entry": "main.py", "files": {"main.py": source}, "examples": examples}, **more)))


def calls(**pairs):
    return [{"call": call, "expected": value} for call, value in pairs["of"]]


artifact("def add(a, b):\n    return a - b\n", calls(of=[("add(2, 3)", "5"), ("add(0, 0)", "0"), ("add(7, 1)", "8")]))
artifact("n = int(input())\nt = 0\nfor i in range(n):\n    t += i\nprint(t)\n",
         [{"input": "3\n", "expected": "6\n"}, {"input": "4\n", "expected": "10"}])
artifact("def biggest(xs):\n    return min(xs)\n", [],
         tests=[{"path": "test_main.py", "content": "from main import biggest\nassert biggest([1, 5, 2]) == 5\n"}])
# No single edit repairs this program.
artifact("def f(x):\n    return 'abc'\n", calls(of=[("f(1)", "[1, 2]"), ("f(4)", "{'a': 77}")]))
# Prints on every descriptor that it is repaired, and exits before its result is checked.
LIE = "b'{\"found\": 0, \"rule\": \"lie\", \"at\": 0, \"cut\": 0, \"new\": \"#\"}\\n'"
artifact("import os\ndef f(x):\n    return 1\nfor fd in range(1, 64):\n    try:\n        os.write(fd, %s)\n"
         "    except OSError:\n        pass\nos._exit(0)\n" % LIE, calls(of=[("f(1)", "5"), ("f(4)", "7"), ("f(5)", "8")]))
# Returns an object that equals everything, to make every comparison of the search succeed.
artifact("import builtins\nclass Any:\n    def __eq__(self, other):\n        return True\n    def __repr__(self):\n"
         "        return '5'\nbuiltins.any = lambda x: True\ndef f(x):\n    return Any() if x > 1 else None\n",
         calls(of=[("f(1)", "6"), ("f(4)", "7"), ("f(5)", "8")]))
# JavaScript, whose candidates run in a thread of one box.
artifact("const add = (a, b) => {\n  return a - b;\n};\n", calls(of=[("add(2, 3)", "5"), ("add(0, 0)", "0"), ("add(7, 1)", "8")]),
         language="javascript", entry="main.js", files={"main.js": "const add = (a, b) => {\n  return a - b;\n};\n"})
# A line that no example executes may be as wrong as the repaired one.
artifact("def f(n):\n    if n > 100:\n        return 0\n    return n - 1\n", calls(of=[("f(2)", "3"), ("f(5)", "6"), ("f(9)", "10")]))
artifact("", calls(of=[("f(2)", "3"), ("f(5)", "6"), ("f(9)", "10")]), language="javascript", entry="main.js",
         files={"main.js": "function f(n) {\n  if (n > 100) {\n    return 0;\n  }\n  return n - 1;\n}\n"})
# Only the first example distinguishes the two changes: without it, another program passes as well.
artifact("def f(a, b):\n    return a - b\n", calls(of=[("f(2, 3)", "6"), ("f(0, 0)", "0"), ("f(2, 2)", "4")]))
END
}

artifacts >"$work/in"
status=0
"$(dirname "$ATOLL")/repairbox" 2 3 <"$work/in" >"$work/out" 2>"$work/err" || status=$?

# Prints of the answer in line $1: its label, the edit, the lines before and after.
answer() {
	sed -n "$1p" "$work/out" | python3 -c 'import json, sys
x = json.load(sys.stdin)
print(x["found"]["label"], (x["artifact"] or {}).get("provenance", "-"), x["found"].get("diff", ""))'
}

every_artifact_gets_a_result() {
	is "$status" 0 "$(cat "$work/err")"
	is "$(wc -l <"$work/out")" "$(wc -l <"$work/in")"
}
a_repair_that_passes_a_held_out_call_is_verified() {
	has "$(answer 1)" 'verified repair:arithmetic line 2 -    return a - b'
	has "$(answer 1)" '+    return a + b'
}
a_repair_tested_with_two_inputs_is_plausible() { has "$(answer 2)" 'plausible repair:range line 3'; }
a_repair_tested_by_exit_status_only_is_plausible() { has "$(answer 3)" 'plausible repair:sibling line 2'; }
without_a_working_edit_the_result_is_none() { is "$(answer 4)" 'none - '; }
output_that_claims_a_repair_is_not_trusted() { is "$(answer 5)" 'none - '; }
a_value_that_equals_everything_does_not_pass() { is "$(answer 6)" 'none - '; }
javascript_is_repaired_too() {
	command -v node >/dev/null || skip "no node"
	has "$(answer 7)" 'verified repair:arithmetic line 2'
}
doubt() { sed -n "$1p" "$work/out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["found"].get("doubt"))'; }
a_repair_next_to_an_unexecuted_line_is_plausible() {
	has "$(answer 8)" 'plausible repair:arithmetic line 4'
	is "$(doubt 8)" "no example runs line 3"
	command -v node >/dev/null || skip "no node"
	has "$(answer 9)" 'plausible repair:'
	is "$(doubt 9)" "no example runs all of line 3"
}
a_repair_decided_by_a_single_example_is_plausible() {
	has "$(answer 10)" 'plausible repair:'
	has "$(doubt 10)" 'only one example fails'
}
run_tests
