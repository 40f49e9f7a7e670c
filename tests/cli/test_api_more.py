#!/usr/bin/env python3
"""More endpoints of serve: completions, responses, generate, show, helpers; tools, thinking, images, audio.

    test_api_more.py PROGRAM MODELS
"""
import base64
import json
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import scripted  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from serving import Serving, png  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PEBBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "pebble.gguf")
STORY = [{"role": "user", "content": "Tell me a story."}]
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}}


def wav(seconds):
    data = b"".join(struct.pack("<h", (i * 37 % 2000) - 1000) for i in range(int(16000 * seconds)))
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data" + struct.pack("<I", len(data)) + data


IMAGE, SOUND = base64.b64encode(png(48, 32)).decode(), base64.b64encode(wav(0.5)).decode()


# ---- OpenAI ----------------------------------------------------------------------------------


def completions(s):
    body = {"model": "pebble", "prompt": "Once upon a", "max_tokens": 10, "seed": 4}
    a = s.post("/v1/completions", body)
    text = a["choices"][0]["text"]
    same((a["object"], a["choices"][0]["finish_reason"], a["usage"]["completion_tokens"]), ("text_completion", "length", 10), "the answer")
    chunks = s.events("/v1/completions", {**body, "stream_options": {"include_usage": True}})
    same("".join(c["choices"][0]["text"] for c in chunks[:-1]), text, "the stream")
    same(chunks[-1]["usage"]["completion_tokens"], 10, "usage")
    ids = s.post("/tokenize", {"content": "Once upon a", "add_special": True})["tokens"]
    same(s.post("/v1/completions", {**body, "prompt": ids})["choices"][0]["text"], text, "tokens instead of text")
    several = s.post("/v1/completions", {**body, "prompt": ["Once upon a", "A fox"], "n": 2})["choices"]
    same([c["index"] for c in several], [0, 1, 2, 3], "two prompts, two answers each")
    same(several[0]["text"], text, "the first")
    word = text.split()[2]
    stopped = s.post("/v1/completions", {**body, "stop": [word]})["choices"][0]
    same((stopped["text"], stopped["finish_reason"]), (text[:text.index(word)], "stop"), "a stop string")
    same(s.post("/v1/completions", {"prompt": "Once upon a"})["usage"]["completion_tokens"] <= 16, True, "16 tokens by default")
    probs = s.post("/v1/completions", {**body, "logprobs": 2})["choices"][0]["logprobs"]
    same("".join(probs["tokens"]), text, "tokens")
    need(len(probs["token_logprobs"]) == 10 and len(probs["top_logprobs"][0]) == 2, str(probs))
    for change, word in (({"echo": True}, "echo"), ({"suffix": "x"}, "suffix"), ({"best_of": 3}, "best_of"), ({"prompt": {}}, "prompt"), ({"prompt": None}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [10**9]}, "token"), ({"logprobs": True}, "logprobs")):
        need(word in s.expect(400, "POST", "/v1/completions", {**body, **change})["error"]["message"], str(change))


def events_of(s, body):
    """the objects of a stream of named events"""
    status, headers, text = s.ask("POST", "/v1/responses", {**body, "stream": True})
    same((status, headers["Content-Type"]), (200, "text/event-stream"), "stream")
    out = []
    for part in text.decode().split("\n\n")[:-1]:
        name, data = part.split("\n")
        out.append(json.loads(data[len("data: "):]))
        same(name, "event: " + out[-1]["type"], "the event's name")
    same([e["sequence_number"] for e in out], list(range(len(out))), "numbers")
    return out


def responses(s):
    body = {"model": "pebble", "input": "Tell me a story.", "max_output_tokens": 8, "temperature": 0}
    a = s.post("/v1/responses", body)
    same((a["object"], a["status"], a["incomplete_details"], [i["type"] for i in a["output"]]), ("response", "incomplete", {"reason": "max_output_tokens"}, ["message"]), "the answer")
    text = a["output"][0]["content"][0]["text"]
    same(a["usage"]["output_tokens"], 8, "tokens")
    events = events_of(s, body)
    same("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"), text, "the stream")
    same(events[-1]["response"]["output"][0]["content"][0]["text"], text, "its end")
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Tell me a story."}]}]
    same(s.post("/v1/responses", {**body, "input": items})["output"][0]["content"][0]["text"], text, "items")
    same(s.post("/v1/responses", {**body, "include": ["reasoning.encrypted_content"], "top_logprobs": 0})["status"], "incomplete", "what agents always send")
    need(s.post("/v1/responses", {**body, "instructions": "Be kind."})["usage"]["input_tokens"] > a["usage"]["input_tokens"], "instructions")
    for change, word in (({"previous_response_id": "resp_1"}, "previous_response_id"), ({"input": 3}, "input"), ({"tools": [{"type": "web_search"}]}, "web_search"), ({"background": True}, "background"),
                         ({"input": [{"type": "computer_call"}]}, "computer_call"), ({"text": {"format": {"type": "json_schema"}}}, "json_schema needs"),
                         ({"top_logprobs": 2}, "top_logprobs"), ({"include": ["file_search_call.results"]}, "file_search_call.results")):
        need(word in s.expect(400, "POST", "/v1/responses", {**body, **change})["error"]["message"], str(change))


