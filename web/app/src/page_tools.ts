/** The tools that come with the page. */
import { calculate } from "./calculator.js";
import { fetchTool, type AskToFetch } from "./fetch_tool.js";
import { Notes, notesTool } from "./notes.js";
import { runInSandbox } from "./sandbox.js";
import { textArgument, type Arguments, type PageTool } from "./toolbox.js";

const calculator: PageTool = {
    name: "calculator",
    title: "Calculator",
    about: "Exact arithmetic, powers, roots, logarithms and trigonometry.",
    // Short, with the details at the argument: small models then name the argument rightly.
    description: "Calculates a math expression.",
    parameters: {
        type: "object",
        properties: { expression: { type: "string", description: "For example 17.5 * (3 + 4)^2; with + - * / % ^ !, sqrt, ln, log, sin, min, max, round, pi, e" } },
        required: ["expression"],
    },
    run: (args) => calculate(textArgument(args, "expression")),
};

function timeIn(args: Arguments): string {
    const zone = args["time_zone"];
    const options: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "long", ...(typeof zone === "string" && zone !== "" ? { timeZone: zone } : {}) };
    try {
        const format = new Intl.DateTimeFormat("en", options);
        return `${format.format(new Date())} (${format.resolvedOptions().timeZone})`;
    } catch {
        throw new Error("The time zone is not known: it has to be a name such as Europe/Berlin.");
    }
}

const clock: PageTool = {
    name: "clock",
    title: "Clock",
    about: "Today's date and the time, here or in another time zone.",
    description: "Tells the current date, weekday and time.",
    parameters: { type: "object", properties: { time_zone: { type: "string", description: "For example Europe/Berlin; default: the user's own" } } },
    run: timeIn,
};

const javascript: PageTool = {
    name: "run_javascript",
    title: "JavaScript",
    about: "Runs small programs in a closed interpreter: no network, no access to this page, 5 seconds.",
    description: "Runs JavaScript and returns what console.log printed and the value of the last expression. There is no network, no DOM, no timers.",
    parameters: { type: "object", properties: { code: { type: "string" } }, required: ["code"] },
    run: (args, signal) => runInSandbox(textArgument(args, "code"), null, signal),
};

export function builtInTools(notes: Notes, ask: AskToFetch): PageTool[] {
    return [calculator, clock, notesTool(notes), javascript, fetchTool(ask)];
}
