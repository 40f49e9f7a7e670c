"""The installed package with Pebble, in a Python without numpy and Pillow. Run by tests/lib/test_python.py.

  check_api.py PICTURE.ppm SOUND.wav
"""
import gc
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "scale"))
from cases import case, finish, need, same  # noqa: E402
from progress import wait_until  # noqa: E402

import bezel  # noqa: E402
from bezel.media import image_pixels  # noqa: E402

PICTURE, SOUND = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
LONG = {"regex": "(a|b){1800}"}                        # an answer that takes a while
model = bezel.Model("pebble", device="cpu", threads=1)
client = bezel.Client(model)


def refused(kind, code, words, call, *args, **settings):
    try:
        call(*args, **settings)
    except kind as e:
        need(getattr(e, "code", None) == code and words in str(e), f"{getattr(e, 'code', None)}: {e}")
        return
    raise AssertionError(f"accepted: {args} {settings}")


def text_of(answer):
    return answer.choices[0].message.content


def opening():
    same((model.info.name, model.vocab, model.device, model.device_reason), ("Pebble", 4096, "cpu", "chosen"), "the model")
    need(model.takes("image") and model.info.bytes > 10 ** 7, str(model.info))
    with bezel.Model("pebble", device="cpu") as other:
        same(text_of(other.chat("Hi", temperature=0)), text_of(model.chat("Hi", temperature=0)), "the answer")
    need(other.closed, "it is open")
    refused(bezel.NotFound, "not_found", "none.gguf", bezel.Model, "/nonexistent/none.gguf")
    refused(FileNotFoundError, "not_found", "none.gguf", bezel.Model, "/nonexistent/none.gguf")
    refused(bezel.BadFile, "bad_file", "check_api.py", bezel.Model, __file__)
    refused(bezel.BadRequest, "bad_request", "auto, cpu or gpu", bezel.Model, "pebble", device="tpu")
    automatic = bezel.Model("pebble")
    need(automatic.device == "gpu" or automatic.device_reason not in ("", "chosen"), automatic.device_reason)
    automatic.close()


def chats():
    answer = client.chat.completions.create(model="any", messages=[{"role": "user", "content": "My name is Tom. What is my name?"}], temperature=0)
    need("Tom" in text_of(answer) and answer.model == "any" and answer.choices[0].finish_reason == "stop", str(answer))
    same(answer["choices"][0]["message"]["content"], text_of(answer), "as a dict")
    same(answer.to_dict()["usage"]["total_tokens"], answer.usage.prompt_tokens + answer.usage.completion_tokens, "the total")
    need("tool_calls" not in answer.to_dict()["choices"][0]["message"], str(answer.to_dict()))
    more = client.chat.completions.create(temperature=0, messages=[
        {"role": "user", "content": "My name is Tom. What is my name?"}, answer.choices[0].message, {"role": "user", "content": "Hi"}])
    need(more.usage.prompt_tokens_details.cached_tokens > 10, str(more.usage))
    several = client.chat.completions.create(messages="Tell me a story.", n=2, seed=7, max_tokens=8)
    second = client.chat.completions.create(messages="Tell me a story.", seed=8, max_tokens=8)
    same(several.choices[1].message.content, text_of(second), "the second of two")
    same(several.choices[0].finish_reason, "length", "the end")