def media(s):
    def ask(content):
        return s.post("/v1/chat/completions", {"model": "pebble", "messages": [{"role": "user", "content": content}], "max_tokens": 4, "temperature": 0})
    text = {"type": "text", "text": "What is this?"}
    plain = ask([text])["usage"]["prompt_tokens"]
    image = ask([text, {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}}])
    need(image["usage"]["prompt_tokens"] > plain + 10, f"{plain} {image}")
    sound = ask([text, {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}])
    need(sound["usage"]["prompt_tokens"] > plain + 5, f"{plain} {sound}")
    ollama = s.post("/api/chat", {"model": "pebble", "messages": [{"role": "user", "content": "What is this?", "images": [IMAGE]}], "stream": False, "options": {"num_predict": 4, "temperature": 0}})
    same(ollama["prompt_eval_count"], image["usage"]["prompt_tokens"], "the same image from Ollama's API")
    generated = s.post("/api/generate", {"model": "pebble", "prompt": "What is this?", "images": [IMAGE], "stream": False, "options": {"num_predict": 4, "temperature": 0}})
    same(generated["response"], ollama["message"]["content"], "and from generate")
    # The model is to be unloaded at once, and is needed between the image and the answer all the same.
    brief = {"model": "pebble", "prompt": "What is this?", "images": [IMAGE], "stream": False, "keep_alive": "1ns", "options": {"num_predict": 4, "temperature": 0}}
    same([s.post("/api/generate", brief)["response"] for _ in range(2)], [generated["response"]] * 2, "a model that is unloaded after each request")
    for url, word in (("data:image/png;base64,@@@", "base64"), ("file:///etc/passwd", "fetches no"), ("data:image/png,abc", "base64"), ("data:image/png;base64," + SOUND, "image"), ("/etc/passwd", "")):
        error = s.expect(400, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]})["error"]["message"]
        need(word in error and "root:" not in error, f"{url}: {error}")


# ---- Ollama ----------------------------------------------------------------------------------


def generate(s):
    body = {"model": "pebble", "prompt": "Tell me a story.", "options": {"num_predict": 8, "seed": 5}}
    lines = s.lines("/api/generate", body)
    text = "".join(line["response"] for line in lines)
    last = lines[-1]
    same((last["done"], last["done_reason"], last["eval_count"]), (True, "length", 8), "the end")
    same(len(last["context"]), last["prompt_eval_count"] + 8, "the context")
    same(s.post("/api/generate", {**body, "stream": False})["response"], text, "without a stream")
    more = s.post("/api/generate", {**body, "stream": False, "context": last["context"], "prompt": "Go on."})
    same(more["context"][:len(last["context"])], last["context"], "continues")
    raw = s.post("/api/generate", {**body, "raw": True, "prompt": "Once upon", "stream": False})
    need("context" not in raw and raw["prompt_eval_count"] < last["prompt_eval_count"], str(raw))
    same(s.post("/api/generate", {"model": "pebble"})["done_reason"], "load", "load")
    same(s.get("/api/ps")["models"][0]["name"], "pebble", "loaded")
    same(s.post("/api/generate", {"model": "pebble", "keep_alive": 0})["done_reason"], "unload", "unload")
    same(s.get("/api/ps")["models"], [], "unloaded")
    for change, word in (({"suffix": "x"}, "suffix"), ({"template": "x"}, "template"), ({"format": {"$ref": "other.json"}}, "#/$ref"), ({"prompt": 3}, "prompt"), ({"context": ["a"]}, "context"), ({"context": [10**8]}, "token"),
                         ({"raw": True, "images": [IMAGE]}, "raw")):
        need(word in s.expect(400, "POST", "/api/generate", {**body, **change})["error"], str(change))


