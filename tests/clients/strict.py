"""The recorded exchanges against the types of the openai and ollama packages, strictly: a field that is missing, has another
type, or is unknown fails. OpenAI's OpenAPI description is in no package of a registry; these types are generated from it.
Run by tests/cli/test_api_clients.py with the Python of build/clients:

    strict.py URL      of a server with the models that tests/support/exchanges.py names
"""
import os
import sys
import typing
import urllib.error
import urllib.request
import json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import exchanges  # noqa: E402
import ollama  # noqa: E402
import openai.types.responses  # noqa: E402
import openai.types.shared  # noqa: E402
import pydantic  # noqa: E402
from cases import case, finish, need  # noqa: E402

URL = sys.argv[1]
# Extensions that clients of such servers know, by the name of the type that has them.
MORE = {
    "ChatCompletionMessage": {"reasoning_content"}, "ChoiceDelta": {"reasoning_content"},       # thinking, as from llama.cpp, vLLM and DeepSeek
    # What Ollama sends and the types of its Python package leave out.
    "Model": {"name", "capabilities", "parent_model"}, "ShowResponse": {"system", "tensors", "projector_info", "modified_at"},
    "Function": {"index"}, "Logprob": {"bytes"}, "TokenLogprob": {"bytes"},
}


class Server:
    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request) as r:
                return r.status, r.headers, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()


def unknown(value, model, where=""):
    """fields of a JSON value that the type it was read as does not have"""
    if isinstance(model, pydantic.BaseModel) and isinstance(value, dict):
        fields = {f.alias or name: name for name, f in type(model).model_fields.items()}
        for key, inner in value.items():
            if key in fields:
                yield from unknown(inner, getattr(model, fields[key]), f"{where}.{key}")
            elif key not in MORE.get(type(model).__name__, ()):
                yield f"{where}.{key} is unknown to {type(model).__name__}"
    elif isinstance(value, list):
        for i, (inner, m) in enumerate(zip(value, model)):
            yield from unknown(inner, m, f"{where}[{i}]")
    elif isinstance(value, dict) and isinstance(model, dict):
        for key in value:
            yield from unknown(value[key], model[key], f"{where}.{key}")


def named(name):
    """a type of the openai package, or of ollama's"""
    module = ollama if name.startswith("ollama.") else openai.types
    for part in name.removeprefix("ollama.").split("."):
        module = getattr(module, part)
    return module


def fits(value, name):
    typ = named(name)
    if name.endswith("Event"):  # one of many, for a message that can be read
        typ = next(t for t in typing.get_args(typing.get_args(typ)[0]) if typing.get_args(t.model_fields["type"].annotation) == (value["type"],))
    # JSON has no dates: texts become them also in strict mode.
    model = pydantic.TypeAdapter(typ).validate_json(json.dumps(value), strict=True)
    found = list(unknown(value, model))
    need(not found, f"{found} in {json.dumps(value)[:300]}")


def as_described(value, kind):
    """OpenAI's description requires a reason in every part of a streamed completion; its server sends null before the end"""
    if kind == "text/event-stream" and value.get("object") == "text_completion":
        for choice in value["choices"]:
            choice["finish_reason"] = choice["finish_reason"] or "stop"
    return value


def shape(e):
    status, kind, text = exchanges.ask(Server(), e)
    for value in exchanges.objects(kind, text):
        if value == "[DONE]":
            continue
        if e["shape"] == "error":
            need(status >= 400 and list(value) == ["error"], str(value))
            fits(value["error"], "shared.ErrorObject")
        elif e["shape"] == "models":
            need(list(value) == ["object", "data"] and value["object"] == "list", str(value))
            for m in value["data"]:
                fits(m, "Model")
        else:
            need(status == 200, f"{status} {text[:200]}")
            fits(as_described(value, kind), e["shape"])


def can_fail():
    """the check itself notices what is missing, wrong and too much"""
    good = {"id": "x", "created": 1, "object": "model", "owned_by": "y"}
    fits(good, "Model")
    for bad in ({**good, "created": "1"}, {**good, "more": 1}, {k: v for k, v in good.items() if k != "owned_by"}, {**good, "object": "other"}):
        try:
            fits(bad, "Model")
        except (AssertionError, pydantic.ValidationError):
            continue
        raise AssertionError(f"accepted {bad}")


def main():
    case("strict: the check", can_fail)
    for e in exchanges.load():
        if "shape" in e:
            case("strict: " + e["name"], shape, e)
    return finish()


sys.exit(main())
