// node.js - runs cells of JavaScript or TypeScript, one after the other, in one global scope.
//
//	node node.js [typescript]     descriptor 3 is the channel: docs/languages.md
//
// Cells are evaluated by V8's own console mode (Runtime.evaluate with replMode): it knows top-level
// await, values of statements, and lets a cell declare `let x` again. The session is in this process;
// nothing listens anywhere.
//
// An interrupt is SIGINT. While a cell computes, vm's breakOnSigint ends it; while it waits for a
// promise, we look for one every few milliseconds. A loop that never yields *after* an await is beyond
// both. No listener is used: vm takes listeners away while it runs something, and in the moments
// between a SIGINT would kill us. The watchdog behind breakOnSigint has no such moments once it is
// held, and remembers what came when nothing ran.
//
// The channel stays where it is, as node has no dup(); it is close-on-exec from the start.
'use strict';

const fs = require('fs');
const net = require('net');
const vm = require('vm');
const path = require('path');
const util = require('util');
const { Session } = require('inspector');
const { createRequire, builtinModules } = require('module');
const { pathToFileURL } = require('url');
const { Console } = require('console');
const { Writable } = require('stream');

const LINE_MAX = 16 << 20; // one line on the channel, both ways
const TEXT_MAX = 1 << 20; // text/plain of a result
const ERROR_MAX = 256 << 10;
const FRAMES_MAX = 100;
const SOURCES_MAX = 1000; // cells whose text is kept for errors

// The user's code shares our realm and may patch what it likes; these stay ours.
const { stringify, parse } = JSON;
const { writeSync, readSync } = fs;
const inspect = util.inspect;
const reallyExit = process.exit.bind(process);
const evaluate_name = Symbol.for('atoll.evaluate');
const value_name = Symbol.for('atoll.value');
const pause = new Int32Array(new SharedArrayBuffer(4));
const wait = Atomics.wait.bind(null, pause, 0, 0);

let channel = 3;
let socket = null;
let session = null;
let ts = null; // the TypeScript compiler, for that language
let checker = null; // and what finds its type errors
let cell = null; // the one that runs: { id, name, before, tries }
let queue = []; // messages that wait for their turn
let count = 0;
let looking = null; // the timer that looks for interrupts while a cell waits
let watchdog = process.binding('contextify');
const sources = new Map(); // "<cell 3>": its text
const places = new Map(); // 3: for each line of what TypeScript made of cell 3, the line it was
const answers = []; // to prompt()

// The channel -----------------------------------------------------------------------------------

/* What a strict reader refuses is written as text: NUL, half a surrogate pair. */
function clean(text) {
	return text.replace(/\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
		(c) => (c === '\0' ? '\\x00' : '\\u' + c.charCodeAt(0).toString(16)));
}

function plain(value, depth = 0) {
	if (typeof value === 'string')
		return clean(value);
	if (typeof value === 'number')
		return Number.isInteger(value) && Math.abs(value) >= 2 ** 63 ? String(value) : value;
	if (value === null || typeof value === 'boolean')
		return value;
	if (typeof value !== 'object')
		return typeof value === 'bigint' ? String(value) : null;
	if (depth > 60)
		return null;
	if (Array.isArray(value))
		return value.map((v) => plain(v, depth + 1));
	if (typeof value.toJSON === 'function')
		return plain(value.toJSON(), depth + 1);
	const out = {};
	for (const [k, v] of Object.entries(value))
		if (v !== undefined && typeof v !== 'function')
			out[clean(k)] = plain(v, depth + 1);
	return out;
}

