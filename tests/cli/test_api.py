#!/usr/bin/env python3
"""The APIs of OpenAI and Ollama that serve has, with the standard library as the client.

    test_api.py PROGRAM MODELS
"""
import json
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402
import fake_store  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PEBBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "pebble.gguf")
STORY = [{"role": "user", "content": "Tell me a story."}]
SHORT = {"model": "pebble", "messages": STORY, "max_tokens": 12, "seed": 5}


# ---- OpenAI ----------------------------------------------------------------------------------


def chat(s):
    a = s.post("/v1/chat/completions", SHORT)
    choice = a["choices"][0]
    same((a["object"], a["model"], choice["message"]["role"], choice["finish_reason"]), ("chat.completion", "pebble", "assistant", "length"), "the answer")
    need(len(choice["message"]["content"]) > 10, str(a))
    u = a["usage"]
    same((u["completion_tokens"], u["total_tokens"]), (12, u["prompt_tokens"] + 12), "usage")
    again = s.post("/v1/chat/completions", {**SHORT, "model": None})
    same(again["choices"][0]["message"], choice["message"], "the default model with the same seed")
    same(again["model"], "pebble", "its name")


def stream(s):
    whole = s.post("/v1/chat/completions", SHORT)["choices"][0]["message"]["content"]
    chunks = s.events("/v1/chat/completions", {**SHORT, "stream_options": {"include_usage": True}})
    same({c["object"] for c in chunks}, {"chat.completion.chunk"}, "objects")
    same(len({c["id"] for c in chunks}), 1, "ids")
    same(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""}, "the first delta")
    same("".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]), whole, "the text")
    same(chunks[-2]["choices"][0]["finish_reason"], "length", "the reason")
    same((chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]), ([], 12), "the usage")
    need(all(c["usage"] is None for c in chunks[:-1]), "usage before the end")
    need(all("usage" not in c for c in s.events("/v1/chat/completions", SHORT)), "usage that was not requested")


def choices(s):
    a = s.post("/v1/chat/completions", {**SHORT, "n": 3})
    same([c["index"] for c in a["choices"]], [0, 1, 2], "choices")
    same(len({c["message"]["content"] for c in a["choices"]}), 3, "different answers")
    same(a["usage"]["completion_tokens"], 36, "tokens")
    chunks = s.events("/v1/chat/completions", {**SHORT, "n": 3})
    for i in range(3):
        text = "".join(d["delta"].get("content", "") for c in chunks for d in c["choices"] if d["index"] == i)
        same(text, a["choices"][i]["message"]["content"], f"stream {i}")


def log_probs(s):
    a = s.post("/v1/chat/completions", {**SHORT, "logprobs": True, "top_logprobs": 2})["choices"][0]
    content = a["logprobs"]["content"]
    same("".join(t["token"] for t in content), a["message"]["content"], "tokens")
    need(all(t["logprob"] <= 0 and len(t["top_logprobs"]) == 2 and bytes(t["bytes"]).decode() == t["token"] for t in content), str(content[:2]))
    chunks = s.events("/v1/chat/completions", {**SHORT, "logprobs": True})
    got = [t for c in chunks for d in c["choices"] for t in (d["logprobs"] or {"content": []})["content"]]
    same([t["token"] for t in got], [t["token"] for t in content], "streamed tokens")


