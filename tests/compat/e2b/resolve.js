// resolve.js - node --require: every name below E2B_COMPAT_DOMAIN, and below localhost, is this
// machine. A wildcard cannot be written into /etc/hosts, and the clients must stay as they are.
'use strict';
const dns = require('node:dns');

const domain = (process.env.E2B_COMPAT_DOMAIN || 'localhost').split(':')[0];
const real = dns.lookup;

const ours = (name) =>
	[domain, 'localhost'].some((end) => name === end || name.endsWith(`.${end}`));

dns.lookup = function lookup(name, options, done) {
	if (typeof options === 'function') [options, done] = [{}, options];
	if (!ours(name)) return real.call(dns, name, options, done);
	if (options && options.all) return process.nextTick(done, null, [{ address: '127.0.0.1', family: 4 }]);
	return process.nextTick(done, null, '127.0.0.1', 4);
};
