/** Cards of published models: name, size, what each can, and whether it fits this device. */
import type { Capabilities } from "./bezel.js";
import type { Ability, ModelCard } from "./catalog.js";
import { h } from "./dom.js";
import { fitOf, type Fit } from "./fit.js";
import { formatBytes } from "./format.js";
import { icon } from "./icons.js";

const labels: Record<Ability, string> = {
    text: "text",
    images: "images",
    sound: "sound",
    video: "video",
    tools: "tools",
    thinking: "thinking",
    diffusion: "diffusion",
};

const verdicts: Record<Fit["verdict"], string> = { fits: "Fits this device.", unknown: "May fit this device.", not: "Does not fit this device." };

export function fitLine({ verdict, because }: Fit): HTMLElement {
    return h("span", { class: `fit ${verdict}` }, icon(verdict === "fits" ? "check" : "warn"), h("span", {}, h("b", {}, verdicts[verdict]), ` ${because}`));
}

/** Where it comes from, for people. */
function sourceOf({ from }: ModelCard): string {
    return /^https?:/.test(from) ? new URL(from.split(" ")[0] ?? from).host : from;
}

export function modelCards(cards: ModelCard[], capabilities: Capabilities, choose: (card: ModelCard) => void): HTMLElement {
    const list = cards.map((card) => {
        const { name, about, size, media, abilities } = card;
        const fit = fitOf({ text: size, media }, capabilities);
        return h(
            "li",
            {},
            h(
                "button",
                { type: "button", class: `model-card ${fit.verdict}`, onclick: () => choose(card) },
                h("span", { class: "model-name" }, h("b", {}, name), h("span", { class: "faint" }, `about ${formatBytes(size + media)}`)),
                h("span", { class: "about" }, about),
                h("span", { class: "abilities" }, ...abilities.map((one) => h("span", {}, labels[one]))),
                fitLine(fit),
                h("span", { class: "faint source" }, sourceOf(card)),
            ),
        );
    });
    return h("section", { class: "cards", "aria-labelledby": "cards-title" }, h("h3", { id: "cards-title" }, "Download a Gemma"), h("ul", { class: "card-list" }, ...list));
}
