const { greeting } = require("./other");
const [mode, ...args] = process.argv.slice(2);

if (mode === "talk") {
  console.log(greeting());
  for (const a of args) console.log("arg:", a);
  for (const line of require("fs").readFileSync(0, "utf8").trimEnd().split("\n"))
    console.log("stdin:", line);
  process.exit(7);
} else if (mode === "fault") {
  throw new TypeError("boom ä");
} else if (mode === "big") {
  for (let i = 0; i < 10; i++) require("fs").writeSync(1, "x".repeat(1 << 20));
} else if (mode === "loop") {
  for (;;);
} else if (mode === "memory") {
  const all = [];
  for (;;) all.push(Buffer.alloc(1 << 24, 1));
}