function toLine(event) {
	return stringify(plain(event)).replace(/[\u007f-\uffff]/g,
		(c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

function writeAll(fd, bytes) {
	for (let at = 0; at < bytes.length;) {
		try {
			at += writeSync(fd, bytes, at);
		} catch (e) {
			if (e.code !== 'EAGAIN')
				throw e;
			wait(2); // the reader is slow, and we have nothing else to do
		}
	}
}

/* An interrupt ends a cell between any two calls, also those of a display() in here. What is left of
 * a line then goes first next time. */
let rest = null;

function emit(event) {
	const line = Buffer.from(toLine(event) + '\n');
	rest = rest ? Buffer.concat([rest, line]) : line;
	while (rest) {
		const bytes = rest;
		let sent = 0;
		rest = null;
		try {
			sent = writeSync(channel, bytes);
		} catch (e) {
			if (e.code === 'EAGAIN')
				wait(2);
			else if (e.code === 'EPIPE' || e.code === 'EBADF')
				reallyExit(1); // the server has closed the channel
			else
				throw e;
		}
		rest = sent < bytes.length ? bytes.subarray(sent) : null;
	}
}

/* Cuts bytes into lines. One that is too long is replaced by its id. */
class Lines {
	constructor(take) {
		this.take = take;
		this.parts = [];
		this.size = 0;
		this.head = null;
	}

	feed(bytes) {
		for (let end; (end = bytes.indexOf(10)) >= 0; bytes = bytes.subarray(end + 1)) {
			this.keep(bytes.subarray(0, end));
			const line = Buffer.concat(this.parts);
			const head = this.head;
			this.parts = [];
			this.size = 0;
			this.head = null;
			this.take(head ? { tooLong: idOf(head) || idOf(line.subarray(-4096)) } : message(line));
		}
		this.keep(bytes);
	}

	keep(bytes) {
		this.parts.push(bytes);
		this.size += bytes.length;
		if (this.size > LINE_MAX) {
			const all = Buffer.concat(this.parts);
			this.head = this.head || all.subarray(0, 4096);
			this.parts = [Buffer.from(all.subarray(-4096))];
			this.size = this.parts[0].length;
		}
	}
}

function idOf(bytes) {
	const found = /"id": ?"([^"\\]{0,100})"/.exec(bytes.toString('latin1'));
	return found ? found[1] : '';
}

function message(line) {
	try {
		const m = parse(line.toString('utf8'));
		if (m && typeof m === 'object' && (m.op === 'input' || (m.op === 'run' && typeof m.id === 'string')))
			return m;
	} catch {
		// told below
	}
	note(`driver: not a message: ${line.toString('latin1', 0, 80)}`);
	return null;
}

function note(text) {
	try {
		writeAll(2, Buffer.from(text + '\n'));
	} catch {
		// the user has closed it
	}
}

// Results ---------------------------------------------------------------------------------------

const display_method = Symbol.for('Jupyter.display');

function represent(value, raw) {
	let data = {};
	if (raw)
		data = { ...value };
	else if (value !== null && typeof value === 'object' && typeof value[display_method] === 'function')
		data = { ...value[display_method]() };
	for (const [mime, v] of Object.entries(data))
		if (v instanceof Uint8Array)
			data[mime] = Buffer.from(v).toString('base64');
		else if (typeof v !== 'string' && !/json$/.test(mime))
			delete data[mime];
	if (!raw && typeof data['text/plain'] !== 'string')
		data['text/plain'] = inspect(value, { maxStringLength: TEXT_MAX, maxArrayLength: 1000 });
	return data;
}

function sendResult(value, main, raw) {
	if (!cell)
		return void console.log(value);
	const data = represent(value, raw);
	const truncated = [];
	if (data['text/plain']?.length > TEXT_MAX) {
		data['text/plain'] = data['text/plain'].slice(0, TEXT_MAX);
		truncated.push('text/plain');
	}
	const sizes = Object.fromEntries(Object.entries(data).map(([k, v]) => [k, toLine(v).length]));
	const total = () => Object.values(sizes).reduce((a, b) => a + b + 100, 4096);
	while (total() > LINE_MAX) {
		const largest = Object.keys(sizes).reduce((a, b) => (sizes[a] >= sizes[b] ? a : b));
		truncated.push(largest);
		delete sizes[largest];
		delete data[largest];
	}
	emit({ ev: 'result', id: cell.id, main, data, extra: {}, ...(truncated.length ? { truncated } : {}) });
}

function display(value, options) {
	sendResult(value, false, options?.raw === true);
}

/* As in a browser: asks, and blocks until the answer is there. */
function prompt(text = '') {
	if (!cell)
		return null;
	emit({ ev: 'input', id: cell.id, prompt: String(text), password: false });
	const bytes = Buffer.alloc(1 << 16);
	for (;;) {
		while (answers.length) {
			const answer = answers.shift();
			if (answer.id === cell.id)
				return typeof answer.text === 'string' ? answer.text.replace(/\n$/, '') : null;
		}
		let n = -1;
		try {
			n = readSync(channel, bytes, 0, bytes.length);
		} catch (e) {
			if (e.code !== 'EAGAIN')
				reallyExit(1);
			wait(5);
		}
		if (n === 0)
			reallyExit(0);
		if (n > 0)
			lines.feed(Buffer.from(bytes.subarray(0, n)));
	}
}

// Errors ----------------------------------------------------------------------------------------

class Interrupted extends Error {}
class SystemExit extends Error {}
for (const kind of [Interrupted, SystemExit])
	Object.defineProperty(kind.prototype, 'name', { value: kind.name });

function sourceLine(file, line) {
	return (sources.get(file)?.split('\n')[line - 1] ?? '').trim().slice(0, 1000);
}

/* The lines of a stack down to the cell; below it are we, and above it we may be, too. */
function userLines(stack) {
	const out = [];
	let frames = 0;
	for (const line of stack.split('\n')) {
		const frame = /^\s+at /.test(line);
		if (frame && (line.includes('node:inspector') || (frames && line.includes(__filename))))
			break;
		if (frame && line.includes(__filename))
			continue;
		frames += frame;
		out.push(line.replace(/\bcell-(\d+):(\d+)(?=:\d+\)?$)/, (_, n, at) =>
			`<cell ${n}>:${places.get(+n)?.[at - 1] ?? at}`));
	}
	return out;
}

