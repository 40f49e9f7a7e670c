"""The installed package with numpy, Pillow, soundfile and av. Run by tests/lib/test_python.py.

  check_arrays.py PICTURE.ppm SOUND.wav EMBEDDINGS.gguf
"""
import io
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import av  # noqa: E402
import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import soundfile  # noqa: E402
from cases import case, finish, need, same  # noqa: E402

import bezel  # noqa: E402
from bezel.media import image_pixels, sound_samples, video_frames  # noqa: E402

PICTURE, SOUND, EMBEDDINGS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
model = bezel.Model("pebble", device="cpu", threads=1)


def refused(kind, words, call, *args):
    try:
        call(*args)
    except kind as e:
        return need(words in str(e), str(e))
    raise AssertionError(f"accepted {args}")


def logits():
    tokens = model.tokenize("Once upon a time")
    rows = model.logits(tokens)
    same((rows.shape, rows.dtype), ((len(tokens), model.vocab), numpy.float32), "the array")
    with model.session() as session:
        refused(bezel.BadRequest, "no logits", lambda: session.logits)
        session.prefill(tokens)
        need(numpy.array_equal(session.logits, rows[-1]), "other logits from a session")
        best = next(session.generate(max_tokens=1, temperature=0)).id
        same(best, int(numpy.argmax(rows[-1])), "the likeliest token")
        refused(bezel.BadRequest, "new session", session.prefill_logits, tokens)
    need(not numpy.array_equal(model.logits(tokens, exact=True), rows), "exact changes nothing")
    with bezel.Model("pebble", device="cpu", kv="q8") as small:
        need(0 < numpy.abs(small.logits(tokens) - rows).max() < 2, "keys and values in q8 change nothing, or too much")
    refused(bezel.BadRequest, "q3", lambda: bezel.Model("pebble", device="cpu", kv="q3").session())
    with bezel.Llama("pebble", n_gpu_layers=0) as llm:
        llm.eval(tokens)
        need(numpy.array_equal(llm.scores[-1], rows[-1]), "other logits from Llama")


def images():
    want = image_pixels(PICTURE)
    array = numpy.frombuffer(want.rgb, numpy.uint8).reshape(want.height, want.width, 3)
    picture = PIL.Image.open(PICTURE)
    png = io.BytesIO()
    picture.save(png, "PNG")
    for name, source in (("an array", array), ("an array of a view", array[::-1][::-1]), ("Pillow", picture), ("PNG", png.getvalue())):
        same(image_pixels(source), want, name)
    clear = PIL.Image.new("RGBA", (50, 50), (9, 9, 9, 0))
    same(image_pixels(clear).rgb[:3], b"\xff\xff\xff", "a transparent pixel")
    turned = picture.getexif()
    turned[274] = 6
    jpeg = io.BytesIO()
    PIL.Image.new("RGB", (60, 30)).save(jpeg, "JPEG", exif=turned)
    same(image_pixels(jpeg.getvalue())[1:], (30, 60), "the size after EXIF's orientation")
    refused(bezel.BadFile, "cannot be read", image_pixels, png.getvalue()[:200])
    refused(bezel.BadRequest, "(height, width, 3)", image_pixels, array[:, :, 0])
    refused(bezel.BadRequest, "uint8", image_pixels, array.astype(numpy.float32))
    refused(bezel.BadRequest, "", image_pixels, PIL.Image.new("L", (1, 1 << 21)))
    answer = model.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": array}}, {"type": "text", "text": "What is this?"}]}])
    need("red circle" in answer.choices[0].message.content, str(answer))


def sounds():
    own = numpy.array(sound_samples(SOUND).pcm)
    pcm, rate = soundfile.read(SOUND, dtype="float32")
    need(numpy.abs(own - pcm).max() < 1e-4 and rate == sound_samples(SOUND).rate, "the library's WAV is not libsndfile's")
    flac = io.BytesIO()
    soundfile.write(flac, pcm, rate, format="FLAC")
    need(numpy.abs(numpy.array(sound_samples(flac.getvalue()).pcm) - pcm).max() < 1e-3, "FLAC")
    stereo = sound_samples((numpy.stack([pcm, -pcm], 1), rate))
    same(float(numpy.abs(stereo.pcm).max()), 0.0, "the mean of two channels")
    refused(bezel.BadFile, "cannot be read", sound_samples, b"x" * 100)
    refused(bezel.BadRequest, "(samples,", sound_samples, (numpy.zeros((2, 2, 2)), 16000))


def videos():
    """16 frames at 8 per second, each brighter than the one before"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "video.mp4"
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=8)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            for i in range(16):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(numpy.full((64, 96, 3), 15 * i, numpy.uint8), format="rgb24")))
            container.mux(stream.encode())
        video = video_frames(path, 4)
        same([frame[1:] for frame in video.frames], [(96, 64)] * 4, "the sizes")
        levels = [frame.rgb[0] for frame in video.frames]
        need(video.seconds == sorted(video.seconds) and 0 <= video.seconds[0] < video.seconds[-1] < 2, str(video.seconds))
        need(all(abs(level - 15 * 8 * at) < 12 for level, at in zip(levels, video.seconds)), f"{levels} at {video.seconds}")
        same(len(video_frames(path, 32).frames), 16, "all frames")
    same(len(video_frames(video, 2).frames), 2, "frames of a Video")
    refused(bezel.BadFile, "cannot be read", video_frames, b"x" * 100)
    refused(bezel.BadRequest, "from 1 to", video_frames, video, 0)


def embeddings():
    with bezel.Model(EMBEDDINGS, device="cpu") as embedder:
        texts = ["a cat", "a dog", "a longer text about cats"]
        vectors = embedder.vectors(texts)
        same(vectors.shape, (3, embedder.info.embedding), "the shape")
        need(numpy.allclose((vectors ** 2).sum(1), 1, atol=1e-5), "the lengths are not 1")
        need(numpy.array_equal(numpy.array(embedder.embed(texts), numpy.float32), vectors), "embed is not vectors")
        client = bezel.Client(embedder)
        answer = client.embeddings.create(input=texts)
        need(numpy.array_equal(numpy.array([d.embedding for d in answer.data], numpy.float32), vectors) and answer.usage.prompt_tokens > 6, str(answer.usage))
        import base64
        coded = client.embeddings.create(input=texts[1], encoding_format="base64").data[0].embedding
        need(numpy.array_equal(numpy.frombuffer(base64.b64decode(coded), numpy.float32), vectors[1]), "base64")
        same(len(embedder.embed(["x"], dimensions=16)[0]), 16, "numbers kept")
        refused(bezel.BadRequest, "", lambda: embedder.embed(["x"], task="nothing"))
        need(not numpy.array_equal(embedder.vectors(["x"], task="query"), embedder.vectors(["x"])), "task changes nothing")
        refused(bezel.BadRequest, "No text", embedder.vectors, [])
        refused(bezel.BezelError, "", embedder.chat, "x")
    with bezel.Llama(EMBEDDINGS, embedding=True, n_gpu_layers=0) as llm:
        need(numpy.array_equal(numpy.array(llm.embed("a cat"), numpy.float32), vectors[0]), "Llama.embed")
    refused(bezel.BadRequest, "no embeddings", lambda: bezel.Llama("pebble", embedding=True))


for check in (logits, images, sounds, videos, embeddings):
    case(f"python with arrays: {check.__name__}", check)
model.close()
sys.exit(finish())
