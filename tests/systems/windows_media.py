"""Pictures and sound in the Windows build, under Wine: by Wine's own Imaging Component, and by its Media Foundation, which uses GStreamer."""
import functools
import os
import subprocess

import pictures
from cases import case, need, same
from decoding import decode, furthest

SOUND = os.path.abspath("web/app/samples/speech.wav")
SOUNDS = ("a.flac", "a.ogg", "a.mp3")
NO_DECODER = "a.aac"  # GStreamer's is in a package of its own
FULL_COLOR = 1     # levels; decoders of JPEG round in their own ways
HALVED_COLOR = 12  # where color has half the resolution, they interpolate in their own ways
MP3_DELAY = 1105   # samples that coding puts before the first one, which libsndfile leaves out


class Media:
    """files, and what decode_files makes of them here and under Wine: all of a kind in one process, as Wine takes long to start"""
    def __init__(self, folder, command, env, exe, native, write):
        self.folder, self.command, self.env, self.exe, self.native = folder, command, env, exe, native
        self.cut, self.flipped = {}, {}
        os.makedirs(folder)
        subprocess.run([write, folder], check=True)
        self.whole = sorted(os.listdir(folder)) + pictures.converted(folder) + self.add({**pictures.pngs(), **pictures.gifs()})
        for name in ("color.jpg", "progressive.jpg", "rgb-8.png", "palette-alpha.png", "interlaced.png", "plain.gif", "interlaced.gif"):
            data = self.read(name)
            self.cut.update({f"cut-{i}-{name}": part for i, part in enumerate(pictures.cut(data)) if not (name.endswith("gif") and part == data[:-1])})
            self.flipped.update({f"flip-{i}-{name}": other for i, other in enumerate(pictures.flipped(data, 60, name))})
        for name in (*SOUNDS, NO_DECODER):
            subprocess.run(["ffmpeg", "-loglevel", "error", "-y", "-i", SOUND, name], check=True, cwd=folder)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def add(self, files):
        for name, data in files.items():
            with open(os.path.join(self.folder, name), "wb") as f:
                f.write(data)
        return list(files)

    def here(self, names):
        return dict(zip(names, decode(self.folder, names, self.native)))

    def there(self, names):
        return dict(zip(names, decode(self.folder, names, *self.command, self.exe, out="of-wine", env=self.env)))

    @functools.cached_property
    def pictures_here(self):
        return self.here(self.whole)

    @functools.cached_property
    def pictures_there(self):
        return self.there(self.whole + self.add(self.cut) + self.add(self.flipped) + self.add(pictures.huge()))

    @functools.cached_property
    def sounds_there(self):
        """GStreamer may wait for ever at files with wrong bits, which are not here therefore"""
        halves = {f"half-{name}": self.read(name)[:os.path.getsize(os.path.join(self.folder, name)) // 2] for name in SOUNDS}
        others = {"head.flac": self.read("a.flac")[:60], "other.mp3": b"hello, this is no sound"}
        return self.there([*SOUNDS, NO_DECODER, *self.add({**halves, **others})])


def equal(media, ending):
    """PNG and GIF: to the last bit"""
    for name in (n for n in media.whole if n.endswith(ending)):
        here, there = media.pictures_here[name], media.pictures_there[name]
        need(here[0] == "image", f"{name}: {here}")
        same(there[:3], here[:3], name)
        need(there == here, f"{name} is off by {furthest(here, there)}")


def close(media):
    """JPEG; the picture with hard edges of ffmpeg.jpg is compared in size only"""
    for name in (n for n in media.whole if n.endswith(".jpg")):
        here, there = media.pictures_here[name], media.pictures_there[name]
        same(there[:3], here[:3], name)
        off = 0 if name == "ffmpeg.jpg" else furthest(here, there)
        need(off <= (HALVED_COLOR if name == "halved.jpg" else FULL_COLOR), f"{name} is off by {off}")


def no_webp(media):
    for name in (n for n in media.whole if n.endswith(".webp")):
        there = media.pictures_there[name]
        need(there[0] == "failed" and "This Windows has no decoder of WebP" in there[1] and there[1].endswith("."), f"{name}: {there[:2]}")


def damaged(media):
    """beginnings of files are refused, and files with wrong bits are read or refused"""
    read = 0
    for name in media.cut:
        got = media.pictures_there[name]
        need(got[0] == "failed" and got[1].endswith("."), f"{name}: {got[:2]}")
    for name in media.flipped:
        got = media.pictures_there[name]
        need(got[0] == "image" or got[1].endswith("."), f"{name}: {got[:2]}")
        read += got[0] == "image"
    need(len(media.flipped) // 10 < read < len(media.flipped), f"{read} of {len(media.flipped)} files with wrong bits are pictures")


def large(media):
    for name in pictures.huge():
        got = media.pictures_there[name]
        need(got[0] == "failed" and "the limit is 67 megapixels" in got[1], f"{name}: {got[:2]}")


def sound(media):
    """FLAC and OGG: the samples of libsndfile"""
    for name, here in media.here(SOUNDS).items():
        there = media.sounds_there[name]
        need(there[0] == "sound", f"{name}: {there[:2]}")
        same((there[2], there[3]), (here[2], False), f"rate and end of {name}")
        if name == "a.mp3":
            same(there[1] >= here[1] + MP3_DELAY, True, "that all samples of the MP3 file are there")
            off = max(abs(a - b) for a, b in zip(here[4], there[4][MP3_DELAY:]))
            need(off < 1e-3, f"{name} is off by {off}")
        else:
            need(there[4] == here[4], f"{name} has other samples")


def damaged_sound(media):
    """half a file is cut off or refused; no file ends the program"""
    for name, got in media.sounds_there.items():
        need(got[0] == "sound" or got[1].endswith("."), f"{name}: {got[:2]}")
    half, head, no_decoder, other = (media.sounds_there[name] for name in ("half-a.flac", "head.flac", NO_DECODER, "other.mp3"))
    need(half[0] == "sound" and half[3], f"half a FLAC file: {half[:4]}")
    same(head[0], "failed", "the beginning of a FLAC file")
    need("cannot decode the AAC file: it lacks a decoder" in no_decoder[1], f"{no_decoder[:2]}")
    need("not a sound that Bezel reads (WAV, FLAC, OGG, MP3, AAC, M4A)" in other[1], f"{other[:2]}")


def answer(bezel, native):
    """about a picture, as the native program's"""
    ask = ("run", os.path.abspath("models/pebble.gguf"), "What is this?", "--image", os.path.abspath("web/app/samples/shapes.png"),
           "--temperature", "0", "--no-think", "--max-tokens", "8", "-q", "--threads", "1")
    here = subprocess.run([native, *ask], capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL, check=True)
    got = bezel(*ask)
    same((got.returncode, got.stdout), (0, here.stdout), "the answer")


def cases(folder, wine, env, bezel, native_bezel, *decoders):
    """wine, env: the command, and its environment; decoders: decode_files.exe, decode_files, write_pictures"""
    media = Media(folder, [wine], env, *decoders)
    case("pictures: PNG", equal, media, ".png")
    case("pictures: GIF", equal, media, ".gif")
    case("pictures: JPEG", close, media)
    case("pictures: WebP, for which Wine has no decoder", no_webp, media)
    case("pictures: damaged files", damaged, media)
    case("pictures: too large", large, media)
    case("sound: FLAC, OGG, MP3", sound, media)
    case("sound: damaged files, no decoder", damaged_sound, media)
    case("a picture in a prompt", answer, bezel, native_bezel)
