/** Runs `bezel serve`. */
import { spawn } from "node:child_process";
import { check } from "../web/check.js";

/** `use` gets the server's URL, which the program prints in its first line. */
export async function withBezelServe<T>(model: string, use: (url: string) => Promise<T>, ...more: string[]): Promise<T> {
    const program = spawn("build/bezel", ["serve", "--model", model, ...more], { stdio: ["ignore", "pipe", "inherit"] });
    try {
        const line = await new Promise<string>((resolve, reject) => {
            program.stdout.once("data", (bytes: Buffer) => resolve(String(bytes)));
            program.once("error", reject);
            program.once("exit", (code) => reject(new Error(`bezel serve ended with status ${code}`)));
        });
        const url = /http:\/\/\S+/.exec(line)?.[0];
        check(url !== undefined, line);
        return await use(url ?? "");
    } finally {
        program.kill();
    }
}
