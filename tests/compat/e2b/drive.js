// drive.js - node drive.js PACKAGES plain|tls [NAME]: every feature of E2B's packages, against the
// server that the environment names (E2B_API_KEY and the rest). E2B_COMPAT_TABLE: those of one table.
'use strict';
const { load, run } = require('./harness.js');

const [folder, way, only] = process.argv.slice(2);
const release = require(require('node:path').resolve(folder, 'node_modules/e2b/package.json')).version;
const plain = way === 'plain';
const shared = { ...load(folder), plain, title: `e2b ${release} over ${plain ? 'http' : 'https'}` };
const features = ['sandboxes', 'commands', 'files', 'traffic', 'stored', 'code', 'templates'];
const table = process.env.E2B_COMPAT_TABLE;
const tables = (folder.endsWith('tools') ? ['tools'] : table ? [table] : features).map((name) => require(`./${name}.js`));

process.on('unhandledRejection', (e) => {
	console.log(`not ok - ${shared.title}: no promise is left behind\n#   ${e && e.stack}`);
	process.exitCode = 1;
});
run(shared, tables, { only }).then((failed) => process.exit(failed || process.exitCode ? 1 : 0));
