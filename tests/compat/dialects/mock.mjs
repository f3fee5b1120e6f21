// mock.mjs PORTFILE - a published mock server of models, with the fixtures of run.sh.
import { writeFileSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.DIALECTS_COMPAT_CACHE + "/");
const { LLMock } = await import(pathToFileURL(require.resolve("@copilotkit/aimock")).href);
const mock = new LLMock({ port: 0, chunkSize: 7 });

const plan = {
  reasoning: "Print a line.", language: "python", steps: ["print it"], packages: [], entry: "main.py",
  checks: [{ kind: "exit", arg: "0" }, { kind: "stdout_contains", arg: "forty-two" }], inputs_needed: [],
  assumptions: [], confidence: 0.9,
};
const code = (text) => ({
  reasoning: "One line.", files: [{ path: "main.py", content: text }], entry: "main.py", packages: [], stdin: null,
});

mock.addFixture({ match: { userMessage: "list the files", hasToolResult: false },
  response: { toolCalls: [{ name: "run_command", arguments: '{"command":"ls","timeout_ms":5000}' }] } });
mock.addFixture({ match: { userMessage: "list the files", hasToolResult: true }, response: { content: "There is a.c." } });
mock.addFixture({ match: { userMessage: "what time" }, response: { toolCalls: [{ name: "now", arguments: "{}" }] } });
mock.addFixture({ match: { userMessage: "overloaded" },
  response: { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 } });
mock.addFixture({ match: { userMessage: "forbidden" },
  response: { error: { message: "wrong key", type: "authentication_error" }, status: 401 } });
for (const dialect of ["chat", "responses", "messages", "ollama"]) {
  mock.addFixture({ match: { userMessage: "busy " + dialect, sequenceIndex: 0 },
    response: { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 1 } });
  mock.addFixture({ match: { userMessage: "busy " + dialect, sequenceIndex: 1 }, response: { content: "now it goes" } });
}
mock.addFixture({ match: { userMessage: "hang up" }, response: { content: "a long answer that never comes to its end" }, truncateAfterChunks: 2 });
mock.addFixture({ match: { userMessage: "nonsense" }, response: { content: "x" }, chaos: { malformedRate: 1 } });
mock.addFixture({ match: { userMessage: "gone" }, response: { content: "x" }, chaos: { disconnectRate: 1 } });
mock.addFixture({ match: { userMessage: "Give the plan." }, response: { content: JSON.stringify(plan) } });
// The first program is incomplete; the error about it is in the next prompt.
mock.addFixture({ match: { userMessage: "was not accepted" }, response: { content: JSON.stringify(code('print("forty-two")\n')) } });
mock.addFixture({ match: { userMessage: "Write the program." }, response: { content: JSON.stringify(code("# TODO: implement\n")) } });
mock.addFixture({ match: { userMessage: "hello" }, response: { content: "Hello, \u00e9\ud83d\udc22 there." } });

await mock.start();
writeFileSync(process.argv[2] + ".new", new URL(mock.url).port);
renameSync(process.argv[2] + ".new", process.argv[2]);
