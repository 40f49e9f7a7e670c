"""Speech from espeak-ng's library, called through ctypes: synthesize(text, voice, ...) -> 16 kHz float32.

The folder named by PEBBLE_SPEECH holds libespeak-ng.so.1, libsonic.so.0, libpcaudio.so.0 (pcaudio_none.c, which plays nothing)
and espeak-ng-data; make_bundle.sh fills it from Debian's packages.
"""
import ctypes
import os

import numpy as np

VOICES = ["gmw/en-US", "gmw/en", "gmw/en-GB-scotland", "gmw/en-GB-x-rp", "gmw/en-029", "gmw/en-GB-x-gbclan", "gmw/en-GB-x-gbcwmd"]
VARIANTS = ["", "+m1", "+m2", "+m3", "+m4", "+m6", "+f1", "+f2", "+f3", "+f5", "+klatt", "+Annie", "+linda", "+david"]
HELD_OUT_VARIANTS = ["+m5", "+m7", "+f4", "+Alicia"]
_state = {}


def _load():
    if _state:
        return _state["lib"]
    folder = os.environ["PEBBLE_SPEECH"]
    for name in ("libsonic.so.0", "libpcaudio.so.0"):
        ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL)
    lib = ctypes.CDLL(os.path.join(folder, "libespeak-ng.so.1"))
    rate = lib.espeak_Initialize(2, 0, folder.encode(), 0)     # 2: synchronous, samples come to the callback
    assert rate > 0, "espeak-ng does not find its data"
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def take(samples, n, _events):
        if n > 0 and samples:
            _state["out"].append(np.ctypeslib.as_array(samples, shape=(n,)).copy())
        return 0
    _state.update(lib=lib, rate=rate, out=[], callback=kind(take))
    lib.espeak_SetSynthCallback(_state["callback"])
    return lib


def resample(x, rate, to=16000):
    """windowed sinc, good enough for speech"""
    if rate == to:
        return x
    n = int(len(x) * to / rate)
    t = np.arange(n) * (rate / to)
    base, cut, half = np.floor(t).astype(int), to / rate * 0.95, 12
    out = np.zeros(n)
    xp = np.pad(x, (half, half + 1))
    for k in range(-half + 1, half + 1):
        d = t - (base + k)
        out += xp[base + k + half] * cut * np.sinc(cut * d) * (0.5 + 0.5 * np.cos(np.pi * np.clip(d / half, -1, 1)))
    return out.astype(np.float32)


def synthesize(text, voice="gmw/en-US", speed=170, pitch=50, span=50, gap=0):
    lib = _load()
    if lib.espeak_SetVoiceByName(voice.encode()) != 0:
        raise ValueError(voice)
    for key, value in ((1, speed), (3, pitch), (4, span), (7, gap)):
        lib.espeak_SetParameter(key, int(value), 0)
    _state["out"] = []
    data = text.encode()
    lib.espeak_Synth(data, ctypes.c_size_t(len(data) + 1), 0, 1, 0, 1, None, None)
    lib.espeak_Synchronize()
    x = np.concatenate(_state["out"]).astype(np.float32) / 32768 if _state["out"] else np.zeros(160, np.float32)
    loud = np.nonzero(np.abs(x) > 0.003)[0]
    if len(loud):
        x = x[max(0, loud[0] - 400):loud[-1] + 400]
    return resample(x, _state["rate"])


def random_speech(r, text, held_out=False):
    voice = r.choice(VOICES) + r.choice(HELD_OUT_VARIANTS if held_out else VARIANTS)
    return synthesize(text, voice, r.randint(120, 215), r.randint(20, 80), r.randint(30, 80), r.choice([0, 0, 0, 1, 3]))
