// with_e2b.mjs - E2B's package, as it is, against Atoll.
//
//	npm install @e2b/code-interpreter
//	export E2B_API_KEY=... E2B_API_URL=http://127.0.0.1:7070 E2B_SANDBOX_URL=http://127.0.0.1:7070
//	node examples/with_e2b.mjs
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create({ timeoutMs: 60_000 })
try {
  // Code, cell by cell: state stays, the last value is the result.
  await sandbox.runCode('x = 21')
  console.log((await sandbox.runCode('x * 2')).text)

  // Files, from both sides.
  await sandbox.files.write('data.csv', 'a,b\n1,2\n3,4\n')
  const table = await sandbox.runCode('import csv; rows = list(csv.DictReader(open("data.csv"))); {k: sum(int(r[k]) for r in rows) for k in rows[0]}')
  console.log(table.text ?? table.error.value)

  // Commands, their output as it comes.
  await sandbox.commands.run('for i in 1 2 3; do echo $i; done', {
    onStdout: (text) => process.stdout.write(text),
  })
} finally {
  await sandbox.kill()
}