const userStack = (stack) => userLines(stack).join('\n');

function framesOf(stack) {
	const frames = [];
	for (const line of userLines(stack)) {
		const found = /^\s+at (?:async )?(?:(.*?) \()?(.*?):(\d+):(\d+)\)?$/.exec(line);
		if (found)
			frames.push({ file: found[2], line: +found[3], name: found[1] ?? '<cell>', text: '' });
	}
	for (const f of frames)
		f.text = sourceLine(f.file, f.line);
	return frames.slice(0, FRAMES_MAX).reverse(); // outermost first
}

function text(function_) {
	try {
		return String(function_());
	} catch {
		return '';
	}
}

function sendError(error, details) {
	const e = { ev: 'error', id: cell.id, name: 'Error', value: '', frames: [], text: '' };
	if (util.types.isNativeError(error) || error instanceof Error) {
		e.name = text(() => error.name) || 'Error';
		e.value = text(() => error.message);
		const stack = text(() => error.stack);
		e.frames = framesOf(stack);
		e.text = userStack(stack) || `${e.name}: ${e.value}`;
		if (error.cause !== undefined && error.cause !== null)
			e.text += `\n[cause]: ${text(() => userStack(error.cause.stack ?? inspect(error.cause)))}`;
	} else {
		e.name = 'Uncaught';
		e.value = text(() => (typeof error === 'string' ? error : inspect(error)));
		e.text = `Uncaught ${text(() => inspect(error))}`;
	}
	if (details && error instanceof SyntaxError && !e.frames.length) {
		const line = details.lineNumber + 1;
		const column = details.columnNumber;
		e.frames = [{ file: cell.name, line, name: '<cell>', text: sourceLine(cell.name, line) }];
		const shown = sources.get(cell.name)?.split('\n')[line - 1] ?? '';
		const mark = ' '.repeat(Math.min(column, 1000)) + '^';
		e.text = `${cell.name}:${line}\n${shown.slice(0, 1000)}\n${mark}\n${e.name}: ${e.value}`;
	}
	e.name = e.name.slice(0, 1000);
	e.value = e.value.slice(0, ERROR_MAX);
	e.text = e.text.slice(0, ERROR_MAX);
	emit(e);
}