def streams():
    whole = text_of(model.chat("Tell me a story.", temperature=0, max_tokens=40))
    chunks = list(client.chat.completions.create(messages="Tell me a story.", temperature=0, max_tokens=40, stream=True,
                                                 stream_options={"include_usage": True}))
    same("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), whole, "the text")
    same((chunks[0].choices[0].delta.role, chunks[-2].choices[0].finish_reason, chunks[-1].usage.completion_tokens), ("assistant", "length", 40), "the frame")
    need(len(chunks) > 10, f"{len(chunks)} chunks")
    with model.stream("Tell me a story.") as stream:
        next(stream)
        next(stream)
    same(list(stream), [], "after closing")
    open_ = [model.stream("Tell me a story.") for _ in range(4)]
    for s in open_:
        next(s), next(s)
    refused(bezel.BadRequest, "bad_request", "streams of this thread", model.chat, "Hi")
    for s in open_:
        s.close()
    need(text_of(model.chat("Hi")), "no answer")


def tools():
    answer = model.chat("What is the weather in Paris?", tools=TOOLS, temperature=0).choices[0]
    call = answer.message.tool_calls[0]
    same((answer.finish_reason, answer.message.content, call.function.name, json.loads(call.function.arguments)),
         ("tool_calls", None, "get_weather", {"city": "Paris"}), "the call")
    chunks = list(model.stream("What is the weather in Paris?", tools=TOOLS, temperature=0))
    same([c.choices[0].delta.tool_calls[0].to_dict() for c in chunks if c.choices[0].delta.tool_calls], [{"index": 0, **call.to_dict()}], "the chunks")
    after = model.chat([{"role": "user", "content": "What is the weather in Paris?"}, answer.message,
                        {"role": "tool", "tool_call_id": call.id, "content": "sunny"}], tools=TOOLS, temperature=0)
    need("sunny" in text_of(after), str(after))


def forms():
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "integer", "maximum": 99}}, "required": ["a", "b"],
              "additionalProperties": False}
    found = json.loads(text_of(model.chat("Hi", response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})))
    need(found["a"] in "xy" and found["b"] <= 99, str(found))
    need(text_of(model.chat("Hi", choices=["yes", "no"])) in ("yes", "no"), "choices")
    need(set(text_of(model.chat("Hi", grammar='root ::= "ab" | "ba"'))) == {"a", "b"}, "grammar")
    answer = model.chat("Hi", logprobs=True, top_logprobs=2, max_tokens=3, temperature=0).choices[0]
    tokens = answer.logprobs.content
    need(len(tokens) == 3 and tokens[0].top_logprobs[0].logprob == tokens[0].logprob and bytes(tokens[0].bytes).decode() == tokens[0].token, str(tokens))
    with model.session() as session:
        session.prefill(model.tokenize("Once"))
        grammar = bezel.Grammar(regex="[0-9]{5}")
        text = "".join(t.text for t in session.generate(grammar=grammar))
        need(len(text) == 5 and text.isdigit(), text)
        grammar.close()
    refused(bezel.BadSchema, "bad_schema", "#/$ref", model.chat, "x", response_format={"type": "json_schema", "json_schema": {"schema": {"$ref": "other.json"}}})
    refused(bezel.BadSchema, "bad_schema", "", bezel.Grammar, gbnf="root ::= nothing")
    refused(bezel.BadRequest, "bad_request", "one of gbnf", bezel.Grammar)


