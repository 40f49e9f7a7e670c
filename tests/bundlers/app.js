// An application of the package. A test builds it with each bundler and checks the title.
import { Bezel } from "bezel";

async function main() {
    const stages = new Set();
    const model = await Bezel.load("/models/nano-e-q8_0.gguf", { device: "cpu", threads: 2, onProgress: ({ stage }) => stages.add(stage) });
    const { usage } = await model.chat.completions.create({
        messages: [{ role: "user", content: "Name three gems." }],
        max_tokens: 3,
        temperature: 0,
    });
    model.close();
    return `${usage.completion_tokens} tokens, ${model.info.threads} threads, after ${[...stages].join(" ")}`;
}

main().then(
    (text) => (document.title = text),
    (error) => (document.title = `failed: ${error.message}`),
);
