// test_node.js - runs the tests of a folder with node's own runner: test_node.js DIR [SOURCE].
// node finds a folder's tests by itself in some versions only, and calls none at all a success in all of them.
// Exit status: node's; 5 if no test file was found.
'use strict';
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');

const NOT_SEARCHED = new Set(['node_modules']);
const TEST_FILE = /(^|[._-])(test|spec)s?([._-].*)?\.[cm]?js$/i;
const HAS_TESTS = /\bnode:test\b|^\s*(test|it|describe)\s*\(/m;

function findFiles(folder, inTests, found) {
	for (const entry of fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const full = path.join(folder, entry.name);
		if (entry.isDirectory()) {
			if (!entry.name.startsWith('.') && !NOT_SEARCHED.has(entry.name))
				findFiles(full, inTests || entry.name === 'test', found);
		} else if (entry.isFile() && (TEST_FILE.test(entry.name) || (inTests && /\.[cm]?js$/.test(entry.name)))) {
			found.push(full);
		}
	}
	return found;
}

const folder = path.resolve(process.argv[2]);
const source = process.argv[3] && path.resolve(process.argv[3]);
const files = findFiles(folder, false, []);
if (source && !files.includes(source) && fs.existsSync(source) && HAS_TESTS.test(fs.readFileSync(source, 'utf8')))
	files.push(source);
if (!files.length) {
	console.error(`no tests were found in ${folder}: files *.test.js, *-test.js, test-*.js, *.spec.js and those of a folder test are looked for`);
	process.exit(5);
}
const ran = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit', cwd: folder });
if (ran.error)
	throw ran.error;
if (ran.signal)
	process.kill(process.pid, ran.signal);
process.exitCode = ran.status;
