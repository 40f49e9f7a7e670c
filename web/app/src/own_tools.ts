/** Tools that the user made: a name, a description, a JSON schema of the arguments, and JavaScript that runs in the
 * sandbox. */
import { runInSandbox } from "./sandbox.js";
import type { Store } from "./store.js";
import type { PageTool } from "./toolbox.js";

export interface OwnTool {
    name: string;
    description: string;
    /** JSON schema, as text. */
    parameters: string;
    /** The body of a function of `input`, the arguments. */
    code: string;
}

/** Which of these does not do, as a sentence; null: all do. */
export function faultOf({ name, description, parameters, code }: OwnTool, taken: string[]): string | null {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name)) {
        return "The name has to begin with a letter, and may have letters, digits and _ only.";
    }
    if (taken.includes(name)) {
        return `There is a tool named ${name} already.`;
    }
    if (description.trim() === "" || code.trim() === "") {
        return "A description and code are needed: the model chooses a tool by its description.";
    }
    try {
        const schema: unknown = JSON.parse(parameters);
        const type = typeof schema === "object" && schema !== null ? (schema as { type?: unknown }).type : undefined;
        return type === "object" ? null : 'The schema has to describe an object: {"type": "object", "properties": {...}}.';
    } catch (reason) {
        return `The schema is not valid JSON: ${reason instanceof Error ? reason.message : String(reason)}`;
    }
}

export function pageTool({ name, description, parameters, code }: OwnTool): PageTool {
    return {
        name,
        title: name,
        about: description,
        description,
        parameters: JSON.parse(parameters) as object,
        run: (args, signal) => runInSandbox(`(async (input) => {${code}\n})(input)`, args, signal),
    };
}

export async function readOwnTools(store: Store): Promise<OwnTool[]> {
    const stored = (await store.value<OwnTool[]>("own-tools")) ?? [];
    return stored.filter((tool) => faultOf(tool, []) === null);
}
