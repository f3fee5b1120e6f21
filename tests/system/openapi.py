#!/usr/bin/python3
"""openapi.py DOCUMENT ANSWERS: holds answers that tests have seen against the schemas of /openapi.json.

A line of ANSWERS is `METHOD PATH STATUS JSON`. An answer must have every field that its schema requires, no field
that the schema does not name, and values of the types and enumerations that it names. Prints what does not fit."""
import functools
import json
import re
import sys

doc = json.load(open(sys.argv[1]))
schemas = doc['components']['schemas']
types = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'null': type(None)}


def is_type(value, name):
    if name == 'integer':
        return isinstance(value, int) and not isinstance(value, bool)
    if name == 'number':
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, types[name])


def check(value, schema, path):
    """Yields a sentence for each place that does not fit."""
    if '$ref' in schema:
        schema = schemas[schema['$ref'].rsplit('/', 1)[1]]
    if 'anyOf' in schema:
        found = [list(check(value, s, path)) for s in schema['anyOf']]
        if all(found):
            yield from min(found, key=len)
        return
    wanted = schema.get('type')
    if wanted and not any(is_type(value, t) for t in ([wanted] if isinstance(wanted, str) else wanted)):
        yield f'{path}: {json.dumps(value)[:60]} is no {wanted}'
        return
    if 'enum' in schema and value not in schema['enum']:
        yield f'{path}: {json.dumps(value)[:60]} is not one of {schema["enum"]}'
    if isinstance(value, list):
        for i, one in enumerate(value):
            yield from check(one, schema.get('items', {}), f'{path}[{i}]')
    if isinstance(value, dict) and wanted:
        named, others = schema.get('properties', {}), schema.get('additionalProperties', False)
        for key in schema.get('required', []):
            if key not in value:
                yield f'{path}.{key}: is missing'
        for key, one in value.items():
            if key in named:
                yield from check(one, named[key], f'{path}.{key}')
            elif others is False:
                yield f'{path}.{key}: is not documented'
            elif others is not True:
                yield from check(one, others, f'{path}.{key}')


# Patterns with fewer parameters come first.
routes = [(re.compile(re.sub(r'\\\{[^}]*\\\}', '[^/]+', re.escape(p))), p) for p in sorted(doc['paths'], key=lambda p: p.count('{'))]


@functools.lru_cache(maxsize=None)
def find(method, path):
    """The schema of the JSON that this route answers with."""
    for route, pattern in routes:
        if method.lower() in doc['paths'][pattern] and route.fullmatch(path):
            content = doc['paths'][pattern][method.lower()]['responses']['2XX'].get('content', {})
            if content and 'application/json' not in content:
                break  # E2B's envd has this path, too, under another host
            return pattern, content.get('application/json', {}).get('schema')
    return None, None


def main():
    seen = set()
    for line in open(sys.argv[2], errors='replace'):
        parts = line.rstrip('\n').split(' ', 3)
        if len(parts) != 4:
            continue
        method, path, _, text = parts
        try:
            value = json.loads(text)
        except ValueError:
            continue  # cut at its end
        pattern, schema = find(method, path)
        if not pattern:
            continue  # another protocol's: those have documents of their own
        if not schema:
            wrong = ['answers JSON that answers.json does not describe']
        else:
            wrong = check(value, schema, '')
        for one in wrong:
            sentence = f'{method} {pattern}: ' + re.sub(r'\[[0-9]+\]', '[]', one)
            if sentence not in seen:
                seen.add(sentence)
                print(sentence)
    return 1 if seen else 0


sys.exit(main())
