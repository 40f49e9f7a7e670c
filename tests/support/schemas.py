"""JSON schemas for tests and measurements: combinations of keywords, and hand-written ones as applications send them.
schemas() -> [(name, schema)], more than 200."""
import itertools

NAMES = ("id", "name", "title", "price", "quantity", "active", "tags", "email", "created_at", "address", "notes", "status")
TEXT = {"type": "string"}


def record(properties, required=None, closed=True, **more):
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required,
            **({"additionalProperties": False} if closed else {}), **more}


def list_of(items, **more):
    return {"type": "array", "items": items, **more}


def scalars():
    for kind in ("null", "boolean", "integer", "number", "string"):
        yield kind, {"type": kind}
    for low, high in itertools.product((None, -50, 0, 7), (None, 9, 120, 99999)):
        bounds = {k: v for k, v in (("minimum", low), ("maximum", high)) if v is not None}
        yield f"integer {low} {high}", {"type": "integer", **bounds}
        yield f"number {low} {high}", {"type": "number", **bounds}
    for low, high in ((0, 1), (-1.5, 2.25), (0.001, 0.01), (-100, -1)):
        yield f"exclusive {low} {high}", {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}
    for of in (2, 5, 7, 100):
        yield f"multiple {of}", {"type": "integer", "multipleOf": of, "minimum": 0}
    for low, high in itertools.product((0, 1, 5), (None, 5, 20, 1000)):
        yield f"string {low} {high}", {"type": "string", "minLength": low, **({} if high is None else {"maxLength": high})}
    for f in ("date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "duration", "uri"):
        yield f"format {f}", {"type": "string", "format": f}
    for i, p in enumerate(("^[a-z]+$", "^[A-Z]{2,3}-[0-9]{4}$", "^\\+?[0-9 ()-]{7,20}$", "^#[0-9a-fA-F]{6}$", "colou?r", "^(yes|no|maybe)$", "^[^<>]*$",
                           "^[!-~]+$", "^v\\d+\\.\\d+\\.\\d+$", "^[\\w.-]{1,64}$", "^/([a-z0-9-]+/)*$", "^.{3,30}$")):
        yield f"pattern {i}", {"type": "string", "pattern": p}
    yield "pattern and length", {"type": "string", "pattern": "^[a-z ]*$", "minLength": 3, "maxLength": 12}
    for i, values in enumerate((["red", "green", "blue"], [1, 2, 3], ["a", 1, None, True], [f"option {k}" for k in range(40)], [{"k": 1}, [1, "x"]])):
        yield f"enum {i}", {"enum": values}
    yield "const", {"const": {"version": 2, "kind": "x"}}


def arrays():
    items = {"integers": {"type": "integer"}, "strings": TEXT, "enums": {"enum": ["low", "mid", "high"]}, "records": record({"x": {"type": "number"}, "y": {"type": "number"}})}
    for (name, item), (low, high) in itertools.product(items.items(), ((None, None), (1, None), (0, 3), (2, 5), (None, 50))):
        yield f"array of {name} {low} {high}", list_of(item, **({} if low is None else {"minItems": low}), **({} if high is None else {"maxItems": high}))
    yield "tuple", {"type": "array", "prefixItems": [TEXT, {"type": "integer"}, {"type": "boolean"}], "items": False, "minItems": 3}
    yield "open tuple", {"type": "array", "prefixItems": [{"type": "integer"}], "items": TEXT}
    yield "matrix", list_of(list_of({"type": "number"}, minItems=3, maxItems=3), minItems=2, maxItems=4)


def objects():
    kinds = {"id": {"type": "integer"}, "name": TEXT, "title": {"type": "string", "maxLength": 40}, "price": {"type": "number", "minimum": 0},
             "quantity": {"type": "integer", "minimum": 1, "maximum": 99}, "active": {"type": "boolean"}, "tags": list_of(TEXT, maxItems=4),
             "email": {"type": "string", "format": "email"}, "created_at": {"type": "string", "format": "date-time"},
             "address": record({"street": TEXT, "city": TEXT, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}), "notes": {"type": ["string", "null"]},
             "status": {"enum": ["new", "open", "closed"]}}
    for n, required, closed in itertools.product((1, 2, 3, 4, 6, 8, 10, 12), (0, 1, 2), (True, False)):
        names = NAMES[:n]
        yield f"object {n} {required} {closed}", record({k: kinds[k] for k in names}, names if required == 2 else names[:1] if required else [], closed)
    yield "map", {"type": "object", "additionalProperties": {"type": "integer"}}
    yield "map of records", {"type": "object", "additionalProperties": record({"a": TEXT, "b": {"type": "integer"}})}
    yield "patterns", {"type": "object", "patternProperties": {"^x-": TEXT, "_id$": {"type": "integer"}}, "additionalProperties": False}
    yield "names", {"type": "object", "propertyNames": {"pattern": "^[a-z_]+$"}, "additionalProperties": {"type": "boolean"}}
    yield "few", {"type": "object", "properties": {k: kinds[k] for k in NAMES[:4]}, "additionalProperties": False, "minProperties": 1, "maxProperties": 2}
    yield "dependent", {"type": "object", "properties": {"card": TEXT, "holder": TEXT}, "dependentRequired": {"card": ["holder"]}, "additionalProperties": False}
    yield "one property of 60", {"type": "object", "properties": {f"field_{k}": {"type": "integer"} for k in range(60)}, "additionalProperties": False}
    yield "typed additional", {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "additionalProperties": {"type": "number"}}


def combined():
    shape = [record({"kind": {"const": k}, v: {"type": "number"}}) for k, v in (("circle", "radius"), ("square", "side"), ("line", "length"))]
    yield "any shape", {"anyOf": shape}
    yield "one shape", {"oneOf": shape}
    yield "shapes", list_of({"oneOf": shape}, minItems=1)
    yield "nullable", {"anyOf": [record({"a": TEXT}), {"type": "null"}]}
    yield "string or number", {"type": ["string", "number"]}
    yield "all", {"allOf": [record({"a": {"type": "integer"}}, closed=False), {"properties": {"a": {"minimum": 5}, "b": TEXT}, "required": ["b"]}], "unevaluatedProperties": False}
    yield "extended", {"$ref": "#/$defs/base", "properties": {"extra": TEXT}, "required": ["extra"], "$defs": {"base": record({"id": {"type": "integer"}}, closed=False)}}
    yield "alternatives of names", {"type": "object", "properties": {"email": TEXT, "phone": TEXT}, "anyOf": [{"required": ["email"]}, {"required": ["phone"]}], "additionalProperties": False}
    yield "anything", {}
    yield "any object", {"type": "object"}
    yield "any list", {"type": "array"}


def recursive():
    node = record({"value": {"type": "integer"}, "children": list_of({"$ref": "#/$defs/node"}, maxItems=3)})
    yield "tree", {"$ref": "#/$defs/node", "$defs": {"node": node}}
    yield "list", {"$ref": "#/$defs/cell", "$defs": {"cell": record({"head": TEXT, "tail": {"anyOf": [{"$ref": "#/$defs/cell"}, {"type": "null"}]}})}}
    expression = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[a-z]$"}, record({"op": {"enum": ["+", "-", "*"]}, "left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}})]}
    yield "expression", {"$ref": "#/$defs/e", "$defs": {"e": expression}}
    yield "nested lists", {"type": "array", "items": {"$ref": "#"}}
    yield "menu", record({"label": TEXT, "items": list_of({"$ref": "#"})}, ["label"])
    a, b = record({"b": {"$ref": "#/$defs/b"}}, []), record({"a": {"$ref": "#/$defs/a"}}, [])
    yield "mutual", {"$ref": "#/$defs/a", "$defs": {"a": a, "b": b}}