def show(s):
    a = s.post("/api/show", {"model": "pebble"})
    same(a["model_info"]["general.architecture"], "gemma4", "architecture")
    same(a["capabilities"], ["completion", "tools", "thinking", "vision", "audio"], "capabilities")
    verbose = s.post("/api/show", {"name": "pebble", "verbose": True})
    # As Ollama: arrays are null unless the request is verbose; name and template are not among the keys.
    for key, value in verbose["model_info"].items():
        same(a["model_info"][key], None if isinstance(value, list) else value, key)
    same(list(a["model_info"]), list(verbose["model_info"]), "the keys")
    need(not {"general.name", "tokenizer.chat_template"} & set(a["model_info"]), "keys that Ollama leaves out")
    with open(PEBBLE, "rb") as f:
        file = f.read()
    tokens = verbose["model_info"]["tokenizer.ggml.tokens"]
    same((len(tokens), tokens[0], tokens[106]), (len(verbose["model_info"]["tokenizer.ggml.scores"]), "<pad>", "<turn|>"), "the vocabulary")
    need(tokens[-1].encode() in file and isinstance(verbose["model_info"]["gemma4.attention.sliding_window_pattern"], list), "other arrays")
    embedding = next(t for t in a["tensors"] if t["name"] == "token_embd.weight")
    same((embedding["shape"], isinstance(embedding["type"], str)), ([a["model_info"]["gemma4.embedding_length"], len(tokens)], True), "a tensor")
    need("projector_info" not in a, "there is no projector file")
    same(s.get("/api/tags")["models"][0]["capabilities"], a["capabilities"], "capabilities in the list")
    s.expect(404, "POST", "/api/show", {"model": "none"})
    s.expect(404, "POST", "/api/show", {"model": PEBBLE})


# ---- llama.cpp -------------------------------------------------------------------------------


def helpers(s):
    text = "Hello w\u00f6rld \U0001f600"
    tokens = s.post("/tokenize", {"content": text})["tokens"]
    same(s.post("/detokenize", {"tokens": tokens})["content"], text, "there and back")
    pieces = s.post("/tokenize", {"content": text, "with_pieces": True})["tokens"]
    same([p["id"] for p in pieces], tokens, "pieces")
    same(s.post("/apply-template", {"messages": STORY})["prompt"], "<bos><|turn>user\nTell me a story.<turn|>\n<|turn>model\n", "the template")
    same(s.post("/v1/completions", {"prompt": s.post("/apply-template", {"messages": STORY})["prompt"], "max_tokens": 5, "temperature": 0})["choices"][0]["text"],
         s.post("/v1/chat/completions", {"messages": STORY, "max_tokens": 5, "temperature": 0})["choices"][0]["message"]["content"], "the prompt of a chat")
    need(s.get("/props")["default_generation_settings"]["n_ctx"] == 2048 and len(s.get("/slots")) == 16, "props and slots")
    status, headers, body = s.ask("GET", "/metrics")
    values = dict(line.split(" ") for line in body.decode().splitlines() if not line.startswith("#"))
    need(status == 200 and headers["Content-Type"].startswith("text/plain") and float(values["llamacpp:tokens_predicted_total"]) > 50, str(values))
    need("insert" in s.expect(501, "POST", "/infill", {})["error"]["message"], "infill")
    for path, body in (("/tokenize", {"content": 3}), ("/detokenize", {"tokens": [-1]}), ("/detokenize", {"tokens": "x"}), ("/apply-template", {})):
        s.expect(400, "POST", path, body)


# ---- thinking and tools ----------------------------------------------------------------------


def tools(_):
    with tempfile.TemporaryDirectory() as top:
        model = scripted.with_call(os.path.join(top, "call.gguf"), MODELS)
        with Serving(BEZEL, model) as s:
            check_tools(s)


