"""Random JSON schemas of keywords that exclude or count values, and documents for all of them.

schema(draw) -> a schema; DOCUMENTS: values; texts(value) -> all ways to write one, in any order of names
"""
import itertools
import json

DOCUMENTS = [None, True, False, 0, 1, 2, -1, 1.5, 0.5, 3, "", "a", "b", "ab", "abc", [], [1], ["a"], [1, 1], [1, 2], ["a", "b"], ["a", "a"], [True], [1, "a"], [2, "a", 1],
             {}, {"a": 1}, {"b": "a"}, {"a": "a", "b": 1}, {"a": 2, "b": 2}, {"a": [1]}, {"c": 1}, {"a": None, "c": 2}]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object", ["string", "integer"], ["array", "object"], ["integer", "null"]]


def some(draw, values, most):
    return draw.sample(values, draw.randint(1, most))


def plain(draw):
    """{a keyword that says something about values themselves}"""
    count = draw.randint(0, 2)
    bound = draw.choice([0, 1, 2, 1.5, -1])
    return draw.choice([
        {"type": draw.choice(TYPES)}, {"enum": some(draw, [None, True, False, 0, 1, 2, "a", "b", "ab", 1.5, [], {}], 4)}, {"const": draw.choice([1, "a", None, True, 2, "ab", 0.5])},
        {"minimum": bound}, {"maximum": bound}, {"exclusiveMinimum": bound}, {"minLength": count}, {"maxLength": count}, {"minItems": count}, {"maxItems": count}, {"maxProperties": count},
        {"pattern": draw.choice(["^a", "b$", "^[ab]*$", "c"])}, {"required": some(draw, ["a", "b", "c"], 2)}, {"multipleOf": draw.choice([0.5, 2, 1, 3])},
        {"uniqueItems": True, "items": {"enum": some(draw, [1, 2, "a", "b", True], 4)}}])


def nested(draw, depth):
    """{a keyword with schemas in it, and what belongs to it}"""
    def below():
        return draw.choice((True, False)) if draw.random() < 0.06 else schema(draw, depth + 1)

    def maybe(chance, **more):
        return {k: v() for k, v in more.items() if draw.random() < chance}
    word = draw.choice(("properties", "items", "additionalProperties", "prefixItems", "contains", "not", "if", "anyOf", "allOf", "oneOf", "dependentRequired", "dependentSchemas"))
    if word == "properties":
        return {word: {name: below() for name in some(draw, ["a", "b", "c"], 2)}}
    if word in ("prefixItems", "anyOf", "allOf", "oneOf"):
        return {word: [below() for _ in range(draw.randint(1, 3))]}
    if word == "if":
        return {word: below(), **maybe(0.8, then=below), **maybe(0.6, **{"else": below})}
    if word == "contains":
        return {word: below(), **maybe(0.4, minContains=lambda: draw.randint(0, 2), maxContains=lambda: draw.randint(1, 2))}
    return {word: {"a": ["b"]} if word == "dependentRequired" else {"a": below()} if word == "dependentSchemas" else below()}


def schema(draw, depth=0):
    out = {}
    for _ in range(draw.choice((1, 1, 2, 2, 3))):
        out.update(plain(draw) if depth >= 3 or draw.random() < 0.45 else nested(draw, depth))
    return out


def texts(value):
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for parts in itertools.product(*[list(texts(value[name])) for name in names]):
                yield "{" + ", ".join(f"{json.dumps(n)}: {p}" for n, p in zip(names, parts)) + "}"
    elif isinstance(value, list):
        for parts in itertools.product(*[list(texts(item)) for item in value]):
            yield "[" + ", ".join(parts) + "]"
    else:
        yield json.dumps(value)