def openai_errors(s):
    for change, word, code in (({"temperature": "hot"}, "temperature", 400), ({"response_format": {"type": "yaml"}}, "response_format", 400),
                               ({"tool_choice": "required", "tools": []}, "tool must be called", 400), ({"n": 0}, "n is", 400), ({"stream": "yes"}, "stream", 400),
                               ({"messages": "hi"}, "messages", 400), ({"model": "gpt-4o"}, "gpt-4o", 404), ({"model": PEBBLE}, "not found", 404),
                               ({"stream_options": {"include_usage": True}}, "stream_options", 400), ({"top_logprobs": 3}, "logprobs", 400),
                               ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://example.com/a.png"}}]}]}, "data: URL", 400)):
        error = s.expect(code, "POST", "/v1/chat/completions", {**SHORT, **change})["error"]
        need(word in error["message"] and error["type"] == "invalid_request_error", f"{change}: {error}")
    need("model_not_found" == s.expect(404, "POST", "/v1/chat/completions", {**SHORT, "model": "x"})["error"]["code"], "code")
    need("none of them can draft" in s.expect(400, "POST", "/v1/chat/completions", {**SHORT, "draft": "lookup"})["error"]["message"], "drafts")
    need(s.post("/v1/chat/completions", {**SHORT, "draft": "off"})["choices"], "no drafts")
    need("JSON" in s.expect(400, "POST", "/v1/chat/completions", b"{nonsense")["error"]["message"], "bad JSON")
    need(s.expect(400, "POST", "/v1/chat/completions", b'{"model": "\xff"}')["error"]["message"], "bad UTF-8")
    need(s.expect(400, "POST", "/v1/chat/completions", b"[]")["error"]["message"], "not an object")
    s.expect(404, "GET", "/v1/nothing")
    long = s.expect(400, "POST", "/v1/chat/completions", {**SHORT, "messages": [{"role": "user", "content": "word " * 9000}]})["error"]
    same(long["code"], "context_length_exceeded", "a prompt that is too long")


def openai_models(s):
    a = s.get("/v1/models")
    same((a["object"], [m["id"] for m in a["data"]]), ("list", ["pebble"]), "models")


# ---- Ollama ----------------------------------------------------------------------------------


def ollama_chat(s):
    options = {"num_predict": 12, "seed": 5}
    lines = s.lines("/api/chat", {"model": "pebble", "messages": STORY, "options": options})
    text = "".join(line["message"]["content"] for line in lines)
    same(text, s.post("/v1/chat/completions", SHORT)["choices"][0]["message"]["content"], "the same answer as OpenAI's")
    need(all(not line["done"] for line in lines[:-1]) and lines[-1]["done"], "done")
    last = lines[-1]
    same((last["done_reason"], last["eval_count"]), ("length", 12), "the end")
    need(last["total_duration"] >= last["eval_duration"] > 0 and last["prompt_eval_count"] > 5 and last["created_at"].endswith("Z"), str(last))
    whole = s.post("/api/chat", {"model": "pebble:latest", "messages": STORY, "options": options, "stream": False})
    same((whole["message"]["content"], whole["model"]), (text, "pebble:latest"), "without a stream")


def ollama_load(s):
    a = s.post("/api/chat", {"model": "pebble", "messages": []})
    same((a["done"], a["done_reason"]), (True, "load"), "load")
    a = s.post("/api/chat", {"model": "pebble", "messages": [], "keep_alive": 0})
    same(a["done_reason"], "unload", "unload")


def ollama_errors(s):
    body = {"model": "pebble", "messages": STORY}
    for change, word, code in (({"options": {"mirostat": 2}}, "mirostat", 400), ({"options": {"anything": 1}}, "anything", 400), ({"format": "yaml"}, "format", 400),
                               ({"keep_alive": "soon"}, "keep_alive", 400), ({"model": "none"}, "model 'none' not found", 404), ({"options": {"num_ctx": 1 << 20}}, "--ctx", 400),
                               ({"options": {"temperature": "hot"}}, "temperature", 400), ({"model": 3}, "model", 400)):
        error = s.expect(code, "POST", "/api/chat", {**body, **change})["error"]
        need(word in error, f"{change}: {error}")
    s.post("/api/chat", {**body, "stream": False, "options": {"num_predict": 1, "mirostat": 0, "num_gpu": 99, "num_ctx": 512, "stop": ["x"], "top_k": 5, "min_p": 0.1}})
    s.expect(404, "GET", "/api/nothing")


def ollama_lists(s):
    same(list(s.get("/api/version")), ["version"], "version")
    m = s.get("/api/tags")["models"]
    same([x["name"] for x in m], ["pebble"], "tags")
    same((m[0]["details"]["family"], m[0]["details"]["quantization_level"], len(m[0]["digest"])), ("gemma4", "Q4_K_M", 64), "details")
    same(m[0]["size"], os.path.getsize(PEBBLE), "size")
    status, headers, text = s.ask("GET", "/")
    same((status, text), (200, b"Ollama is running"), "GET /")
    same(s.ask("HEAD", "/")[0], 200, "HEAD /")
    same(s.get("/health"), {"status": "ok"}, "health")


def folder(_):
    with tempfile.TemporaryDirectory() as top:
        for name in ("a", "b"):
            os.symlink(os.path.abspath(PEBBLE), os.path.join(top, name + ".gguf"))
        with Serving(BEZEL, top) as s:
            same([m["id"] for m in s.get("/v1/models")["data"]], ["a", "b"], "models of a folder")
            same(s.post("/v1/chat/completions", {**SHORT, "model": "b"})["model"], "b", "one of them")


def store(_):
    """models of Ollama's store, with their default settings"""
    with tempfile.TemporaryDirectory() as top:
        fake_store.add(top, "stone:latest", PEBBLE, system="You are a stone. " * 5, params={"num_predict": 7, "seed": 3, "stop": ["zzz"]})
        with Serving(BEZEL, PEBBLE, env={"OLLAMA_MODELS": top}) as s:
            same([m["id"] for m in s.get("/v1/models")["data"]], ["pebble", "stone:latest"], "models")
            entry = s.get("/api/tags")["models"][1]
            same((entry["name"], entry["details"]["parameter_size"]), ("stone:latest", "11M"), "tags")
            body = {"model": "stone", "messages": STORY, "stream": False}
            a = s.post("/api/chat", body)
            same((a["eval_count"], a["done_reason"]), (7, "length"), "the default number of tokens")
            same(s.post("/api/chat", body)["message"], a["message"], "the default seed")
            same(s.post("/api/chat", {**body, "options": {"num_predict": 3}})["eval_count"], 3, "the request's own number")
            same(s.post("/v1/chat/completions", {**SHORT, "model": "stone:latest", "max_tokens": 4})["usage"]["completion_tokens"], 4, "OpenAI's form")
            plain = s.post("/api/chat", {**body, "model": "pebble", "options": {"num_predict": 1}})["prompt_eval_count"]
            need(a["prompt_eval_count"] > plain + 10, "the system prompt")
            own = {**body, "messages": [{"role": "system", "content": "x"}, *STORY]}
            need(s.post("/api/chat", own)["prompt_eval_count"] < a["prompt_eval_count"], "the request's own system prompt")
            need("num_ctx" not in s.post("/api/show", {"model": "stone"})["parameters"] and s.post("/api/show", {"model": "stone"})["system"].startswith("You are"), "show")
            fake_store.add(top, "later:x", PEBBLE, system="", params={})
            same(s.post("/api/chat", {**body, "model": "later:x", "options": {"num_predict": 2}})["eval_count"], 2, "a model that came later")
            first = [{"role": "user", "content": "Who are you?"}, {"role": "assistant", "content": "A very old stone."}]
            fake_store.add(top, "old:x", PEBBLE, messages=first)
            def prompt(path, model, **more):
                return s.post(path, {"model": model, "stream": False, "options": {"num_predict": 2}, **more})
            with_messages = prompt("/api/chat", "pebble", messages=first + STORY)["prompt_eval_count"]
            same(prompt("/api/chat", "old:x", messages=STORY)["prompt_eval_count"], with_messages, "the model's own messages")
            one = prompt("/api/generate", "old:x", prompt=STORY[-1]["content"])
            same(one["prompt_eval_count"], with_messages, "the same for a prompt")
            two = prompt("/api/generate", "old:x", prompt="And then?", context=one["context"])["prompt_eval_count"]
            need(two < 2 * one["prompt_eval_count"], "a prompt that continues does not repeat them")
            system = {"role": "system", "content": "Be brief."}
            same(prompt("/api/chat", "old:x", messages=[system, *STORY])["prompt_eval_count"],
                 prompt("/api/chat", "pebble", messages=[system, *first, *STORY])["prompt_eval_count"], "after the request's system prompt")


def diffusion(_):
    """a diffusion model answers one request at a time"""
    with Serving(BEZEL, PEBBLE.replace("pebble.gguf", "pebble-diffusion.gguf")) as s:
        got = []
        threads = [threading.Thread(target=lambda: got.append(s.post("/v1/chat/completions", {"messages": STORY, "max_tokens": 8, "seed": 1})["choices"][0]["message"]["content"])) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        need(len(got) == 2 and got[0] == got[1] and got[0], str(got))
        same(s.post("/v1/chat/completions", {"messages": STORY, "max_tokens": 8, "seed": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0})["choices"][0]["message"]["content"], got[0], "values that change nothing")
        for change in ({"temperature": 1}, {"temperature": 0}, {"top_p": 0.5}, {"top_k": 3}, {"min_p": 0.1}, {"presence_penalty": 1}, {"frequency_penalty": 1}, {"repetition_penalty": 2}, {"logit_bias": {"5": 1}}, {"logprobs": True}):
            need("not apply to a diffusion model" in s.expect(400, "POST", "/v1/chat/completions", {"messages": STORY, **change})["error"]["message"], str(change))
            if "logprobs" not in change:
                need("not apply to a diffusion model" in s.expect(400, "POST", "/v1/completions", {"prompt": "Once", **change})["error"]["message"], str(change))
        need("not apply" in s.expect(400, "POST", "/api/chat", {"messages": STORY, "stream": False, "options": {"top_k": 3}})["error"], "Ollama's options")
    with tempfile.TemporaryDirectory() as top:  # settings that come with a model are not the client's
        fake_store.add(top, "canvas:latest", PEBBLE.replace("pebble.gguf", "pebble-diffusion.gguf"), system="", params={"temperature": 0.5, "top_k": 5, "num_predict": 8, "seed": 1})
        with Serving(BEZEL, PEBBLE, env={"OLLAMA_MODELS": top}) as s:
            same(s.post("/api/chat", {"model": "canvas", "messages": STORY, "stream": False})["message"]["content"], got[0], "a model of the store")
            same([m["capabilities"] for m in s.get("/api/tags")["models"]], [["completion", "tools", "thinking", "vision", "audio"], ["completion", "tools", "thinking"]], "capabilities")


def automatic(_):
    """--device auto without a GPU library"""
    with Serving(BEZEL, PEBBLE, "--device", "auto", env={"BEZEL_WEBGPU_LIB": "/nonexistent/libwebgpu.so"}) as s:
        for _ in range(2):
            same(s.post("/v1/chat/completions", SHORT)["model"], "pebble", "the answer")
            same(s.get("/api/ps")["models"][0]["size_vram"], 0, "memory of the GPU")
            s.post("/api/generate", {"keep_alive": 0})
        code, err = s.end()
        need(code == 0 and err.startswith("bezel: Models run on the CPU: ") and err.count("\n") == 1, err)


# ---- who may ask -----------------------------------------------------------------------------


def access(_):
    with Serving(BEZEL, PEBBLE, "--api-key", "secret", "--origins", "https://chat.example", env={"OLLAMA_ORIGINS": "app://*,box.example"}) as s:
        for path in ("/v1/models", "/api/tags"):
            same(s.ask("GET", path)[0], 401, path)
            same(s.ask("GET", path, Authorization="Bearer wrong")[0], 401, path)
            same(s.ask("GET", path, Authorization="Bearer secret")[0], 200, path)
        same((s.ask("GET", "/health")[0], s.ask("GET", "/")[0]), (200, 200), "without a key")
        same(s.expect(401, "GET", "/v1/models")["error"]["code"], "invalid_api_key", "OpenAI's form")
        key = {"Authorization": "Bearer secret"}
        for origin, allowed in (("https://chat.example", True), ("app://x", True), ("http://box.example:81", True), ("https://box.example", True), ("https://evil.example", False),
                                ("https://chat.example.evil.com", False), ("null", False), ("http://localhost:3000", True), ("http://localhost.evil.com", False),
                                ("http://127.0.0.1", True), ("http://127.0.0.1.evil.com", False), ("vscode-webview://abc", True), ("http://localhost:3000.evil.com", False)):
            status, headers, _ = s.ask("POST", "/v1/chat/completions", {**SHORT, "max_tokens": 1}, Origin=origin, **key)
            same((status, headers["Access-Control-Allow-Origin"]), (200, origin) if allowed else (403, None), origin)
            status, headers, _ = s.ask("OPTIONS", "/v1/chat/completions", Origin=origin, Access_Control_Request_Method="POST", Access_Control_Request_Headers="authorization")
            same((status, headers["Access-Control-Allow-Headers"]), (204, "authorization" if allowed else None), "preflight from " + origin)
        same(s.ask("GET", "/v1/models", Host="evil.example", **key)[0], 403, "another host")
        need(b"error" in s.ask("PUT", "/api/chat", b"")[2] and s.ask("PUT", "/api/chat", b"")[0] == 405, "a wrong method")


def main():
    with Serving(BEZEL, PEBBLE) as s:
        for name, run in (("OpenAI chat", chat), ("OpenAI stream", stream), ("OpenAI choices", choices), ("OpenAI log-probabilities", log_probs), ("OpenAI errors", openai_errors),
                          ("OpenAI models", openai_models), ("Ollama chat", ollama_chat), ("Ollama load and unload", ollama_load), ("Ollama errors", ollama_errors),
                          ("Ollama lists", ollama_lists), ("a folder of models", folder), ("models of the store", store), ("a diffusion model", diffusion), ("--device auto", automatic), ("keys, origins and hosts", access)):
            case("api: " + name, run, s)
        code, err = s.end()
        case("api: the end", lambda: same((code, err), (0, ""), "exit code and messages"))
    return finish()


sys.exit(main())
