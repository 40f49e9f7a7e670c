#!/usr/bin/env python3
"""Images, audio and video through the program: encode, logits, run, and its messages about bad files.

    test_media.py PROGRAM MODELS

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "support")]
import numpy as np  # noqa: E402
from cases import case, finish, need, same  # noqa: E402
import gguf_io as g  # noqa: E402
from avi import avi, golden_frames  # noqa: E402

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GOLDEN = os.path.join(ROOT, "build", "golden")
E = [os.path.join(GOLDEN, "e-like", "text.gguf"), "--mmproj", os.path.join(GOLDEN, "e-like", "mmproj.gguf")]
WHOLE = [os.path.join(MODELS, "e-like-whole.gguf")]


def bezel(*args):
    return subprocess.run([BEZEL, *args], capture_output=True, text=True, errors="replace", timeout=300, stdin=subprocess.DEVNULL)


def wav(pcm):
    data = (np.clip(pcm, -1, 1) * 32767).round().astype("<i2").tobytes()
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + \
        b"data" + struct.pack("<I", len(data)) + data


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, rows):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


with tempfile.TemporaryDirectory() as work:
    path = lambda name: os.path.join(work, name)

    def write(name, data):
        with open(path(name), "wb") as f:
            f.write(data)
        return path(name)

    media, e = g.Reader(os.path.join(GOLDEN, "media", "golden.gguf")), g.Reader(os.path.join(GOLDEN, "e-like", "media.gguf"))
    rgb = media.get("image.0.rgb").view(np.uint8)
    picture = write("picture.ppm", b"P6 %d %d 255\n" % (rgb.shape[1], rgb.shape[0]) + rgb.tobytes())
    sound = write("sound.wav", wav(media.get("audio.0.pcm")))

    def encode(model, *args):
        r = bezel("encode", *model, *args, "-o", path("out.f32"))
        need(r.returncode == 0, r.stderr)
        return np.fromfile(path("out.f32"), np.float32), r.stderr

    def pictures():
        want = e.get("image.0.soft_tokens")
        for model in (E, WHOLE):
            got, said = encode(model, "--image", picture, "--image-tokens", "70", "--features", path("features.f32"))
            need(np.abs(got - want.ravel()).max() < 1e-4 and "60 tokens of 128" in said, said)
            need(os.path.getsize(path("features.f32")) == 540 * 768 * 4, "features")

    def sounds():
        got, said = encode(E, "--audio", sound, "--features", path("features.f32"))
        features = np.fromfile(path("features.f32"), np.float32).reshape(-1, 128)
        loud = np.abs(features - media.get("audio.0.features"))[media.get("audio.0.features") > 0]
        need(features.shape == (129, 128) and loud.max() < 0.02, f"{features.shape} {loud.max()}")   # 16-bit samples
        need(np.abs(got - e.get("audio.0.soft_tokens").ravel()).max() < 0.1 and "33 tokens" in said, said)

    def logits():
        for k, args in ((0, ["--image", picture, "--image-tokens", "70"]),):
            ids = ",".join(str(i) for i in e.get(f"mm.{k}.tokens"))
            r = bezel("logits", *E, "-t", ids, "-o", path("l.f32"), *args)
            need(r.returncode == 0, r.stderr)
            got = np.fromfile(path("l.f32"), np.float32).reshape(-1, 768)[e.get(f"mm.{k}.positions")]
            need(np.abs(got - e.get(f"mm.{k}.logits")).max() < 1e-3, np.abs(got - e.get(f"mm.{k}.logits")).max())
        r = bezel("logits", *E, "-t", "2,100", "-o", path("l.f32"), "--image", picture)
        need(r.returncode == 2 and "tokens are left" in r.stderr, r.stderr)

    def run():
        args = ["--image", picture, "--image-tokens", "70", "--audio", sound, "-n", "4", "--temp", "0", "--no-think", "-q", "hello"]
        with_both, alone = bezel("run", *WHOLE, *args), bezel("run", *WHOLE, "-n", "4", "--temp", "0", "--no-think", "-q", "hello")
        need(with_both.returncode == 0 and alone.returncode == 0, with_both.stderr + alone.stderr)
        need(with_both.stdout != alone.stdout, "the image changes nothing")
        need(bezel("run", *E, *args).stdout == with_both.stdout, "one file and two differ")

    def one_sentence(r, code, *words):
        lines = r.stderr.strip().split("\n")
        need(r.returncode == code and len(lines) == 1 and lines[0].startswith("bezel") and lines[0].endswith((".", ")", '"')), f"{r.returncode}: {r.stderr}")
        need(all(w in lines[0] for w in words) and r.stdout == "", r.stderr)

    def bad_files():
        blank = png(1, 1, b"\0\1\2\3")
        huge = png(10000, 10000, b"")
        for name, data, words in (("empty.png", b"", ["empty"]), ("text.png", b"hello", ["not an image"]), ("cut.png", blank[:-20], ["cut off"]),
                                  ("huge.png", huge, ["megapixels"]), ("cut.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", ["JPEG"])):
            one_sentence(bezel("run", *WHOLE, "--image", write(name, data), "-q", "hi"), 2 if name == "huge.png" else 1, name, *words)
        row = write("row.png", png(10000, 1, b"\0" + bytes(30000)))
        need(bezel("encode", *WHOLE, "--image", row, "-o", path("o.f32")).returncode == 2, "100 places of the golden model")
        one_sentence(bezel("run", *WHOLE, "--image", path("nosuch.jpg"), "-q", "hi"), 3, "nosuch.jpg")
        for name, data, words in (("cut.wav", wav(np.zeros(9))[:40], ["cut off"]), ("none.wav", wav(np.zeros(0)), ["no samples"]),
                                  ("short.wav", wav(np.zeros(100)), ["at least 10.1 ms"]), ("text.mp3", b"hello", ["not a sound"])):
            r = bezel("run", *WHOLE, "--audio", write(name, data), "-q", "hi")
            one_sentence(r, r.returncode or -1, name, *words)

    def noisy_mp3():
        """what a library has to say about it is no concern of the user's"""
        frame = b"\xff\xfb\x90\x64" + bytes(413)
        for name, data in (("noise.mp3", b"\xff\xfb\x90\x64" + b"\x00\x11" * 60), ("tagged.mp3", b"ID3\4\0\0\0\0\0\0" + frame[:90])):
            one_sentence(bezel("run", *WHOLE, "--audio", write(name, data), "-q", "hi"), 1, name, "MP3", "damaged or cut off")
        r = bezel("encode", *WHOLE, "--audio", write("gap.mp3", frame * 20 + b"\0" * 300 + frame * 20), "-o", path("o.f32"))
        need(r.returncode == 0 and all(x.endswith((")", " s")) for x in r.stderr.strip().split("\n")), r.stderr)

    def options():
        for n in ("69", "1121", "5"):
            r = bezel("run", *WHOLE, "--image", picture, "--image-tokens", n, "hi")
            need(r.returncode == 2 and "70 to 1120" in r.stderr, r.stderr)
        one_sentence(bezel("run", *WHOLE, "--image", "", "-q", "hi"), 2, "empty source")
        blank = write("a b.ppm", open(picture, "rb").read())
        need(encode(WHOLE, "--image", "file://" + blank.replace(" ", "%20"))[0].tobytes() == encode(WHOLE, "--image", picture)[0].tobytes(), "file:// with %20")

    def json_errors():
        for args, code, name in (([*WHOLE, "--image", path("nosuch.png")], 3, "not_found"), ([path("nosuch.gguf")], 3, "not_found"),
                                 ([*WHOLE, "--image", write("text.jpg", b"hello")], 1, "bad_file"), ([write("no.gguf", b"hello")], 1, "bad_file")):
            r = bezel("run", *args, "--json", "-q", "hi")
            need(r.returncode == code, f"{r.returncode}: {r.stderr}")
            said = json.loads(r.stdout)
            need(said["type"] == "error" and said["code"] == name and said["message"] in r.stderr, r.stdout)

    def bad_models():
        text, moe = E[0], os.path.join(GOLDEN, "moe-like", "text.gguf")
        one_sentence(bezel("run", text, "--image", picture, "-q", "hi"), 4, "--mmproj")
        one_sentence(bezel("run", os.path.join(GOLDEN, "unified", "text.gguf"), "--mmproj", E[2], "--image", picture, "-q", "hi"), 2, "another model")
        one_sentence(bezel("run", text, "--mmproj", path("nosuch.gguf"), "--image", picture, "-q", "hi"), 3, "nosuch.gguf")
        one_sentence(bezel("run", text, "--mmproj", picture, "--image", picture, "-q", "hi"), 1, "picture.ppm")
        one_sentence(bezel("run", moe, "--mmproj", os.path.join(GOLDEN, "moe-like", "mmproj.gguf"), "--audio", sound, "-q", "hi"), 4, "no audio")

    def cut_sound():
        whole = wav(np.sin(np.arange(32000) * 0.05) * 0.3)
        r = bezel("encode", *WHOLE, "--audio", write("half.wav", whole[:len(whole) // 2]), "-o", path("o.f32"))
        need(r.returncode == 0 and "cut off; using its 1.0 seconds" in r.stderr and "25 tokens" in r.stderr, r.stderr)

    def address(file, kind):
        with open(file, "rb") as f:
            return f"data:{kind};base64," + base64.b64encode(f.read()).decode()

    def data_addresses():
        see = lambda x: encode(E, "--image", x, "--image-tokens", "70")[0].tobytes()
        hear = lambda x: encode(E, "--audio", x)[0].tobytes()
        need(see(address(picture, "image/x-portable-pixmap")) == see(picture), "an image as data")
        need(see("file://" + picture) == see(picture), "file://")
        need(hear(address(sound, "audio/wav")) == hear(sound), "a sound as data")
        need(hear(address(sound, "audio/wav").split(",")[1]) == hear(sound), "bare base64")
        out = ["-o", path("x.f32")]
        one_sentence(bezel("encode", *E, "--image", "data:image/png;base64,iVBO*", *out), 2, "data:image/png;base64", "not valid base64")
        one_sentence(bezel("encode", *E, "--image", "data:image/png;base64,iVBORw0KGgo=", *out), 1, "data:image/png;base64")
        one_sentence(bezel("encode", *E, "--image", "data:image/png", *out), 2, "no comma")
        one_sentence(bezel("encode", *E, "--image", "data:text/plain,hello", *out), 2, "not base64")
        one_sentence(bezel("encode", *E, "--image", "https://example.org/cat.png", *out), 2, "does not access the network", "Save it")

    def named():
        for text in (f"What is in {picture}?", f"'{picture}'", f"Is it ({sound}), or\n\"{picture}\"?"):
            r = bezel("run", *E, text, "-n", "1")
            need(r.returncode == 0 and "(The model only sees the name of the file; --" in r.stderr, r.stderr)
        for text in ("What is in none.png?", f"It's {picture[:-4]}", "\"", ".png '"):
            need("only sees the name" not in bezel("run", *E, text, "-n", "1").stderr, text)
        for more in (["--image", picture], ["-q"]):
            need("only sees the name" not in bezel("run", *E, f"What is in {picture}?", "-n", "1", *more).stderr, str(more))

    def prompts():
        def ask(*parts, text="What is this?"):
            return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}], "options": {"num_predict": 4}}
        image, audio = address(picture, "image/x-portable-pixmap"), address(sound, "audio/wav").split(",")[1]
        see, hear = {"type": "image_url", "image_url": {"url": image}}, {"type": "input_audio", "input_audio": {"data": audio, "format": "wav"}}
        lines = [ask(), ask(see), ask(see, hear), ask(hear), ask({"type": "image_url", "image_url": {"url": path("none.png")}}),
                 ask({"type": "image_url", "image_url": {"url": picture}}), ask(),
                 {"prompt": "What is this?", "images": [image.split(",")[1]], "options": {"num_predict": 4}},
                 {"messages": [{"role": "user", "content": "What is this?", "images": [picture]}], "options": {"num_predict": 4}},
                 {**ask(), "images": [picture]}]
        file = write("prompts.jsonl", "".join(json.dumps(x) + "\n" for x in lines).encode())
        run = lambda: bezel("run", *E, "--prompts", file, "--image-tokens", "70", "--threads", "1", "--ctx", "512")
        r = run()
        need(r.returncode == 1, r.stderr)  # two lines fail
        answers = [json.loads(x) for x in r.stdout.splitlines()]
        same([x["line"] for x in answers], list(range(1, 11)), "lines")
        same([("error" in x) for x in answers], [False, False, False, False, True, False, False, False, False, True], "errors")
        need("none.png" in answers[4]["error"]["message"], answers[4]["error"]["message"])
        tokens = [x["usage"]["prompt_tokens"] if "usage" in x else 0 for x in answers]
        need(tokens[1] > tokens[0] + 30 and tokens[2] > tokens[1] and tokens[3] > tokens[0], f"tokens {tokens}")
        same([tokens[5], *tokens[7:9]], 3 * [tokens[1]], "the same image from its file, and as Ollama's API has it")
        need('beside "prompt"' in answers[9]["error"]["message"], answers[9]["error"]["message"])
        need(answers[5]["usage"]["completion_tokens"] > 0, "no answer")
        same(run().stdout, r.stdout, "a second run")

    def videos():
        """all golden cases: chosen frames, their times, and the first patch, through a container"""
        gold = g.Reader(os.path.join(GOLDEN, "video", "golden.gguf"))
        for k, (n, height, width, rate, args) in enumerate(((100, 48, 96, (30, 1), []), (61, 90, 40, (1, 50), ["--video-frames", "7"]),
                                                            (3, 48, 48, (24, 1), []), (50, 100, 60, (25, 2), ["--video-frames", "5", "--video-tokens", "140"]))):
            file = write(f"{k}.avi", avi(golden_frames(n, height, width), rate))
            got, said = encode(E, "--video", file, *args, "--features", path("features.f32"))
            patches = gold.get(f"case.{k}.patches")[:gold.get(f"case.{k}.frames")[0]]
            need(f"{len(patches)} frames, {sum(patches) // 9} tokens of 128" in said and len(got) == sum(patches) // 9 * 128, said)
            features = np.fromfile(path("features.f32"), np.float32).reshape(-1, 768)
            need(len(features) == sum(patches), f"{len(features)} patches")
            want = gold.get(f"case.{k}.first_patch").reshape(256, 3).T.ravel()
            need(np.abs((features[0] + 1) / 2 - want).max() < 1e-6, "the first patch")
            # the frames themselves, as images: which ones were taken
            wanted = len(patches)
            for i in (0, wanted // 2, wanted - 1):
                ppm = write("frame.ppm", b"P6 %d %d 255\n" % (width, height) + golden_frames(n, height, width)[i * n // wanted].tobytes())
                one, _ = encode(E, "--image", ppm, "--image-tokens", args[3] if len(args) > 2 else "70")
                need(np.array_equal(one, got.reshape(wanted, -1)[i]), f"frame {i} of case {k}")

    def run_video():
        file = write("clip.avi", avi(golden_frames(40, 48, 48), (20, 1)))
        ask = lambda *args: bezel("run", *WHOLE, *args, "-n", "4", "--temp", "0", "--no-think", "-q", "--json", "hello")
        done = lambda r: json.loads(r.stdout.splitlines()[-1])["usage"]["prompt_tokens"]
        plain, four, two = ask(), ask("--video", file, "--video-frames", "4"), ask("--video", file, "--video-frames", "2", "--audio", sound)
        need(plain.returncode == four.returncode == two.returncode == 0, plain.stderr + four.stderr + two.stderr)
        # mm:ss and spaces are 8 tokens of this vocabulary, then begin, 64 and end
        same(done(four), done(plain) + 4 * (64 + 2 + 6) + 3, "tokens of four frames")
        same(done(two), done(plain) + 2 * (64 + 2 + 6) + 1 + 35, "two frames and audio")
        one_sentence(bezel("run", *WHOLE, "--video", write("text.mp4", b"hello"), "-q", "hi"), 1, "text.mp4", "not a video")
        one_sentence(bezel("run", *WHOLE, "--video", write("sound.mp4", wav(np.zeros(9))), "-q", "hi"), 1, "sound.mp4", "not a video")
        half = open(file, "rb").read()
        one_sentence(bezel("run", *WHOLE, "--video", write("head.avi", half[:300]), "-q", "hi"), 1, "head.avi")
        for n, words in (("0", "1 to 1024"), ("1025", "1 to 1024")):
            r = bezel("run", *WHOLE, "--video", file, "--video-frames", n, "hi")
            need(r.returncode == 2 and words in r.stderr, r.stderr)
        r = bezel("run", *WHOLE, f"What is in {file}?", "-n", "1")
        need("--video" in r.stderr and "attaches it" in r.stderr, r.stderr)
        one_sentence(bezel("run", "pebble-diffusion", "--video", file, "-q", "hi"), 4, "no video")
        lines = [{"messages": [{"role": "user", "content": [part, {"type": "text", "text": "hi"}]}], "options": {"num_predict": 4}}
                 for part in ({"type": "video_url", "video_url": {"url": address(file, "video/x-msvideo")}}, {"type": "video", "video": file},
                              {"type": "video", "video": path("none.mp4")})]
        r = bezel("run", *WHOLE, "--prompts", write("v.jsonl", "".join(json.dumps(x) + "\n" for x in lines).encode()), "--video-frames", "4", "--ctx", "1024")
        answers = [json.loads(x) for x in r.stdout.splitlines()]
        need('usage' in answers[0] and 'usage' in answers[1], r.stdout)
        same(answers[0]["usage"], answers[1]["usage"], "a data: address and a file")
        need(answers[0]["usage"]["prompt_tokens"] > 4 * 64 and "none.mp4" in answers[2]["error"]["message"], r.stdout)

    def containers():
        """what an encoder made, with frames between key frames, and a phone's rotation"""
        if not shutil.which("ffmpeg"):
            return
        frames = np.repeat(np.arange(60, dtype=np.uint8)[:, None] * 4, 64 * 96 * 3, 1).reshape(60, 64, 96, 3)  # brighter and brighter
        frames[:, :, 48:] //= 2   # the right half darker
        file = write("made.avi", avi(frames, (30, 1)))
        make = lambda out, *args: need(subprocess.run(["ffmpeg", "-loglevel", "error", "-y", "-i", file, *args, path(out)]).returncode == 0, out)
        make("a.mp4", "-c:v", "mpeg4", "-q:v", "2", "-g", "12", "-bf", "2")
        make("a.webm", "-c:v", "libvpx", "-b:v", "1M")
        make("a.gif")
        make("turned.mp4", "-c:v", "mpeg4", "-q:v", "2", "-metadata:s:v:0", "rotate=90")
        for name in ("a.mp4", "a.webm", "a.gif", "turned.mp4"):
            got, said = encode(E, "--video", path(name), "--video-frames", "10", "--features", path("features.f32"))
            mean = np.fromfile(path("features.f32"), np.float32).reshape(10, -1).mean(1) / 2 + 0.5
            total = 50 if name == "a.gif" else 60   # a GIF has at most 50 frames per second, or 33
            want = 0.75 * 4 * np.arange(10) * 6 / 255
            need("10 frames" in said and np.abs(mean - want).max() < (0.03 if total == 60 else 0.06), f"{name}: {mean} {want}")
            need(name != "turned.mp4" or np.fromfile(path("features.f32"), np.float32).reshape(10, -1, 768)[9, 0].mean() !=
                 np.fromfile(path("features.f32"), np.float32).reshape(10, -1, 768)[9, -1].mean(), name)

    def bench():
        r = bezel("bench", *WHOLE, "--media", "--repeat", "1")
        lines = [x.split() for x in r.stdout.splitlines()]
        got = {x[0]: int(x[1]) for x in lines if x and x[0] in ("image", "audio")}
        need(r.returncode == 0 and got == {"image": 280, "audio": 750}, r.stdout + r.stderr)
        one_sentence(bezel("bench", E[0], "--media"), 4, "--mmproj")

    case("encode an image, from either kind of file", pictures)
    case("encode audio, with its features", sounds)
    case("logits with an image among the tokens", logits)
    case("run with an image and audio", run)
    case("a file that is only named in a prompt", named)
    case("bench --media", bench)
    case("the golden videos, from a file", videos)
    case("run with a video, and in a file of prompts", run_video)
    case("videos of other codecs", containers)
    case("data: addresses and base64", data_addresses)
    case("a file of prompts with images and audio", prompts)
    case("bad files are refused with one sentence", bad_files)
    case("models without a vision tower, or with one of another model", bad_models)
    case("an MP3 that its library complains about", noisy_mp3)
    case("invalid sizes and names", options)
    case("errors as JSON", json_errors)
    case("truncated audio is encoded as far as it goes", cut_sound)
sys.exit(finish())