// From a cell to a script ------------------------------------------------------------------------
//
// Code that came by the inspector cannot import. So import(...) becomes a call of ours, and a static
// import a declaration with await. V8 lets a `let` be declared again, but only as `let` or `class`: at
// the top every const is one. A small scanner keeps out of strings, comments and patterns.

const TOKEN = new RegExp([
	'//[^\\n]*', '/\\*[^]*?\\*/', // comments
	"'(?:[^'\\\\\\n]|\\\\[^])*'", '"(?:[^"\\\\\\n]|\\\\[^])*"', // strings
	'`(?:[^`\\\\$]|\\\\[^]|\\$(?!\\{))*(?:`|\\$\\{)', // a template, as far as its first hole
	'(?<=[=(,;:!&|?{}+\\-*%<>~^\\[]\\s*|^\\s*|\\breturn\\s+)/(?![*/])(?:[^/\\\\\\n\\[]|\\\\.|\\[(?:[^\\]\\\\\\n]|\\\\.)*\\])+/[a-z]*',
	'[.#]?[A-Za-z_$][\\w$]*', '[{}]', '[^]',
].join('|'), 'gy');

const STATIC = /import\s*(?:type\s+)?(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*)?(?:\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"\n]+)\4(?:\s*(?:with|assert)\s*\{[^}]*\})?[ \t]*;?/y;

function rewrite(code) {
	if (!/\b(?:import|const)\b/.test(code))
		return code;
	let out = '';
	const holes = []; // depth of braces where a template's hole began
	let depth = 0;
	TOKEN.lastIndex = 0;
	for (let found; TOKEN.lastIndex < code.length && (found = TOKEN.exec(code));) {
		let token = found[0];
		const at = found.index;
		if (token === '{')
			depth++;
		else if (token === '}' && holes.length && holes[holes.length - 1] === depth) {
			// Back in the template: its text continues until the next hole or its end.
			const rest = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/y;
			rest.lastIndex = TOKEN.lastIndex;
			const more = rest.exec(code)?.[0] ?? '';
			token += more;
			TOKEN.lastIndex += more.length;
			if (!more.endsWith('${'))
				holes.pop();
		} else if (token === '}')
			depth--;
		else if (token[0] === '`' && token.endsWith('${'))
			holes.push(depth);
		else if (token === 'import')
			token = rewriteImport(code, at, depth === 0 && !holes.length);
		else if (token === 'const' && depth === 0 && !/^\s+enum\b/.test(code.slice(at + 5, at + 20)))
			token = 'let';
		out += token;
	}
	return out;
}

function rewriteImport(code, at, top) {
	const rest = code.slice(at + 6, at + 200);
	if (/^\s*\(/.test(rest))
		return '__atoll_import__';
	STATIC.lastIndex = at;
	const found = top ? STATIC.exec(code) : null;
	if (!found)
		return 'import';
	TOKEN.lastIndex = at + found[0].length;
	const [whole, name, all, some, , from] = found;
	const newlines = '\n'.repeat(whole.split('\n').length - 1); // lines keep their numbers
	const load = `await __atoll_import__(${stringify(from)})`;
	if (all)
		return `let ${all} = ${load}${name ? `, ${name} = ${all}.default` : ''};${newlines}`;
	const names = [];
	if (name)
		names.push(`default: ${name}`);
	for (const part of (some ?? '').split(',').map((s) => s.trim()).filter((s) => s && !/^type\s/.test(s)))
		names.push(part.replace(/\s+as\s+/, ': '));
	return names.length ? `let { ${names.join(', ')} } = ${load};${newlines}` : `${load};${newlines}`;
}

/* A name that is a function or a var already cannot become a let, nor the other way round: such a
 * declaration is made an assignment. Null when there is none to be found. */
function redeclare(code, error) {
	const name = /^Identifier '([\w$]+)' has already been declared$/.exec(error?.message ?? '')?.[1];
	if (!name)
		return null;
	const word = name.replace(/\$/g, '\\$&');
	const again = code.replace(new RegExp(`^([ \\t]*|.*?;[ \\t]*)(?:let|var)\\s+(${word})\\s*(?==[^=>])`, 'm'), '$1$2 ')
		.replace(new RegExp(`^([ \\t]*|.*?;[ \\t]*)((?:async\\s+)?function\\s*\\*?|class)\\s+(${word})\\b`, 'm'), '$1;$3 = $2 $3');
	return again === code ? null : again;
}

let importer = { cwd: null, load: null };

/* Resolves as a file in the working folder would. */
function importHere(name) {
	const cwd = process.cwd();
	if (importer.cwd !== cwd) {
		importer = { cwd, load: null };
		if (vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER)
			importer.load = new vm.Script('(name) => import(name)', {
				filename: path.join(cwd, 'cell.js'),
				importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
			}).runInThisContext();
		else
			importer.load = (spec) => import(resolveHere(spec, cwd));
	}
	return importer.load(String(name));
}

function resolveHere(spec, cwd) {
	if (/^[a-z]+:/.test(spec) || builtinModules.includes(spec))
		return spec;
	return pathToFileURL(createRequire(path.join(cwd, 'cell.js')).resolve(spec)).href;
}

let required = { cwd: null, require: null };

function requireHere() {
	const cwd = process.cwd();
	if (required.cwd !== cwd)
		required = { cwd, require: createRequire(path.join(cwd, 'cell.js')) };
	return required.require;
}

// TypeScript ------------------------------------------------------------------------------------

function loadTypeScript() {
	const places = [process.cwd(), '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
	for (const place of places) {
		try {
			return createRequire(path.join(place, 'x.js'))(place.endsWith('s') && place !== process.cwd() ?
				path.join(place, 'typescript') : 'typescript');
		} catch (e) {
			if (e.code !== 'MODULE_NOT_FOUND')
				throw e;
		}
	}
	throw new Error('TypeScript is not installed here: no module typescript in ' + places.join(', '));
}

function complain(found, code) {
	const frames = [];
	const lines = [];
	for (const d of found.slice(0, 20)) {
		const before = code.slice(0, d.start ?? 0).split('\n');
		const line = before.length;
		const said = ts.flattenDiagnosticMessageText(d.messageText, '\n');
		frames.push({ file: cell.name, line, name: '<cell>', text: sourceLine(cell.name, line) });
		lines.push(`${cell.name}:${line}:${before[line - 1].length + 1} - error TS${d.code}: ${said}`);
	}
	const value = ts.flattenDiagnosticMessageText(found[0].messageText, '\n');
	emit({ ev: 'error', id: cell.id, name: 'TypeScriptError', value, frames, text: lines.join('\n') });
}

/* The JavaScript of a cell; null when it has errors, which have been sent. */
function transpile(code) {
	const keepImports = parseInt(ts.versionMajorMinor) >= 5 ? 'verbatimModuleSyntax' : 'preserveValueImports';
	const made = ts.transpileModule(code, {
		compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, [keepImports]: true,
			sourceMap: true },
		reportDiagnostics: true, fileName: 'cell.ts',
	});
	const found = made.diagnostics.length ? made.diagnostics : checker.check(code);
	if (found.length)
		complain(found, code);
	places.set(count, linesOf(parse(made.sourceMapText).mappings));
	return found.length ? null : made.outputText.replace(/^export \{\};?$|^\/\/# sourceMappingURL=.*$/gm, '');
}

/* Of a source map: the original line of the first mark on each line. */
function linesOf(mappings) {
	const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
	const out = [];
	let original = 0;
	for (const marks of mappings.split(';')) {
		let first = null;
		for (const mark of marks.split(',')) {
			const fields = [];
			let value = 0, shift = 0;
			for (const c of mark) { // base 64, low digits first, the lowest bit is the sign
				const digit = digits.indexOf(c);
				value += (digit & 31) << shift;
				shift += 5;
				if (digit & 32)
					continue;
				fields.push(value & 1 ? -(value >> 1) : value >> 1);
				value = shift = 0;
			}
			original += fields[2] ?? 0;
			first ??= fields.length > 2 ? original + 1 : null;
		}
		out.push(first ?? original + 1);
	}
	return out;
}

/* Type errors. A cell is checked as a module, behind declarations of what the cells before left. */
class Checker {
	constructor() {
		this.known = new Map(); // name: its declaration
		this.texts = { '/prelude.d.ts': prelude(), '/history.ts': '', '/cell.ts': '' };
		this.version = 0;
		const settings = {
			target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, lib: ['lib.es2022.d.ts'], types: [],
			moduleResolution: ts.ModuleResolutionKind.Node10 ?? ts.ModuleResolutionKind.NodeJs,
			esModuleInterop: true, skipLibCheck: true, noEmit: true,
		};
		this.service = ts.createLanguageService({
			getCompilationSettings: () => settings,
			getScriptFileNames: () => Object.keys(this.texts),
			getScriptVersion: (f) => (f === '/prelude.d.ts' || !(f in this.texts) ? '0' : String(this.version)),
			getScriptSnapshot: (f) => {
				const body = this.texts[f] ?? ts.sys.readFile(f);
				return body === undefined ? undefined : ts.ScriptSnapshot.fromString(body);
			},
			getCurrentDirectory: () => process.cwd(),
			getDefaultLibFileName: (o) => ts.getDefaultLibFilePath(o),
			fileExists: (f) => f in this.texts || ts.sys.fileExists(f),
			readFile: (f) => this.texts[f] ?? ts.sys.readFile(f),
		});
	}

	check(code) {
		this.texts['/cell.ts'] = `${code}\nexport {};`;
		this.version++;
		const found = this.service.getSemanticDiagnostics('/cell.ts')
			.filter((d) => d.category === ts.DiagnosticCategory.Error);
		if (!found.length)
			this.remember();
		return found;
	}

	remember() {
		const program = this.service.getProgram();
		const types = program.getTypeChecker();
		const file = program.getSourceFile('/cell.ts');
		const asName = (node, word) => {
			if (ts.isIdentifier(node)) {
				const type = types.typeToString(types.getTypeAtLocation(node), undefined, ts.TypeFormatFlags.NoTruncation);
				this.known.set(node.text, `declare ${word} ${node.text}: ${type};`);
			} else
				node.elements.forEach((e) => e.name && asName(e.name, word));
		};
		for (const s of file.statements) {
			if (ts.isVariableStatement(s))
				s.declarationList.declarations.forEach((d) =>
					asName(d.name, s.declarationList.flags & ts.NodeFlags.Const ? 'const' : 'let'));
			else if (ts.isImportDeclaration(s) && s.importClause)
				[s.importClause, s.importClause.namedBindings, ...(s.importClause.namedBindings?.elements ?? [])]
					.forEach((n) => n?.name && asName(n.name, 'let'));
			else if (s.name && ts.isIdentifier(s.name))
				this.known.set(s.name.text, s.getText(file).replace(/^export (default )?/, ''));
		}
		this.texts['/history.ts'] = [...this.known.values()].join('\n');
	}
}

/* Everything that node has and the language has not may be anything; so may every module. */
function prelude() {
	const names = Object.getOwnPropertyNames(globalThis).filter((n) => /^[A-Za-z]\w*$/.test(n) && n !== 'undefined');
	const language = new Set(vm.runInNewContext('Object.getOwnPropertyNames(globalThis)'));
	return names.filter((n) => !language.has(n) || n === 'console')
		.map((n) => `declare var ${n}: any;${/^[A-Z]/.test(n) ? ` type ${n} = any;` : ''}`)
		.join('\n') + `\ndeclare var _: any, require: any, module: any, exports: any;\ndeclare module '*';\n`;
}

// A cell ----------------------------------------------------------------------------------------

function setEnv(env) {
	const before = {};
	for (const [k, v] of Object.entries(env ?? {})) {
		before[k] = process.env[k];
		process.env[k] = v;
	}
	return before;
}

function unsetEnv(before) {
	for (const [k, v] of Object.entries(before)) {
		if (v === undefined)
			delete process.env[k];
		else
			process.env[k] = v;
	}
}

function refuse(id, name, value) {
	emit({ ev: 'error', id, name, value, frames: [], text: `${name}: ${value}` });
	emit({ ev: 'end', id, status: 'error', count });
	next();
}

function take(m) {
	if (!m)
		return;
	if (m.op === 'input') {
		if (answers.length < 64)
			answers.push(m);
		return;
	}
	queue.push(m);
	if (!cell && queue.length === 1)
		next();
}

const lines = new Lines(take);

function next() {
	if (!queue.length || cell)
		return;
	wasInterrupted(); // what came before is of no concern to this one
	cell = { id: queue[0].id ?? queue[0].tooLong, name: '', before: {}, tries: 8 };
	setImmediate(() => begin(queue.shift()));
}

function begin(m) {
	const { id } = cell;
	if (m.tooLong !== undefined || typeof m.code !== 'string') {
		cell = null;
		if (m.tooLong !== undefined)
			refuse(id, 'CellTooLarge', `the message has more than ${LINE_MAX >> 20} MiB`);
		else
			refuse(id, 'BadMessage', 'code is a string, env an object');
		return;
	}
	count++;
	cell.name = `<cell ${count}>`;
	sources.set(cell.name, m.code);
	if (sources.size > SOURCES_MAX) {
		sources.delete(sources.keys().next().value);
		places.delete(count - SOURCES_MAX);
	}
	answers.length = 0;
	let code = m.code;
	if (ts && (code = transpile(code)) === null)
		return finish('error');
	cell.before = setEnv(m.env);
	globalThis.require = requireHere();
	code = rewrite(code);
	if (wasInterrupted())
		return finish('interrupted', new Interrupted('the cell was interrupted before it began'));
	compute(cell, code);
	if (cell)
		looking = setInterval(look, 10);
}

const run = new vm.Script(`globalThis[Symbol.for('atoll.evaluate')]()`, { filename: __filename });

function compute(mine, code) {
	const evaluate = () => {
		session.post('Runtime.evaluate', {
			expression: `${code}\n//# sourceURL=cell-${count}`,
			replMode: true,
			generatePreview: false,
		}, (failed, answer) => {
			if (cell === mine)
				takeAnswer(failed, answer, code);
		});
	};
	Object.defineProperty(globalThis, evaluate_name, { value: evaluate, configurable: true });
	try {
		run.runInThisContext({ breakOnSigint: true, displayErrors: false });
	} catch (e) {
		if (cell === mine)
			finish('interrupted', new Interrupted('the cell was interrupted'));
	}
}

/* The object itself, for the inspector's name of it. */
function objectOf(remote) {
	const odd = remote.unserializableValue; // 5n, NaN, -0
	if (odd !== undefined)
		return remote.type === 'bigint' ? BigInt(odd.slice(0, -1)) : Number(odd);
	if (remote.objectId === undefined)
		return remote.type === 'undefined' ? undefined : remote.value;
	let value;
	Object.defineProperty(globalThis, value_name, { value: (v) => { value = v; }, configurable: true });
	session.post('Runtime.callFunctionOn', {
		functionDeclaration: `function (v) { globalThis[Symbol.for('atoll.value')](v); }`,
		objectId: remote.objectId, arguments: [{ objectId: remote.objectId }],
	});
	session.post('Runtime.releaseObject', { objectId: remote.objectId });
	return value;
}

function takeAnswer(failed, answer, code) {
	if (failed)
		return finish('error', new Error(failed.message));
	if (answer.exceptionDetails) {
		const error = objectOf(answer.exceptionDetails.exception);
		const again = cell.tries-- > 0 && error instanceof SyntaxError ? redeclare(code, error) : null;
		return again !== null ? compute(cell, again) : finish('error', error, answer.exceptionDetails);
	}
	const value = objectOf(answer.result);
	if (value !== undefined) {
		try {
			sendResult(value, true, false);
			globalThis._ = value;
		} catch (e) {
			return finish('error', e);
		}
	}
	finish('ok');
}

function finish(status, ...error) {
	if (error.length)
		sendError(...error);
	unsetEnv(cell.before);
	const { id } = cell;
	cell = null;
	clearInterval(looking);
	emit({ ev: 'end', id, status, count });
	next();
}

// The whole -------------------------------------------------------------------------------------

/* Has there been a SIGINT that ended nothing? Asking forgets it: a hold that is not the last one. */
function wasInterrupted() {
	watchdog.startSigintWatchdog();
	return watchdog.stopSigintWatchdog();
}

function look() {
	if (wasInterrupted() && cell)
		finish('interrupted', new Interrupted('the cell was interrupted while it waited'));
}

/* An error that no cell waits for: told, and the context lives. */
function onStray(e) {
	note(`Uncaught ${text(() => userStack(e?.stack ?? inspect(e)))}`);
}

/* node's own streams write to a pipe when it has room, and keep state that an interrupt can leave
 * half way. Here a write is a write. */
function outputTo(fd) {
	const out = new Writable({ write(chunk, encoding, done) { done(); } });
	out.write = (chunk, encoding, done) => {
		const bytes = typeof chunk === 'string' ?
			Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') :
			Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
		let failed = null;
		try {
			writeAll(fd, bytes);
		} catch (e) {
			failed = e;
		}
		done = typeof encoding === 'function' ? encoding : done;
		if (typeof done === 'function')
			process.nextTick(done, failed);
		return true;
	};
	out.end = (chunk, ...more) => {
		if (chunk !== undefined && typeof chunk !== 'function')
			out.write(chunk, ...more);
		return out;
	};
	return Object.assign(out, { fd, _type: 'pipe', _isStdio: true, destroy: () => out, destroySoon: () => out });
}

function setGlobals() {
	for (const [name, fd] of [['stdout', 1], ['stderr', 2]])
		Object.defineProperty(process, name, { value: outputTo(fd), configurable: true, enumerable: true, writable: true });
	const own = new Console({ stdout: process.stdout, stderr: process.stderr });
	const values = { require: requireHere(), display, prompt, console: own, __atoll_import__: importHere,
		module: { exports: {} }, exports: {} };
	for (const [name, value] of Object.entries(values))
		Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
	Object.defineProperty(globalThis, '_', { value: undefined, writable: true, configurable: true, enumerable: false });
	process.exit = (code) => { throw new SystemExit(String(code ?? process.exitCode ?? 0)); };
	process.argv.length = 1;
	const warn = process.emitWarning;
	process.emitWarning = (text_, ...rest) => { // we use that loader, not the user
		if (!String(text_).includes('USE_MAIN_CONTEXT_DEFAULT_LOADER'))
			warn.call(process, text_, ...rest);
	};
}

function main(fd = 3, words = process.argv.slice(2)) {
	channel = fd;
	if (words[0] === 'typescript')
		ts = loadTypeScript();
	session = new Session();
	session.connect();
	setGlobals();
	checker = ts && new Checker();
	if (!watchdog.startSigintWatchdog) { // a node without it: the moments are back
		let hit = false;
		process.on('SIGINT', () => { hit = true; });
		watchdog = { startSigintWatchdog() {}, stopSigintWatchdog() { const was = hit; hit = false; return was; } };
	}
	watchdog.startSigintWatchdog(); // held for good
	process.on('uncaughtException', onStray);
	process.on('unhandledRejection', onStray);
	socket = new net.Socket({ fd, readable: true, writable: false });
	socket.on('data', (bytes) => lines.feed(bytes));
	socket.on('end', () => reallyExit(0));
	socket.on('error', () => reallyExit(1));
	emit({ ev: 'ready', language: ts ? 'typescript' : 'javascript', version: ts ? ts.version : process.versions.node });
	if (checker)
		setImmediate(() => checker.check('')); // the libraries are read once, and better now
}

module.exports = { main };
if (require.main === module)
	main();