def tools():
    """parameters of functions, as agents declare them"""
    yield "weather", record({"location": {"type": "string", "description": "City and country"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, ["location"])
    yield "search", record({"query": TEXT, "limit": {"type": "integer", "minimum": 1, "maximum": 50}, "filters": record({"after": {"type": "string", "format": "date"}, "language": {"type": "string", "pattern": "^[a-z]{2}$"}}, [])}, ["query"])
    yield "send mail", record({"to": list_of({"type": "string", "format": "email"}, minItems=1, maxItems=10), "subject": {"type": "string", "maxLength": 200}, "body": TEXT, "urgent": {"type": "boolean"}}, ["to", "subject", "body"])
    yield "edit file", record({"path": TEXT, "edits": list_of(record({"old": TEXT, "new": TEXT, "count": {"type": ["integer", "null"]}}), minItems=1)})
    yield "shell", record({"command": TEXT, "timeout_s": {"type": "number", "exclusiveMinimum": 0}, "env": {"type": "object", "additionalProperties": TEXT}}, ["command"])
    yield "flight", record({"from": {"type": "string", "pattern": "^[A-Z]{3}$"}, "to": {"type": "string", "pattern": "^[A-Z]{3}$"}, "date": {"type": "string", "format": "date"}, "class": {"enum": ["economy", "business", "first"]}, "passengers": {"type": "integer", "minimum": 1, "maximum": 9}}, ["from", "to", "date"])
    yield "sql", record({"table": {"type": "string", "pattern": "^[a-z_][a-z0-9_]*$"}, "columns": list_of(TEXT), "where": list_of(record({"column": TEXT, "op": {"enum": ["=", "<", ">", "like"]}, "value": {"type": ["string", "number", "boolean", "null"]}})), "limit": {"type": "integer", "minimum": 0}}, ["table"])
    yield "calendar", record({"title": TEXT, "start": {"type": "string", "format": "date-time"}, "end": {"type": "string", "format": "date-time"}, "attendees": list_of(record({"name": TEXT, "optional": {"type": "boolean"}}, ["name"])), "repeat": {"anyOf": [{"type": "null"}, record({"every": {"enum": ["day", "week", "month"]}, "times": {"type": "integer", "minimum": 1}})]}}, ["title", "start"])


def answers():
    """forms of answers, as programs ask for them"""
    yield "person", record({"name": TEXT, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "hobbies": list_of(TEXT)})
    yield "steps", record({"steps": list_of(record({"explanation": TEXT, "output": TEXT})), "final_answer": TEXT})
    yield "entities", record({"entities": list_of(record({"text": TEXT, "type": {"enum": ["PERSON", "PLACE", "ORG", "DATE"]}, "start": {"type": "integer", "minimum": 0}, "end": {"type": "integer", "minimum": 0}}))})
    yield "sentiment", record({"label": {"enum": ["positive", "neutral", "negative"]}, "score": {"type": "number", "minimum": 0, "maximum": 1}})
    yield "recipe", record({"title": TEXT, "servings": {"type": "integer", "minimum": 1, "maximum": 20}, "ingredients": list_of(record({"name": TEXT, "amount": {"type": "number", "minimum": 0}, "unit": {"type": ["string", "null"], "enum": ["g", "ml", "piece", None]}}), minItems=1), "steps": list_of(TEXT, minItems=1)})
    yield "invoice", record({"number": {"type": "string", "pattern": "^INV-[0-9]{6}$"}, "date": {"type": "string", "format": "date"}, "lines": list_of(record({"item": TEXT, "quantity": {"type": "integer", "minimum": 1}, "unit_price": {"type": "number", "minimum": 0}})), "currency": {"type": "string", "minLength": 3, "maxLength": 3}, "paid": {"type": "boolean"}})
    yield "quiz", record({"questions": list_of(record({"question": TEXT, "options": list_of(TEXT, minItems=4, maxItems=4), "correct": {"type": "integer", "minimum": 0, "maximum": 3}}), minItems=1, maxItems=10)})
    yield "page", record({"url": {"type": "string", "format": "uri"}, "title": TEXT, "headings": list_of(record({"level": {"enum": [1, 2, 3]}, "text": TEXT})), "links": {"type": "object", "additionalProperties": {"type": "string"}}}, ["url", "title"])
    yield "config", record({"name": TEXT, "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"}, "dependencies": {"type": "object", "additionalProperties": TEXT}, "scripts": {"type": "object", "patternProperties": {"^[a-z:]+$": TEXT}, "additionalProperties": False}, "private": {"type": "boolean"}}, ["name"], False)
    yield "verdict", record({"thoughts": TEXT, "answer": {"enum": ["A", "B", "C", "D"]}, "confidence": {"type": "integer", "minimum": 0, "maximum": 100}})
    for depth in (2, 4, 6):
        inner = {"type": "string", "maxLength": 10}
        for k in range(depth):
            inner = record({f"level_{k}": inner, "n": {"type": "integer"}}, [f"level_{k}"])
        yield f"depth {depth}", inner


def schemas():
    return [x for group in (scalars, arrays, objects, combined, recursive, tools, answers) for x in group()]


# ---- documents ---------------------------------------------------------------------------------

WORDS = "the quick brown fox jumps over a lazy dog while seven small boats drift slowly toward the quiet harbor at dawn".split()
FORMATS = {"date": "2024-03-17", "time": "10:32:07Z", "date-time": "2024-03-17T10:32:07Z", "uuid": "3f2b8c1e-9a4d-4e57-8b21-0c6d5f7a9e10", "ipv4": "192.168.0.17",
           "ipv6": "2001:db8::8a2e:370:7334", "email": "jane.doe@example.com", "hostname": "www.example.com", "duration": "P3DT4H", "uri": "https://example.com/path?q=1"}
PATTERNS = {"^[a-z]+$": "harbor", "^[A-Z]{2,3}-[0-9]{4}$": "AB-1234", "^\\+?[0-9 ()-]{7,20}$": "+49 30 1234567", "^#[0-9a-fA-F]{6}$": "#1fA03c", "colou?r": "my color",
            "^(yes|no|maybe)$": "maybe", "^[^<>]*$": "plain text here", "^[!-~]+$": "some-thing", "^v\\d+\\.\\d+\\.\\d+$": "v1.20.3", "^[\\w.-]{1,64}$": "file_name-1.txt",
            "^/([a-z0-9-]+/)*$": "/usr/local/lib/", "^.{3,30}$": "between three and thirty", "^[a-z ]*$": "quiet boats", "^[0-9]{5}$": "10115", "^[a-z_]+$": "some_key",
            "^[a-z]{2}$": "en", "^[A-Z]{3}$": "TXL", "^[a-z_][a-z0-9_]*$": "users_2", "^INV-[0-9]{6}$": "INV-004217", "^\\d+\\.\\d+\\.\\d+$": "2.10.3", "^[a-z]$": "x",
            "^x-": "x-flag", "_id$": "user_id", "^[a-z:]+$": "build:all"}


def text(schema, draw):
    if "pattern" in schema:
        return PATTERNS[schema["pattern"]]
    if "format" in schema:
        return FORMATS[schema["format"]]
    said = " ".join(draw.choices(WORDS, k=draw.randint(2, 9)))
    low, high = schema.get("minLength", 0), schema.get("maxLength", 1000)
    return (said * (1 + low))[:min(high, max(low, len(said)))]


def number(schema, draw):
    low, high = schema.get("minimum", schema.get("exclusiveMinimum", -20)), schema.get("maximum", schema.get("exclusiveMaximum", 5000))
    if schema["type"] == "integer":
        of = schema.get("multipleOf", 1)
        return draw.randint(-(-int(low) // of), max(int(high) // of, -(-int(low) // of))) * of
    return round(low + (high - low) * (0.1 + 0.8 * draw.random()), 4)


def members(schema, root, draw, depth):
    out, required = {}, schema.get("required", [])
    most = schema.get("maxProperties", 1000)
    for key, of in schema.get("properties", {}).items():
        if key in required or (depth < 6 and len(out) < most and draw.random() < 0.5) or len(out) < schema.get("minProperties", 0):
            out[key] = document(of, root, draw, depth + 1)
    if "dependentRequired" in schema and "card" in out:
        out.setdefault("holder", "x")
    for key, of in schema.get("patternProperties", {}).items():
        out[PATTERNS[key]] = document(of, root, draw, depth + 1)
    more = schema.get("additionalProperties", "properties" not in schema)
    for k in range(2 if more else 0):
        out[WORDS[k + 1]] = document(more if isinstance(more, dict) else TEXT, root, draw, depth + 1)
    return out


def document(schema, root, draw, depth=0):
    """A plausible value of one of the schemas above."""
    for word, pick in (("anyOf", draw.choice), ("oneOf", draw.choice)):
        if word in schema:
            options = [o for o in schema[word] if depth < 5 or "null" in str(o.get("type")) or o.get("type") in ("number", "string")] or schema[word]
            option = pick(options)
            return document({**{k: v for k, v in schema.items() if k != word}, **option}, root, draw, depth)
    if "allOf" in schema:
        return {"a": 7, "b": "text"}
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].split("/")[1:]:
            target = target[part]
        rest = {k: v for k, v in schema.items() if k not in ("$ref", "$defs")}
        merged = {**target, **rest}
        if "properties" in target and "properties" in rest:
            merged["properties"] = {**rest["properties"], **target["properties"]}
            merged["required"] = target["required"] + rest["required"]
        return document(merged, root, draw, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(schema["enum"])
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = draw.choice(kind)
    schema = {**schema, "type": kind}
    if kind == "object":
        return members(schema, root, draw, depth)
    if kind == "array":
        first = [document(s, root, draw, depth + 1) for s in schema.get("prefixItems", [])]
        low, high = schema.get("minItems", 0), schema.get("maxItems", 4)
        n = max(low, min(high, draw.randint(1, 4) if depth < 5 else 0)) - len(first)
        items = schema.get("items", TEXT)
        return first + ([document(items, root, draw, depth + 1) for _ in range(n)] if items is not False else [])
    return {"null": None, "boolean": draw.random() < 0.5}.get(kind) if kind in ("null", "boolean") else text(schema, draw) if kind == "string" else number(schema, draw)


if __name__ == "__main__":  # [SCHEMA, [DOCUMENT, ...]] per line, for bench_grammar
    import json
    import random
    for schema_name, one in schemas():
        source = random.Random(schema_name)
        styles = ({}, {"separators": (",", ":")}, {"indent": 2})
        print(json.dumps([one, [json.dumps(document(one, one, source), ensure_ascii=False, **style) for style in styles]]))
