/** A user's program, compiled against the published types; never run. */
import { Bezel, BezelError, type BezelModel, type ChatCompletion, type Message, type Progress } from "bezel";
import { fileSource } from "bezel/node";

export async function ask(file: File, text: string): Promise<string> {
    const model = await Bezel.load([file, "opfs:mmproj.gguf"], {
        contextLength: 4096,
        device: "auto",
        onProgress: (progress: Progress) => console.log(progress.stage, progress.done / progress.total),
    });
    const messages: Message[] = [{ role: "user", content: text }];
    const whole: ChatCompletion = await model.chat.completions.create({ messages, temperature: 0.7 });
    messages.push(whole.choices[0].message);
    let answer = "";
    for await (const chunk of await model.chat.completions.create({ messages, stream: true }, { signal: AbortSignal.timeout(1000) })) {
        answer += chunk.choices[0]?.delta.content ?? "";
        console.log(chunk.usage?.prompt_tokens_details.cached_tokens);
    }
    try {
        await Bezel.download(new URL("https://example.org/model.gguf"), { sha256: "0".repeat(64) });
    } catch (error) {
        if (error instanceof BezelError && error.code === "quota") {
            await Bezel.remove("model.gguf");
        }
    }
    // @ts-expect-error a device that does not exist
    await Bezel.load(file, { device: "tpu" });
    // @ts-expect-error a message without content
    await model.chat.completions.create({ messages: [{ role: "user" }] });
    (await fileSource("model.gguf")).close();
    return answer;
}

/** Every source of an image and of a sound in the README, and the other fields of a stream's chunks. */
export async function show(model: BezelModel, file: File, base64: string, bitmap: ImageBitmap, image: ImageData, recording: AudioBuffer): Promise<string> {
    if (!model.info.vision || !model.info.audio) {
        return "";
    }
    await model.chat.completions.create({
        messages: [{ role: "user", content: [
            { type: "image_url", image_url: { url: file, detail: "auto" } },
            { type: "input_audio", input_audio: { data: base64, format: "wav" } },
            { type: "text", text: "What do you see and hear?" },
        ] }],
    });
    const pixels = { data: new Uint8Array(3 * 64 * 48), width: 64, height: 48 };
    const images = [`data:image/png;base64,${base64}`, new URL("https://example.org/a.png"), file, bitmap, image, pixels];
    const sounds = [base64, new URL("https://example.org/a.wav"), file, recording];
    const messages: Message[] = [{ role: "user", content: [
        ...images.map((url) => ({ type: "image_url" as const, image_url: { url, detail: "low" as const } })),
        ...sounds.map((data) => ({ type: "input_audio" as const, input_audio: { data } })),
        { type: "input_audio", input_audio: { data: new Float32Array(16000), rate: 16000 } },
    ] }];
    let output = "";
    for await (const { choices, canvas, media, notice, timings } of await model.chat.completions.create({ messages, stream: true })) {
        output += choices[0]?.delta.content ?? "";
        if (canvas) {
            output += `${canvas.text} ${canvas.step / canvas.steps}`;
        }
        if (media) {
            output += `${media.kind} ${media.index + 1} of ${media.count}: ${media.done / media.total}`;
        }
        output += `${notice ?? ""} ${timings?.media_n ?? 0}`;
    }
    const whole = await model.chat.completions.create({ messages });
    whole.notices?.forEach((text: string) => console.log(text));
    // @ts-expect-error samples without a rate
    await model.chat.completions.create({ messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: new Float32Array(1) } }] }] });
    console.log((await model.mediaStats()).encoded);
    return output;
}
