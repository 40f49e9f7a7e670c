"""The openai and ollama packages and LangChain, against a running server. Run by tests/cli/test_api_clients.py with the
Python of build/clients:

    python_clients.py URL IMAGE        IMAGE: a PNG file
"""
import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import ollama  # noqa: E402
import openai  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_ollama import ChatOllama, OllamaLLM  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

URL, IMAGE = sys.argv[1:]
STORY = [{"role": "user", "content": "Tell me a story."}]
openai_client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
ollama_client = ollama.Client(host=URL)


@tool
def look_up(word: str) -> str:
    """looks a word up"""
    return word


def openai_chat():
    same([m.id for m in openai_client.models.list().data], ["pebble"], "models")
    a = openai_client.chat.completions.create(model="pebble", messages=STORY, max_tokens=10, seed=3)
    need(a.choices[0].message.content and a.usage.completion_tokens == 10, str(a))
    chunks = list(openai_client.chat.completions.create(model="pebble", messages=STORY, max_tokens=10, seed=3, stream=True, stream_options={"include_usage": True}))
    same("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), a.choices[0].message.content, "the stream")
    same(chunks[-1].usage.completion_tokens, 10, "usage")
    probs = openai_client.chat.completions.create(model="pebble", messages=STORY, max_tokens=3, logprobs=True, top_logprobs=2).choices[0].logprobs
    need(len(probs.content) == 3 and len(probs.content[0].top_logprobs) == 2, str(probs))
    with openai_client.chat.completions.stream(model="pebble", messages=STORY, max_tokens=5) as s:
        need([e for e in s if e.type == "content.delta"], "the helper for streams")


def openai_image():
    with open(IMAGE, "rb") as f:
        url = "data:image/png;base64," + base64.b64encode(f.read()).decode()
    message = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]}
    need(openai_client.chat.completions.create(model="pebble", messages=[message], max_tokens=3).usage.prompt_tokens > 20, "an image")


def openai_rest():
    same(openai_client.completions.create(model="pebble", prompt="Once upon a", max_tokens=4, n=2).choices[1].index, 1, "completions")
    r = openai_client.responses.create(model="pebble", input="Tell me a story.", max_output_tokens=6)
    need(r.output_text and r.usage.output_tokens == 6, str(r))
    events = list(openai_client.responses.create(model="pebble", input="Tell me a story.", max_output_tokens=6, stream=True))
    same((events[0].type, events[-1].type), ("response.created", "response.incomplete"), "events")
    try:
        openai_client.chat.completions.create(model="gpt-4o", messages=STORY)
        need(False, "no error")
    except openai.NotFoundError as e:
        same(e.code, "model_not_found", "the code")
    try:
        openai_client.chat.completions.create(model="pebble", messages=STORY, response_format={"type": "yaml"})
        need(False, "no error")
    except openai.BadRequestError as e:
        need("response_format" in e.message, e.message)


def ollama_all():
    same([m.model for m in ollama_client.list().models], ["pebble"], "list")
    a = ollama_client.chat("pebble", STORY, options={"num_predict": 6, "seed": 1})
    need(a.message.content and a.eval_count == 6 and a.done_reason == "length", str(a))
    parts = list(ollama_client.chat("pebble", STORY, options={"num_predict": 6, "seed": 1}, stream=True))
    same("".join(p.message.content for p in parts), a.message.content, "the stream")
    g = ollama_client.generate("pebble", "Tell me a story.", options={"num_predict": 6})
    need(g.response and g.context, str(g))
    need(ollama_client.chat("pebble", [{"role": "user", "content": "What?", "images": [IMAGE]}], options={"num_predict": 3}).prompt_eval_count > 20, "an image")
    same(ollama_client.ps().models[0].model, "pebble", "ps")
    need("vision" in ollama_client.show("pebble").capabilities, "show")
    ollama_client.generate("pebble", keep_alive=0)
    same(len(ollama_client.ps().models), 0, "unloaded")
    try:
        ollama_client.chat("none", STORY)
        need(False, "no error")
    except ollama.ResponseError as e:
        same((e.status_code, e.error), (404, "model 'none' not found"), "the error")


def langchain_openai():
    m = ChatOpenAI(model="pebble", base_url=URL + "/v1", api_key="none", max_tokens=6, temperature=0)
    text = m.invoke("Tell me a story.").content
    need(text, "no text")
    same("".join(c.content for c in m.stream("Tell me a story.")), text, "the stream")
    need(m.bind_tools([look_up]).invoke("Hello").response_metadata["finish_reason"], "tools")
    same([a.content for a in m.batch(["Tell me a story.", "Tell me a story."])], [text, text], "a batch")


def langchain_ollama():
    m = ChatOllama(model="pebble", base_url=URL, num_predict=6, temperature=0)
    text = m.invoke("Tell me a story.").content
    need(text, "no text")
    same("".join(c.content for c in m.stream("Tell me a story.")), text, "the stream")
    need(m.bind_tools([look_up]).invoke("Hello").response_metadata["done"], "tools")
    need(OllamaLLM(model="pebble", base_url=URL, num_predict=6).invoke("Tell me a story."), "generate")


def main():
    for name, run in (("openai chat", openai_chat), ("openai image", openai_image), ("openai completions and responses", openai_rest), ("ollama", ollama_all),
                      ("langchain-openai", langchain_openai), ("langchain-ollama", langchain_ollama)):
        case("python " + name, run)
    return finish()


sys.exit(main())
