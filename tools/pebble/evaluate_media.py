"""Scores images and speech with the official classes: evaluate_media.py MODEL [IMAGES CLIPS OUT.json]

MODEL: GGUF in Ollama's layout (scored with its quantised weights) or a Hugging Face folder. Images
and speech (media_cases.py) go through the official processor and feature extractor.
An answer is correct if it is right word for word.
"""
import json
import sys

import torch
from transformers import Gemma4AudioFeatureExtractor
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

import chat_format
import media_cases
import model as M
import official
import train


def right(model, ids, learn, **media):
    """are all tokens of the model the most probable ones, so that greedy decoding writes exactly this?"""
    with torch.no_grad():
        z = model(input_ids=torch.tensor([ids]), **media).logits[0]
    want = torch.tensor(learn[1:])
    return bool((z[:-1].argmax(-1)[want] == torch.tensor(ids[1:])[want]).all())


def greedy(model, t, ids, media, most=40):
    with torch.no_grad():
        out = model.generate(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), **media,
                             max_new_tokens=most, do_sample=False, eos_token_id=[1, 106, 50], pad_token_id=0)[0].tolist()
    return out[:-1] if out[-1] in (1, 106, 50) else out


def pictures(model, t, n, budget):
    proc = Gemma4ImageProcessorPil(max_soft_tokens=budget)
    score, wrong = {}, []
    for picture, conv in media_cases.pictures(n, budget):
        f = proc(images=[picture], return_tensors="pt")
        segs = chat_format.segments(conv)
        ids, learn = train.expand(*t.encode_segments(segs), t.ids["<|image|>"], t.ids["<|image>"], t.ids["<image|>"], int(f["num_soft_tokens_per_image"][0]))
        media = {"pixel_values": f["pixel_values"], "image_position_ids": f["image_position_ids"]}
        ok = right(model, ids, learn, **media)
        answer = conv["turns"][1][1][-1][1]
        if not ok and conv["think"]:                   # another thought may still lead to the right answer
            start = ids[:learn.index(True)]
            ok = t.decode(greedy(model, t, start, media, 90)[len(start):]).split("<channel|>")[-1].strip() == answer
        s = score.setdefault(media_cases.kind_of(answer), [0, 0])
        s[0] += ok
        s[1] += 1
        if not ok:
            wrong.append(answer)
    return score, wrong


def clips(model, t, n, new_voices):
    """words right, words, sentences right: errors count insertions, deletions and substitutions"""
    ear = Gemma4AudioFeatureExtractor()
    words = errors = whole = 0
    wrong = []
    for x, text, conv in media_cases.clips(n, new_voices):
        f = ear([x], return_tensors="pt")
        count = M.audio_tokens(len(x))
        ids, learn = train.expand(*t.encode_segments(chat_format.segments(conv)), t.ids["<|audio|>"], t.ids["<|audio>"], t.ids["<audio|>"], count)
        media = {"input_features": f["input_features"], "input_features_mask": f["input_features_mask"]}
        want = text.split()
        words += len(want)
        if right(model, ids, learn, **media):
            whole += 1
            continue
        start = ids[:learn.index(True)]
        got = t.decode(greedy(model, t, start, media)[len(start):]).split()
        errors += media_cases.word_errors(want, got)
        wrong.append((text, " ".join(got)))
    return {"words": words, "errors": errors, "phrases": n, "whole": whole}, wrong


def main():
    torch.set_num_threads(2)
    path = sys.argv[1]
    n_pictures, n_clips = (int(x) for x in (sys.argv[2:4] or (300, 200)))
    t, model = official.load(path)
    out = {}
    for budget in (70, 280):
        score, wrong = pictures(model, t, n_pictures if budget == 70 else n_pictures // 3, budget)
        good, all_ = (sum(x[k] for x in score.values()) for k in (0, 1))
        print(f"pictures, budget {budget}: {good} of {all_} answers right, {100 * good / all_:.1f} %;", ", ".join(f"{k} {a}/{b}" for k, (a, b) in sorted(score.items())), flush=True)
        out[f"pictures {budget}"] = {"score": score, "wrong": wrong}
    for new in (False, True):
        s, wrong = clips(model, t, n_clips, new)
        print(f"speech, {'new' if new else 'known'} voices, new phrases: word accuracy {100 * (1 - s['errors'] / s['words']):.1f} %, {s['whole']} of {s['phrases']} phrases whole", flush=True)
        out[f"speech {'new' if new else 'known'} voices"] = {"score": s, "wrong": wrong}
    if len(sys.argv) > 4:
        json.dump(out, open(sys.argv[4], "w"), indent=1)


if __name__ == "__main__":
    main()
