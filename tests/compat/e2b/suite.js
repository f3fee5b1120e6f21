// suite.js - node suite.js FILE: prints the results of vitest as totals and a table of failures with reasons.
'use strict';
const { testResults: files } = JSON.parse(require('node:fs').readFileSync(process.argv[2]));
const { relative } = require('node:path');

const n = { passed: 0, failed: 0, skipped: 0 };
const lines = [];
const first = (text) => (text || '').replace(/\u001b\[[0-9;]*m/g, '').split('\n')[0].slice(0, 160).replace(/\|/g, '\\|');

for (const file of files) {
	const name = relative(process.cwd(), file.name);

	if (!file.assertionResults.length && file.status === 'failed') {
		n.failed++;
		lines.push(`| ${name} | (does not load) | ${first(file.message)} |`);
	}
	for (const test of file.assertionResults) {
		n[test.status in n ? test.status : 'skipped']++;
		if (test.status === 'failed') lines.push(`| ${name} | ${test.fullName.trim()} | ${first(test.failureMessages[0])} |`);
	}
}
console.log(`${n.passed} passed, ${n.failed} failed, ${n.skipped} skipped by themselves\n`);
if (lines.length) console.log(`| file | test | said |\n|---|---|---|\n${lines.sort().join('\n')}`);
process.exitCode = n.failed > 0 ? 1 : 0;
