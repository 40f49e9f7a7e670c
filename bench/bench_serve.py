#!/usr/bin/env python3
"""Speed of servers with OpenAI's API under several clients: tokens per second, time to the first token, time between tokens.

    bezel serve MODEL.gguf --port 8001 --threads 2 --parallel 16 --ctx 4096 &
    llama-server -m MODEL.gguf --port 8002 -t 2 -np 16 -c 65536 &
    bench/bench_serve.py bezel=http://127.0.0.1:8001,$PID1 llama=http://127.0.0.1:8002,$PID2

PID is optional: with it the table has the CPU time of the server per token, which says more than the clock on a machine
that does other work. The servers get the same requests in turns, so that both see the same machine; before that each
gets a request that is not counted. Every client sends one streamed /v1/completions request at a time. Prompts are words
drawn by a seed that differs between rounds and clients, after --shared words that are the same for all of them.
"""
import argparse
import asyncio
import json
import os
import random
import time
import urllib.parse

WORDS = ("the of and to in is you that it he was for on are as with his they at be this have from or one had by word but not what all were we when "
         "your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into "
         "time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come").split()


def cpu_seconds(pid):
    if not pid:
        return 0.0
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, text):
        self.name, rest = text.split("=", 1)
        url, _, pid = rest.partition(",")
        self.url, self.pid = urllib.parse.urlsplit(url), int(pid or 0)


async def chunks(reader):
    """the body of a chunked answer"""
    while True:
        size = int(await reader.readline(), 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        yield data[:-2]


async def events(server, body):
    """pairs (time, object) of a stream of server-sent events"""
    reader, writer = await asyncio.open_connection(server.url.hostname, server.url.port)
    try:
        data = json.dumps(body).encode()
        writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: {server.url.netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"{server.name}: {head.decode()}{(await reader.read(500)).decode()}")
        rest = b""
        async for piece in chunks(reader):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    yield time.monotonic(), json.loads(line[len(b"data: "):])
    finally:
        writer.close()


class Round:
    """what the clients of one round have seen"""

    def __init__(self):
        self.tokens = self.prompt = self.cached = self.failed = 0
        self.first, self.gaps = [], []
        self.seconds = self.cpu = 0.0


async def client(server, prompt, tokens, out):
    last = start = time.monotonic()
    seen = False
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True}
    async for when, event in events(server, body):
        if "error" in event:
            # llama-server ends a stream so where the text of a random model is not UTF-8; all tokens were computed.
            if not seen or server.name == "bezel":
                raise SystemExit(f"{server.name}: {event}")
            out.tokens += tokens
            out.failed += 1
            return
        if event.get("usage"):
            out.tokens += event["usage"]["completion_tokens"]
            out.prompt += event["usage"]["prompt_tokens"]
            out.cached += (event["usage"].get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        if event["choices"] and event["choices"][0]["text"]:
            (out.gaps if seen else out.first).append(when - (last if seen else start))
            seen, last = True, when


async def one_round(server, prompts, tokens):
    out = Round()
    out.asked = len(prompts)
    start, cpu = time.monotonic(), cpu_seconds(server.pid)
    await asyncio.gather(*(client(server, p, tokens, out) for p in prompts))
    out.seconds, out.cpu = time.monotonic() - start, cpu_seconds(server.pid) - cpu
    return out


def words(seed, n):
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(n))


def at(values, part):
    values = sorted(values)
    return 1000 * values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def report(server, clients, rounds):
    tokens, seconds, cpu = sum(r.tokens for r in rounds), sum(r.seconds for r in rounds), sum(r.cpu for r in rounds)
    first, gaps = [x for r in rounds for x in r.first], [x for r in rounds for x in r.gaps]
    counted = max(1, sum(r.asked - r.failed for r in rounds))  # an answer that fails has no usage
    every = sum(r.prompt for r in rounds) / counted
    print(f"{server.name:10} {clients:7} {every:7.0f} {sum(r.cached for r in rounds) / counted:7.0f} {tokens / seconds:9.2f} {max(r.tokens / r.seconds for r in rounds):9.2f} "
          f"{1000 * cpu / max(1, tokens):9.1f} {at(first, 0.5):9.0f} {at(first, 1):9.0f} {at(gaps, 0.5):8.0f} {at(gaps, 0.99):8.0f}"
          + (f"  {failed} ended with an error" if (failed := sum(r.failed for r in rounds)) else ""), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("servers", nargs="+", help="NAME=URL[,PID]", type=Server)
    p.add_argument("--clients", default="1,4,16", help="numbers of clients, 1,4,16")
    p.add_argument("--tokens", type=int, default=32, help="tokens of an answer")
    p.add_argument("--words", type=int, default=64, help="words of a prompt that are the client's own")
    p.add_argument("--shared", type=int, default=0, help="words that all prompts begin with")
    p.add_argument("--rounds", type=int, default=2, help="how often each server is asked")
    o = p.parse_args()
    seed = time.time_ns()
    print(f"{'':10} {'':7} {'prompt':>7} {'of it':>7} {'answers':>9} {'best':>9} {'CPU':>9} {'first token, ms':>19} {'between, ms':>17}")
    print(f"{'server':10} {'clients':>7} {'tokens':>7} {'cached':>7} {'tokens/s':>9} {'round':>9} {'ms/token':>9} {'median':>9} {'latest':>9} {'median':>8} {'99 %':>8}")
    for server in o.servers:
        asyncio.run(one_round(server, [words(seed, 8)], 2))
    for clients in map(int, o.clients.split(",")):
        rounds = {s: [] for s in o.servers}
        for k in range(o.rounds):
            shared = words(f"{seed} {clients} {k}", o.shared)
            prompts = [f"{shared} {words(f'{seed} {clients} {k} {i}', o.words)}".strip() for i in range(clients)]
            for s in o.servers:
                rounds[s].append(asyncio.run(one_round(s, prompts, o.tokens)))
        for s in o.servers:
            report(s, clients, rounds[s])


main()