def refusals():
    refused(TypeError, None, "'temprature'", model.chat, "x", temprature=1)
    refused(bezel.BadRequest, "bad_request", "temperature", model.chat, "x", temperature="warm")
    refused(ValueError, "bad_request", "audio", model.chat, "x", audio={})
    refused(bezel.BadRequest, "bad_request", "n is", model.chat, "x", n=0)
    refused(bezel.BadRequest, "bad_request", "messages", model.chat, [])
    refused(bezel.BadRequest, "bad_request", "surrogate", model.chat, "\ud800")
    refused(bezel.BadRequest, "bad_request", "set where no image", model.chat, "x", stop={1})
    refused(bezel.ContextFull, "context_full", "", model.chat, "word " * 3000)
    refused(bezel.UnsupportedModel, "unsupported_model", "", model.embed, ["x"])
    refused(bezel.MissingPackage, "missing_package", "numpy", model.logits, [2, 3])
    refused(ImportError, "missing_package", "Pillow", model.chat, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": b"\x89PNG"}}]}])
    refused(bezel.BadRequest, "bad_request", "tools belongs to a chat", client.completions.create, prompt="x", tools=[])


def media():
    def ask(part, text="What is this?"):
        return text_of(model.chat([{"role": "user", "content": [part, {"type": "text", "text": text}]}], temperature=0))
    data = PICTURE.read_bytes()
    want = ask({"type": "image_url", "image_url": {"url": PICTURE}})
    need("red circle" in want, want)
    same(ask({"type": "image_url", "image_url": {"url": data}}), want, "from bytes")
    import base64
    same(ask({"type": "image_url", "image_url": {"url": "data:image/x-portable-pixmap;base64," + base64.b64encode(data).decode()}}), want, "from a URL")
    sound = ask({"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}, "What do you hear?")
    need(sound and sound != want, sound)
    same(ask({"type": "input_audio", "input_audio": {"data": base64.b64encode(SOUND.read_bytes()).decode(), "format": "wav"}}, "What do you hear?"), sound,
         "from base64")
    video = bezel.Video([PICTURE, data, PICTURE], [0, 1, 2.5])
    need(ask({"type": "video_url", "video_url": {"url": video}}), "nothing about the video")

    def image(source):
        return ask({"type": "image_url", "image_url": {"url": source}})
    refused(bezel.BadRequest, "bad_request", "texts never name files", image, str(PICTURE))
    refused(bezel.BadRequest, "bad_request", "network", image, "https://example.org/cat.png")
    refused(bezel.NotFound, "not_found", "no file", image, pathlib.Path("/nonexistent"))
    refused(bezel.BadFile, "bad_file", "cut off", image, data[:500])
    refused(bezel.BadFile, "bad_file", "damaged", image, b"P6 # no size\n")
    refused(bezel.BadRequest, "bad_request", "base64", image, "data:image/png;base64,!")
    refused(bezel.BadRequest, "bad_request", "cannot be a int", image, _Int(5))
    refused(bezel.BadRequest, "bad_request", "2 frames", bezel.Video, [1, 2], [0])
    refused(bezel.MissingPackage, "missing_package", "package av", ask, {"type": "video_url", "video_url": {"url": data}})
    # The place of an object cannot be named from outside.
    refused(bezel.BadRequest, "bad_request", "text, not an image", model.chat, [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": data}}, {"type": "image_url", "image_url": {"url": "object:0"}}]}])


def broken_pictures():
    """PPM files with random changes: decoded, or refused as such"""
    draw, good = random.Random(1), b"P6 # a comment\n12 10\n255\n" + bytes(range(240)) + bytes(120)
    counts = {"read": 0, "refused": 0}
    for _ in range(400):
        data = bytearray(good[:draw.choice([len(good), draw.randrange(3, len(good))])])
        for _ in range(draw.randrange(4)):
            data[draw.randrange(2, min(len(data), 30))] = draw.choice(b"0129 \n#-x\xff")
        try:
            pixels = image_pixels(bytes(data))
            need(len(pixels.rgb) == 3 * pixels.width * pixels.height, f"{pixels.width} x {pixels.height} in {bytes(data[:30])}")
            counts["read"] += 1
        except bezel.BezelError:
            counts["refused"] += 1
    need(min(counts.values()) > 20, str(counts))


class _Int:
    """neither JSON nor an image"""

    def __init__(self, value):
        self.value = value


_Int.__name__ = "int"


def sessions():
    with tempfile.TemporaryDirectory() as folder, model.session(context=256) as session:
        path = pathlib.Path(folder) / "session"
        session.prefill(model.tokenize("Once upon a time"))
        first = [t.id for t in session.generate(max_tokens=6, temperature=0)]
        session.save(path)
        fork = session.fork()
        other = model.session(context=256)
        other.load(path)
        want = [t.id for t in session.generate(max_tokens=6, temperature=0)]
        same([t.id for t in fork.generate(max_tokens=6, temperature=0)], want, "of the fork")
        same([t.id for t in other.generate(max_tokens=6, temperature=0)], want, "of the saved session")
        need(first != want and session.stats.generated == 12, str(session.stats))
        tokens = session.generate(temperature=0, logprobs=True, top_logprobs=3, ignore_end=True)
        token = next(tokens)
        need(token.logprob <= 0 and len(token.top) == 3, str(token))
        refused(bezel.BadRequest, "bad_request", "still being generated", session.prefill, [2])
        tokens.close()
        session.prefill(model.tokenize("Once upon a time"))
        refused(bezel.BadFile, "bad_file", "", session.load, PICTURE)
        other.close()
        refused(bezel.Closed, "closed", "session is closed", other.prefill, [2])


def completions():
    answer = client.completions.create(prompt="Once upon a time", max_tokens=12, temperature=0, logprobs=1, echo=True)
    text = answer.choices[0].text
    need(text.startswith("Once upon a time,") and answer.choices[0].finish_reason == "length" and len(answer.choices[0].logprobs.tokens) == 12, str(answer))
    pieces = list(client.completions.create(prompt="Once upon a time", max_tokens=12, temperature=0, stream=True))
    same("Once upon a time" + "".join(p.choices[0].text for p in pieces), text, "the pieces")
    stopped = client.completions.create(prompt="Once upon a time", temperature=0, stop=["was"]).choices[0]
    need(stopped.finish_reason == "stop" and "was" not in stopped.text, str(stopped))
    same(model.detokenize(model.tokenize("Naïve 🙂 text")), "Naïve 🙂 text", "the text of the tokens")
    refused(bezel.BadRequest, "bad_request", "not a token", model.detokenize, [10 ** 6])


def llama():
    with bezel.Llama(model.path, n_gpu_layers=0, n_ctx=512, verbose=False, seed=4) as llm:
        found = llm("Once upon a time", max_tokens=6, temperature=0)
        need(found["choices"][0]["text"] and found["usage"]["completion_tokens"] == 6 and llm.n_ctx() == 512, str(found))
        chat = llm.create_chat_completion([{"role": "user", "content": "Hi"}], temperature=0)
        same(chat["choices"][0]["message"]["content"], text_of(model.chat("Hi", temperature=0)), "the chat")
        streamed = "".join(c["choices"][0]["delta"].get("content", "") for c in llm.create_chat_completion("Hi", temperature=0, stream=True))
        same(streamed, chat["choices"][0]["message"]["content"], "the stream")
        same(llm.detokenize(llm.tokenize(b"Hello")), b"Hello", "the text")
        llm.eval(llm.tokenize(b"Hello"))
        state, n = llm.save_state(), llm.n_tokens
        llm.eval(llm.tokenize(b" you", add_bos=False))
        llm.load_state(state)
        same(llm.n_tokens, n, "tokens of the state")
        refused(bezel.BadRequest, "bad_request", "suffix", llm, "x", suffix="y")
    refused(TypeError, None, "chat_format", bezel.Llama, model.path, chat_format="chatml")


def batches():
    prompts = [f"Tell me a story about a {x}." for x in ("cat", "dog", "fox", "hen", "owl")]
    want = [text_of(model.chat(p, temperature=0, max_tokens=16)) for p in prompts]
    same([text_of(a) for a in model.answer_all(prompts, slots=3, temperature=0, max_tokens=16)], want, "the answers")
    with model.batch(2) as batch:
        mixed = [prompts[0], {"prompt": prompts[1], "max_tokens": 4}, {"messages": []}, {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": PICTURE}}, {"type": "text", "text": "What is this?"}]}], "max_tokens": 30},
            {"prompt": "Hi", "logprobs": True}, {"prompt": "x", "temperature": "x"}]
        found = list(batch.answers(mixed, errors="return", temperature=0, max_tokens=16))
        same([getattr(getattr(a, "error", None), "code", "") for a in found], ["", "", "bad_request", "", "", "bad_request"], "the errors")
        need(text_of(found[0]) == want[0] and found[1].usage.completion_tokens == 4 and "red circle" in text_of(found[3])
             and found[4].choices[0].logprobs, str(found))
        refused(bezel.BadRequest, "bad_request", "temperature", lambda: list(batch.answers(mixed[-1:] + prompts)))
        same(sorted(n for n, _ in batch.answers(iter(prompts), ordered=False, max_tokens=4)), list(range(5)), "the numbers")
        answers = batch.answers([prompts[0]] * 9, max_tokens=4)
        next(answers)
        refused(bezel.BadRequest, "bad_request", "other requests", lambda: list(batch.answers(["x"])))
        answers.close()
        same(len(list(batch.answers(prompts, max_tokens=2))), 5, "after closing early")


def worker_of_ray():
    """the class of the example, without Ray: columns in, columns out"""
    import ray_batch
    answers = ray_batch.Answerer("pebble", threads=1, slots=2, temperature=0)(
        {"id": [1, 2, 3], "prompt": ["Tell me a story.", "word " * 3000, "Hi"], "max_tokens": [3, None, float("nan")]})
    same((answers["id"], answers["tokens"][0], answers["finish"]), ([1, 2, 3], 3, ["length", "error", "stop"]), "the columns")
    need(answers["answer"][2] and answers["error"][0] is None and "context" in answers["error"][1], str(answers))


def threads():
    found = {}

    def work(i):
        found[i] = text_of(model.chat(f"Tell me a story about {i}.", temperature=0, max_tokens=12))
    alone = [text_of(model.chat(f"Tell me a story about {i}.", temperature=0, max_tokens=12)) for i in range(6)]
    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    same([found[i] for i in range(6)], alone, "the answers")


def interrupted(name, run, ready):
    """SIGINT reaches a call once `ready` holds"""
    def kill():
        wait_until(ready, name)
        os.kill(os.getpid(), signal.SIGINT)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run()
    except KeyboardInterrupt:
        killer.join()
        return
    raise AssertionError(f"{name} was not interrupted")


def ctrl_c():
    with model.session() as session:
        interrupted("an answer", lambda: client.chat.completions.create(messages="x", session=session, **LONG), lambda: session.stats.generated > 3)
        need(session.stats.generated < 1500, str(session.stats))
        need(client.chat.completions.create(messages="Hi", session=session), "the session is lost")
    taken = []

    def work():
        for answer in model.answer_all(["Hi", *[{"prompt": "x", **LONG}] * 4], slots=2):
            taken.append(answer)
    interrupted("a batch", work, lambda: taken)
    same(len(taken), 1, "answers")


def closing():
    other = bezel.Model("pebble", device="cpu")
    session, stream = other.session(), other.stream("x", **LONG)
    next(stream), next(stream)
    batch = other.batch(2)
    answers = batch.answers([{"prompt": "x", **LONG}] * 3)
    closer = threading.Thread(target=lambda: (wait_until(lambda: session.stats.generated > 2, "tokens"), other.close()))
    session.prefill([2, 5, 6])
    closer.start()
    refused(bezel.Closed, "closed", "is closed", lambda: list(session.generate(ignore_end=True)) and list(session.generate(ignore_end=True)))
    closer.join()
    refused(bezel.Closed, "closed", "is closed", lambda: list(stream))
    refused(bezel.Closed, "closed", "is closed", lambda: list(answers))
    refused(bezel.Closed, "closed", "model is closed", other.chat, "x")
    other.close()
    # Objects that nobody closes, also in a cycle: freed in the right order.
    lost = bezel.Model("pebble", device="cpu")
    lost.mine = [lost, lost.session(), lost.batch(1), lost.stream("x")]
    next(lost.mine[3])
    del lost
    gc.collect()
    code = "import bezel; m = bezel.Model('pebble'); s = m.session(); st = m.stream('x'); next(st); b = m.batch(2).answers(['x'] * 9); next(b); print('end')"
    p = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True)
    same((p.returncode, p.stdout, p.stderr), (0, "end\n", ""), "a program that closes nothing")


def models():
    same([m.id for m in client.models.list().data], ["pebble"], "the models")
    refused(bezel.NotFound, "not_found", "other", client.models.retrieve, "other")
    refused(TypeError, None, "context", bezel.Client, model, context=5)


for check in (opening, chats, streams, tools, forms, refusals, media, broken_pictures, sessions, completions, llama, batches, worker_of_ray, threads, ctrl_c, closing, models):
    case(f"python: {check.__name__}", check)
model.close()
sys.exit(finish())