def check_tools(s):
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "reasoning_effort": "high"}
    a = s.post("/v1/chat/completions", body)["choices"][0]
    same((a["finish_reason"], a["message"]["reasoning_content"].strip(), a["message"]["content"].strip()), ("tool_calls", "Hm", "One moment."), "the answer")
    call = a["message"]["tool_calls"][0]
    same((call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])), ("function", "look_up", {"word": "fox"}), "the call")
    chunks = s.events("/v1/chat/completions", body)
    deltas = [c["choices"][0]["delta"] for c in chunks]
    calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    same((len(calls), calls[0]["index"], calls[0]["function"]), (1, 0, call["function"]), "the streamed call")
    same("".join(d.get("reasoning_content", "") for d in deltas).strip(), "Hm", "streamed thinking")
    same(chunks[-1]["choices"][0]["finish_reason"], "tool_calls", "the reason")
    o = s.post("/api/chat", {"messages": body["messages"], "tools": [TOOL], "think": True, "stream": False})["message"]
    same((o["thinking"].strip(), o["content"].strip(), o["tool_calls"][0]["function"]["arguments"]), ("Hm", "One moment.", {"word": "fox"}), "Ollama's form")
    lines = s.lines("/api/chat", {"messages": body["messages"], "tools": [TOOL], "think": True})
    same([line["message"]["tool_calls"][0]["function"]["name"] for line in lines if "tool_calls" in line["message"]], ["look_up"], "Ollama's stream")
    flat = {"type": "function", "name": "look_up", "parameters": TOOL["function"]["parameters"]}
    r = s.post("/v1/responses", {"input": "hi", "tools": [flat], "reasoning": {"effort": "low"}})
    same([i["type"] for i in r["output"]], ["reasoning", "message", "function_call"], "items")
    same((r["status"], r["output"][2]["name"], json.loads(r["output"][2]["arguments"])), ("completed", "look_up", {"word": "fox"}), "the call as an item")
    need(r["usage"]["output_tokens_details"]["reasoning_tokens"] > 0, str(r["usage"]))
    events = events_of(s, {"input": "hi", "tools": [flat], "reasoning": {"effort": "low"}})
    same(events[-1]["type"], "response.completed", "the last event")
    same([i["type"] for i in events[-1]["response"]["output"]], ["reasoning", "message", "function_call"], "streamed items")
    # The result of the call.
    done = [*body["messages"], {"role": "assistant", "tool_calls": a["message"]["tool_calls"]}, {"role": "tool", "tool_call_id": call["id"], "content": "an animal"}]
    need(s.post("/v1/chat/completions", {**body, "messages": done})["usage"]["prompt_tokens"] > 30, "with a result")
    back = [{"role": "user", "content": "hi"}, *r["output"], {"type": "function_call_output", "call_id": r["output"][2]["call_id"], "output": "an animal"}]
    same(s.post("/v1/responses", {"input": back, "tools": [flat]})["object"], "response", "items sent back")
    plain = s.post("/v1/chat/completions", {**body, "tools": None, "reasoning_effort": None})["choices"][0]["message"]
    need("reasoning_content" not in plain, str(plain))


PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
          "required": ["name", "age"], "additionalProperties": False}


def is_person(text):
    value = json.loads(text)
    need(list(value) == ["name", "age"] and len(value["name"]) <= 12 and 0 <= value["age"] <= 120, text)


def structured(s):
    """answers that follow a schema, and forced calls"""
    ask = [{"role": "user", "content": "Who are you?"}]
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
    for seed in range(3):
        body = {"messages": ask, "max_tokens": 100, "seed": seed, "response_format": form}
        a = s.post("/v1/chat/completions", body)["choices"][0]
        is_person(a["message"]["content"])
        same(a["finish_reason"], "stop", "the reason")
        chunks = s.events("/v1/chat/completions", body)
        same("".join(c["choices"][0]["delta"].get("content") or "" for c in chunks), a["message"]["content"], "the stream")
        is_person(s.post("/api/chat", {"messages": ask, "stream": False, "format": PERSON, "options": {"seed": seed, "num_predict": 100}})["message"]["content"])
        is_person(s.post("/api/generate", {"prompt": "Who?", "stream": False, "format": PERSON, "options": {"seed": seed, "num_predict": 100}})["response"])
    r = s.post("/v1/responses", {"input": "Who?", "max_output_tokens": 100, "text": {"format": {"type": "json_schema", "name": "person", "schema": PERSON}}})
    is_person(r["output"][0]["content"][0]["text"])
    need(isinstance(json.loads(s.post("/api/generate", {"prompt": "Who?", "stream": False, "format": "json", "options": {"seed": 1, "num_predict": 100}})["response"]), dict), "JSON mode")
    tool = {"type": "function", "function": {"name": "meet", "strict": True, "parameters": PERSON}}
    called = s.post("/v1/chat/completions", {"messages": ask, "max_tokens": 100, "seed": 1, "tools": [tool], "tool_choice": "required"})["choices"][0]
    same(called["finish_reason"], "tool_calls", "the reason of a forced call")
    value = json.loads(called["message"]["tool_calls"][0]["function"]["arguments"])
    need(sorted(value) == ["age", "name"] and 0 <= value["age"] <= 120, str(value))
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"items": {"$ref": "other.json"}}}}
    error = s.expect(400, "POST", "/v1/chat/completions", {"messages": ask, "response_format": form})["error"]
    need(error["code"] == "bad_schema" and "#/items/$ref" in error["message"], str(error))


