/** Compiled against the published types, as a user's program would be; never run. */
import { Bezel, BezelError, type ChatCompletion, type Message, type Progress } from "bezel";
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
    let said = "";
    for await (const chunk of await model.chat.completions.create({ messages, stream: true }, { signal: AbortSignal.timeout(1000) })) {
        said += chunk.choices[0]?.delta.content ?? "";
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
    return said;
}
