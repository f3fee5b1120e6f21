# with_e2b.py - E2B's package, as it is, against Atoll.
#
#	pip install e2b-code-interpreter
#	export E2B_API_KEY=... E2B_API_URL=http://127.0.0.1:7070 E2B_SANDBOX_URL=http://127.0.0.1:7070
#	python3 examples/with_e2b.py
from e2b_code_interpreter import Sandbox

with Sandbox.create(timeout=60) as sandbox:
    # Code, cell by cell: state stays, the last value is the result.
    sandbox.run_code("x = 21")
    print(sandbox.run_code("x * 2").text)

    # Files, from both sides.
    sandbox.files.write("data.csv", "a,b\n1,2\n3,4\n")
    table = sandbox.run_code('import csv; rows = list(csv.DictReader(open("data.csv"))); {k: sum(int(r[k]) for r in rows) for k in rows[0]}')
    print(table.text or table.error.value)

    # Commands, their output as it comes.
    sandbox.commands.run("for i in 1 2 3; do echo $i; done", on_stdout=lambda text: print(text, end=""))
