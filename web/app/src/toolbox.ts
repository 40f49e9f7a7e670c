/** The tools of the page that a model may call. Each says what it does to the user and to the model; results are text.
 * No DOM here. */
import type { Tool } from "./bezel.js";

/** Longer results are cut: they take context, and the model reads slowly. */
const MAX_RESULT = 8000;

export type Arguments = Record<string, unknown>;

export interface PageTool {
    name: string;
    /** For the user. */
    title: string;
    about: string;
    /** For the model. */
    description: string;
    /** JSON schema of the arguments. */
    parameters: object;
    /** Rejects with a sentence for the model. */
    run(args: Arguments, signal: AbortSignal): Promise<string> | string;
}

/** An argument that has to be a text. */
export function textArgument(args: Arguments, name: string): string {
    const value = args[name];
    if (typeof value !== "string" || value.trim() === "") {
        throw new Error(`The argument "${name}" has to be a text.`);
    }
    return value;
}

function parseArguments(text: string): Arguments {
    let value: unknown;
    try {
        value = JSON.parse(text || "{}");
    } catch {
        throw new Error("The arguments are not valid JSON.");
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new Error("The arguments have to be a JSON object.");
    }
    return value as Arguments;
}

export class ToolBox {
    readonly #enabled: () => string[];
    #tools: PageTool[] = [];

    /** `enabled`: names of the tools that the user has switched on. */
    constructor(enabled: () => string[]) {
        this.#enabled = enabled;
    }

    /** All tools, also those that are switched off. */
    get all(): PageTool[] {
        return this.#tools;
    }

    set(tools: PageTool[]): void {
        this.#tools = tools;
    }

    get active(): PageTool[] {
        return this.#allowed([]);
    }

    #allowed(more: string[]): PageTool[] {
        const names = [...this.#enabled(), ...more];
        return this.#tools.filter(({ name }) => names.includes(name));
    }

    /** For a request. `more`: names of tools that are on for this one question. */
    definitions(more: string[] = []): Tool[] {
        return this.#allowed(more).map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));
    }

    titleOf(name: string): string {
        return this.#tools.find((tool) => tool.name === name)?.title ?? name;
    }

    /** Runs a call; rejects with a sentence for the model. */
    async run(name: string, args: string, signal: AbortSignal, more: string[] = []): Promise<string> {
        const tool = this.#allowed(more).find((one) => one.name === name);
        if (!tool) {
            throw new Error(`There is no tool named ${name.slice(0, 100)}.`);
        }
        const result = await tool.run(parseArguments(args), signal);
        return result.length > MAX_RESULT ? `${result.slice(0, MAX_RESULT)}\n[cut: ${result.length - MAX_RESULT} more characters]` : result;
    }
}
