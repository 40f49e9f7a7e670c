/** The page's list of models, models.json: what comes with the page, and cards of models on other hosts. A site owner
 * can change it, so each entry is checked and a wrong one is left out, with a message in the console. */
import { defaultHosts, isObject, isSize, type Hosts } from "./remote.js";

/** An example question. Addresses are relative to the page. */
export interface Suggestion {
    text: string;
    image?: string;
    audio?: string;
    /** Another offered model, which is loaded first; `note` says so. */
    model?: string;
    /** Names of the page's tools that are on for this question. */
    tools?: string[];
    note?: string;
}

/** A model that comes with the page or its server. */
export interface Offer {
    name: string;
    /** Relative to the page. */
    url: string;
    /** Other files of the same model. */
    more?: string[];
    about: string;
    suggest?: (string | Suggestion)[];
    /** Loaded by itself when nothing else was chosen: a small model that comes with the page. Only the first of the list. */
    auto?: boolean;
}

export type Ability = "text" | "images" | "sound" | "video" | "tools" | "thinking" | "diffusion";
const abilities: readonly Ability[] = ["text", "images", "sound", "video", "tools", "thinking", "diffusion"];

/** A published model on another host. */
export interface ModelCard {
    name: string;
    /** A name or addresses, as hosts.ts reads them. */
    from: string;
    about: string;
    /** Bytes of the text model, about; the host's own figure replaces it. */
    size: number;
    /** Bytes of separate encoders for images and sound, about. */
    media: number;
    abilities: Ability[];
}

export interface Catalog {
    hosts: Hosts;
    offers: Offer[];
    cards: ModelCard[];
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
const isOptional = (value: unknown, is: (value: unknown) => boolean): boolean => value === undefined || is(value);

function isSuggestion(value: unknown): value is string | Suggestion {
    return isText(value) || (isObject(value) && isText(value["text"]) && ["image", "audio", "model", "note"].every((key) => isOptional(value[key], isText)) && isOptional(value["tools"], isTexts));
}

function isOffer(value: unknown): value is Offer {
    return (
        isObject(value) && isText(value["name"]) && isText(value["url"]) && typeof value["about"] === "string" && isOptional(value["more"], isTexts) &&
        isOptional(value["suggest"], (list) => Array.isArray(list) && list.every(isSuggestion)) && isOptional(value["auto"], (auto) => typeof auto === "boolean")
    );
}

function readCard(value: unknown): ModelCard | null {
    if (!isObject(value)) {
        return null;
    }
    const { name, from, about, size, media = 0, abilities: can } = value;
    const addresses = isTexts(from) ? from.join(" ") : from;
    if (!isText(name) || !isText(addresses) || typeof about !== "string" || !isSize(size) || !isSize(media) || !isTexts(can)) {
        return null;
    }
    return { name, from: addresses, about, size, media, abilities: abilities.filter((one) => can.includes(one)) };
}

function isHost(value: unknown): value is string {
    return isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

export function readCatalog(json: unknown): Catalog {
    const { hosts, models, cards } = isObject(json) ? json : {};
    const host = (key: keyof Hosts): string => {
        const value = isObject(hosts) ? hosts[key] : undefined;
        return isHost(value) ? value.replace(/\/+$/, "") : defaultHosts[key];
    };
    const refuse = (what: string, entry: unknown): void => console.warn(`models.json: ${what} is left out, as a field is missing or wrong:`, entry);
    const catalog: Catalog = { hosts: { huggingFace: host("huggingFace"), ollama: host("ollama") }, offers: [], cards: [] };
    for (const entry of Array.isArray(models) ? (models as unknown[]) : []) {
        if (isOffer(entry)) {
            catalog.offers.push(entry);
        } else {
            refuse("a model", entry);
        }
    }
    for (const entry of Array.isArray(cards) ? (cards as unknown[]) : []) {
        const card = readCard(entry);
        if (card) {
            catalog.cards.push(card);
        } else {
            refuse("a card", entry);
        }
    }
    return catalog;
}