def long_chat(turns, **more):
    """a conversation of about 27 tokens per turn"""
    chat = [{"role": "system", "content": "Be brief."}]
    for i in range(turns):
        chat += [{"role": "user", "content": f"Question {i}: what is it?"}, {"role": "assistant", "content": "It is a small red house."}]
    return {"messages": [*chat, {"role": "user", "content": "And this?"}], **more}


def shifts():
    """conversations that are longer than the context"""
    with Serving(BEZEL, PEBBLE, "--ctx", "256") as s:
        error = s.expect(400, "POST", "/v1/chat/completions", long_chat(20))["error"]
        same(error["code"], "context_length_exceeded", "OpenAI's API refuses")
        body = long_chat(20, max_tokens=8, temperature=0, context_shift=True)
        a = s.post("/v1/chat/completions", body)
        left_out = a["context_shift"]["left_out"]
        need(left_out % 2 == 0 and 20 < left_out < 40 and a["usage"]["prompt_tokens"] < 248, str(a))
        short = s.post("/v1/chat/completions", {**body, "messages": [body["messages"][0], *body["messages"][1 + left_out:]]})
        same(a["choices"][0]["message"], short["choices"][0]["message"], "the answer is that to what is left")
        need("context_shift" not in short, str(short))
        chunks = s.events("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})
        same([c["context_shift"] for c in chunks if "context_shift" in c], [a["context_shift"]], "once in a stream")
        items = [{"role": m["role"], "content": m["content"]} for m in body["messages"]]
        r = s.post("/v1/responses", {"input": items, "max_output_tokens": 8, "truncation": "auto", "temperature": 0})
        same(r["context_shift"], a["context_shift"], "truncation: auto")
        same(s.expect(400, "POST", "/v1/responses", {"input": items, "truncation": "disabled"})["error"]["code"], "context_length_exceeded", "truncation: disabled")
        need("truncation is auto" in s.expect(400, "POST", "/v1/responses", {"input": items, "truncation": "middle"})["error"]["message"], "another word")
        chat = {"messages": body["messages"], "options": {"num_predict": 8, "temperature": 0}}
        lines = s.lines("/api/chat", chat)
        same(lines[-1]["context_shift"], a["context_shift"], "Ollama's API leaves turns out")
        same("".join(line["message"]["content"] for line in lines), a["choices"][0]["message"]["content"], "the answer")
        same(s.post("/api/chat", {**chat, "stream": False})["context_shift"], a["context_shift"], "whole")
        need("context" in s.expect(400, "POST", "/api/chat", {**chat, "truncate": False})["error"], "truncate: false refuses")
        need("shift is false" in s.expect(400, "POST", "/api/chat", {**chat, "shift": True})["error"], "shift: true cannot be obeyed")
        pinned = [{**m, "pinned": i == 1} for i, m in enumerate(body["messages"])]
        same(s.post("/v1/chat/completions", {**body, "messages": pinned})["context_shift"]["left_out"] % 2, 0, "a pinned turn")
        image = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}}]
        with_images = [m for i in range(9) for m in ({"role": "user", "content": image}, {"role": "assistant", "content": "A house."})]
        a = s.post("/v1/chat/completions", {**body, "messages": [*with_images, {"role": "user", "content": image}]})
        need(a["context_shift"]["left_out"] >= 2 and a["usage"]["prompt_tokens"] < 248, str(a))
        n = s.post("/v1/chat/completions", {**body, "messages": [*with_images, {"role": "user", "content": image}], "n": 2})
        same((len(n["choices"]), n["context_shift"]), (2, a["context_shift"]), "two answers")
        alone = s.expect(400, "POST", "/api/chat", {"messages": [{"role": "user", "content": "word " * 300}]})["error"]
        need("the context holds 256" in alone, "a question that is too long alone: " + alone)
    for mode, status in (("on", 200), ("off", 400)):
        with Serving(BEZEL, PEBBLE, "--ctx", "256", "--context-shift", mode) as s:
            s.expect(status, "POST", "/v1/chat/completions", long_chat(20, max_tokens=2))
            s.expect(status, "POST", "/api/chat", long_chat(20, stream=False, options={"num_predict": 2}))
            s.expect(200, "POST", "/v1/chat/completions", long_chat(20, max_tokens=2, context_shift=True))


def main():
    case("api: long conversations", shifts)
    with Serving(BEZEL, PEBBLE) as s:
        for name, run in (("completions", completions), ("responses", responses), ("images and audio", media), ("generate", generate), ("show and what is missing", show),
                          ("helpers", helpers), ("thinking and tools", tools), ("schemas", structured)):
            case("api: " + name, run, s)
        code, err = s.end()
        case("api: the end", lambda: same((code, err), (0, ""), "exit code and messages"))
    return finish()


sys.exit(main())
